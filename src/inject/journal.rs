//! The write-ahead journal of faults: on disk before the first write, erased when the undo is proven.

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, ScenarioId};
use crate::inject::change::Plan;
use crate::store::{Store, StoreError};

/// Version of an entry's JSON.
const FORMAT: u32 = 1;

/// Where a fault was written. An undo must never reach another cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The uid of the cluster's `kube-system` namespace.
    pub cluster_uid: String,
    /// The cluster ends with the process that made it; after a crash nothing is left of it.
    pub ends_with_process: bool,
}

/// A fault that may be in a cluster. Applied or not is told by comparing the live fields with the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub format: u32,
    pub run_id: RunId,
    pub scenario_id: ScenarioId,
    pub place: Place,
    pub plan: Plan,
}

impl JournalEntry {
    /// An entry of the present format.
    pub fn new(run_id: RunId, scenario_id: ScenarioId, place: Place, plan: Plan) -> JournalEntry {
        JournalEntry {
            format: FORMAT,
            run_id,
            scenario_id,
            place,
            plan,
        }
    }

    /// Writes the entry; it is on disk when this returns.
    pub fn put(&self, store: &Store) -> Result<(), StoreError> {
        store.journal_put(self.run_id.as_str(), self)
    }

    /// Every entry that was not erased.
    pub fn all(store: &Store) -> Result<Vec<JournalEntry>, StoreError> {
        Ok(store
            .journal()?
            .into_iter()
            .map(|(_, entry)| entry)
            .collect())
    }
}
