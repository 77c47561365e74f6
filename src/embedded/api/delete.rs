//! Deletes: grace periods of pods, finalizers, propagation, terminating namespaces.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::api::read::{self, ListOptions};
use crate::embedded::api::status::{self, Status};
use crate::embedded::api::write::{self, text};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Namespaces that nobody may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What becomes of objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted first; it waits, held by the finalizer `foregroundDeletion`.
    Foreground,
    /// They stay, without their owner reference; it waits meanwhile, held by the finalizer `orphan`.
    Orphan,
}

/// How a delete is to be done.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Overrides the pod's own grace period.
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    /// Refuse unless the object has this uid.
    pub uid: Option<String>,
    /// Refuse unless the object has this resource version.
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// The outcome of a delete.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// Gone; the object as it was last.
    Gone(Arc<Value>),
    /// Marked as deleted, waiting for its grace period or finalizers.
    Waiting(Arc<Value>),
}

impl Deleted {
    pub fn object(&self) -> &Arc<Value> {
        match self {
            Deleted::Gone(object) | Deleted::Waiting(object) => object,
        }
    }

    /// The body of the answer.
    pub fn to_value(&self, kind: Kind) -> Value {
        match self {
            Deleted::Gone(object) if !kind.returns_deleted() => {
                status::success(Some((kind, object)))
            }
            Deleted::Gone(object) | Deleted::Waiting(object) => (**object).clone(),
        }
    }
}

/// Deletes an object, or begins to.
pub fn delete(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    if kind == Kind::Namespace && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(
            kind,
            name,
            "this namespace may not be deleted",
        ));
    }
    let old = read::get(world, kind, namespace, name)?;
    check_preconditions(kind, name, &old, options)?;
    let mut object = (*old).clone();
    let already = object["metadata"]["deletionTimestamp"].is_string();
    let grace = grace(kind, &old, options);
    if already {
        let before = object["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0);
        let pending = options.grace_period_seconds.is_none() || grace >= before;
        if pending && (before > 0 || write::has_finalizers(&old) || kind == Kind::Namespace) {
            return Ok(Deleted::Waiting(old));
        }
        shorten(&mut object, before, grace);
    } else {
        add_finalizers(kind, &mut object, options);
        let when = world.now() + Duration::from_secs(grace.unsigned_abs());
        object["metadata"]["deletionTimestamp"] = when.seconds_text().into();
        object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
    }
    let held = write::has_finalizers(&object) || grace > 0 || kind == Kind::Namespace;
    if options.dry_run {
        return Ok(if held {
            Deleted::Waiting(Arc::new(object))
        } else {
            Deleted::Gone(old)
        });
    }
    if held {
        if kind == Kind::Namespace {
            object["status"]["phase"] = "Terminating".into();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("deletionGracePeriodSeconds");
            }
        }
        let stored = world
            .store
            .replace(kind, object)
            .map_err(|_| Status::not_found(kind, name))?;
        return Ok(Deleted::Waiting(stored));
    }
    let gone = world
        .store
        .remove(kind, namespace, name)
        .map_err(|_| Status::not_found(kind, name))?;
    Ok(Deleted::Gone(gone))
}

/// Deletes every object of a kind that the selectors choose; answers those that were there.
pub fn delete_collection(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    chosen: &ListOptions,
    options: &DeleteOptions,
) -> Result<Vec<Arc<Value>>, Status> {
    let page = read::list(world, kind, namespace, chosen)?;
    let mut answers = Vec::new();
    for object in page.items {
        let (namespace, name) = crate::embedded::store::key_of(&object);
        match delete(world, kind, &namespace, &name, options) {
            Ok(deleted) => answers.push(deleted.object().clone()),
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(answers)
}

fn check_preconditions(
    kind: Kind,
    name: &str,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let pairs = [
        ("UID", &options.uid, &old["metadata"]["uid"]),
        (
            "ResourceVersion",
            &options.resource_version,
            &old["metadata"]["resourceVersion"],
        ),
    ];
    for (what, wanted, real) in pairs {
        if let Some(wanted) = wanted
            && wanted != text(real)
        {
            // Only objects with a grace period have their uid checked before the store does it.
            if kind == Kind::Pod && what == "UID" {
                return Err(Status::uid_conflict(kind, name, wanted, text(real)));
            }
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {}",
                text(real)
            );
            return Err(Status::conflict(kind, name, &why));
        }
    }
    Ok(())
}

/// Seconds until the object may be removed: only pods that a kubelet runs get any.
fn grace(kind: Kind, object: &Value, options: &DeleteOptions) -> i64 {
    if kind != Kind::Pod {
        return 0;
    }
    let ended = matches!(text(&object["status"]["phase"]), "Succeeded" | "Failed");
    if text(&object["spec"]["nodeName"]).is_empty() || ended {
        return 0;
    }
    let seconds = options
        .grace_period_seconds
        .or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30);
    if seconds < 0 { 1 } else { seconds }
}

/// Brings the deletion of an already deleted pod forward.
fn shorten(object: &mut Value, before: i64, grace: i64) {
    let metadata = &mut object["metadata"];
    if let Some(when) = Time::parse(text(&metadata["deletionTimestamp"])) {
        let began = when - Duration::from_secs(before.unsigned_abs());
        let sooner = began + Duration::from_secs(grace.unsigned_abs());
        metadata["deletionTimestamp"] = sooner.seconds_text().into();
    }
    metadata["deletionGracePeriodSeconds"] = grace.into();
}

fn add_finalizers(kind: Kind, object: &mut Value, options: &DeleteOptions) {
    let default = if kind == Kind::Job {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    let name = match options.propagation.unwrap_or(default) {
        Propagation::Background => return,
        Propagation::Foreground => "foregroundDeletion",
        Propagation::Orphan => "orphan",
    };
    let finalizers = &mut object["metadata"]["finalizers"];
    if !finalizers.is_array() {
        *finalizers = Value::Array(Vec::new());
    }
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|one| one == name)
    {
        list.push(name.into());
    }
}
