//! Runs of an experiment that has not ended: no command shows what they scored, unless the ledger is told so first.

use std::sync::Arc;

use crate::cli::experiment::now_text;
use crate::cli::failure::Failure;
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain::Ledger;
use crate::experiment::locked::short;
use crate::experiment::seal;
use crate::record::Record;
use crate::store::Store;

/// Refuses a sealed run, or notes in its ledger that the seal was broken.
pub(super) fn allow(
    store: Option<&Arc<Store>>,
    record: &Record,
    command: &str,
    unseal: bool,
) -> Result<(), Failure> {
    let (Some(store), Some(place)) = (store, &record.experiment) else {
        return Ok(());
    };
    let sealed = seal::sealed(store).map_err(Failure::input)?;
    if !sealed.contains(&place.registration) {
        return Ok(());
    }
    if !unseal {
        return Err(Failure::input(anyhow::anyhow!(
            "run {} belongs to experiment {}, whose scores are sealed until its last run",
            record.run_id,
            short(place.registration.as_str())
        ))
        .hint(format!(
            "breakage {command} {} --unseal shows it all the same; the ledger keeps that, and the report is exploratory then",
            record.run_id
        )));
    }
    let mut ledger =
        Ledger::open(store.clone(), place.registration.clone()).map_err(Failure::input)?;
    let command = format!("{command} {}", record.run_id);
    ledger
        .append(now_text(), Event::Unsealed { command })
        .map_err(Failure::input)
}
