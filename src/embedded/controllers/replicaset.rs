//! The ReplicaSet controller: keeps as many pods as the spec says, and counts them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::{
    condition, deleting, generation, items, map_selects, number, put_count, replicas, set_status,
};
use crate::embedded::controllers::{Key, forget, pods, retry, wake_at};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

const COMPONENT: &str = "replicaset-controller";

/// Pods created or deleted in one go; the rest waits for the next round.
const BURST: usize = 500;

/// Why the wanted number could not be reached: the condition's reason and the server's text.
struct Failure {
    reason: &'static str,
    message: String,
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(rs) = world
        .store
        .get(Kind::ReplicaSet, &key.namespace, &key.name)
        .cloned()
    else {
        forget(world, key);
        return;
    };
    let mut mine = pods::claim(world, &rs, &rs["spec"]["selector"]);
    mine.retain(|pod| pods::active(pod));
    let failure = if deleting(&rs) {
        None
    } else {
        manage(world, &rs, &mine)
    };
    update_status(world, key, &rs, failure.as_ref());
    if failure.is_some() {
        retry(world, key);
    } else {
        forget(world, key);
    }
}

/// Creates what is missing or deletes what is too many.
fn manage(world: &mut World, rs: &Value, mine: &[Arc<Value>]) -> Option<Failure> {
    let wanted = usize::try_from(replicas(rs)).unwrap_or(0);
    if mine.len() < wanted {
        return create_missing(world, rs, (wanted - mine.len()).min(BURST));
    }
    let surplus = (mine.len() - wanted).min(BURST);
    if surplus > 0 {
        let now = world.now();
        let mut order = mine.to_vec();
        order.sort_by(|a, b| pods::deletion_order(a, b, now));
        for pod in order.iter().take(surplus) {
            pods::delete_owned(world, rs, pod, COMPONENT);
        }
    }
    None
}

/// Creates in batches of 1, 2, 4 …, so that a refusal that meets all of them is met once and not by all.
fn create_missing(world: &mut World, rs: &Value, missing: usize) -> Option<Failure> {
    let mut left = missing;
    let mut batch = 1;
    while left > 0 {
        let size = batch.min(left);
        let mut first_error = None;
        for _ in 0..size {
            let pod = pods::from_template(rs, &rs["spec"]["template"]);
            if let Err(message) = pods::create(world, rs, pod, COMPONENT) {
                first_error.get_or_insert(message);
            }
        }
        if let Some(message) = first_error {
            return Some(Failure {
                reason: "FailedCreate",
                message,
            });
        }
        left -= size;
        batch *= 2;
    }
    None
}

fn update_status(world: &mut World, key: &Key, rs: &Value, failure: Option<&Failure>) {
    let now = world.now();
    let min_ready = number(&rs["spec"]["minReadySeconds"]);
    let template_labels = &rs["spec"]["template"]["metadata"]["labels"];
    let (mut total, mut labeled, mut ready, mut available) = (0, 0, 0, 0);
    let mut due = None;
    for pod in pods::claim(world, rs, &rs["spec"]["selector"]) {
        if !pods::active(&pod) {
            continue;
        }
        total += 1;
        labeled += i64::from(map_selects(template_labels, &pod["metadata"]["labels"]));
        ready += i64::from(pods::ready(&pod));
        if pods::available(&pod, min_ready, now) {
            available += 1;
        } else if let (true, Some(since)) = (pods::ready(&pod), pods::ready_since(&pod)) {
            let at = since + Duration::from_secs(u64::try_from(min_ready).unwrap_or(0));
            due = Some(due.map_or(at, |earlier: Time| earlier.min(at)));
        }
    }
    let mut status = Map::new();
    status.insert("replicas".to_owned(), total.into());
    put_count(&mut status, "fullyLabeledReplicas", labeled);
    put_count(&mut status, "readyReplicas", ready);
    put_count(&mut status, "availableReplicas", available);
    status.insert("observedGeneration".to_owned(), generation(rs).into());
    let mut conditions: Vec<Value> = items(&rs["status"]["conditions"]).to_vec();
    match (failure, condition(rs, "ReplicaFailure")) {
        (Some(failure), None) => conditions.push(json!({
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": now.seconds_text(),
            "reason": failure.reason,
            "message": failure.message,
        })),
        (None, Some(_)) => conditions.retain(|c| c["type"] != "ReplicaFailure"),
        _ => {}
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    set_status(world, Kind::ReplicaSet, rs, status.into());
    if let Some(due) = due {
        wake_at(world, key, due);
    }
}

#[cfg(test)]
mod tests;
