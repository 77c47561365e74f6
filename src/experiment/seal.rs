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

/// What may be read without breaking the seal. An amended registration is open once the one that took over is finished:
/// until then its scores would be a look at the same question.
pub fn seal(store: &Store, plan: &Plan, entries: &[Entry]) -> Result<Seal, LedgerError> {
    let progress = Progress::of(plan, entries);
    if progress.finished {
        return Ok(Seal::Open);
    }
    if let Some(successor) = &progress.amended_to {
        return Ok(match is_finished(store, successor)? {
            true => Seal::Open,
            false => Seal::Closed,
        });
    }
    let complete = progress.blocks_complete;
    let due = plan.looks.iter().filter(|after| **after <= complete).max();
    Ok(due.map_or(Seal::Closed, |blocks| Seal::Look { blocks: *blocks }))
}

/// Whether a registration, or the last of those that amended it, is at its end.
fn is_finished(store: &Store, hash: &str) -> Result<bool, LedgerError> {
    let mut hash = hash.to_owned();
    // Every amendment is a registration of its own; more of them than there are registrations would be a ring.
    for _ in 0..=store.registrations()?.len() {
        let entries = chain::read(store, &RegistrationHash::new(hash.as_str()))?;
        let mut next = None;
        for entry in &entries {
            match &entry.event {
                Event::Finished { .. } => return Ok(true),
                Event::Amended { to, .. } => next = Some(to.to_string()),
                _ => {}
            }
        }
        match next {
            Some(to) => hash = to,
            None => return Ok(false),
        }
    }
    Ok(false)
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
    match seal(ledger.store(), plan, ledger.entries())? {
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
                .and_then(|entries| seal(store, &locked.registration.plan, &entries))
                .is_ok_and(|found| found == Seal::Open)
        });
        if !is_open {
            sealed.insert(RegistrationHash::new(hash));
        }
    }
    Ok(sealed)
}
