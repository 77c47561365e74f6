//! `metrics.k8s.io/v1beta1`: processor and memory use of pods and of the node, as the kubelet measures it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::embedded::api::request::Query;
use crate::embedded::api::selector::Labels;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet;
use crate::embedded::kubelet::metrics::{ContainerUse, WINDOW};
use crate::embedded::world::World;

pub const GROUP: &str = "metrics.k8s.io";
pub const VERSION: &str = "v1beta1";
const GROUP_VERSION: &str = "metrics.k8s.io/v1beta1";

/// What the node's own services use beside the pods, in billionths of a core and in KiB.
const SYSTEM_NANOCORES: u64 = 85_000_000;
const SYSTEM_KIB: u64 = 780 * 1024;

/// Both resources: plural, kind, whether namespaced.
pub const RESOURCES: [(&str, &str, bool); 2] = [
    ("nodes", "NodeMetrics", false),
    ("pods", "PodMetrics", true),
];

/// Answers a path below the group's version.
pub fn answer(world: &World, path: &[&str], query: &Query) -> Result<Value, Status> {
    let labels = Labels::parse(query.get("labelSelector").unwrap_or_default())?;
    match path {
        ["nodes"] => Ok(list("NodeMetricsList", nodes(world, &labels))),
        ["nodes", name] => nodes(world, &labels)
            .into_iter()
            .find(|node| node["metadata"]["name"] == *name)
            .ok_or_else(|| Status::no_metrics("nodemetrics", name)),
        ["pods"] => Ok(list("PodMetricsList", pods(world, None, &labels))),
        ["namespaces", namespace, "pods"] => Ok(list(
            "PodMetricsList",
            pods(world, Some(namespace), &labels),
        )),
        ["namespaces", namespace, "pods", name] => pods(world, Some(namespace), &labels)
            .into_iter()
            .find(|pod| pod["metadata"]["name"] == *name)
            .ok_or_else(|| Status::no_metrics("podmetrics", &format!("{namespace}/{name}"))),
        _ => Err(Status::no_such_path()),
    }
}

fn list(kind: &str, items: Vec<Value>) -> Value {
    json!({ "kind": kind, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items })
}

fn usage(nanocores: u64, kib: u64) -> Value {
    json!({ "cpu": format!("{nanocores}n"), "memory": format!("{kib}Ki") })
}

fn entry(world: &World, kind: &str, object: &Value, taken_at: &str) -> Value {
    let mut entry = json!({
        "kind": kind, "apiVersion": GROUP_VERSION,
        "metadata": {"name": object["metadata"]["name"], "creationTimestamp": world.now().seconds_text()},
        "timestamp": taken_at, "window": format!("{}s", WINDOW.as_secs()),
    });
    for field in ["namespace", "labels"] {
        if let Some(value) = object["metadata"].get(field) {
            entry["metadata"][field] = value.clone();
        }
    }
    entry
}

fn pods(world: &World, namespace: Option<&str>, labels: &Labels) -> Vec<Value> {
    let mut by_pod: BTreeMap<(String, String), Vec<ContainerUse>> = BTreeMap::new();
    for one in kubelet::metrics(world) {
        if namespace.is_none_or(|namespace| namespace == one.namespace) {
            by_pod
                .entry((one.namespace.clone(), one.pod.clone()))
                .or_default()
                .push(one);
        }
    }
    by_pod
        .into_iter()
        .filter_map(|((namespace, name), uses)| {
            let pod = world.store.get(Kind::Pod, &namespace, &name)?;
            if !labels.matches(pod) {
                return None;
            }
            let taken_at = uses.first()?.taken_at.seconds_text();
            let mut metrics = entry(world, "PodMetrics", pod, &taken_at);
            metrics["containers"] = uses
                .iter()
                .map(|one| json!({ "name": one.container, "usage": usage(one.cpu_nanocores, one.memory_kib) }))
                .collect();
            Some(metrics)
        })
        .collect()
}

fn nodes(world: &World, labels: &Labels) -> Vec<Value> {
    let uses = kubelet::metrics(world);
    world
        .store
        .all(Kind::Node)
        .filter(|node| labels.matches(node))
        .map(|node| {
            let name = text(&node["metadata"]["name"]);
            let mut sums = (SYSTEM_NANOCORES, SYSTEM_KIB);
            for one in uses.iter().filter(|one| one.node == name) {
                sums = (sums.0 + one.cpu_nanocores, sums.1 + one.memory_kib);
            }
            let mut metrics = entry(world, "NodeMetrics", node, &world.now().seconds_text());
            metrics["usage"] = usage(sums.0, sums.1);
            metrics
        })
        .collect()
}
