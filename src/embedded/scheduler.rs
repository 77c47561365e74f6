//! The scheduler: binds pods to nodes or says why it cannot.
//!
//! A pod that fits nowhere waits until something changes that could help it (after a back-off), or five
//! minutes. It never evicts pods to make room.

mod affinity;
mod filters;
pub mod resources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::controllers::object::{deleting, generation, items, name, namespace};
use crate::embedded::controllers::pods;
use crate::embedded::events::{self, SchedulerEvent};
use crate::embedded::kind::Kind;
use crate::embedded::store::{Change, ChangeKind};
use crate::embedded::time::Time;
use crate::embedded::world::{Work as WorldWork, World};
use filters::{Fit, Obstacle};

/// The name by which pods ask for this scheduler.
const SCHEDULER: &str = "default-scheduler";

/// The first wait of a pod that could not be placed; it doubles up to `LONGEST_BACKOFF`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

/// How long a pod waits for a helpful change before it is tried all the same.
const UNSCHEDULABLE_FOR: Duration = Duration::from_secs(300);

/// Waiting pods are looked through this often, so a retry comes up to this much later.
const FLUSH_EVERY_MS: u64 = 30_000;

type PodKey = (String, String);

/// Due work of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A queued pod's turn.
    Attempt(PodKey),
    /// A pod that has waited long; only if it was not tried since that many attempts.
    Overdue(PodKey, u32),
}

/// Queues and memories of the scheduler.
#[derive(Debug, Default)]
pub struct State {
    queued: BTreeSet<PodKey>,
    /// When the last of the new pods has its turn: they are taken in the order in which they came.
    newest: Time,
    waiting: BTreeMap<PodKey, Waiting>,
}

/// A pod that could not be placed.
#[derive(Debug)]
struct Waiting {
    attempts: u32,
    since: Time,
    obstacles: BTreeSet<Obstacle>,
}

/// What a change may mean for a waiting pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    PodLeft,
    PodPlaced,
    Node,
    Storage,
}

pub fn on_change(world: &mut World, change: &Change) {
    match change.kind {
        Kind::Pod => pod_changed(world, change),
        Kind::Node => {
            let changed = change.old.as_ref().is_none_or(|old| {
                let new = &change.object;
                old["spec"] != new["spec"]
                    || old["metadata"]["labels"] != new["metadata"]["labels"]
                    || old["status"]["allocatable"] != new["status"]["allocatable"]
            });
            if changed && change.what != ChangeKind::Deleted {
                relieve(world, Relief::Node);
            }
        }
        Kind::PersistentVolumeClaim | Kind::PersistentVolume | Kind::StorageClass => {
            relieve(world, Relief::Storage);
        }
        _ => {}
    }
}

fn pod_changed(world: &mut World, change: &Change) {
    let pod = &change.object;
    let key = (namespace(pod).to_owned(), name(pod).to_owned());
    if change.what == ChangeKind::Deleted {
        world.scheduler.waiting.remove(&key);
        if assigned(pod) && !pods::finished(pod) {
            relieve(world, Relief::PodLeft);
        }
        return;
    }
    let old = change.old.as_ref();
    if assigned(pod) {
        let placed = old.is_none_or(|old| !assigned(old));
        let finished = pods::finished(pod) && old.is_some_and(|old| !pods::finished(old));
        let relabelled = old.is_some_and(|o| o["metadata"]["labels"] != pod["metadata"]["labels"]);
        if finished {
            relieve(world, Relief::PodLeft);
        } else if placed || relabelled {
            world.scheduler.waiting.remove(&key);
            relieve(world, Relief::PodPlaced);
        }
        return;
    }
    let respecified = old.is_none_or(|old| {
        old["spec"] != pod["spec"] || old["metadata"]["labels"] != pod["metadata"]["labels"]
    });
    if respecified && pod["spec"]["schedulerName"].as_str().unwrap_or(SCHEDULER) == SCHEDULER {
        let now = world.now();
        let turn = (now + world.jitter(1, 3)).max(world.scheduler.newest);
        world.scheduler.newest = turn;
        queue(world, key, turn.since(now));
    }
}

pub fn work(world: &mut World, work: Work) {
    match work {
        Work::Attempt(key) => {
            world.scheduler.queued.remove(&key);
            attempt(world, &key);
        }
        Work::Overdue(key, attempts) => {
            if world
                .scheduler
                .waiting
                .get(&key)
                .is_some_and(|waiting| waiting.attempts == attempts)
            {
                queue(world, key, Duration::ZERO);
            }
        }
    }
}

fn queue(world: &mut World, key: PodKey, delay: Duration) {
    if world.scheduler.queued.insert(key.clone()) {
        world.after(delay, WorldWork::Scheduler(Work::Attempt(key)));
    }
}

/// Queues the waiting pods that a change may help, each when its back-off is over.
fn relieve(world: &mut World, relief: Relief) {
    if world.scheduler.waiting.is_empty() {
        return;
    }
    let now = world.now();
    let helped: Vec<(PodKey, Duration)> = world
        .scheduler
        .waiting
        .iter()
        .filter(|(_, waiting)| waiting.obstacles.iter().any(|o| helps(relief, *o)))
        .map(|(key, waiting)| {
            let doubled = FIRST_BACKOFF * 2u32.saturating_pow(waiting.attempts.saturating_sub(1));
            let due = waiting.since + doubled.min(LONGEST_BACKOFF);
            (key.clone(), due.since(now))
        })
        .collect();
    for (key, delay) in helped {
        let delay = delay + world.jitter(1, 3);
        queue(world, key, delay);
    }
}

fn helps(relief: Relief, obstacle: Obstacle) -> bool {
    match relief {
        Relief::PodLeft => matches!(
            obstacle,
            Obstacle::Resources | Obstacle::Ports | Obstacle::PodAffinity | Obstacle::Spread
        ),
        Relief::PodPlaced => matches!(obstacle, Obstacle::PodAffinity | Obstacle::Spread),
        Relief::Node => obstacle != Obstacle::Volume,
        Relief::Storage => obstacle == Obstacle::Volume,
    }
}

fn assigned(pod: &Value) -> bool {
    pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}

fn attempt(world: &mut World, key: &PodKey) {
    let Some(pod) = world.store.get(Kind::Pod, &key.0, &key.1).cloned() else {
        world.scheduler.waiting.remove(key);
        return;
    };
    let gated = !items(&pod["spec"]["schedulingGates"]).is_empty();
    if assigned(&pod) || deleting(&pod) {
        return;
    }
    if gated {
        let now = world.now();
        let why = "Scheduling is blocked due to non-empty scheduling gates";
        world.update(Kind::Pod, &key.0, &key.1, |stored| {
            set_scheduled(stored, now, "False", Some(("SchedulingGated", why)));
        });
        return;
    }
    match place(world, &pod) {
        Ok(node) => bind(world, &pod, &node),
        Err((message, obstacles)) => refuse(world, key, &pod, message, obstacles),
    }
}

type Refusal = (String, BTreeSet<Obstacle>);

/// The node that fits and has the most room, or why there is none.
fn place(world: &World, pod: &Value) -> Result<String, Refusal> {
    let nodes: Vec<&Arc<Value>> = world.store.all(Kind::Node).collect();
    if nodes.is_empty() {
        let none = BTreeSet::from([Obstacle::NoNode]);
        return Err(("no nodes available to schedule pods".to_owned(), none));
    }
    if let Some(problem) = filters::volumes(world, pod) {
        let message = format!(
            "0/{} nodes are available: {problem}. not found",
            nodes.len()
        );
        return Err((message, BTreeSet::from([Obstacle::Volume])));
    }
    let placed: Vec<&Arc<Value>> = world
        .store
        .all(Kind::Pod)
        .filter(|other| assigned(other) && !pods::finished(other))
        .collect();
    let mut best: Option<(i64, &str)> = None;
    let mut refusals = Vec::new();
    for node in &nodes {
        match filters::fit(world, pod, node, &placed) {
            Fit::Yes { room } => {
                if best.is_none_or(|(most, _)| room > most) {
                    best = Some((room, name(node)));
                }
            }
            Fit::No(refusal) => refusals.push(refusal),
        }
    }
    best.map(|(_, node)| node.to_owned())
        .ok_or_else(|| explain(nodes.len(), &refusals))
}

/// The message of a pod that fits on no node: reasons with the number of nodes they hold for.
fn explain(nodes: usize, refusals: &[filters::Refusal]) -> Refusal {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in refusals.iter().flat_map(|refusal| &refusal.reasons) {
        *counts.entry(reason).or_default() += 1;
    }
    let listed = |counts: BTreeMap<&str, usize>| {
        let mut texts: Vec<String> = counts
            .into_iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        texts.sort();
        texts.join(", ")
    };
    let mut preemption: BTreeMap<&str, usize> = BTreeMap::new();
    for refusal in refusals {
        let outcome = if refusal.hopeless {
            "Preemption is not helpful for scheduling"
        } else {
            "No preemption victims found for incoming pod"
        };
        *preemption.entry(outcome).or_default() += 1;
    }
    let message = format!(
        "0/{nodes} nodes are available: {}. no new claims to deallocate, preemption: 0/{nodes} nodes are \
         available: {}.",
        listed(counts),
        listed(preemption)
    );
    (
        message,
        refusals.iter().map(|refusal| refusal.obstacle).collect(),
    )
}

fn refuse(
    world: &mut World,
    key: &PodKey,
    pod: &Value,
    message: String,
    obstacles: BTreeSet<Obstacle>,
) {
    let now = world.now();
    let waiting = world
        .scheduler
        .waiting
        .entry(key.clone())
        .or_insert(Waiting {
            attempts: 0,
            since: now,
            obstacles: BTreeSet::new(),
        });
    waiting.attempts += 1;
    waiting.since = now;
    waiting.obstacles = obstacles;
    let attempts = waiting.attempts;
    let late = UNSCHEDULABLE_FOR + world.jitter(0, FLUSH_EVERY_MS);
    world.after(
        late,
        WorldWork::Scheduler(Work::Overdue(key.clone(), attempts)),
    );
    let event = SchedulerEvent {
        about: pod,
        warning: true,
        reason: "FailedScheduling",
        action: "Scheduling",
        message: message.clone(),
    };
    events::record_scheduler(world, event);
    world.update(Kind::Pod, &key.0, &key.1, |stored| {
        set_scheduled(stored, now, "False", Some(("Unschedulable", &message)));
    });
}

fn bind(world: &mut World, pod: &Value, node: &str) {
    let (ns, name) = (namespace(pod), name(pod));
    let now = world.now();
    world.update(Kind::Pod, ns, name, |stored| {
        stored["spec"]["nodeName"] = node.into();
        set_scheduled(stored, now, "True", None);
    });
    let event = SchedulerEvent {
        about: pod,
        warning: false,
        reason: "Scheduled",
        action: "Binding",
        message: format!("Successfully assigned {ns}/{name} to {node}"),
    };
    events::record_scheduler(world, event);
}

/// Writes the PodScheduled condition; the time moves only when the status does.
fn set_scheduled(pod: &mut Value, now: Time, status: &str, why: Option<(&str, &str)>) {
    let mut conditions = items(&pod["status"]["conditions"]).to_vec();
    let before = conditions.iter().position(|c| c["type"] == "PodScheduled");
    let mut fresh = json!({
        "type": "PodScheduled",
        "status": status,
        "observedGeneration": generation(pod).max(1),
        "lastProbeTime": null,
        "lastTransitionTime": now.seconds_text(),
    });
    if let Some((reason, message)) = why {
        fresh["reason"] = reason.into();
        fresh["message"] = message.into();
    }
    match before {
        Some(at) => {
            if conditions[at]["status"] == status {
                fresh["lastTransitionTime"] = conditions[at]["lastTransitionTime"].clone();
            }
            conditions[at] = fresh;
        }
        None => conditions.push(fresh),
    }
    pod["status"]["conditions"] = conditions.into();
}

/// Whether a toleration is about a taint.
pub fn covers(toleration: &Value, taint: &Value) -> bool {
    filters::covers(toleration, taint)
}

/// Whether a node lets a pod run at all: its cordon, taints and the pod's wishes, but not its room.
pub fn may_run(pod: &Value, node: &Value) -> bool {
    filters::admitted(pod, node)
}

#[cfg(test)]
mod tests;
