//! Writing a planned fault: one guarded request per object, re-read and tried again when the object moved or the
//! answer was lost.
//!
//! Nothing is written unless every field still has the value that the plan read.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, JsonPatch};
use crate::inject::InjectError;
use crate::inject::change::{ObjectChange, Plan};
use crate::inject::field::{self, Edit};
use crate::inject::{creation, pod_evict};

/// Objects under a busy controller change several times a second; more attempts than this mean that somebody else
/// keeps writing the same fields.
pub const MAX_ATTEMPTS: u32 = 5;
/// Time for the other writer to finish; grows with each attempt.
pub const BACK_OFF: Duration = Duration::from_millis(200);

/// What the agents of a cluster's network take to act on a new policy, before anything is restarted on purpose to meet
/// it; measured on kube-router.
pub const TAKES_HOLD: Duration = Duration::from_secs(3);

/// Does everything of the plan in order and takes over what the server stored. Stops at the first refusal; what
/// was written until then is in the plan and can be undone.
pub async fn apply(client: &kube::Client, plan: &mut Plan) -> Result<(), InjectError> {
    for creation in &mut plan.created {
        creation::create(client, creation).await?;
    }
    if !plan.created.is_empty() && !plan.changes.is_empty() {
        tokio::time::sleep(TAKES_HOLD).await;
    }
    for change in &mut plan.changes {
        apply_one(client, change).await?;
    }
    for eviction in &plan.evictions {
        pod_evict::apply(client, eviction).await?;
    }
    Ok(())
}

/// What of a written fault no longer stands in the cluster: objects that are gone or were made anew, fields that
/// somebody changed.
pub async fn lost(client: &kube::Client, plan: &Plan) -> Result<Vec<String>, InjectError> {
    let mut lost = Vec::new();
    for change in &plan.changes {
        let object = &change.object;
        let resource = resource::of_kind(&object.kind)?;
        let live = resource
            .get(client, &object.namespace, &object.name)
            .await?;
        lost.extend(match live {
            None => Some(format!("{object} is gone")),
            Some(live) if live["metadata"]["uid"] != *object.uid => {
                Some(format!("{object} was recreated by someone else"))
            }
            Some(live) if !is_written(&live, change) => {
                Some(format!("{object} was changed by someone else"))
            }
            Some(_) => None,
        });
    }
    Ok(lost)
}

async fn apply_one(client: &kube::Client, change: &mut ObjectChange) -> Result<(), InjectError> {
    let resource = resource::of_kind(&change.object.kind)?;
    let (namespace, name) = (change.object.namespace.clone(), change.object.name.clone());
    // An answer was lost: what it would have said stands in the object.
    let mut unclear = false;
    let mut refused: Option<Refused> = None;
    for attempt in 1..=MAX_ATTEMPTS {
        let live = resource.get(client, &namespace, &name).await?;
        let live = live
            .filter(|live| live["metadata"]["uid"] == *change.object.uid)
            .ok_or_else(|| InjectError::TargetMissing {
                object: change.object.to_string(),
            })?;
        if unclear && is_written(&live, change) {
            take_over(&live, change);
            return Ok(());
        }
        if !as_planned(&live, change) {
            return Err(InjectError::Contended {
                object: change.object.to_string(),
                attempts: attempt,
            });
        }
        if let Some(refused) = refused.filter(|refused| refused.is_final(&live)) {
            return Err(refused.into_error(change));
        }
        let edit = edit(&live, change);
        let patch = JsonPatch {
            operations: &edit.operations,
            manager: &change.manager,
            dry_run: false,
        };
        let error = match resource.patch(client, &namespace, &name, &patch).await {
            Ok(stored) => {
                take_over(&stored, change);
                return Ok(());
            }
            Err(error) => error,
        };
        unclear |= error.is_unclear();
        refused = Refused::of(&error, &live);
        if !is_conflict(&error) || attempt == MAX_ATTEMPTS {
            return Err(match refused {
                Some(refused) => refused.into_error(change),
                None => error.into(),
            });
        }
        tokio::time::sleep(BACK_OFF * attempt).await;
    }
    Err(InjectError::Contended {
        object: change.object.to_string(),
        attempts: MAX_ATTEMPTS,
    })
}

/// A server's no to a write, with the version of the object that it was said of.
struct Refused {
    code: u16,
    message: String,
    version: Value,
}

impl Refused {
    /// Nothing where the server is not able to answer, rather than unwilling.
    fn of(error: &ClusterError, live: &Value) -> Option<Refused> {
        match error {
            ClusterError::Api { code, message, .. } if !error.is_outage() => Some(Refused {
                code: *code,
                message: message.clone(),
                version: live["metadata"]["resourceVersion"].clone(),
            }),
            _ => None,
        }
    }

    /// A guard that failed has been overtaken by another write. Where there was none, the no was meant, and asking
    /// again is of no use.
    fn is_final(&self, live: &Value) -> bool {
        self.code == 422 && live["metadata"]["resourceVersion"] == self.version
    }

    fn into_error(self, change: &ObjectChange) -> InjectError {
        InjectError::Refused {
            object: change.object.to_string(),
            code: self.code,
            message: self.message,
        }
    }
}

/// Takes over what the server stored, in its own spelling.
fn take_over(stored: &Value, change: &mut ObjectChange) {
    for field in &mut change.fields {
        field.new = field::value_at(stored, &field.path).cloned();
    }
}

/// Whether the object already is as the fault makes it.
fn is_written(live: &Value, change: &ObjectChange) -> bool {
    change.fields.iter().all(|field| {
        field::relocate(live, &field.path)
            .is_ok_and(|path| field::holds(&path, field.new.as_ref(), field::value_at(live, &path)))
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

/// A write that met a newer object (409), a failed guard (422), or a cluster that could not answer: worth reading again,
/// which also tells whether a write whose answer was lost was carried out.
pub fn is_conflict(error: &ClusterError) -> bool {
    error.is_outage()
        || matches!(
            error,
            ClusterError::Api {
                code: 409 | 422,
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
