//! LimitRanges: default limits and requests of containers, and the bounds that they must keep.

use serde_json::Value;

use crate::embedded::api::admission::shown_name;
use crate::embedded::api::defaults::{each, fill};
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;
use crate::embedded::world::World;

/// The annotation that tells what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Items of the namespace's LimitRanges about containers, or about pods.
fn items_about(world: &World, namespace: &str, what: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for range in world.store.within(Kind::LimitRange, namespace) {
        for item in range["spec"]["limits"].as_array().into_iter().flatten() {
            if item["type"] == what {
                items.push(item.clone());
            }
        }
    }
    items
}

/// Gives containers without limits or requests the namespace's defaults.
pub fn apply_defaults(world: &World, pod: &mut Value) {
    let namespace = text(&pod["metadata"]["namespace"]).to_owned();
    let mut told = Vec::new();
    for item in items_about(world, &namespace, "Container") {
        for list in ["containers", "initContainers"] {
            if let Some(containers) = pod["spec"].get_mut(list) {
                let role = if list == "containers" {
                    "container"
                } else {
                    "init container"
                };
                each(containers, |container| {
                    told.extend(default_container(container, &item, role));
                });
            }
        }
    }
    if !told.is_empty() {
        let note = format!("LimitRanger plugin set: {}", told.join("; "));
        fill(&mut pod["metadata"]["annotations"], ANNOTATION, note);
    }
}

/// Fills one container; answers what was set, in the annotation's words.
fn default_container(container: &mut Value, item: &Value, role: &str) -> Vec<String> {
    let mut told = Vec::new();
    let name = text(&container["name"]).to_owned();
    for (source, target, what) in [
        ("defaultRequest", "requests", "request"),
        ("default", "limits", "limit"),
    ] {
        let mut set = Vec::new();
        for (resource, amount) in item[source].as_object().into_iter().flatten() {
            if container["resources"][target].get(resource).is_none() {
                fill(
                    &mut container["resources"][target],
                    resource,
                    amount.clone(),
                );
                set.push(resource.as_str());
            }
        }
        if !set.is_empty() {
            told.push(format!("{} {what} for {role} {name}", set.join(", ")));
        }
    }
    told
}

/// Refuses containers outside the namespace's bounds.
pub fn check(world: &World, pod: &Value) -> Result<(), Status> {
    let namespace = text(&pod["metadata"]["namespace"]);
    let mut broken = Vec::new();
    let containers = || pod["spec"]["containers"].as_array().into_iter().flatten();
    for item in items_about(world, namespace, "Container") {
        for container in containers() {
            check_bounds("Container", &container["resources"], &item, &mut broken);
        }
    }
    for item in items_about(world, namespace, "Pod") {
        let mut sums = Value::Null;
        for container in containers() {
            for which in ["limits", "requests"] {
                let amounts = container["resources"][which].as_object();
                for (resource, amount) in amounts.into_iter().flatten() {
                    add(&mut sums[which][resource], amount);
                }
            }
        }
        check_bounds("Pod", &sums, &item, &mut broken);
    }
    match broken.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::forbidden(Kind::Pod, shown_name(pod), one)),
        several => {
            let all = format!("[{}]", several.join(", "));
            Err(Status::forbidden(Kind::Pod, shown_name(pod), &all))
        }
    }
}

/// Adds a quantity to a sum.
fn add(sum: &mut Value, amount: &Value) {
    let Ok(amount) = Quantity::from_json(amount) else {
        return;
    };
    let total = Quantity::from_json(sum).map_or(amount, |before| before.plus(amount));
    *sum = total.to_string().into();
}

fn check_bounds(of: &str, resources: &Value, item: &Value, broken: &mut Vec<String>) {
    let amount = |value: &Value| Quantity::from_json(value).ok();
    for (resource, bound) in item["min"].as_object().into_iter().flatten() {
        let Some(bound) = amount(bound) else { continue };
        match amount(&resources["requests"][resource]) {
            None => broken.push(format!(
                "minimum {resource} usage per {of} is {bound}.  No request is specified"
            )),
            Some(request) if request < bound => broken.push(format!(
                "minimum {resource} usage per {of} is {bound}, but request is {request}"
            )),
            Some(_) => {}
        }
    }
    for (resource, bound) in item["max"].as_object().into_iter().flatten() {
        let Some(bound) = amount(bound) else { continue };
        match amount(&resources["limits"][resource]) {
            None => broken.push(format!(
                "maximum {resource} usage per {of} is {bound}.  No limit is specified"
            )),
            Some(limit) if limit > bound => broken.push(format!(
                "maximum {resource} usage per {of} is {bound}, but limit is {limit}"
            )),
            Some(_) => {}
        }
    }
}
