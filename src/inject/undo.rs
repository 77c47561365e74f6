//! Taking a fault back, field by field: faulty value, restore; original value, nothing; anything else, keep and report.
//!
//! It always ends, can be repeated, and touches no field that the fault did not touch. An object that is gone is left
//! to the reset; one that was recreated (another uid) only loses its faulty fields.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, JsonPatch};
use crate::inject::change::{ObjectChange, Plan};
use crate::inject::field::{self, Edit};
use crate::inject::write::{BACK_OFF, MAX_ATTEMPTS, is_conflict};
use crate::inject::{creation, pod_evict};

/// The manager under which `kubectl edit` writes.
const MANAGER: &str = "kubectl-edit";

/// What became of the fields of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Fields that had the faulty value and were set back.
    pub restored: Vec<String>,
    /// Fields that already were as before.
    pub original: Vec<String>,
    /// Fields left alone, with the reason.
    pub kept: Vec<String>,
    /// Objects that could not be written, with the reason. The plan must be kept and the undo repeated.
    pub failed: Vec<String>,
}

impl Undone {
    /// Whether nothing of the fault is left that an undo could take back.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

/// Takes back everything of the plan, in order: what was created and the contents first, then the restarts that let
/// them take effect.
pub async fn undo(client: &kube::Client, plan: &Plan) -> Undone {
    let mut undone = Undone::default();
    for creation in &plan.created {
        if let Err(error) = creation::undo(client, creation, &mut undone).await {
            undone.failed.push(format!("{}: {error}", creation.object));
        }
    }
    for eviction in &plan.evictions {
        if let Err(error) = pod_evict::undo(client, eviction, &mut undone).await {
            undone.failed.push(format!("{}: {error}", eviction.pod));
        }
    }
    for change in &plan.changes {
        if let Err(error) = undo_one(client, change, &mut undone).await {
            undone.failed.push(format!("{}: {error}", change.object));
        }
    }
    undone
}

async fn undo_one(
    client: &kube::Client,
    change: &ObjectChange,
    undone: &mut Undone,
) -> Result<(), ClusterError> {
    let resource = resource::of_kind(&change.object.kind)?;
    let (namespace, name) = (&change.object.namespace, &change.object.name);
    for attempt in 1..=MAX_ATTEMPTS {
        let Some(live) = resource.get(client, namespace, name).await? else {
            undone
                .kept
                .push(format!("{} is gone and was not put back", change.object));
            return Ok(());
        };
        let verdict = judge(&live, change);
        let done = match &verdict.edit {
            // That nothing is left to do must not rest on a read from the past.
            None => resource.is_current(client, &live).await,
            Some(edit) => {
                let patch = JsonPatch {
                    operations: &edit.operations,
                    manager: MANAGER,
                    dry_run: false,
                };
                let answer = resource.patch(client, namespace, name, &patch).await;
                answer.map(|_| true)
            }
        };
        match done {
            Ok(true) => {
                verdict.enter(undone);
                return Ok(());
            }
            Err(error) if !is_conflict(&error) || attempt == MAX_ATTEMPTS => return Err(error),
            // Overtaken, or an answer that was lost: what stands there now, the next reading tells.
            Ok(false) | Err(_) => tokio::time::sleep(BACK_OFF * attempt).await,
        }
    }
    Err(ClusterError::NotSettled {
        seconds: (1..=MAX_ATTEMPTS)
            .map(|attempt| BACK_OFF * attempt)
            .sum::<Duration>()
            .as_secs(),
        what: format!(
            "{} changed {MAX_ATTEMPTS} times while it was looked at",
            change.object
        ),
    })
}

/// What is to be done with one object as it is now.
struct Verdict {
    restored: Vec<String>,
    original: Vec<String>,
    kept: Vec<String>,
    edit: Option<Edit>,
}

impl Verdict {
    fn enter(self, undone: &mut Undone) {
        undone.restored.extend(self.restored);
        undone.original.extend(self.original);
        undone.kept.extend(self.kept);
    }
}

fn judge(live: &Value, change: &ObjectChange) -> Verdict {
    let mut verdict = Verdict {
        restored: Vec::new(),
        original: Vec::new(),
        kept: Vec::new(),
        edit: None,
    };
    let mut edit = Edit::of(live);
    let recreated = live["metadata"]["uid"] != *change.object.uid;
    if recreated {
        verdict
            .kept
            .push(format!("{} was recreated by someone else", change.object));
    }
    for field in &change.fields {
        let label = format!("{} {}", change.object, field::dotted(&field.path));
        let Ok(path) = field::relocate(live, &field.path) else {
            verdict.kept.push(format!("{label}: what held it is gone"));
            continue;
        };
        let now = field::value_at(live, &path);
        if field::same(&path, now, field.old.as_ref()) {
            verdict.original.push(label);
        } else if field::holds(&path, field.new.as_ref(), now) {
            edit.put(&path, field.old.as_ref(), field.made_ancestors);
            verdict.restored.push(label);
        } else {
            verdict
                .kept
                .push(format!("{label}: changed by someone else"));
        }
    }
    if !verdict.restored.is_empty() {
        verdict.edit = Some(edit);
    }
    verdict
}

#[cfg(test)]
mod tests;
