//! One sync of a pod: status, volumes, sandbox, then the containers, each step taking its time.

use std::time::Duration;

use crate::embedded::kubelet::pod::{Action, Facts, Pod, RunState, Sandbox, Stage};
use crate::embedded::kubelet::probe::{self, ProbeKind};
use crate::embedded::kubelet::{
    self, Work, pod, pull, runtime, status, termination, volumes, worker,
};
use crate::embedded::world::{self, World};

/// Processor time of making a sandbox, paid from the pod's quota.
const SANDBOX_CPU_US: u64 = 11_000;

/// Starts a sync.
pub fn begin(world: &mut World, pod: &mut Pod) {
    pod.worker.busy = true;
    pod.worker.failed = false;
    pod.worker.pending = false;
    pod.worker.plan.clear();
    pod.worker.view = pod.seen.clone();
    status::generate(world, pod);
    if pod.finished {
        pod.worker.busy = false;
        return;
    }
    pod.worker.stage = Stage::Mounting;
    let first = !volumes::all_mounted(pod);
    volumes::ask(world, pod);
    if volumes::all_mounted(pod) {
        let wait = if first {
            kubelet::delay(world, 250, 250)
        } else {
            Duration::from_millis(2)
        };
        next_step(world, pod, wait);
    }
}

/// Queues the next step of the sync under way.
pub fn next_step(world: &mut World, pod: &mut Pod, wait: Duration) {
    pod.worker.step += 1;
    let work = Work::Step {
        pod: pod.uid.clone(),
        number: pod.worker.step,
    };
    world.after(wait, world::Work::Kubelet(work));
}

/// Goes on with a sync.
pub fn step(world: &mut World, pod: &mut Pod, number: u64) {
    if !pod.worker.busy || pod.worker.step != number || pod.termination.is_some() {
        return;
    }
    match pod.worker.stage.clone() {
        Stage::Mounting => {
            pull::look_for_secrets(world, pod);
            probe::add_workers(world, pod);
            if pod.sandbox.is_none() {
                pod.worker.stage = Stage::Sandbox;
                let wait = kubelet::delay(world, 180, 120) + pod.cpu.alone(SANDBOX_CPU_US);
                next_step(world, pod, wait);
            } else {
                plan(world, pod);
            }
        }
        Stage::Sandbox => {
            let ip = kubelet::next_address(world);
            let since = world.now();
            pod.sandbox = Some(Sandbox { ip, since });
            worker::ask_for_look(world, &pod.uid);
            plan(world, pod);
        }
        Stage::Acting => act(world, pod),
        Stage::Pulling { container } => pull::finished(world, pod, &container),
        Stage::Creating { container } => runtime::create(world, pod, &container),
        Stage::Starting { container, id } => runtime::start(world, pod, &container, &id),
        // The hook went well, or what it failed for is gone already.
        Stage::Hooking { .. } | Stage::Stopping { .. } => act(world, pod),
        Stage::Idle => {}
    }
}

/// Decides what to do from what was seen.
fn plan(world: &mut World, pod: &mut Pod) {
    let mut actions = Vec::new();
    let specs: Vec<(String, bool)> = pod
        .container_specs()
        .map(|(spec, init)| (spec["name"].as_str().unwrap_or_default().to_owned(), init))
        .collect();
    let started = specs
        .iter()
        .any(|(name, init)| !init && pod.newest_viewed(name).is_some());
    let mut initialised = true;
    for (name, _) in specs.iter().filter(|(_, init)| *init) {
        let newest = pod.newest_viewed(name);
        if pod.is_sidecar(name) {
            actions.extend(action_for(pod, name));
            if started || newest.is_some_and(|facts| status::sidecar_started(pod, facts)) {
                continue;
            }
            initialised = false;
            break;
        }
        if started {
            continue;
        }
        if newest.is_some_and(|facts| facts.state == RunState::Exited && facts.exit_code == 0) {
            continue;
        }
        initialised = false;
        let running = newest.is_some_and(|facts| facts.state != RunState::Exited);
        let given_up = newest.is_some() && pod.restart_policy() == "Never";
        if !running && !given_up {
            actions.push(Action::Start {
                container: name.clone(),
            });
        }
        break;
    }
    if initialised {
        let mut own = Vec::new();
        for (name, _) in specs.iter().filter(|(_, init)| !init) {
            own.extend(action_for(pod, name));
        }
        let beside = specs
            .iter()
            .any(|(name, _)| pod.is_sidecar(name) && pod.running(name).is_some());
        if own.is_empty() && beside && all_done(pod) {
            return termination::end_sidecars(world, pod);
        }
        actions.extend(own);
    }
    pod.worker.plan = actions.into();
    pod.worker.stage = Stage::Acting;
    act(world, pod);
}

/// Whether no container but sidecars is running or to be started again.
fn all_done(pod: &Pod) -> bool {
    pod.container_specs().all(|(spec, init)| {
        init || pod
            .newest_viewed(spec["name"].as_str().unwrap_or_default())
            .is_some_and(|facts| facts.state == RunState::Exited && !should_restart(pod, facts))
    })
}

fn action_for(pod: &Pod, name: &str) -> Option<Action> {
    let start = || Action::Start {
        container: name.to_owned(),
    };
    let Some(newest) = pod.newest_viewed(name) else {
        return Some(start());
    };
    if newest.state == RunState::Exited {
        return should_restart(pod, newest).then(start);
    }
    let stop = |message: String| Action::Stop {
        container: name.to_owned(),
        message,
        then_start: pod.restart_policy() != "Never" || pod.is_sidecar(name),
    };
    let image = pod
        .container_spec(name)
        .map(|(spec, _)| spec["image"].as_str().unwrap_or_default());
    if image.is_some_and(|image| pull::full_name(image).is_ok_and(|full| full != newest.image)) {
        return Some(stop(format!(
            "Container {name} definition changed, will be restarted"
        )));
    }
    let failed = |kind| pod.results.get(&(newest.id.clone(), kind)) == Some(&false);
    if failed(ProbeKind::Liveness) {
        return Some(stop(format!(
            "Container {name} failed liveness probe, will be restarted"
        )));
    }
    if failed(ProbeKind::Startup) {
        return Some(stop(format!(
            "Container {name} failed startup probe, will be restarted"
        )));
    }
    None
}

/// Whether an exited container is to be started again.
pub fn should_restart(pod: &Pod, facts: &Facts) -> bool {
    match pod.restart_policy() {
        _ if pod.is_sidecar(&facts.name) => true,
        "Never" => false,
        "OnFailure" => facts.exit_code != 0,
        _ => true,
    }
}

/// Takes the next action of the plan, or ends the sync.
pub fn act(world: &mut World, pod: &mut Pod) {
    pod.worker.stage = Stage::Acting;
    loop {
        match pod.worker.plan.pop_front() {
            None => {
                pod.worker.stage = Stage::Idle;
                worker::done(world, pod);
                return;
            }
            Some(Action::Stop {
                container,
                message,
                then_start,
            }) => {
                if then_start {
                    pod.worker.plan.push_front(Action::Start {
                        container: container.clone(),
                    });
                }
                let id = pod.running(&container).map(|run| run.facts.id.clone());
                let Some(id) = id else { continue };
                kubelet::event(world, pod, Some(&container), false, "Killing", message);
                pod.worker.stage = Stage::Stopping {
                    container,
                    id: id.clone(),
                };
                let grace = pod.spec()["terminationGracePeriodSeconds"]
                    .as_u64()
                    .unwrap_or(30);
                runtime::stop(world, pod, &id, Duration::from_secs(grace));
                return;
            }
            Some(Action::Start { container }) => {
                if !backs_off(world, pod, &container) {
                    pull::ensure(world, pod, &container);
                    return;
                }
            }
        }
    }
}

/// Whether a container has to wait before it is started again.
fn backs_off(world: &mut World, pod: &mut Pod, container: &str) -> bool {
    let now = world.now();
    let ended = pod
        .worker
        .view
        .iter()
        .rev()
        .filter(|facts| facts.name == container && facts.state == RunState::Exited)
        .find_map(|facts| facts.finished_at);
    let Some(since) = ended else { return false };
    let waits = pod
        .backoffs
        .get(container)
        .filter(|backoff| backoff.holds(since, now));
    let Some(delay) = waits.map(|backoff| backoff.delay) else {
        pod::raise(&mut pod.backoffs, container, since, now, "");
        return false;
    };
    let tag = pod.tag();
    let message = format!("Back-off restarting failed container {container} in pod {tag}");
    kubelet::event(world, pod, Some(container), true, "BackOff", message);
    let text = format!(
        "back-off {} restarting failed container={container} pod={tag}",
        go_duration(delay)
    );
    fail(pod, container, "CrashLoopBackOff", &text);
    true
}

/// Notes why a container waits; the sync counts as failed.
pub fn fail(pod: &mut Pod, container: &str, reason: &str, message: &str) {
    pod.reasons.insert(
        container.to_owned(),
        (reason.to_owned(), message.to_owned()),
    );
    pod.worker.failed = true;
}

/// A duration of whole seconds as Go prints it: `40s`, `1m20s`, `5m0s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}
