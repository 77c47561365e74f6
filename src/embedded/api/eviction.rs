//! Evictions: deletes of pods that respect disruption budgets.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::api::delete::{self, DeleteOptions};
use crate::embedded::api::read;
use crate::embedded::api::selector::Labels;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Seconds after which a client may ask again while a budget is still being worked out.
const RETRY_SECONDS: u64 = 10;

/// Evicts a pod, or refuses.
pub fn evict(
    world: &mut World,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let pod = read::get(world, Kind::Pod, namespace, name)?;
    if !protected(&pod) {
        return remove(world, namespace, name, options);
    }
    let budgets: Vec<Arc<Value>> = world
        .store
        .within(Kind::PodDisruptionBudget, namespace)
        .filter(|budget| {
            Labels::of(&budget["spec"]["selector"]).is_some_and(|labels| labels.matches(&pod))
        })
        .cloned()
        .collect();
    match budgets.as_slice() {
        [] => {}
        [budget] => {
            if !unhealthy_may_go(budget, &pod) {
                check(budget)?;
                if !options.dry_run {
                    take(world, budget, name);
                }
            }
        }
        _ => {
            return Err(Status::unreasoned(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    }
    if !options.dry_run {
        mark(world, namespace, name);
    }
    remove(world, namespace, name, options)
}

/// Pods that do not run yet or no longer, or are going already, need no budget.
fn protected(pod: &Value) -> bool {
    let phase = text(&pod["status"]["phase"]);
    !matches!(phase, "Pending" | "Succeeded" | "Failed")
        && !pod["metadata"]["deletionTimestamp"].is_string()
}

/// A pod that is not ready may go when its budget is met without it, or says so.
fn unhealthy_may_go(budget: &Value, pod: &Value) -> bool {
    let ready = pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True");
    if ready {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let met = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    met || budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
}

fn check(budget: &Value) -> Result<(), Status> {
    let name = text(&budget["metadata"]["name"]);
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let status = &budget["status"];
    if number(&status["observedGeneration"]) < number(&budget["metadata"]["generation"]) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Status::too_many_requests(VIOLATED, RETRY_SECONDS).because(
            "DisruptionBudget",
            why,
            "",
        ));
    }
    if number(&status["disruptionsAllowed"]) <= 0 {
        let why = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number(&status["desiredHealthy"]),
            number(&status["currentHealthy"])
        );
        return Err(Status::too_many_requests(VIOLATED, 0).because("DisruptionBudget", why, ""));
    }
    Ok(())
}

/// Takes one disruption from a budget until its controller has counted again.
fn take(world: &mut World, budget: &Value, pod: &str) {
    let now = world.now().seconds_text();
    let metadata = &budget["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    world.update(Kind::PodDisruptionBudget, namespace, name, |budget| {
        let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
        budget["status"]["disruptedPods"][pod] = now.into();
    });
}

/// Tells in the pod's status why it goes.
fn mark(world: &mut World, namespace: &str, name: &str) {
    let now = world.now().seconds_text();
    world.update(Kind::Pod, namespace, name, |pod| {
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": now,
            "observedGeneration": pod["metadata"]["generation"],
        });
        let conditions = &mut pod["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        if let Some(list) = conditions.as_array_mut() {
            list.retain(|one| one["type"] != "DisruptionTarget");
            list.push(condition);
        }
    });
}

fn remove(
    world: &mut World,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<(), Status> {
    delete::delete(world, Kind::Pod, namespace, name, options).map(|_| ())
}
