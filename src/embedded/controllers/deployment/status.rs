//! A Deployment's status: the counts, and the conditions Available, Progressing and ReplicaFailure.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::deployment::{Rollout, has_deadline};
use crate::embedded::controllers::object::{
    condition, generation, items, name, namespace, number, put_count, replicas, set_status, time,
};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Writes counts and availability, and leaves the progress condition alone.
pub(super) fn write(world: &mut World, rollout: &Rollout) {
    let status = counted(rollout, world.now());
    set_status(world, Kind::Deployment, &rollout.deployment, status.into());
}

/// Writes counts, availability, progress and failures.
pub(super) fn write_progress(world: &mut World, rollout: &Rollout) {
    let now = world.now();
    let deployment = &rollout.deployment;
    let mut status = counted(rollout, now);
    let mut conditions = take_conditions(&mut status);
    let current = condition(deployment, "Progressing").cloned();
    let count = |field: &str| status.get(field).map_or(0, number);
    let settled = count("replicas") == count("updatedReplicas")
        && current
            .as_ref()
            .is_some_and(|c| c["reason"] == "NewReplicaSetAvailable");
    if !has_deadline(deployment) {
        conditions.retain(|c| c["type"] != "Progressing");
    } else if !settled {
        judge_progress(rollout, &status, &mut conditions, now);
    }
    let failure = rollout
        .new
        .iter()
        .chain(rollout.old.iter())
        .find_map(|rs| condition(rs, "ReplicaFailure"));
    match failure {
        Some(failure) => put(
            &mut conditions,
            json!({
                "type": "ReplicaFailure",
                "status": failure["status"],
                "reason": failure["reason"],
                "message": failure["message"],
                "lastUpdateTime": now.seconds_text(),
                "lastTransitionTime": failure["lastTransitionTime"],
            }),
        ),
        None => conditions.retain(|c| c["type"] != "ReplicaFailure"),
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    set_status(world, Kind::Deployment, deployment, status.into());
}

/// Sets one condition at once, ahead of the round's status.
pub(super) fn set_condition(
    world: &mut World,
    rollout: &mut Rollout,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    let fresh = new_condition(kind, status, reason, message, world.now());
    let deployment = rollout.deployment.clone();
    world.update(
        Kind::Deployment,
        namespace(&deployment),
        name(&deployment),
        |d| {
            let mut conditions = items(&d["status"]["conditions"]).to_vec();
            put(&mut conditions, fresh);
            d["status"]["conditions"] = conditions.into();
        },
    );
    rollout.refresh(world);
}

fn new_condition(kind: &str, status: &str, reason: &str, message: &str, now: Time) -> Value {
    json!({
        "type": kind,
        "status": status,
        "lastUpdateTime": now.seconds_text(),
        "lastTransitionTime": now.seconds_text(),
        "reason": reason,
        "message": message,
    })
}

/// Puts a condition last, unless one with the same status and reason stands already; a transition is a change
/// of status.
fn put(conditions: &mut Vec<Value>, mut fresh: Value) {
    let current = conditions.iter().find(|c| c["type"] == fresh["type"]);
    if let Some(current) = current
        && current["status"] == fresh["status"]
    {
        if current["reason"] == fresh["reason"] {
            return;
        }
        fresh["lastTransitionTime"] = current["lastTransitionTime"].clone();
    }
    conditions.retain(|c| c["type"] != fresh["type"]);
    conditions.push(fresh);
}

fn take_conditions(status: &mut Map<String, Value>) -> Vec<Value> {
    match status.remove("conditions") {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    }
}

/// The counts as they are now, and the conditions with Available brought up to date.
fn counted(rollout: &Rollout, now: Time) -> Map<String, Value> {
    let deployment = &rollout.deployment;
    let sum = |field: &str| -> i64 { rollout.all().map(|rs| number(&rs["status"][field])).sum() };
    let specified: i64 = rollout.all().map(|rs| replicas(rs)).sum();
    let available = sum("availableReplicas");
    let updated = rollout
        .new
        .as_ref()
        .map_or(0, |rs| number(&rs["status"]["replicas"]));
    let mut status = Map::new();
    status.insert(
        "observedGeneration".to_owned(),
        generation(deployment).into(),
    );
    put_count(&mut status, "replicas", sum("replicas"));
    put_count(&mut status, "updatedReplicas", updated);
    put_count(&mut status, "readyReplicas", sum("readyReplicas"));
    put_count(&mut status, "availableReplicas", available);
    put_count(
        &mut status,
        "unavailableReplicas",
        (specified - available).max(0),
    );
    if let Some(collisions) = deployment["status"].get("collisionCount") {
        status.insert("collisionCount".to_owned(), collisions.clone());
    }
    let mut conditions = items(&deployment["status"]["conditions"]).to_vec();
    let fresh = if available >= rollout.wanted() - rollout.max_unavailable() {
        let message = "Deployment has minimum availability.";
        new_condition(
            "Available",
            "True",
            "MinimumReplicasAvailable",
            message,
            now,
        )
    } else {
        let message = "Deployment does not have minimum availability.";
        new_condition(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            message,
            now,
        )
    };
    put(&mut conditions, fresh);
    status.insert("conditions".to_owned(), conditions.into());
    status
}

/// Complete, getting on, or timed out: whichever holds first.
fn judge_progress(
    rollout: &Rollout,
    status: &Map<String, Value>,
    conditions: &mut Vec<Value>,
    now: Time,
) {
    let deployment = &rollout.deployment;
    let set = rollout.new.as_ref().map_or_else(
        || format!("Deployment \"{}\"", name(deployment)),
        |rs| format!("ReplicaSet \"{}\"", name(rs)),
    );
    let count = |field: &str| status.get(field).map_or(0, number);
    let before = |field: &str| number(&deployment["status"][field]);
    let wanted = rollout.wanted();
    let complete = ["updatedReplicas", "replicas", "availableReplicas"]
        .iter()
        .all(|field| count(field) == wanted);
    let old_left = |count: &dyn Fn(&str) -> i64| count("replicas") - count("updatedReplicas");
    let progressing = count("updatedReplicas") > before("updatedReplicas")
        || old_left(&count) < old_left(&before)
        || count("readyReplicas") > before("readyReplicas")
        || count("availableReplicas") > before("availableReplicas");
    if complete {
        let message = format!("{set} has successfully progressed.");
        put(
            conditions,
            new_condition(
                "Progressing",
                "True",
                "NewReplicaSetAvailable",
                &message,
                now,
            ),
        );
    } else if progressing {
        let message = format!("{set} is progressing.");
        let mut fresh = new_condition("Progressing", "True", "ReplicaSetUpdated", &message, now);
        // Progress renews the time of the update even when nothing else changes.
        let current = conditions.iter().find(|c| c["type"] == "Progressing");
        if let Some(current) = current
            && current["status"] == "True"
        {
            fresh["lastTransitionTime"] = current["lastTransitionTime"].clone();
        }
        conditions.retain(|c| c["type"] != "Progressing");
        conditions.push(fresh);
    } else if timed_out(deployment, now) {
        let message = format!("{set} has timed out progressing.");
        put(
            conditions,
            new_condition(
                "Progressing",
                "False",
                "ProgressDeadlineExceeded",
                &message,
                now,
            ),
        );
    }
}

fn timed_out(deployment: &Value, now: Time) -> bool {
    let Some(progressing) = condition(deployment, "Progressing") else {
        return false;
    };
    match progressing["reason"].as_str() {
        Some("NewReplicaSetAvailable") => return false,
        Some("ProgressDeadlineExceeded") => return true,
        _ => {}
    }
    let deadline = number(&deployment["spec"]["progressDeadlineSeconds"]);
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
    time(&progressing["lastUpdateTime"]).is_some_and(|since| since + deadline < now)
}
