//! The Job controller: runs pods until enough have succeeded, or too many have failed.
//!
//! An end is announced first; it is sealed when no pod is left that runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::embedded::api::delete::{self, DeleteOptions, Propagation};
use crate::embedded::controllers::job::verdict::End;
use crate::embedded::controllers::object::{
    annotation, condition, condition_is, controlled_by, deleting, items, name, namespace, number,
    put_count, set_status, time, uid,
};
use crate::embedded::controllers::{Key, forget, pods, retry, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

mod verdict;

const COMPONENT: &str = "job-controller";

/// The wait after a failed pod; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);

const LONGEST_BACKOFF: Duration = Duration::from_secs(600);

/// Where a pod of an indexed Job carries its index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// What the Job's pods amount to.
struct Tally {
    active: Vec<Arc<Value>>,
    ready: i64,
    terminating: i64,
    succeeded: i64,
    failed: Vec<Arc<Value>>,
    /// Completion indexes that have succeeded, and those under way.
    done: BTreeSet<i64>,
    under_way: BTreeSet<i64>,
    /// When the last failed pod ended.
    last_failure: Option<Time>,
}

impl Tally {
    /// Failed pods that count.
    fn failed_count(&self, job: &Value) -> i64 {
        let counted = |pod: &&Arc<Value>| !verdict::ignored(job, pod);
        self.failed.iter().filter(counted).count() as i64
    }
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
    if deleting(&job) {
        return;
    }
    if let Some(ended) = sealed_at(&job) {
        return clean_up(world, key, &job, ended);
    }
    let now = world.now();
    let mut tally = tally(world, &job);
    let announced = condition_is(&job, "FailureTarget", "True")
        || condition_is(&job, "SuccessCriteriaMet", "True");
    let end = verdict::end(&job, &tally, now);
    let suspended = job["spec"]["suspend"] == true;
    let mut failed = tally.failed_count(&job);
    let mut refused = false;
    if end.is_some() || suspended {
        for pod in tally.active.drain(..) {
            pods::delete_owned(world, &job, &pod, COMPONENT);
            tally.terminating += 1;
            // Pods that an end takes away have failed.
            failed += i64::from(end.is_some());
        }
        tally.ready = 0;
    } else {
        refused = !start(world, key, &job, &tally);
    }
    if !refused {
        forget(world, key);
    }
    if announced {
        failed = failed.max(number(&job["status"]["failed"]));
    }
    if end.is_none() && !suspended {
        tally = self::tally(world, &job);
    }
    write_status(world, &job, &tally, failed, end.as_ref());
    plan_next(world, key);
}

/// Has the Job looked at again when its deadline or its time to live is over.
fn plan_next(world: &mut World, key: &Key) {
    let Some(job) = world
        .store
        .get(Kind::Job, &key.namespace, &key.name)
        .cloned()
    else {
        return;
    };
    if let Some(ended) = sealed_at(&job) {
        clean_up(world, key, &job, ended);
    } else if let Some(due) = verdict::deadline(&job).filter(|due| *due > world.now()) {
        wake_at(world, key, due);
    }
}

/// When a Job was over for good.
fn sealed_at(job: &Value) -> Option<Time> {
    let sealed = ["Complete", "Failed"]
        .iter()
        .find_map(|kind| condition(job, kind).filter(|c| c["status"] == "True"))?;
    time(&sealed["lastTransitionTime"])
}

/// A Job that is over goes when its time to live is.
fn clean_up(world: &mut World, key: &Key, job: &Value, ended: Time) {
    let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_u64() else {
        return;
    };
    let due = ended + Duration::from_secs(seconds);
    if due > world.now() {
        return wake_at(world, key, due);
    }
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        ..DeleteOptions::default()
    };
    // It may have gone in the meantime, which is what was wanted.
    let _ = delete::delete(world, Kind::Job, &key.namespace, &key.name, &options);
}

fn indexed(job: &Value) -> bool {
    job["spec"]["completionMode"] == "Indexed"
}

fn tally(world: &World, job: &Value) -> Tally {
    let mut tally = Tally {
        active: Vec::new(),
        ready: 0,
        terminating: 0,
        succeeded: 0,
        failed: Vec::new(),
        done: BTreeSet::new(),
        under_way: BTreeSet::new(),
        last_failure: None,
    };
    for pod in world.store.within(Kind::Pod, namespace(job)) {
        if !controlled_by(pod, uid(job)) {
            continue;
        }
        let index = annotation(pod, INDEX).and_then(|text| text.parse::<i64>().ok());
        match pod["status"]["phase"].as_str() {
            Some("Succeeded") => {
                tally.succeeded += 1;
                tally.done.extend(index);
            }
            Some("Failed") => {
                tally.last_failure = tally.last_failure.max(ended(pod));
                tally.failed.push(pod.clone());
            }
            _ if deleting(pod) => tally.terminating += 1,
            _ => {
                tally.ready += i64::from(pods::ready(pod));
                tally.under_way.extend(index);
                tally.active.push(pod.clone());
            }
        }
    }
    if indexed(job) {
        tally.succeeded = tally.done.len() as i64;
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

/// Starts missing pods, unless a failure is too recent. False when one was refused.
fn start(world: &mut World, key: &Key, job: &Value, tally: &Tally) -> bool {
    let failed = tally.failed_count(job);
    if let (Some(last), true) = (tally.last_failure, failed > 0) {
        let doublings = u32::try_from(failed - 1).unwrap_or(0).min(16);
        let due = last + (FIRST_BACKOFF * 2u32.pow(doublings)).min(LONGEST_BACKOFF);
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
    let completions = number(&job["spec"]["completions"]);
    let mut free =
        (0..completions).filter(|i| !tally.done.contains(i) && !tally.under_way.contains(i));
    for _ in active..wanted {
        let index = if indexed(job) { free.next() } else { None };
        let pod = pod_of(job, index);
        let base = index.map_or_else(
            || name(job).to_owned(),
            |index| format!("{}-{index}", name(job)),
        );
        if pods::create_named(world, job, pod, &base, COMPONENT).is_err() {
            retry(world, key);
            return false;
        }
    }
    true
}

fn pod_of(job: &Value, index: Option<i64>) -> Value {
    let mut pod = pods::from_template(job, &job["spec"]["template"]);
    let labels = &mut pod["metadata"]["labels"];
    for prefix in ["batch.kubernetes.io/", ""] {
        labels[format!("{prefix}controller-uid")] = uid(job).into();
        labels[format!("{prefix}job-name")] = name(job).into();
    }
    let Some(index) = index else { return pod };
    let text = index.to_string();
    labels[INDEX] = text.as_str().into();
    pod["metadata"]["annotations"][INDEX] = text.into();
    if pod["spec"].get("hostname").is_none() {
        pod["spec"]["hostname"] = format!("{}-{index}", name(job)).into();
    }
    let source = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")}});
    for list in ["initContainers", "containers"] {
        for container in pod["spec"]
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let mut env = items(&container["env"]).to_vec();
            env.push(json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": source}));
            container["env"] = env.into();
        }
    }
    pod
}

/// Indexes as a Job's status lists them: `0,2-5`.
fn ranges(indexes: &BTreeSet<i64>) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let texts: Vec<String> = parts
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
}

/// The Suspended condition, when it has to change: its status, reason and message.
fn suspension(job: &Value) -> Option<(&'static str, &'static str, &'static str)> {
    let suspended = job["spec"]["suspend"] == true;
    match condition(job, "Suspended").map(|c| c["status"] == "True") {
        Some(known) if known == suspended => None,
        None if !suspended => None,
        _ if suspended => Some(("True", "JobSuspended", "Job suspended")),
        _ => Some(("False", "JobResumed", "Job resumed")),
    }
}

fn write_status(world: &mut World, job: &Value, tally: &Tally, failed: i64, end: Option<&End>) {
    let now = world.now().seconds_text();
    let mut conditions = items(&job["status"]["conditions"]).to_vec();
    let mut add = |kind: &str, status: &str, reason: &str, message: &str| {
        conditions.retain(|c| c["type"] != kind);
        conditions.push(json!({
            "type": kind,
            "status": status,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }));
    };
    let mut status = Map::new();
    let resumed = suspension(job);
    if job["spec"]["suspend"] != true {
        let started = job["status"].get("startTime").cloned();
        status.insert(
            "startTime".to_owned(),
            started.unwrap_or_else(|| now.as_str().into()),
        );
    }
    if let Some((truth, reason, message)) = resumed {
        add("Suspended", truth, reason, message);
    }
    put_count(&mut status, "active", tally.active.len() as i64);
    put_count(&mut status, "succeeded", tally.succeeded);
    put_count(&mut status, "failed", failed);
    status.insert("ready".to_owned(), tally.ready.into());
    status.insert("terminating".to_owned(), tally.terminating.into());
    status.insert("uncountedTerminatedPods".to_owned(), json!({}));
    if indexed(job) && !tally.done.is_empty() {
        status.insert("completedIndexes".to_owned(), ranges(&tally.done).into());
    }
    let sealed = tally.terminating == 0 && tally.active.is_empty();
    if let Some(end) = end {
        let [target, seal] = end.conditions();
        if !condition_is(job, target, "True") {
            add(target, "True", &end.reason, &end.message);
        }
        if sealed {
            add(seal, "True", &end.reason, &end.message);
            if end.success {
                status.insert("completionTime".to_owned(), now.as_str().into());
            }
        }
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    set_status(world, Kind::Job, job, status.into());
    if let Some((truth, _, message)) = resumed {
        let reason = if truth == "True" {
            "Suspended"
        } else {
            "Resumed"
        };
        tell(world, job, false, reason, message);
    }
    match end.filter(|_| sealed) {
        Some(end) if end.success => tell(world, job, false, "Completed", "Job completed"),
        Some(end) => tell(world, job, true, &end.reason, &end.message),
        None => {}
    }
}

fn tell(world: &mut World, job: &Value, warning: bool, reason: &str, message: &str) {
    let event = NewEvent {
        about: job,
        field_path: None,
        warning,
        reason,
        message: message.to_owned(),
        component: COMPONENT,
        host: None,
    };
    events::record(world, event);
}

#[cfg(test)]
mod tests;
