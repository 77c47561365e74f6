//! Pods as the workload controllers handle them: making them from a template, deleting them, judging them.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::api::delete::{self, DeleteOptions};
use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers::object::{
    annotation, condition, condition_is, controlled_by, controller, created, deleting, items, name,
    namespace, number, owner_reference, selects, time, uid,
};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// The field manager of everything that controllers write.
pub const MANAGER: &str = "kube-controller-manager";

pub fn finished(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

/// Neither finished nor on its way out: it counts as one of its owner's replicas.
pub fn active(pod: &Value) -> bool {
    !finished(pod) && !deleting(pod)
}

pub fn ready(pod: &Value) -> bool {
    condition_is(pod, "Ready", "True")
}

/// Ready for at least `min_ready` seconds.
pub fn available(pod: &Value, min_ready: i64, now: Time) -> bool {
    if !ready(pod) {
        return false;
    }
    min_ready == 0
        || ready_since(pod).is_some_and(|since| {
            let passed = now.since(since).as_secs();
            passed >= u64::try_from(min_ready).unwrap_or(0)
        })
}

pub fn ready_since(pod: &Value) -> Option<Time> {
    time(&condition(pod, "Ready")?["lastTransitionTime"])
}

/// What of a pod its owner, services and budgets react to; container states are not in it.
pub fn outline(pod: &Value) -> [&Value; 6] {
    let meta = &pod["metadata"];
    let ready = condition(pod, "Ready").unwrap_or(&Value::Null);
    [
        &ready["status"],
        &pod["status"]["phase"],
        &pod["status"]["podIP"],
        meta.get("deletionTimestamp").unwrap_or(&Value::Null),
        &meta["labels"],
        &meta["ownerReferences"],
    ]
}

/// A pod made from `owner`'s template, not yet stored and not yet named.
pub fn from_template(owner: &Value, template: &Value) -> Value {
    let mut meta = json!({
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [owner_reference(owner)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            meta[field] = value.clone();
        }
    }
    json!({"metadata": meta, "spec": template["spec"]})
}

/// Asks the API for a new pod with a generated name, and records the outcome about `owner`.
///
/// # Errors
/// The server's text when the pod was refused.
pub fn create(
    world: &mut World,
    owner: &Value,
    pod: Value,
    component: &str,
) -> Result<Arc<Value>, String> {
    create_named(world, owner, pod, name(owner), component)
}

/// As `create`, with a name generated from `base`.
///
/// # Errors
/// The server's text when the pod was refused.
pub fn create_named(
    world: &mut World,
    owner: &Value,
    mut pod: Value,
    base: &str,
    component: &str,
) -> Result<Arc<Value>, String> {
    pod["metadata"]["generateName"] = format!("{base}-").into();
    let outcome = store_pod(world, pod);
    let (warning, reason, message) = match &outcome {
        Ok(pod) => (
            false,
            "SuccessfulCreate",
            format!("Created pod: {}", name(pod)),
        ),
        Err(message) => (true, "FailedCreate", format!("Error creating: {message}")),
    };
    events::record(
        world,
        NewEvent {
            about: owner,
            field_path: None,
            warning,
            reason,
            message,
            component,
            host: None,
        },
    );
    outcome
}

/// Stores a pod through the API's admission.
///
/// # Errors
/// The server's text when the pod was refused.
pub fn store_pod(world: &mut World, pod: Value) -> Result<Arc<Value>, String> {
    let ns = namespace(&pod).to_owned();
    write::create(world, Kind::Pod, &ns, pod, &WriteOptions::of(MANAGER))
        .map_err(|status| status.message)
}

/// Deletes a pod as a client does: with its grace period.
pub fn delete(world: &mut World, pod: &Value) {
    let options = DeleteOptions::default();
    // It may have gone in the meantime, which is what was wanted.
    let _ = delete::delete(world, Kind::Pod, namespace(pod), name(pod), &options);
}

/// Deletes one of `owner`'s pods and records it.
pub fn delete_owned(world: &mut World, owner: &Value, pod: &Value, component: &str) {
    delete(world, pod);
    let event = NewEvent {
        about: owner,
        field_path: None,
        warning: false,
        reason: "SuccessfulDelete",
        message: format!("Deleted pod: {}", name(pod)),
        component,
        host: None,
    };
    events::record(world, event);
}

/// Orders pods by how little is lost when they go: first in order, first to be deleted.
pub fn deletion_order(a: &Value, b: &Value, now: Time) -> Ordering {
    let unassigned = |pod: &Value| pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    let phase = |pod: &Value| match pod["status"]["phase"].as_str() {
        Some("Pending") => 0,
        Some("Unknown") => 1,
        _ => 2,
    };
    let cost = |pod: &Value| {
        annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
            .and_then(|text| text.parse::<i32>().ok())
            .unwrap_or(0)
    };
    unassigned(b)
        .cmp(&unassigned(a))
        .then_with(|| phase(a).cmp(&phase(b)))
        .then_with(|| ready(a).cmp(&ready(b)))
        .then_with(|| cost(a).cmp(&cost(b)))
        .then_with(|| by_age(ready_since(a), ready_since(b), now, a, b))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| by_age(Some(created(a)), Some(created(b)), now, a, b))
}

/// Younger first, ages being compared by their power of two; within one, the uid decides.
fn by_age(x: Option<Time>, y: Option<Time>, now: Time, a: &Value, b: &Value) -> Ordering {
    let (Some(x), Some(y)) = (x, y) else {
        return x.is_some().cmp(&y.is_some());
    };
    if x == y {
        return Ordering::Equal;
    }
    let rank = |time: Time| now.since(time).as_nanos().max(1).ilog2();
    rank(x).cmp(&rank(y)).then_with(|| uid(a).cmp(uid(b)))
}

pub(super) fn restarts(pod: &Value) -> i64 {
    items(&pod["status"]["containerStatuses"])
        .iter()
        .map(|status| number(&status["restartCount"]))
        .max()
        .unwrap_or(0)
}

/// The pods of `owner` in the store, adopting matching orphans and releasing those that no longer match.
pub fn claim(world: &mut World, owner: &Value, selector: &Value) -> Vec<Arc<Value>> {
    let owner_uid = uid(owner).to_owned();
    let mut mine = Vec::new();
    let mut changed = Vec::new();
    for pod in world.store.within(Kind::Pod, namespace(owner)) {
        let matches = selects(selector, &pod["metadata"]["labels"]);
        match controller(pod) {
            Some(_) if controlled_by(pod, &owner_uid) => {
                if matches {
                    mine.push(pod.clone());
                } else if !deleting(owner) {
                    changed.push((pod.clone(), false));
                }
            }
            None if matches && active(pod) && !deleting(owner) => {
                changed.push((pod.clone(), true));
            }
            _ => {}
        }
    }
    for (pod, adopt) in changed {
        world.update(Kind::Pod, namespace(&pod), name(&pod), |stored| {
            let mut owners = items(&stored["metadata"]["ownerReferences"]).to_vec();
            owners.retain(|reference| reference["uid"] != owner_uid.as_str());
            if adopt {
                owners.push(owner_reference(owner));
            }
            stored["metadata"]["ownerReferences"] = owners.into();
        });
        if adopt && let Some(pod) = world.store.get(Kind::Pod, namespace(&pod), name(&pod)) {
            mine.push(pod.clone());
        }
    }
    mine
}
