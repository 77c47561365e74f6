//! Resource quotas: what an object takes from them, and refusals when too little is left.
//!
//! Use is counted from the objects themselves at the moment of admission, so it is never out of date.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::embedded::api::admission::shown_name;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;
use crate::embedded::world::World;

/// Amounts by quota resource name, such as `limits.memory` or `pods`.
pub type Usage = BTreeMap<String, Quantity>;

/// Refuses a new or changed object for which a quota of its namespace has no room.
pub fn check(world: &World, kind: Kind, old: Option<&Value>, object: &Value) -> Result<(), Status> {
    if !kind.info().namespaced {
        return Ok(());
    }
    let namespace = text(&object["metadata"]["namespace"]);
    for quota in world.store.within(Kind::ResourceQuota, namespace) {
        let hard = amounts(&quota["spec"]["hard"]);
        if !concerns(quota, kind, object) {
            continue;
        }
        let mut wanted = usage_of(kind, object);
        wanted.retain(|resource, _| hard.contains_key(resource));
        if old.is_none() && kind == Kind::Pod {
            check_constraints(quota, &hard, object)?;
        }
        let before = old.map(|old| usage_of(kind, old)).unwrap_or_default();
        for (resource, amount) in &mut wanted {
            if let Some(earlier) = before.get(resource) {
                *amount = amount.minus(*earlier);
            }
        }
        // Giving something back, or taking nothing more, is never refused.
        wanted.retain(|_, amount| *amount > Quantity::ZERO);
        if wanted.is_empty() {
            continue;
        }
        let used = used(world, quota);
        let left_out = |resource: &String| {
            let taken = used.get(resource).copied().unwrap_or(Quantity::ZERO);
            hard.get(resource)
                .zip(wanted.get(resource))
                .is_some_and(|(hard, wanted)| taken.plus(*wanted) > *hard)
        };
        let exceeded: Vec<&String> = wanted.keys().filter(|name| left_out(name)).collect();
        if !exceeded.is_empty() {
            let listed = |amounts: &Usage| {
                let texts: Vec<String> = exceeded
                    .iter()
                    .map(|name| {
                        let amount = amounts.get(*name).copied().unwrap_or(Quantity::ZERO);
                        format!("{name}={amount}")
                    })
                    .collect();
                texts.join(",")
            };
            let why = format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                text(&quota["metadata"]["name"]),
                listed(&wanted),
                listed(&used),
                listed(&hard)
            );
            return Err(Status::forbidden(kind, shown_name(object), &why));
        }
    }
    Ok(())
}

/// What a quota's namespace uses of the quota's resources, zeros included.
pub fn used(world: &World, quota: &Value) -> Usage {
    let namespace = text(&quota["metadata"]["namespace"]);
    let hard = amounts(&quota["spec"]["hard"]);
    let mut sum: Usage = hard
        .keys()
        .map(|resource| (resource.clone(), Quantity::ZERO))
        .collect();
    for kind in COUNTED {
        for object in world.store.within(*kind, namespace) {
            if !concerns(quota, *kind, object) {
                continue;
            }
            for (resource, amount) in usage_of(*kind, object) {
                if let Some(so_far) = sum.get_mut(&resource) {
                    *so_far = so_far.plus(amount);
                }
            }
        }
    }
    sum
}

/// Types that quotas may count.
const COUNTED: &[Kind] = &[
    Kind::Pod,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::ResourceQuota,
    Kind::PersistentVolumeClaim,
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::Job,
    Kind::CronJob,
    Kind::Ingress,
];

fn amounts(map: &Value) -> Usage {
    map.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?)))
        .collect()
}

/// Whether a quota's scopes let it count an object. Pods that have ended count nowhere.
fn concerns(quota: &Value, kind: Kind, object: &Value) -> bool {
    if kind != Kind::Pod {
        return quota["spec"]["scopes"].as_array().is_none_or(Vec::is_empty);
    }
    let best_effort = text(&object["status"]["qosClass"]) == "BestEffort";
    let terminating = object["spec"].get("activeDeadlineSeconds").is_some();
    quota["spec"]["scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|scope| match text(scope) {
            "BestEffort" => best_effort,
            "NotBestEffort" => !best_effort,
            "Terminating" => terminating,
            "NotTerminating" => !terminating,
            "PriorityClass" => !text(&object["spec"]["priorityClassName"]).is_empty(),
            _ => false,
        })
}

/// What one object takes, under every name that a quota may use for it.
fn usage_of(kind: Kind, object: &Value) -> Usage {
    let mut usage = Usage::new();
    let one = Quantity::units(1);
    if kind == Kind::Pod {
        if matches!(text(&object["status"]["phase"]), "Succeeded" | "Failed") {
            return usage;
        }
        usage.insert("pods".to_owned(), one);
        add_pod_resources(&mut usage, &object["spec"]);
    }
    usage.insert(format!("count/{}", kind.qualified()), one);
    match kind {
        Kind::Service => {
            usage.insert("services".to_owned(), one);
            let ports = object["spec"]["ports"].as_array().map_or(0, Vec::len);
            let kind = text(&object["spec"]["type"]);
            if kind == "NodePort" || kind == "LoadBalancer" {
                let ports = Quantity::units(i64::try_from(ports).unwrap_or(i64::MAX));
                usage.insert("services.nodeports".to_owned(), ports);
            }
            if kind == "LoadBalancer" {
                usage.insert("services.loadbalancers".to_owned(), one);
            }
        }
        Kind::ConfigMap | Kind::Secret | Kind::ResourceQuota => {
            usage.insert(kind.info().plural.to_owned(), one);
        }
        Kind::PersistentVolumeClaim => {
            usage.insert("persistentvolumeclaims".to_owned(), one);
            let storage = &object["spec"]["resources"]["requests"]["storage"];
            if let Ok(storage) = Quantity::from_json(storage) {
                usage.insert("requests.storage".to_owned(), storage);
            }
        }
        _ => {}
    }
    usage
}

/// Sums of the containers, or the largest init container where that is more.
fn add_pod_resources(usage: &mut Usage, spec: &Value) {
    for (which, prefix) in [("requests", "requests."), ("limits", "limits.")] {
        let mut sums = Usage::new();
        for container in spec["containers"].as_array().into_iter().flatten() {
            for (resource, amount) in amounts(&container["resources"][which]) {
                let sum = sums.entry(resource).or_insert(Quantity::ZERO);
                *sum = sum.plus(amount);
            }
        }
        for container in spec["initContainers"].as_array().into_iter().flatten() {
            for (resource, amount) in amounts(&container["resources"][which]) {
                let sum = sums.entry(resource).or_insert(Quantity::ZERO);
                *sum = (*sum).max(amount);
            }
        }
        for (resource, amount) in sums {
            if which == "requests" && matches!(resource.as_str(), "cpu" | "memory") {
                usage.insert(resource.clone(), amount);
            }
            usage.insert(format!("{prefix}{resource}"), amount);
        }
    }
}

/// A quota on a compute resource demands that every container states it.
fn check_constraints(quota: &Value, hard: &Usage, pod: &Value) -> Result<(), Status> {
    let mut missing: Vec<String> = Vec::new();
    for resource in hard.keys() {
        let (which, plain) = match resource.split_once('.') {
            None if matches!(resource.as_str(), "cpu" | "memory") => {
                ("requests", resource.as_str())
            }
            Some((which @ ("requests" | "limits"), plain @ ("cpu" | "memory"))) => (which, plain),
            _ => continue,
        };
        let mut without: Vec<&str> = Vec::new();
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array().into_iter().flatten() {
                if container["resources"][which].get(plain).is_none() {
                    without.push(text(&container["name"]));
                }
            }
        }
        if !without.is_empty() {
            without.sort_unstable();
            without.dedup();
            missing.push(format!("{resource} for: {}", without.join(",")));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!(
        "failed quota: {}: must specify {}",
        text(&quota["metadata"]["name"]),
        missing.join("; ")
    );
    Err(Status::forbidden(Kind::Pod, shown_name(pod), &why))
}
