//! Nodes: heartbeats of their kubelets, cordons, and what happens when a kubelet falls silent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::controllers::object::{
    condition, condition_is, items, name, namespace, time, uid,
};
use crate::embedded::controllers::{Key, Work};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::world::{Work as WorldWork, World};

/// How often a kubelet renews its node's lease.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How often it renews the node's conditions when nothing changes.
const STATUS_REPORT: Duration = Duration::from_secs(300);

/// Silence after which a node counts as lost.
const GRACE: Duration = Duration::from_secs(50);

const LEASES: &str = "kube-node-lease";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The condition types that a kubelet reports, with the status and words of a healthy node.
pub const HEALTHY: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    (
        "Ready",
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    ),
];

/// Stops or resumes a node's heartbeats, as when its kubelet hangs. Containers run on meanwhile.
pub fn silence(world: &mut World, node: &str, silent: bool) {
    if silent {
        world.controllers.silent.insert(node.to_owned());
    } else {
        world.controllers.silent.remove(node);
    }
}

/// One beat of all nodes' kubelets, and the next one queued.
pub(super) fn heartbeat(world: &mut World) {
    beat_all(world);
    world.after(HEARTBEAT, WorldWork::Controller(Work::Heartbeat));
}

/// One beat of all nodes' kubelets.
pub(in crate::embedded) fn beat_all(world: &mut World) {
    let nodes: Vec<Arc<Value>> = world.store.all(Kind::Node).cloned().collect();
    for node in nodes {
        if world.controllers.silent.contains(name(&node)) {
            watch_silence(world, &node);
        } else {
            beat(world, &node);
        }
    }
}

fn beat(world: &mut World, node: &Value) {
    let now = world.now();
    world.update(Kind::Lease, LEASES, name(node), |lease| {
        lease["spec"]["renewTime"] = now.micros_text().into();
    });
    let ready = condition(node, "Ready");
    let lost = ready.is_some_and(|c| c["status"] == "Unknown");
    let reported = ready
        .and_then(|c| time(&c["lastHeartbeatTime"]))
        .unwrap_or_default();
    if lost {
        recover(world, node);
    } else if now.since(reported) >= STATUS_REPORT {
        world.update(Kind::Node, "", name(node), |node| {
            for condition in node["status"]["conditions"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                condition["lastHeartbeatTime"] = now.seconds_text().into();
            }
        });
    }
    note_cordon(world, node);
}

/// The kubelet says when its node was cordoned or uncordoned, at its next beat.
fn note_cordon(world: &mut World, node: &Value) {
    let cordoned = node["spec"]["unschedulable"] == true;
    let noted = world.controllers.cordoned.contains(name(node));
    if cordoned == noted {
        return;
    }
    let reason = if cordoned {
        world.controllers.cordoned.insert(name(node).to_owned());
        "NodeNotSchedulable"
    } else {
        world.controllers.cordoned.remove(name(node));
        "NodeSchedulable"
    };
    // The kubelet knows its node by name only.
    let about = json!({
        "kind": "Node",
        "metadata": {"name": name(node), "uid": name(node)},
    });
    let message = format!("Node {} status is now: {reason}", name(node));
    tell(
        world,
        &about,
        false,
        reason,
        message,
        "kubelet",
        Some(name(node)),
    );
}

fn watch_silence(world: &mut World, node: &Value) {
    let renewed = world
        .store
        .get(Kind::Lease, LEASES, name(node))
        .and_then(|lease| time(&lease["spec"]["renewTime"]));
    let silent_for = renewed.map_or(GRACE, |renewed| world.now().since(renewed));
    if silent_for >= GRACE && condition_is(node, "Ready", "True") {
        lose(world, node);
    }
}

/// Declares a node lost: conditions unknown, a taint, its pods not ready.
fn lose(world: &mut World, node: &Value) {
    let now = world.now().seconds_text();
    let others = world
        .store
        .all(Kind::Node)
        .any(|other| name(other) != name(node) && condition_is(other, "Ready", "True"));
    world.update(Kind::Node, "", name(node), |node| {
        for condition in node["status"]["conditions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            condition["status"] = "Unknown".into();
            condition["reason"] = "NodeStatusUnknown".into();
            condition["message"] = "Kubelet stopped posting node status.".into();
            condition["lastTransitionTime"] = now.as_str().into();
        }
        let mut taints = items(&node["spec"]["taints"]).to_vec();
        taints.push(json!({"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": now}));
        // When no node is left, pods are not driven away: the control plane may be the one cut off.
        if others {
            taints.push(json!({"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": now}));
        }
        node["spec"]["taints"] = taints.into();
    });
    let message = format!("Node {} status is now: NodeNotReady", name(node));
    tell(
        world,
        node,
        false,
        "NodeNotReady",
        message,
        "node-controller",
        None,
    );
    for pod in pods_on(world, name(node)) {
        if !condition_is(&pod, "Ready", "True") {
            continue;
        }
        set_ready(world, &pod, "False", &now);
        let message = "Node is not ready".to_owned();
        tell(
            world,
            &pod,
            true,
            "NodeNotReady",
            message,
            "node-controller",
            None,
        );
    }
}

/// The kubelet is back: it reports its node and its pods as they are.
fn recover(world: &mut World, node: &Value) {
    let now = world.now().seconds_text();
    world.update(Kind::Node, "", name(node), |node| {
        for condition in node["status"]["conditions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let healthy = HEALTHY
                .iter()
                .find(|healthy| condition["type"] == healthy.0);
            if let Some((_, status, reason, message)) = healthy {
                condition["status"] = (*status).into();
                condition["reason"] = (*reason).into();
                condition["message"] = (*message).into();
            }
            condition["lastHeartbeatTime"] = now.as_str().into();
            condition["lastTransitionTime"] = now.as_str().into();
        }
        drop_taint(node, UNREACHABLE);
    });
    for pod in pods_on(world, name(node)) {
        let since = condition(&pod, "ContainersReady")
            .filter(|c| c["status"] == "True")
            .and_then(|c| c["lastTransitionTime"].as_str());
        if let Some(since) = since.map(str::to_owned) {
            set_ready(world, &pod, "True", &since);
        }
    }
}

fn pods_on(world: &World, node: &str) -> Vec<Arc<Value>> {
    world
        .store
        .all(Kind::Pod)
        .filter(|pod| pod["spec"]["nodeName"] == node)
        .cloned()
        .collect()
}

fn set_ready(world: &mut World, pod: &Value, status: &str, since: &str) {
    world.update(Kind::Pod, namespace(pod), name(pod), |pod| {
        for condition in pod["status"]["conditions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if condition["type"] == "Ready" {
                condition["status"] = status.into();
                condition["lastTransitionTime"] = since.into();
            }
        }
    });
}

/// Keeps the taint of a cordoned node.
pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(node) = world.store.get(Kind::Node, "", &key.name).cloned() else {
        return;
    };
    let cordoned = node["spec"]["unschedulable"] == true;
    let tainted = items(&node["spec"]["taints"])
        .iter()
        .any(|taint| taint["key"] == UNSCHEDULABLE);
    if cordoned == tainted {
        return;
    }
    let now = world.now().seconds_text();
    world.update(Kind::Node, "", &key.name, |node| {
        drop_taint(node, UNSCHEDULABLE);
        if cordoned {
            let mut taints = items(&node["spec"]["taints"]).to_vec();
            taints.push(json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": now}));
            node["spec"]["taints"] = taints.into();
        }
    });
}

fn drop_taint(node: &mut Value, key: &str) {
    let mut taints = items(&node["spec"]["taints"]).to_vec();
    taints.retain(|taint| taint["key"] != key);
    if let Some(spec) = node["spec"].as_object_mut() {
        if taints.is_empty() {
            spec.remove("taints");
        } else {
            spec.insert("taints".to_owned(), taints.into());
        }
    }
}

fn tell(
    world: &mut World,
    about: &Value,
    warning: bool,
    reason: &str,
    message: String,
    component: &str,
    host: Option<&str>,
) {
    debug_assert!(!uid(about).is_empty(), "an event is about a stored object");
    events::record(
        world,
        NewEvent {
            about,
            field_path: None,
            warning,
            reason,
            message,
            component,
            host,
        },
    );
}

#[cfg(test)]
mod tests;
