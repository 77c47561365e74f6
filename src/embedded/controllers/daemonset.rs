//! The DaemonSet controller: one pod on every node that lets it run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::{
    deleting, generation, items, name, number, put_count, scaled, set_status,
};
use crate::embedded::controllers::{Key, forget, pods, retry, revisions};
use crate::embedded::kind::Kind;
use crate::embedded::scheduler;
use crate::embedded::world::World;

const COMPONENT: &str = "daemonset-controller";

/// Troubles of a node that a daemon's pod does not run from.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(set) = world
        .store
        .get(Kind::DaemonSet, &key.namespace, &key.name)
        .cloned()
    else {
        forget(world, key);
        return;
    };
    if deleting(&set) {
        return;
    }
    let revision = revisions::of(world, &set);
    let hash = revision.rsplit('-').next().unwrap_or_default().to_owned();
    let outcome = spread(world, &set, &hash);
    write_status(world, &set, &hash);
    if outcome.is_err() {
        retry(world, key);
    } else {
        forget(world, key);
    }
}

/// The nodes that are to have a pod.
fn wanted_nodes(world: &World, set: &Value) -> Vec<String> {
    world
        .store
        .all(Kind::Node)
        .filter(|node| scheduler::may_run(&pod_for(set, name(node), ""), node))
        .map(|node| name(node).to_owned())
        .collect()
}

fn pod_for(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = pods::from_template(set, &set["spec"]["template"]);
    pod["metadata"]["labels"][revisions::LABEL] = hash.into();
    pod["metadata"]["labels"]["pod-template-generation"] = generation(set).to_string().into();
    let mut tolerations = items(&pod["spec"]["tolerations"]).to_vec();
    tolerations.extend(
        TOLERATED.map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})),
    );
    pod["spec"]["tolerations"] = tolerations.into();
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    match required.as_array_mut() {
        Some(terms) => terms
            .iter_mut()
            .for_each(|term| term["matchFields"] = json!([field])),
        None => *required = json!([{"matchFields": [field]}]),
    }
    pod
}

/// The node that a daemon's pod is for, bound or not.
fn node_of(pod: &Value) -> Option<&str> {
    let bound = pod["spec"]["nodeName"]
        .as_str()
        .filter(|node| !node.is_empty());
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    bound.or_else(|| terms[0]["matchFields"][0]["values"][0].as_str())
}

fn by_node(world: &mut World, set: &Value) -> BTreeMap<String, Vec<Arc<Value>>> {
    let mut nodes: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for pod in pods::claim(world, set, &set["spec"]["selector"]) {
        if let Some(node) = node_of(&pod).map(str::to_owned) {
            nodes.entry(node).or_default().push(pod);
        }
    }
    nodes
}

/// Makes what is missing, removes what is too much or finished, and replaces pods of older templates.
fn spread(world: &mut World, set: &Value, hash: &str) -> Result<(), String> {
    let wanted = wanted_nodes(world, set);
    let present = by_node(world, set);
    for (node, mine) in &present {
        let surplus = usize::from(wanted.contains(node));
        let (over, alive): (Vec<_>, Vec<_>) = mine.iter().partition(|pod| pods::finished(pod));
        for pod in over.into_iter().chain(alive.into_iter().skip(surplus)) {
            if !deleting(pod) {
                pods::delete_owned(world, set, pod, COMPONENT);
            }
        }
    }
    for node in &wanted {
        if present.get(node).is_none_or(Vec::is_empty) {
            let pod = pod_for(set, node, hash);
            pods::create(world, set, pod, COMPONENT)?;
        }
    }
    update(world, set, hash, &wanted, &present);
    Ok(())
}

/// Deletes pods of older templates as far as unavailable ones allow.
fn update(
    world: &mut World,
    set: &Value,
    hash: &str,
    wanted: &[String],
    present: &BTreeMap<String, Vec<Arc<Value>>>,
) {
    let strategy = &set["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return;
    }
    let limit = strategy["rollingUpdate"].get("maxUnavailable").cloned();
    let limit = scaled(
        &limit.unwrap_or_else(|| 1.into()),
        wanted.len() as i64,
        true,
    )
    .max(1);
    let usable = |pod: &Value| pods::active(pod) && pods::ready(pod);
    let mut unavailable = wanted
        .iter()
        .filter(|node| {
            !present
                .get(*node)
                .is_some_and(|mine| mine.iter().any(|p| usable(p)))
        })
        .count() as i64;
    for pod in present.values().flatten() {
        let old = pod["metadata"]["labels"][revisions::LABEL] != hash;
        if !old || !pods::active(pod) {
            continue;
        }
        if !usable(pod) {
            pods::delete_owned(world, set, pod, COMPONENT);
        } else if unavailable < limit {
            unavailable += 1;
            pods::delete_owned(world, set, pod, COMPONENT);
        }
    }
}

fn write_status(world: &mut World, set: &Value, hash: &str) {
    let now = world.now();
    let wanted = wanted_nodes(world, set);
    let present = by_node(world, set);
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let on_wanted = |test: &dyn Fn(&Value) -> bool| -> i64 {
        wanted
            .iter()
            .filter(|node| {
                present
                    .get(*node)
                    .is_some_and(|mine| mine.iter().any(|pod| !deleting(pod) && test(pod)))
            })
            .count() as i64
    };
    let desired = wanted.len() as i64;
    let available = on_wanted(&|pod| pods::available(pod, min_ready, now));
    let updated = on_wanted(&|pod| pod["metadata"]["labels"][revisions::LABEL] == hash);
    let astray = present
        .keys()
        .filter(|node| !wanted.contains(*node))
        .count() as i64;
    let mut status = Map::new();
    status.insert(
        "currentNumberScheduled".to_owned(),
        on_wanted(&|_| true).into(),
    );
    status.insert("numberMisscheduled".to_owned(), astray.into());
    status.insert("desiredNumberScheduled".to_owned(), desired.into());
    status.insert("numberReady".to_owned(), on_wanted(&pods::ready).into());
    status.insert("observedGeneration".to_owned(), generation(set).into());
    put_count(&mut status, "updatedNumberScheduled", updated);
    put_count(&mut status, "numberAvailable", available);
    put_count(&mut status, "numberUnavailable", desired - available);
    set_status(world, Kind::DaemonSet, set, status.into());
}

#[cfg(test)]
mod tests;
