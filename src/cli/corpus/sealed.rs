//! Postmortems of runs whose experiment has not ended: their outcome and diagnosis tell what the seal keeps back.

use std::collections::BTreeMap;

use anyhow::anyhow;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::experience::Reader;
use crate::experience::entry::Entry;
use crate::experiment::locked::short;
use crate::experiment::seal;
use crate::ids::{PostmortemId, RegistrationHash};

/// The sealed ones among some postmortems, each with the experiment that its run belongs to.
pub(super) struct Sealed(BTreeMap<PostmortemId, RegistrationHash>);

impl Sealed {
    pub(super) fn among(reader: &Reader, entries: &[Entry]) -> Result<Sealed, Failure> {
        let mut found = BTreeMap::new();
        let Some(store) = reader.store() else {
            return Ok(Sealed(found));
        };
        let sealed = seal::sealed(store).map_err(Failure::input)?;
        if sealed.is_empty() {
            return Ok(Sealed(found));
        }
        for entry in entries {
            let Some(run) = &entry.run_id else { continue };
            let record = store.record(run).map_err(Failure::input)?;
            let place = record.and_then(|record| record.experiment);
            if let Some(place) = place.filter(|place| sealed.contains(&place.registration)) {
                found.insert(entry.id.clone(), place.registration);
            }
        }
        Ok(Sealed(found))
    }

    pub(super) fn has(&self, id: &PostmortemId) -> bool {
        self.0.contains_key(id)
    }

    /// Says how many were left out.
    pub(super) fn note(&self, context: &Context) {
        if !self.0.is_empty() {
            context.output.note(&format!(
                "note: {} postmortems of runs of sealed experiments are left out until the last run has ended \
                 (breakage experiment list)",
                self.0.len()
            ));
        }
    }

    /// Refuses one that is sealed.
    pub(super) fn allow(&self, entry: &Entry) -> Result<(), Failure> {
        let (Some(hash), Some(run)) = (self.0.get(&entry.id), &entry.run_id) else {
            return Ok(());
        };
        let hash = short(hash.as_str());
        Err(Failure::input(anyhow!(
            "postmortem {} is of a run of experiment {hash}, which is sealed until its last run",
            entry.id
        ))
        .hint(format!(
            "breakage runs show {run} --unseal shows the run all the same; the ledger keeps that, and the report is \
             exploratory then"
        ))
        .hint(format!(
            "breakage experiment status {hash} says how many runs are left"
        )))
    }
}
