//! After a crash: finds faults that may still be in a cluster and takes them back.
//!
//! Whether a fault was written is told by comparing the live fields with the plan, so that every moment of a crash is
//! met. An entry of another cluster is left alone and told; one of a cluster that ended with its process is dropped.

use crate::cluster::target::Target;
use crate::inject::journal::JournalEntry;
use crate::inject::undo::{Undone, undo};
use crate::run::fault::cluster_uid;
use crate::store::{Store, StoreError};

/// What became of one unfinished run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Its cluster ended with the process that made it.
    Gone { run: String },
    /// Its fault was taken back (or had never been written).
    Undone { run: String, undone: Undone },
    /// Its fault could not be taken back; the entry stays.
    Failed { run: String, reason: String },
    /// It belongs to another cluster than this one; the entry stays.
    Elsewhere { run: String, cluster: String },
}

/// Recovers every unfinished run. `target` is the cluster at hand; without one, only entries whose cluster is gone are
/// dropped.
pub async fn recover(store: &Store, target: Option<&Target>) -> Result<Vec<Recovered>, StoreError> {
    let mut outcomes = Vec::new();
    let here = match target {
        Some(target) => {
            let client = target.client();
            let uid = cluster_uid(&client).await.unwrap_or_default();
            Some((client, uid))
        }
        None => None,
    };
    for entry in JournalEntry::all(store)? {
        let run = entry.run_id.to_string();
        let at_hand = here
            .as_ref()
            .filter(|(_, uid)| !uid.is_empty() && *uid == entry.place.cluster_uid);
        outcomes.push(match at_hand {
            Some((client, _)) => {
                let undone = undo(client, &entry.plan).await;
                if undone.is_complete() {
                    store.journal_erase(&run)?;
                    Recovered::Undone { run, undone }
                } else {
                    Recovered::Failed {
                        run,
                        reason: undone.failed.join("; "),
                    }
                }
            }
            None if entry.place.ends_with_process => {
                store.journal_erase(&run)?;
                Recovered::Gone { run }
            }
            None => Recovered::Elsewhere {
                run,
                cluster: entry.place.cluster_uid,
            },
        });
    }
    Ok(outcomes)
}
