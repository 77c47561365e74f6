//! The Job controller: runs pods until enough have succeeded, or too many have failed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::{
    condition_is, controlled_by, deleting, items, name, namespace, put_count, set_status, time, uid,
};
use crate::embedded::controllers::{Key, forget, pods, retry, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

const COMPONENT: &str = "job-controller";

/// The wait after a failed pod; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);

const LONGEST_BACKOFF: Duration = Duration::from_secs(600);

/// Failed pods that a Job may have when it does not say.
const DEFAULT_BACKOFF_LIMIT: i64 = 6;

/// What the Job's pods amount to.
struct Tally {
    active: Vec<Arc<Value>>,
    ready: i64,
    terminating: i64,
    succeeded: i64,
    failed: i64,
    /// When the last failed pod ended.
    last_failure: Option<Time>,
}

/// How a Job ends.
struct End {
    /// The condition that announces it, and the one that seals it.
    kinds: [&'static str; 2],
    reason: &'static str,
    message: &'static str,
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(job) = world
        .store
        .get(Kind::Job, &key.namespace, &key.name)
        .cloned()
    else {
        forget(world, key);
        return;
    };
    let over = condition_is(&job, "Complete", "True") || condition_is(&job, "Failed", "True");
    if deleting(&job) || over {
        return;
    }
    let mut tally = tally(world, &job);
    let end = end(&job, &tally);
    let mut refused = false;
    if end.is_some() {
        for pod in tally.active.drain(..) {
            pods::delete_owned(world, &job, &pod, COMPONENT);
            tally.terminating += 1;
        }
    } else if job["spec"]["suspend"] != true {
        refused = !start(world, key, &job, &tally);
    }
    if !refused {
        forget(world, key);
    }
    if end.is_none() {
        tally = self::tally(world, &job);
    }
    write_status(world, &job, &tally, end.as_ref());
}

fn tally(world: &World, job: &Value) -> Tally {
    let mut tally = Tally {
        active: Vec::new(),
        ready: 0,
        terminating: 0,
        succeeded: 0,
        failed: 0,
        last_failure: None,
    };
    for pod in world.store.within(Kind::Pod, namespace(job)) {
        if !controlled_by(pod, uid(job)) {
            continue;
        }
        match pod["status"]["phase"].as_str() {
            Some("Succeeded") => tally.succeeded += 1,
            Some("Failed") => {
                tally.failed += 1;
                tally.last_failure = tally.last_failure.max(ended(pod));
            }
            _ if deleting(pod) => tally.terminating += 1,
            _ => {
                tally.ready += i64::from(pods::ready(pod));
                tally.active.push(pod.clone());
            }
        }
    }
    tally
}

/// When the last container of a pod ended.
fn ended(pod: &Value) -> Option<Time> {
    items(&pod["status"]["containerStatuses"])
        .iter()
        .filter_map(|status| time(&status["state"]["terminated"]["finishedAt"]))
        .max()
}

fn end(job: &Value, tally: &Tally) -> Option<End> {
    let limit = job["spec"]["backoffLimit"]
        .as_i64()
        .unwrap_or(DEFAULT_BACKOFF_LIMIT);
    if tally.failed > limit {
        return Some(End {
            kinds: ["FailureTarget", "Failed"],
            reason: "BackoffLimitExceeded",
            message: "Job has reached the specified backoff limit",
        });
    }
    let enough = match job["spec"]["completions"].as_i64() {
        Some(wanted) => tally.succeeded >= wanted,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    enough.then_some(End {
        kinds: ["SuccessCriteriaMet", "Complete"],
        reason: "CompletionsReached",
        message: "Reached expected number of succeeded pods",
    })
}

/// Starts missing pods, unless a failure is too recent. False when one was refused.
fn start(world: &mut World, key: &Key, job: &Value, tally: &Tally) -> bool {
    if let (Some(failed), true) = (tally.last_failure, tally.failed > 0) {
        let doublings = u32::try_from(tally.failed - 1).unwrap_or(0).min(16);
        let due = failed + (FIRST_BACKOFF * 2u32.pow(doublings)).min(LONGEST_BACKOFF);
        if due > world.now() {
            wake_at(world, key, due);
            return true;
        }
    }
    let parallel = job["spec"]["parallelism"].as_i64().unwrap_or(1);
    let active = tally.active.len() as i64;
    let wanted = match job["spec"]["completions"].as_i64() {
        Some(completions) => parallel.min(completions - tally.succeeded),
        // Without a number to reach, no pod is started once one has succeeded.
        None if tally.succeeded > 0 => active,
        None => parallel,
    };
    for _ in active..wanted {
        let pod = pod_of(job);
        if pods::create(world, job, pod, COMPONENT).is_err() {
            retry(world, key);
            return false;
        }
    }
    true
}

fn pod_of(job: &Value) -> Value {
    let mut pod = pods::from_template(job, &job["spec"]["template"]);
    let labels = &mut pod["metadata"]["labels"];
    for prefix in ["batch.kubernetes.io/", ""] {
        labels[format!("{prefix}controller-uid")] = uid(job).into();
        labels[format!("{prefix}job-name")] = name(job).into();
    }
    pod
}

fn write_status(world: &mut World, job: &Value, tally: &Tally, end: Option<&End>) {
    let now = world.now().seconds_text();
    let mut conditions = items(&job["status"]["conditions"]).to_vec();
    let mut status = Map::new();
    let started = job["status"].get("startTime").cloned();
    status.insert(
        "startTime".to_owned(),
        started.unwrap_or_else(|| now.as_str().into()),
    );
    put_count(&mut status, "active", tally.active.len() as i64);
    put_count(&mut status, "succeeded", tally.succeeded);
    put_count(&mut status, "failed", tally.failed);
    status.insert("ready".to_owned(), tally.ready.into());
    status.insert("terminating".to_owned(), tally.terminating.into());
    status.insert("uncountedTerminatedPods".to_owned(), json!({}));
    if let Some(end) = end {
        for kind in end.kinds {
            conditions.push(json!({
                "type": kind,
                "status": "True",
                "lastProbeTime": now,
                "lastTransitionTime": now,
                "reason": end.reason,
                "message": end.message,
            }));
        }
        if end.kinds.contains(&"Complete") {
            status.insert("completionTime".to_owned(), now.as_str().into());
        }
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    set_status(world, Kind::Job, job, status.into());
    if let Some(end) = end {
        let failed = end.kinds.contains(&"Failed");
        let event = NewEvent {
            about: job,
            field_path: None,
            warning: failed,
            reason: if failed { end.reason } else { "Completed" },
            message: if failed { end.message } else { "Job completed" }.to_owned(),
            component: COMPONENT,
            host: None,
        };
        events::record(world, event);
    }
}

#[cfg(test)]
mod tests;
