//! Writing a planned fault: one guarded request per object, re-read and tried again when the object moved.
//!
//! Nothing is written unless every field still has the value that the plan read.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, JsonPatch};
use crate::inject::InjectError;
use crate::inject::change::{ObjectChange, Plan};
use crate::inject::field::{self, Edit};

/// Objects under a busy controller change several times a second; more attempts than this mean that somebody else
/// keeps writing the same fields.
pub const MAX_ATTEMPTS: u32 = 5;
/// Time for the other writer to finish; grows with each attempt.
pub const BACK_OFF: Duration = Duration::from_millis(200);

/// Writes every object of the plan in order and takes over what the server stored. Stops at the first refusal; what
/// was written until then is in the plan and can be undone.
pub async fn apply(client: &kube::Client, plan: &mut Plan) -> Result<(), InjectError> {
    for change in &mut plan.changes {
        apply_one(client, change).await?;
    }
    Ok(())
}

async fn apply_one(client: &kube::Client, change: &mut ObjectChange) -> Result<(), InjectError> {
    let resource = resource::of_kind(&change.object.kind)?;
    let (namespace, name) = (change.object.namespace.clone(), change.object.name.clone());
    for attempt in 1..=MAX_ATTEMPTS {
        let live = resource.get(client, &namespace, &name).await?;
        let live = live
            .filter(|live| live["metadata"]["uid"] == *change.object.uid)
            .ok_or_else(|| InjectError::TargetMissing {
                object: change.object.to_string(),
            })?;
        if !as_planned(&live, change) {
            return Err(InjectError::Contended {
                object: change.object.to_string(),
                attempts: attempt,
            });
        }
        let edit = edit(&live, change);
        let answer = resource
            .patch(
                client,
                &namespace,
                &name,
                &JsonPatch {
                    operations: &edit.operations,
                    manager: &change.manager,
                    dry_run: false,
                },
            )
            .await;
        match answer {
            Ok(stored) => {
                for field in &mut change.fields {
                    field.new = field::value_at(&stored, &field.path).cloned();
                }
                return Ok(());
            }
            Err(error) if is_conflict(&error) && attempt < MAX_ATTEMPTS => {
                tokio::time::sleep(BACK_OFF * attempt).await;
            }
            Err(ClusterError::Api { code, message, .. }) => {
                return Err(InjectError::Refused {
                    object: change.object.to_string(),
                    code,
                    message,
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(InjectError::Contended {
        object: change.object.to_string(),
        attempts: MAX_ATTEMPTS,
    })
}

/// The guarded patch that makes the planned change of a live object.
pub fn edit(live: &Value, change: &ObjectChange) -> Edit {
    let mut edit = Edit::of(live);
    for field in &change.fields {
        if let Ok(path) = field::relocate(live, &field.path) {
            edit.put(&path, field.new.as_ref(), field.made_ancestors);
        }
    }
    edit
}

/// A write that met a newer object (409), a failed guard (422), or a server that was busy.
pub fn is_conflict(error: &ClusterError) -> bool {
    matches!(
        error,
        ClusterError::Api {
            code: 409 | 422 | 429 | 500 | 503 | 504,
            ..
        }
    )
}

/// Whether every field still has the value that the plan read.
fn as_planned(live: &Value, change: &ObjectChange) -> bool {
    change.fields.iter().all(|field| {
        field::relocate(live, &field.path)
            .is_ok_and(|path| field::same(&path, field.old.as_ref(), field::value_at(live, &path)))
    })
}
