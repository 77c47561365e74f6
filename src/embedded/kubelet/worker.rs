//! Pod workers: who asks for syncs, when they run, and the second-by-second look at the runtime.
//!
//! A sync uses what the kubelet saw at its last look. A sync that follows another one waits for a look after
//! it, as the real cache makes it wait; this is why statuses lag.

use std::time::Duration;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{Facts, Pod, RunState};
use crate::embedded::kubelet::{self, Work, runtime, sync, termination};
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

/// Time between two looks at the runtime.
const LOOK_US: i64 = 1_000_000;

/// After a failed sync: 10 s to 15 s. After a good one: 60 s to 90 s.
const RETRY_MS: (u64, u64) = (10_000, 5_000);
const REGULAR_MS: (u64, u64) = (60_000, 30_000);

/// A pod object is new, changed or gone.
pub fn changed(world: &mut World, uid: &str, namespace: &str, name: &str) {
    let object = world
        .store
        .get(Kind::Pod, namespace, name)
        .filter(|object| object["metadata"]["uid"] == uid)
        .cloned();
    let Some(object) = object else {
        gone(world, uid);
        return;
    };
    if !world.kubelet.pods.contains_key(uid) {
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        if phase == "Succeeded" || phase == "Failed" {
            return;
        }
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
        let others = world.store.all(Kind::Node).next().is_some();
        if others && world.store.get(Kind::Node, "", node).is_none() {
            // No kubelet goes by that name. One that stands alone, without any nodes, takes every pod.
            return;
        }
        let mut pod = Pod::new(object, world.now());
        if let Some(seconds) = pod.spec()["activeDeadlineSeconds"].as_u64() {
            let work = Work::Deadline {
                pod: uid.to_owned(),
            };
            world.after(Duration::from_secs(seconds), world::Work::Kubelet(work));
        }
        if pod.deleted() {
            termination::begin(world, &mut pod);
        } else {
            trigger(world, &mut pod);
        }
        world.kubelet.pods.insert(uid.to_owned(), pod);
        return;
    }
    kubelet::with_pod(world, uid, |world, pod| {
        pod.object = object;
        if pod.deleted() {
            termination::begin(world, pod);
        } else {
            trigger(world, pod);
        }
    });
}

/// The object of a pod is gone, with or without its containers.
fn gone(world: &mut World, uid: &str) {
    let Some(pod) = world.kubelet.pods.remove(uid) else {
        return;
    };
    if pod.termination.is_some() {
        return;
    }
    for run in pod
        .runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running)
    {
        let name = run.facts.name.as_str();
        let message = format!("Stopping container {name}");
        kubelet::event(world, &pod, Some(name), false, "Killing", message);
    }
}

/// Asks for a sync.
pub fn trigger(world: &mut World, pod: &mut Pod) {
    if pod.termination.is_some() || pod.finished {
        return;
    }
    if pod.worker.busy {
        pod.worker.pending = true;
        return;
    }
    if pod.worker.awaiting_look {
        return;
    }
    let now = world.now();
    if pod
        .worker
        .last_end
        .is_some_and(|end| last_look(world, now) <= end)
    {
        pod.worker.awaiting_look = true;
        ask_for_look(world, &pod.uid);
        return;
    }
    sync::begin(world, pod);
}

/// A sync is over: the next one is timed by whether it failed.
pub fn done(world: &mut World, pod: &mut Pod) {
    let now = world.now();
    pod.worker.busy = false;
    pod.worker.last_end = Some(now);
    pod.worker.timer += 1;
    let (least, spread) = if pod.worker.failed {
        RETRY_MS
    } else {
        REGULAR_MS
    };
    let wait = kubelet::delay(world, least, spread);
    let work = Work::Timer {
        pod: pod.uid.clone(),
        number: pod.worker.timer,
    };
    // The queue of timers is looked at once a second.
    let due = next_look(world, now + wait);
    world.at(due, world::Work::Kubelet(work));
    if std::mem::take(&mut pod.worker.pending) {
        trigger(world, pod);
    }
}

/// A pod's timer is over.
pub fn timer(world: &mut World, pod: &mut Pod, number: u64) {
    if pod.worker.timer == number {
        trigger(world, pod);
    }
}

/// All volumes are there: a sync that waits for them goes on.
pub fn mounted(world: &mut World, pod: &mut Pod) {
    if pod.worker.busy && pod.worker.stage == kubelet::pod::Stage::Mounting {
        sync::next_step(world, pod, Duration::from_millis(150));
    }
}

fn phase(world: &mut World) -> i64 {
    if let Some(phase) = world.kubelet.phase {
        return phase;
    }
    let phase = i64::try_from(kubelet::delay(world, 0, 1000).as_micros()).unwrap_or(0);
    world.kubelet.phase = Some(phase);
    phase
}

/// The last moment of a look, at or before `at`. Looks that would have found nothing are not made, but count.
fn last_look(world: &mut World, at: Time) -> Time {
    let phase = phase(world);
    let steps = (at.micros() - phase).div_euclid(LOOK_US);
    Time::from_micros(steps * LOOK_US + phase)
}

/// The first moment of a look after `at`.
pub fn next_look(world: &mut World, at: Time) -> Time {
    let last = last_look(world, at);
    Time::from_micros(last.micros() + LOOK_US)
}

/// Makes sure that the next look happens and includes this pod.
pub fn ask_for_look(world: &mut World, uid: &str) {
    world.kubelet.dirty.insert(uid.to_owned());
    let now = world.now();
    let due = next_look(world, now);
    if world
        .kubelet
        .look_due
        .is_none_or(|planned| planned > due || planned <= now)
    {
        world.kubelet.look_due = Some(due);
        world.at(due, world::Work::Kubelet(Work::Look));
    }
}

/// Looks at the runtime and syncs what changed.
pub fn look(world: &mut World) {
    world.kubelet.look_due = None;
    for uid in std::mem::take(&mut world.kubelet.dirty) {
        kubelet::with_pod(world, &uid, look_at);
    }
}

fn look_at(world: &mut World, pod: &mut Pod) {
    let facts: Vec<Facts> = pod
        .runs
        .iter()
        .filter(|run| run.facts.state != RunState::Created)
        .map(|run| run.facts.clone())
        .collect();
    let sandbox = pod.sandbox.is_some();
    let changed = facts != pod.seen || sandbox != pod.seen_sandbox;
    let died: Vec<String> = facts
        .iter()
        .filter(|new| new.state == RunState::Exited)
        .filter(|new| {
            !pod.seen
                .iter()
                .any(|old| old.id == new.id && old.state == RunState::Exited)
        })
        .map(|new| new.name.clone())
        .collect();
    pod.seen = facts;
    pod.seen_sandbox = sandbox;
    for name in died {
        runtime::forget_old(pod, &name);
    }
    let awaited = std::mem::take(&mut pod.worker.awaiting_look);
    if awaited && !pod.worker.busy && pod.termination.is_none() && !pod.finished {
        sync::begin(world, pod);
    } else if changed {
        trigger(world, pod);
    }
}
