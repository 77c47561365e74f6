//! PodDisruptionBudgets: how many of the selected pods are healthy, and how many may go.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::controllers::object::{
    controller, deleting, generation, items, name, namespace, replicas, scaled, selects, set_status,
};
use crate::embedded::controllers::{Key, pods};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const COMPONENT: &str = "controllermanager";

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(budget) = world
        .store
        .get(Kind::PodDisruptionBudget, &key.namespace, &key.name)
        .cloned()
    else {
        return;
    };
    let selected: Vec<Arc<Value>> = world
        .store
        .within(Kind::Pod, &key.namespace)
        .filter(|pod| {
            !pods::finished(pod) && selects(&budget["spec"]["selector"], &pod["metadata"]["labels"])
        })
        .cloned()
        .collect();
    announce(world, &budget, &selected);
    let (expected, desired) = wanted(world, &budget, &selected);
    let evicted = budget["status"]["disruptedPods"].clone();
    let healthy = selected
        .iter()
        .filter(|pod| {
            !deleting(pod)
                && pods::ready(pod)
                && evicted
                    .get(pod["metadata"]["name"].as_str().unwrap_or_default())
                    .is_none()
        })
        .count() as i64;
    let allowed = if expected == 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    let mut status = json!({
        "observedGeneration": generation(&budget),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [condition(world, &budget, allowed)],
    });
    let names: Vec<&str> = selected
        .iter()
        .filter(|pod| !deleting(pod))
        .filter_map(|pod| pod["metadata"]["name"].as_str())
        .collect();
    if let Some(mut evicted) = evicted.as_object().cloned() {
        // Pods whose deletion has begun need no note any longer.
        evicted.retain(|pod, _| names.contains(&pod.as_str()));
        if !evicted.is_empty() {
            status["disruptedPods"] = evicted.into();
        }
    }
    set_status(world, Kind::PodDisruptionBudget, &budget, status);
}

/// Tells of a budget without pods, and of pods with several budgets.
fn announce(world: &mut World, budget: &Value, selected: &[Arc<Value>]) {
    if selected.is_empty() {
        return tell(
            world,
            budget,
            false,
            "NoPods",
            "No matching pods found".to_owned(),
        );
    }
    for pod in selected {
        let budgets: Vec<String> = world
            .store
            .within(Kind::PodDisruptionBudget, namespace(pod))
            .filter(|other| selects(&other["spec"]["selector"], &pod["metadata"]["labels"]))
            .map(|other| name(other).to_owned())
            .collect();
        if let [first, _, ..] = budgets.as_slice() {
            let message = format!(
                "Pod \"{}\"/\"{}\" matches multiple PodDisruptionBudgets.  Chose \"{first}\" arbitrarily.",
                namespace(pod),
                name(pod)
            );
            tell(world, pod, true, "MultiplePodDisruptionBudgets", message);
        }
    }
}

fn tell(world: &mut World, about: &Value, warning: bool, reason: &str, message: String) {
    let event = NewEvent {
        about,
        field_path: None,
        warning,
        reason,
        message,
        component: COMPONENT,
        host: None,
    };
    events::record(world, event);
}

/// The expected number of pods and how many of them must stay healthy.
fn wanted(world: &World, budget: &Value, selected: &[Arc<Value>]) -> (i64, i64) {
    let spec = &budget["spec"];
    if let Some(unavailable) = spec.get("maxUnavailable").filter(|value| !value.is_null()) {
        let expected = scale_of(world, selected);
        return (
            expected,
            (expected - scaled(unavailable, expected, true)).max(0),
        );
    }
    match &spec["minAvailable"] {
        Value::String(percent) => {
            let expected = scale_of(world, selected);
            (expected, scaled(&percent.as_str().into(), expected, true))
        }
        least => (selected.len() as i64, least.as_i64().unwrap_or(1)),
    }
}

/// The specified replicas of the controllers of some pods, each counted once; a Deployment instead of its sets.
fn scale_of(world: &World, selected: &[Arc<Value>]) -> i64 {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    for pod in selected {
        let Some(mut owner) = controller(pod).cloned() else {
            continue;
        };
        let ns = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let find = |owner: &Value| {
            let kind = Kind::by_name(owner["kind"].as_str()?)?;
            world.store.get(kind, ns, owner["name"].as_str()?).cloned()
        };
        let Some(mut object) = find(&owner) else {
            continue;
        };
        if let Some(above) = controller(&object).cloned()
            && let Some(found) = find(&above)
        {
            owner = above;
            object = found;
        }
        scales.insert(owner["uid"].to_string(), replicas(&object));
    }
    scales.values().sum()
}

fn condition(world: &World, budget: &Value, allowed: i64) -> Value {
    let (status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let since = items(&budget["status"]["conditions"])
        .iter()
        .find(|c| c["status"] == status)
        .map(|c| c["lastTransitionTime"].clone());
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": "",
        "observedGeneration": generation(budget),
        "lastTransitionTime": since.unwrap_or_else(|| world.now().seconds_text().into()),
    })
}

#[cfg(test)]
mod tests;
