//! ResourceQuotas: what a namespace uses of what it may use.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::set_status;
use crate::embedded::controllers::{Key, pods};
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;
use crate::embedded::scheduler::resources::{self, Amounts};
use crate::embedded::world::World;

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(quota) = world
        .store
        .get(Kind::ResourceQuota, &key.namespace, &key.name)
        .cloned()
    else {
        return;
    };
    let hard = &quota["spec"]["hard"];
    let mut used = Map::new();
    for resource in hard.as_object().into_iter().flatten().map(|(name, _)| name) {
        let amount = usage(world, &key.namespace, &quota, resource);
        used.insert(resource.clone(), amount.to_string().into());
    }
    let status = json!({"hard": hard, "used": used});
    set_status(world, Kind::ResourceQuota, &quota, status);
}

/// How much of a resource as quotas name it (`limits.memory`, `pods`, `count/jobs.batch`) is in use.
pub fn usage(world: &World, namespace: &str, quota: &Value, resource: &str) -> Quantity {
    if let Some(kind) = counted_kind(resource) {
        return count(world.store.within(kind, namespace).count());
    }
    let counted: Vec<&Arc<Value>> = world
        .store
        .within(Kind::Pod, namespace)
        .filter(|pod| !pods::finished(pod) && in_scope(quota, pod))
        .collect();
    if resource == "pods" || resource == "count/pods" {
        return count(counted.len());
    }
    let mut sum = Quantity::ZERO;
    for pod in counted {
        if let Some(amount) = charge(pod, resource) {
            sum = sum.plus(amount);
        }
    }
    sum
}

/// What a pod adds to a resource of a quota; `None` when it says nothing about it.
pub fn charge(pod: &Value, resource: &str) -> Option<Quantity> {
    let (what, name) = match resource.split_once('.') {
        Some(("limits", name)) => ("limits", name),
        Some(("requests", name)) => ("requests", name),
        _ => ("requests", resource),
    };
    let amounts: Amounts = resources::of_pod(pod, what);
    amounts.get(name).copied()
}

/// Whether a quota with scopes is about a pod.
pub fn in_scope(quota: &Value, pod: &Value) -> bool {
    let best_effort = || pod["status"]["qosClass"] == "BestEffort";
    let ending = || pod["spec"]["activeDeadlineSeconds"].is_i64();
    quota["spec"]["scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|scope| match scope.as_str() {
            Some("BestEffort") => best_effort(),
            Some("NotBestEffort") => !best_effort(),
            Some("Terminating") => ending(),
            Some("NotTerminating") => !ending(),
            _ => true,
        })
}

/// The kind that a quota counts by number, other than pods.
pub fn counted_kind(resource: &str) -> Option<Kind> {
    if resource == "count/pods" {
        return None;
    }
    if let Some(qualified) = resource.strip_prefix("count/") {
        let (plural, group) = qualified.split_once('.').unwrap_or((qualified, ""));
        return Kind::by_plural(group, plural);
    }
    match resource {
        "services" => Some(Kind::Service),
        "secrets" => Some(Kind::Secret),
        "configmaps" => Some(Kind::ConfigMap),
        "persistentvolumeclaims" => Some(Kind::PersistentVolumeClaim),
        "resourcequotas" => Some(Kind::ResourceQuota),
        _ => None,
    }
}

fn count(number: usize) -> Quantity {
    Quantity::units(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
