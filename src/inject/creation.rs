//! Objects that a fault creates: made once, and taken away by their uid.
//!
//! A crash may come after the creation and before the uid is in the journal. An object of that name whose content is
//! what we sent is then ours: the name was free when the plan was made.

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, NewObject};
use crate::inject::InjectError;
use crate::inject::change::{Creation, reference};
use crate::inject::field;
use crate::inject::undo::Undone;
use crate::inject::write::{BACK_OFF, MAX_ATTEMPTS, is_conflict};

/// Creates the object and takes over its uid and what the server stored.
pub async fn create(client: &kube::Client, creation: &mut Creation) -> Result<(), InjectError> {
    let object = &creation.object;
    let new = NewObject {
        manifest: &creation.manifest,
        manager: &creation.manager,
        dry_run: false,
    };
    let answer = resource::of_kind(&object.kind)?
        .create_as(client, &object.namespace, &new)
        .await;
    let stored = match answer {
        Ok(stored) => stored,
        Err(ClusterError::Api { code, message, .. }) if code < 500 => {
            return Err(InjectError::Refused {
                object: object.to_string(),
                code,
                message,
            });
        }
        Err(error) => return Err(error.into()),
    };
    creation.object = reference(&object.kind, &stored);
    creation.manifest["spec"] = stored["spec"].clone();
    Ok(())
}

/// Deletes the object if it is still as the fault made it. One that is gone needs nothing; one that somebody changed
/// is theirs now, and is kept and told.
pub async fn undo(
    client: &kube::Client,
    creation: &Creation,
    undone: &mut Undone,
) -> Result<(), ClusterError> {
    let mut attempt = 1;
    loop {
        let error = match undo_once(client, creation, undone).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !is_conflict(&error) || attempt == MAX_ATTEMPTS {
            return Err(error);
        }
        tokio::time::sleep(BACK_OFF * attempt).await;
        attempt += 1;
    }
}

async fn undo_once(
    client: &kube::Client,
    creation: &Creation,
    undone: &mut Undone,
) -> Result<(), ClusterError> {
    let object = &creation.object;
    let resource = resource::of_kind(&object.kind)?;
    // A reading from the past is an error here: it would not know yet what was created.
    let live = resource
        .look(client, &object.namespace, &object.name)
        .await?;
    let live = match live {
        Some(live) if live["metadata"].get("deletionTimestamp").is_none() => live,
        _ => {
            undone.original.push(format!("{object}: is gone already"));
            return Ok(());
        }
    };
    if let Some(reason) = theirs(creation, &live) {
        undone.kept.push(format!("{object}: {reason}"));
        return Ok(());
    }
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    resource
        .delete_exactly(client, &object.namespace, &object.name, uid)
        .await?;
    undone.restored.push(format!("{object}: deleted"));
    Ok(())
}

/// Why an object is not ours to delete, if it is not.
fn theirs(creation: &Creation, live: &Value) -> Option<&'static str> {
    let ours = &creation.object.uid;
    if ours.is_empty() {
        return (!is_as_sent(creation, live)).then_some("was made by someone else");
    }
    if live["metadata"]["uid"] != **ours {
        return Some("was recreated by someone else");
    }
    let unchanged = field::same(&[], creation.manifest.get("spec"), live.get("spec"));
    (!unchanged).then_some("changed by someone else")
}

/// Whether an object holds what was sent, apart from what the server adds.
fn is_as_sent(creation: &Creation, live: &Value) -> bool {
    field::holds(&[], creation.manifest.get("spec"), live.get("spec"))
}
