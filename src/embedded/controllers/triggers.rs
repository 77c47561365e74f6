//! Which keys a change concerns. Runs for every change in the cluster, so it looks only at what it must.

use serde_json::Value;

use crate::embedded::controllers::object::{
    controller, deleting, items, map_selects, name, namespace, selects,
};
use crate::embedded::controllers::{Controller, Key, autoscaler, enqueue, pods, taints, wake_at};
use crate::embedded::kind::Kind;
use crate::embedded::store::{Change, ChangeKind};
use crate::embedded::world::World;

/// Queues what a change concerns.
pub(super) fn on_change(world: &mut World, change: &Change) {
    let object = &change.object;
    let own = match change.kind {
        Kind::Event | Kind::Lease => return,
        Kind::Deployment => Some(Controller::Deployment),
        Kind::StatefulSet => Some(Controller::StatefulSet),
        Kind::DaemonSet => Some(Controller::DaemonSet),
        Kind::Job => Some(Controller::Job),
        Kind::PersistentVolumeClaim => Some(Controller::Claim),
        Kind::Service => Some(Controller::Endpoints),
        Kind::PodDisruptionBudget => Some(Controller::Disruption),
        Kind::ResourceQuota => Some(Controller::Quota),
        Kind::Namespace => Some(Controller::Namespace),
        Kind::Node => Some(Controller::Node),
        _ => None,
    };
    if let Some(controller) = own
        && beyond_status(change)
    {
        enqueue(world, controller, namespace(object), name(object));
    }
    match change.kind {
        Kind::Pod => pod_changed(world, change),
        Kind::PersistentVolume if change.what != ChangeKind::Deleted => claims(world, None),
        Kind::ReplicaSet => replicaset_changed(world, change),
        Kind::HorizontalPodAutoscaler if change.what == ChangeKind::Added => {
            let key = Key {
                controller: Controller::Autoscaler,
                namespace: namespace(object).to_owned(),
                name: name(object).to_owned(),
            };
            let due = world.now() + autoscaler::PERIOD;
            wake_at(world, &key, due);
        }
        Kind::Node if beyond_status(change) => {
            daemons(world);
            if change.what != ChangeKind::Deleted {
                taints::node_changed(world, object);
            }
        }
        _ => {}
    }
    if change.kind == Kind::Deployment || change.kind == Kind::StatefulSet {
        budgets(
            world,
            namespace(object),
            &object["spec"]["template"]["metadata"]["labels"],
        );
    }
    if change.what != ChangeKind::Modified || change.kind == Kind::Pod {
        counted(world, change);
    }
}

/// Queues the quotas of the namespace, and the namespace itself where something it must hold has gone.
fn counted(world: &mut World, change: &Change) {
    let ns = namespace(&change.object);
    if let (ChangeKind::Modified, Some(old)) = (change.what, &change.old)
        && pods::finished(old) == pods::finished(&change.object)
    {
        return;
    }
    let quotas: Vec<String> = world
        .store
        .within(Kind::ResourceQuota, ns)
        .map(|quota| name(quota).to_owned())
        .collect();
    for quota in quotas {
        enqueue(world, Controller::Quota, ns, &quota);
    }
    let required = matches!(change.kind, Kind::ServiceAccount | Kind::ConfigMap);
    let closing = world
        .store
        .get(Kind::Namespace, "", ns)
        .is_some_and(|stored| deleting(stored));
    if change.what == ChangeKind::Deleted && (required || closing) {
        enqueue(world, Controller::Namespace, "", ns);
    }
}

/// Whether anything but the status (and bookkeeping of versions) differs.
fn beyond_status(change: &Change) -> bool {
    let Some(old) = &change.old else {
        return true;
    };
    if change.what == ChangeKind::Deleted {
        return true;
    }
    if old["spec"] != change.object["spec"] {
        return true;
    }
    let (old, new) = (&old["metadata"], &change.object["metadata"]);
    [
        "generation",
        "labels",
        "annotations",
        "ownerReferences",
        "deletionTimestamp",
        "finalizers",
    ]
    .iter()
    .any(|field| old[*field] != new[*field])
}

fn replicaset_changed(world: &mut World, change: &Change) {
    let object = &change.object;
    if beyond_status(change) {
        enqueue(
            world,
            Controller::ReplicaSet,
            namespace(object),
            name(object),
        );
    }
    if let Some(owner) = controller(object)
        && owner["kind"] == "Deployment"
    {
        let owner = owner["name"].as_str().unwrap_or_default();
        enqueue(world, Controller::Deployment, namespace(object), owner);
    }
}

fn pod_changed(world: &mut World, change: &Change) {
    let pod = &change.object;
    let placed = pod["spec"].get("nodeName").is_some()
        && change
            .old
            .as_ref()
            .is_none_or(|old| old["spec"].get("nodeName").is_none());
    if placed && change.what != ChangeKind::Deleted {
        taints::pod_placed(world, pod);
    }
    if let (ChangeKind::Modified, Some(old)) = (change.what, &change.old)
        && pods::outline(old) == pods::outline(pod)
    {
        // Only Jobs count how often containers were restarted.
        if pods::restarts(old) != pods::restarts(pod)
            && let Some(owner) = controller(pod).filter(|owner| owner["kind"] == "Job")
        {
            let owner = owner["name"].as_str().unwrap_or_default();
            enqueue(world, Controller::Job, namespace(pod), owner);
        }
        return;
    }
    owner_of_pod(world, pod, change.what);
    if change.what == ChangeKind::Added {
        claims(world, Some(pod));
    }
    if let Some(old) = &change.old
        && old["metadata"]["ownerReferences"] != pod["metadata"]["ownerReferences"]
    {
        owner_of_pod(world, old, change.what);
    }
    let labels = |object: &Value| object["metadata"]["labels"].clone();
    let now = labels(pod);
    let before = change.old.as_ref().map(|old| labels(old));
    selecting(world, namespace(pod), &now);
    if let Some(before) = before.filter(|before| *before != now) {
        selecting(world, namespace(pod), &before);
    }
}

/// Queues the disruption budgets that select these labels.
fn budgets(world: &mut World, ns: &str, labels: &Value) {
    let budgets: Vec<String> = world
        .store
        .within(Kind::PodDisruptionBudget, ns)
        .filter(|budget| selects(&budget["spec"]["selector"], labels))
        .map(|budget| name(budget).to_owned())
        .collect();
    for budget in budgets {
        enqueue(world, Controller::Disruption, ns, &budget);
    }
}

/// Queues the services and budgets that select these labels.
fn selecting(world: &mut World, ns: &str, labels: &Value) {
    budgets(world, ns, labels);
    let services: Vec<String> = world
        .store
        .within(Kind::Service, ns)
        .filter(|service| {
            let selector = &service["spec"]["selector"];
            selector.as_object().is_some_and(|map| !map.is_empty()) && map_selects(selector, labels)
        })
        .map(|service| name(service).to_owned())
        .collect();
    for service in services {
        enqueue(world, Controller::Endpoints, ns, &service);
    }
}

fn owner_of_pod(world: &mut World, pod: &Value, what: ChangeKind) {
    let ns = namespace(pod);
    let Some(owner) = controller(pod) else {
        orphan(world, pod);
        return;
    };
    let owner_name = owner["name"].as_str().unwrap_or_default().to_owned();
    match owner["kind"].as_str() {
        Some("ReplicaSet") => {
            enqueue(world, Controller::ReplicaSet, ns, &owner_name);
            if what == ChangeKind::Deleted {
                recreating(world, ns, &owner_name);
            }
        }
        Some("StatefulSet") => enqueue(world, Controller::StatefulSet, ns, &owner_name),
        Some("DaemonSet") => enqueue(world, Controller::DaemonSet, ns, &owner_name),
        Some("Job") => enqueue(world, Controller::Job, ns, &owner_name),
        _ => {}
    }
}

/// Queues the claims that a new pod mounts, or all that wait for a volume.
fn claims(world: &mut World, pod: Option<&Value>) {
    let mounted = |claim: &Value| {
        pod.is_none_or(|pod| {
            namespace(pod) == namespace(claim)
                && items(&pod["spec"]["volumes"])
                    .iter()
                    .any(|v| v["persistentVolumeClaim"]["claimName"] == name(claim))
        })
    };
    let waiting: Vec<(String, String)> = world
        .store
        .all(Kind::PersistentVolumeClaim)
        .filter(|claim| claim["status"]["phase"] != "Bound" && mounted(claim))
        .map(|claim| (namespace(claim).to_owned(), name(claim).to_owned()))
        .collect();
    for (ns, claim) in waiting {
        enqueue(world, Controller::Claim, &ns, &claim);
    }
}

/// Nodes decide where daemons run.
fn daemons(world: &mut World) {
    let all: Vec<(String, String)> = world
        .store
        .all(Kind::DaemonSet)
        .map(|set| (namespace(set).to_owned(), name(set).to_owned()))
        .collect();
    for (ns, set) in all {
        enqueue(world, Controller::DaemonSet, &ns, &set);
    }
}

/// A Deployment that recreates waits for the last of its old pods to be gone.
fn recreating(world: &mut World, ns: &str, replicaset: &str) {
    let owner = world
        .store
        .get(Kind::ReplicaSet, ns, replicaset)
        .and_then(|rs| controller(rs))
        .and_then(|owner| owner["name"].as_str());
    let Some(owner) = owner.map(str::to_owned) else {
        return;
    };
    let recreates = world
        .store
        .get(Kind::Deployment, ns, &owner)
        .is_some_and(|d| d["spec"]["strategy"]["type"] == "Recreate");
    if recreates {
        enqueue(world, Controller::Deployment, ns, &owner);
    }
}

/// A pod without a controller may match one.
fn orphan(world: &mut World, pod: &Value) {
    let labels = &pod["metadata"]["labels"];
    if labels.is_null() || !items(&pod["metadata"]["ownerReferences"]).is_empty() {
        return;
    }
    let ns = namespace(pod);
    for (kind, controller) in [
        (Kind::ReplicaSet, Controller::ReplicaSet),
        (Kind::StatefulSet, Controller::StatefulSet),
        (Kind::DaemonSet, Controller::DaemonSet),
    ] {
        let matching: Vec<String> = world
            .store
            .within(kind, ns)
            .filter(|owner| selects(&owner["spec"]["selector"], labels))
            .map(|owner| name(owner).to_owned())
            .collect();
        for owner in matching {
            enqueue(world, controller, ns, &owner);
        }
    }
}
