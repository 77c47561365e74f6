//! Runs that a crash cut off: whichever command came next gave them their records; the ledger takes them in here.

use std::collections::BTreeSet;

use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain::{Ledger, LedgerError};
use crate::experiment::ledger::outcome::Ran;
use crate::experiment::plan::Cell;
use crate::experiment::status::runs;
use crate::experiment::{allocation::Slot, canonical};
use crate::ids::{RegistrationHash, RunId};
use crate::record::{FrameworkCode, Record, RunState};
use crate::store::{Batch, Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the records of the experiment cannot be read")]
    Store(#[from] StoreError),
    #[error("a record of the experiment is no record")]
    Unreadable(#[source] serde_json::Error),
    /// A record and its entry are one commit, so that only a crash leaves a record alone.
    #[error(
        "run {run} belongs to the experiment and ended as {state}, but its ledger does not tell of it"
    )]
    Unaccounted { run: RunId, state: &'static str },
}

/// Adds an entry for every cut-off run that has a record and no entry. Answers their ids.
///
/// # Errors
/// A record that is not of a cut-off run and that the ledger does not know: somebody took an entry away.
pub fn cut_off(
    store: &Store,
    ledger: &mut Ledger,
    slots: &[Slot],
    now: &dyn Fn() -> String,
) -> Result<Vec<RunId>, AdoptError> {
    let known: BTreeSet<RunId> = runs(ledger.entries())
        .map(|run| run.run_id.clone())
        .collect();
    let mut found: Vec<(Record, String)> = Vec::new();
    for (record, text) in of_experiment(store, ledger.registration())? {
        if !known.contains(&record.run_id) {
            found.push((record, canonical::sha256_hex(&text)));
        }
    }
    let place = |record: &Record| {
        let place = record.experiment.as_ref();
        place.map(|place| (place.planned, place.attempt))
    };
    found.sort_by_key(|(record, _)| place(record));
    let mut adopted = Vec::new();
    for (record, record_sha256) in found {
        let (state, cut_off) = end_of(&record);
        if !cut_off {
            return Err(AdoptError::Unaccounted {
                run: record.run_id,
                state,
            });
        }
        adopt(store, ledger, slots, (&record, record_sha256), now)?;
        adopted.push(record.run_id);
    }
    Ok(adopted)
}

/// The records that say of themselves that they are of a registration, each with whether a crash cut its run off.
///
/// One that cannot be read has no say; the ledger names it if it is the experiment's.
///
/// # Errors
/// Of the store.
pub fn kept(store: &Store, hash: &RegistrationHash) -> Result<Vec<(RunId, bool)>, StoreError> {
    let texts = store.records_with(hash.as_str())?;
    let read = texts
        .iter()
        .filter_map(|text| serde_json::from_str(text).ok());
    let ours = read.filter(|record: &Record| {
        let place = record.experiment.as_ref();
        place.is_some_and(|place| place.registration == *hash)
    });
    Ok(ours
        .map(|record| (record.run_id.clone(), end_of(&record).1))
        .collect())
}

fn of_experiment(
    store: &Store,
    hash: &RegistrationHash,
) -> Result<Vec<(Record, String)>, AdoptError> {
    let mut found = Vec::new();
    for text in store.records_with(hash.as_str())? {
        let record: Record = serde_json::from_str(&text).map_err(AdoptError::Unreadable)?;
        let place = record.experiment.as_ref();
        if place.is_some_and(|place| place.registration == *hash) {
            found.push((record, text));
        }
    }
    Ok(found)
}

/// How a run ended, and whether that may be without an entry.
fn end_of(record: &Record) -> (&'static str, bool) {
    match &record.state {
        RunState::FrameworkError { code, .. } => (code.as_str(), *code == FrameworkCode::Crashed),
        RunState::NotRun { .. } => ("not_run", true),
        RunState::Scored => ("scored", false),
        RunState::Timeout => ("timeout", false),
    }
}

fn adopt(
    store: &Store,
    ledger: &mut Ledger,
    slots: &[Slot],
    (record, record_sha256): (&Record, String),
    now: &dyn Fn() -> String,
) -> Result<(), AdoptError> {
    let planned = record.experiment.as_ref().map(|place| place.planned);
    let slot = slots.iter().find(|slot| Some(slot.planned) == planned);
    let cell: Cell = match slot {
        Some(slot) => slot.cell.clone(),
        None => return Ok(()),
    };
    let actual = next_actual(ledger);
    let ran = Ran {
        record,
        record_sha256,
        score: None,
        cell,
    };
    if let Some(entry) = ran.entry(Some(actual), false) {
        let mut batch = Batch::default();
        let entry = ledger
            .prepare(&mut batch, now(), Event::Ran(Box::new(entry)))
            .map_err(LedgerError::Canonical)?;
        store.write(&batch)?;
        ledger.kept(entry);
    }
    Ok(())
}

/// The next place in the order in which runs were begun.
pub fn next_actual(ledger: &Ledger) -> u64 {
    let begun = runs(ledger.entries()).filter_map(|run| run.actual);
    begun.max().map_or(0, |last| last + 1)
}
