//! Stopping pods for good: deletion, deadlines and evictions, up to the removal of the object.

use std::time::Duration;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{Pod, RunState, Stage, Termination};
use crate::embedded::kubelet::{self, Work, runtime, status, worker};
use crate::embedded::world::{self, World};

/// A pod was deleted: stop it, or shorten the grace it has.
pub fn begin(world: &mut World, pod: &mut Pod) {
    let grace = pod.object["metadata"]["deletionGracePeriodSeconds"]
        .as_u64()
        .unwrap_or(30);
    let grace = Duration::from_secs(grace);
    let now = world.now();
    if let Some(old) = &mut pod.termination {
        old.remove = true;
        let left = old.grace.saturating_sub(now.since(old.started));
        if old.stopped {
            clear_later(world, &pod.uid, 10);
        } else if grace < left {
            old.grace = grace;
            kill_after(world, pod, grace);
        }
        return;
    }
    if pod.finished {
        pod.termination = Some(Termination {
            grace,
            started: now,
            stopped: true,
            remove: true,
        });
        return clear_later(world, &pod.uid, 300);
    }
    stop_all(world, pod, grace, true);
}

/// Stops every container of a pod.
pub fn stop_all(world: &mut World, pod: &mut Pod, grace: Duration, remove: bool) {
    let now = world.now();
    pod.termination = Some(Termination {
        grace,
        started: now,
        stopped: false,
        remove,
    });
    pod.worker.busy = false;
    pod.worker.awaiting_look = false;
    pod.worker.stage = Stage::Idle;
    pod.worker.plan.clear();
    pod.worker.step += 1;
    pod.worker.timer += 1;
    pod.runs.retain(|run| run.facts.state != RunState::Created);
    stop_runs(world, pod, grace, false);
    stopped_one(world, pod);
}

/// The containers of a pod are done for good: its sidecars end, and so does the pod.
pub fn end_sidecars(world: &mut World, pod: &mut Pod) {
    let grace = pod.spec()["terminationGracePeriodSeconds"]
        .as_u64()
        .unwrap_or(30);
    stop_all(world, pod, Duration::from_secs(grace), false);
}

/// Stops the running containers: the sidecars, or all others.
fn stop_runs(world: &mut World, pod: &mut Pod, grace: Duration, sidecars: bool) {
    let running: Vec<(String, String)> = pod
        .runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running && !run.stopping)
        .filter(|run| pod.is_sidecar(&run.facts.name) == sidecars)
        .map(|run| (run.facts.id.clone(), run.facts.name.clone()))
        .collect();
    for (id, name) in running {
        kubelet::event(
            world,
            pod,
            Some(&name),
            false,
            "Killing",
            format!("Stopping container {name}"),
        );
        runtime::stop(world, pod, &id, grace);
    }
}

fn kill_after(world: &mut World, pod: &Pod, grace: Duration) {
    for run in pod
        .runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running)
    {
        let work = Work::Kill {
            pod: pod.uid.clone(),
            run: run.facts.id.clone(),
        };
        world.after(grace, world::Work::Kubelet(work));
    }
}

/// One container of a stopping pod is down; when all are, clearing up begins.
pub fn stopped_one(world: &mut World, pod: &mut Pod) {
    let mut left = pod
        .runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running)
        .map(|run| pod.is_sidecar(&run.facts.name))
        .peekable();
    if left.peek().is_some() {
        // Sidecars stay until those that they serve are down.
        if left.all(|sidecar| sidecar)
            && let Some(termination) = &pod.termination
        {
            let used = world.now().since(termination.started);
            let grace = termination.grace.saturating_sub(used);
            stop_runs(world, pod, grace, true);
        }
        return;
    }
    let Some(termination) = &mut pod.termination else {
        return;
    };
    if std::mem::replace(&mut termination.stopped, true) {
        return;
    }
    // The final status is made at the next look; then volumes go and the object may.
    let now = world.now();
    let had_containers = !pod.runs.is_empty();
    let look = worker::next_look(world, now);
    let wait = if had_containers {
        look.since(now).as_millis()
    } else {
        20
    };
    clear_later(world, &pod.uid, u64::try_from(wait).unwrap_or(0) + 30);
}

fn clear_later(world: &mut World, uid: &str, millis: u64) {
    let wait = kubelet::delay(world, millis, 60);
    world.after(
        wait,
        world::Work::Kubelet(Work::Clear {
            pod: uid.to_owned(),
        }),
    );
}

/// Clears up: first the final status, then the object.
pub fn clear(world: &mut World, uid: &str) {
    let Some(mut pod) = world.kubelet.pods.remove(uid) else {
        return;
    };
    if !pod.finished {
        pod.seen = pod.runs.iter().map(|run| run.facts.clone()).collect();
        pod.seen_sandbox = pod.sandbox.is_some();
        let address = pod.sandbox.take();
        status::generate(world, &mut pod);
        pod.finished = true;
        let remove = pod
            .termination
            .as_ref()
            .is_some_and(|termination| termination.remove);
        // The containers themselves go with the pod; of one that is done for good they stay.
        if remove || pod.evicted.is_some() {
            pod.runs.clear();
        }
        // Only the status keeps the address.
        drop(address);
        if remove {
            clear_later(world, uid, 350);
        }
        world.kubelet.pods.insert(uid.to_owned(), pod);
        return;
    }
    remove_object(world, &pod);
}

fn remove_object(world: &mut World, pod: &Pod) {
    let stored = world
        .store
        .get(Kind::Pod, &pod.namespace, &pod.name)
        .filter(|object| object["metadata"]["uid"] == pod.uid.as_str())
        .cloned();
    let Some(stored) = stored else { return };
    let held = stored["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
    if held {
        world.update(Kind::Pod, &namespace, &name, |object| {
            object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        });
        return;
    }
    // It was there a line above; nothing else runs in between.
    let _ = world.store.remove(Kind::Pod, &namespace, &name);
}

/// `activeDeadlineSeconds` is over.
pub fn deadline(world: &mut World, pod: &mut Pod) {
    if pod.finished || pod.termination.is_some() {
        return;
    }
    let message = "Pod was active on the node longer than the specified deadline".to_owned();
    kubelet::event(world, pod, None, false, "DeadlineExceeded", message.clone());
    pod.evicted = Some(("DeadlineExceeded".to_owned(), message));
    let grace = pod.spec()["terminationGracePeriodSeconds"]
        .as_u64()
        .unwrap_or(30);
    stop_all(world, pod, Duration::from_secs(grace), false);
}
