//! What may be read of an experiment's scores, and when: all at its end, the first blocks at a registered look, and
//! anything at any time by saying so, which the ledger then tells for ever.

use std::collections::BTreeSet;

use crate::experiment::ledger::chain::{self, Ledger, LedgerError};
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::locked::{Locked, short};
use crate::experiment::plan::Plan;
use crate::experiment::status::Progress;
use crate::ids::RegistrationHash;
use crate::store::{Store, StoreError};

/// What the ledger lets anybody read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// No further run comes.
    Open,
    /// A registered look is due: the first so many blocks.
    Look {
        blocks: u32,
    },
    Closed,
}

/// How scores came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Finished,
    Look {
        blocks: u32,
    },
    /// Before the end and outside the plan: whatever is reported is exploratory.
    Unsealed,
}

/// Entries that may be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub entries: Vec<Entry>,
    pub how: How,
}

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(
        "the scores of experiment {id} ({}) are sealed until its last run: {ended} of {planned} have ended",
        short(hash.as_str())
    )]
    Sealed {
        id: String,
        hash: RegistrationHash,
        ended: u64,
        planned: u64,
    },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What may be read without breaking the seal.
pub fn seal(plan: &Plan, entries: &[Entry]) -> Seal {
    let progress = Progress::of(plan, entries);
    if progress.finished {
        return Seal::Open;
    }
    let complete = progress.blocks_complete;
    let due = plan.looks.iter().filter(|after| **after <= complete).max();
    due.map_or(Seal::Closed, |blocks| Seal::Look { blocks: *blocks })
}

/// Opens an experiment's scores for a command. A look and a broken seal are in the ledger before anything is answered.
///
/// # Errors
/// Sealed, and `unseal` is not said; or a ledger that cannot be added to.
pub fn open(
    ledger: &mut Ledger,
    locked: &Locked,
    command: &str,
    unseal: bool,
    now: impl Fn() -> String,
) -> Result<Opened, SealError> {
    let plan = &locked.registration.plan;
    match seal(plan, ledger.entries()) {
        Seal::Open => Ok(Opened {
            entries: ledger.entries().to_vec(),
            how: How::Finished,
        }),
        _ if unseal => {
            let command = command.to_owned();
            ledger.append(now(), Event::Unsealed { command })?;
            Ok(Opened {
                entries: ledger.entries().to_vec(),
                how: How::Unsealed,
            })
        }
        Seal::Look { blocks } => {
            let what = format!("the first {blocks} blocks");
            let looked = |entry: &Entry| matches!(&entry.event, Event::Looked { what: seen, planned: true } if *seen == what);
            if !ledger.entries().iter().any(looked) {
                let planned = true;
                ledger.append(now(), Event::Looked { what, planned })?;
            }
            Ok(Opened {
                entries: of_blocks(ledger.entries(), blocks),
                how: How::Look { blocks },
            })
        }
        Seal::Closed => {
            let progress = Progress::of(plan, ledger.entries());
            Err(SealError::Sealed {
                id: plan.id.to_string(),
                hash: locked.hash.clone(),
                ended: progress.ended,
                planned: progress.planned,
            })
        }
    }
}

/// The entries without runs of later blocks.
fn of_blocks(entries: &[Entry], blocks: u32) -> Vec<Entry> {
    let seen = entries.iter().filter(|entry| match &entry.event {
        Event::Ran(run) => run.block < blocks,
        _ => true,
    });
    seen.cloned().collect()
}

/// The registrations whose runs' scores no command may show one by one. An altered or unreadable one counts as sealed.
pub fn sealed(store: &Store) -> Result<BTreeSet<RegistrationHash>, StoreError> {
    let mut sealed = BTreeSet::new();
    for (hash, text) in store.registrations()? {
        let is_open = Locked::read(&hash, &text).is_ok_and(|locked| {
            chain::read(store, &locked.hash)
                .is_ok_and(|entries| seal(&locked.registration.plan, &entries) == Seal::Open)
        });
        if !is_open {
            sealed.insert(RegistrationHash::new(hash));
        }
    }
    Ok(sealed)
}
