//! The write-ahead journal of faults: on disk before the first write, erased when the undo is proven.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::cluster::target::Target;
use crate::ids::{RunId, ScenarioId};
use crate::inject::change::Plan;
use crate::store::{Store, StoreError};

/// Version of an entry's JSON. 1 knew changed fields only; 2 adds created objects and evictions. Older ones are read.
const FORMAT: u32 = 2;

/// Where a run takes place. An undo must never reach another cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The uid of the cluster's `kube-system` namespace; empty for a cluster that ends with the process.
    pub cluster_uid: String,
    /// The cluster ends with the process that made it; after a crash nothing is left of it.
    pub ends_with_process: bool,
    /// The kubeconfig context that led there. It may lead elsewhere by now: only the uid tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The kubeconfig, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
}

impl Place {
    /// A cluster that ends with the process.
    pub fn passing() -> Place {
        Place {
            ends_with_process: true,
            ..Place::default()
        }
    }

    pub fn of(target: &Target) -> Place {
        target
            .lasting()
            .map_or_else(Place::passing, |remote| Place {
                cluster_uid: remote.uid.clone(),
                ends_with_process: false,
                context: Some(remote.facts.name.clone()),
                kubeconfig: remote.kubeconfig.clone(),
            })
    }
}

/// A fault that may be in a cluster. Applied or not is told by comparing the live fields with the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    #[serde(deserialize_with = "known_format")]
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

/// An entry of a newer format may tell of acts that this program would overlook, and an undo that overlooks a part of
/// a fault is worse than one that is refused.
fn known_format<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let found = u32::deserialize(from)?;
    if found > FORMAT {
        let message = format!("undo entry of format {found}, this breakage knows {FORMAT}");
        return Err(D::Error::custom(message));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(format: u32, plan: &Value) -> Value {
        json!({
            "format": format, "run_id": "run-1", "scenario_id": "any",
            "place": {"cluster_uid": "u", "ends_with_process": false}, "plan": plan,
        })
    }

    #[test]
    fn an_entry_of_the_first_format_is_read_and_one_of_a_later_format_is_refused() {
        let first = entry(1, &json!({"changes": [], "warnings": []}));
        let read: JournalEntry = serde_json::from_value(first).unwrap();
        assert_eq!(read.plan, Plan::default());
        let later = entry(FORMAT + 1, &json!({"changes": [], "acts": ["unheard of"]}));
        let error = serde_json::from_value::<JournalEntry>(later).unwrap_err();
        assert!(error.to_string().contains("knows 2"), "{error}");
    }
}
