//! Amending a locked plan: dated, with a reason, and splitting the data.
//!
//! The old registration's ledger gets its last word, the new one begins its own. Runs before the amendment stay runs of the
//! old registration and are never pooled with those after it: the new one starts at its first block.

use crate::experiment::ledger::chain;
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::lock::{
    LockError, Outcome, Provenance, Resolved, differences, is_same, put,
};
use crate::experiment::locked::Locked;
use crate::experiment::registration::Registration;
use crate::ids::RegistrationHash;
use crate::store::{Batch, Store};

/// What an amendment did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amended {
    pub locked: Outcome,
    /// Fields that differ, `path: old -> new`.
    pub differences: Vec<String>,
    /// Runs that the old registration has; they stay with it.
    pub runs_before: u64,
}

/// Puts a resolved plan in the place of a locked one, from here on.
///
/// # Errors
/// Another id, no difference, no reason, a finished experiment, or one that was amended to something else already.
pub fn amend(
    store: &Store,
    old: &Locked,
    resolved: &Resolved,
    reason: &str,
    provenance: &Provenance,
) -> Result<Amended, LockError> {
    if reason.trim().is_empty() {
        return Err(LockError::NoReason);
    }
    let Locked {
        hash: old,
        registration: before,
        ..
    } = old;
    let entries = chain::read(store, old)?;
    let new = Registration {
        amends: Some(old.to_string()),
        ..resolved.registration.clone()
    };
    if before.plan.id != new.plan.id {
        return Err(LockError::OtherId {
            hash: old.clone(),
            expected: before.plan.id.clone(),
            found: new.plan.id,
        });
    }
    if is_same(before, &new) {
        return Err(LockError::NothingAmended(old.clone()));
    }
    let differences = differences(before, &new)?;
    let runs_before = entries
        .iter()
        .filter(|entry| matches!(&entry.event, Event::Ran(run) if run.is_final))
        .count() as u64;
    let hash = new.hash()?;
    if is_done(old, &entries, &hash)? {
        // Interrupted after the commit and given again.
        let locked = Outcome {
            hash,
            is_new: false,
        };
        return Ok(Amended {
            locked,
            differences,
            runs_before,
        });
    }
    let event = Event::Amended {
        to: hash.clone(),
        reason: reason.trim().to_owned(),
    };
    let last_word = Entry::after(entries.last(), old, provenance.at.clone(), event)?;
    let mut batch = Batch::default();
    batch.ledger(old.as_str(), last_word.seq, last_word.text()?);
    let amends = amends(old, &entries, reason, runs_before);
    put(&mut batch, &new, &resolved.frozen, provenance, Some(amends))?;
    store.write(&batch)?;
    Ok(Amended {
        locked: Outcome { hash, is_new: true },
        differences,
        runs_before,
    })
}

/// What the new ledger says of the old one.
fn amends(old: &RegistrationHash, entries: &[Entry], reason: &str, runs_before: u64) -> Event {
    let scores_read = entries
        .iter()
        .any(|entry| matches!(entry.event, Event::Looked { .. } | Event::Unsealed { .. }));
    Event::Amends {
        from: old.clone(),
        reason: reason.trim().to_owned(),
        runs_before,
        scores_read,
    }
}

/// Whether the old ledger's last word is this very amendment already.
fn is_done(
    old: &RegistrationHash,
    entries: &[Entry],
    new: &RegistrationHash,
) -> Result<bool, LockError> {
    for entry in entries {
        match &entry.event {
            Event::Amended { to, .. } if to == new => return Ok(true),
            Event::Amended { to, .. } => {
                return Err(LockError::AmendedAlready {
                    hash: old.clone(),
                    to: to.clone(),
                });
            }
            Event::Finished { .. } => return Err(LockError::Finished(old.clone())),
            _ => {}
        }
    }
    Ok(false)
}
