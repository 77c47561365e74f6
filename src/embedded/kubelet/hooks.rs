//! Lifecycle hooks: what runs right after a container's start, and before it is told to end.
//!
//! A postStart hook holds the pod's sync until it is over, and its failure ends the container. A preStop hook
//! takes its time from the grace period, and its failure changes nothing but an event.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::kubelet::pod::{Pod, Stage};
use crate::embedded::kubelet::process::{self, Frame, Owner, Process};
use crate::embedded::kubelet::{self, Work, network, probe, runtime, sync};
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

/// However long a hook took, a container gets this long between SIGTERM and SIGKILL.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// What running a command in a container costs beyond the command.
const EXEC_COST: Duration = Duration::from_millis(30);

/// A preStop hook under way.
#[derive(Clone, Debug)]
pub struct PreStop {
    since: Time,
    grace: Duration,
}

/// How a hook goes.
enum Hook {
    /// A process that ends some time.
    Process(Box<Process>),
    Wait(Duration),
    Done,
    /// Why it failed, and what it printed.
    Failed(String),
}

fn hook_of(pod: &Pod, container: &str, which: &str) -> Value {
    pod.container_spec(container)
        .map(|(spec, _)| spec["lifecycle"][which].clone())
        .unwrap_or_default()
}

fn words_of(hook: &Value) -> Vec<String> {
    hook["exec"]["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

fn begin(
    world: &mut World,
    pod: &Pod,
    container: &str,
    id: &str,
    hook: &Value,
    owner: Owner,
) -> Hook {
    if let Some(seconds) = hook["sleep"]["seconds"].as_u64() {
        return Hook::Wait(Duration::from_secs(seconds));
    }
    let words = words_of(hook);
    if let (Some(first), Some(run)) = (words.first(), pod.run(id)) {
        return match probe::missing_executable(world, run, first) {
            Some(why) => Hook::Failed(why),
            None => Hook::Process(Box::new(runtime::command_process(run, 2, &words, owner))),
        };
    }
    if hook["httpGet"].is_object() {
        let target = &hook["httpGet"];
        let Some(port) = probe::port_of(pod, container, &target["port"]) else {
            return Hook::Failed(probe::bad_port(&target["port"]));
        };
        if network::socket_of(pod, port, false).is_none() {
            return Hook::Failed(probe::http_refused(pod, target, port));
        }
    }
    Hook::Done
}

/// Runs a started container's postStart hook; answers whether the sync has to wait for it.
pub fn post_start(world: &mut World, pod: &mut Pod, container: &str, id: &str) -> bool {
    let hook = hook_of(pod, container, "postStart");
    let running = pod.running(container).is_some_and(|run| run.facts.id == id);
    if !hook.is_object() || !running {
        return false;
    }
    pod.worker.stage = Stage::Hooking {
        container: container.to_owned(),
        id: id.to_owned(),
    };
    match begin(world, pod, container, id, &hook, Owner::PostStart) {
        Hook::Process(process) => {
            process::spawn(world, pod, id, *process);
        }
        Hook::Wait(wait) => sync::next_step(world, pod, wait),
        Hook::Done => sync::next_step(world, pod, EXEC_COST),
        Hook::Failed(why) => post_start_failed(world, pod, container, id, &why, ""),
    }
    true
}

/// The process of a postStart hook has ended.
pub fn post_start_done(world: &mut World, pod: &mut Pod, id: &str, code: i32, output: &str) {
    let Stage::Hooking {
        container,
        id: awaited,
    } = pod.worker.stage.clone()
    else {
        return;
    };
    if awaited != id || !pod.worker.busy {
        return;
    }
    if code == 0 {
        return sync::next_step(world, pod, EXEC_COST);
    }
    let why = format!(
        "command '{}' exited with {code}",
        words_of(&hook_of(pod, &container, "postStart")).join(" ")
    );
    post_start_failed(world, pod, &container, id, &why, output);
}

/// The container ended while its postStart hook ran.
pub fn post_start_lost(world: &mut World, pod: &mut Pod, container: &str, id: &str) {
    let hook = hook_of(pod, container, "postStart");
    let why = format!("command '{}' exited with 137", words_of(&hook).join(" "));
    post_start_failed(world, pod, container, id, &why, "");
}

fn post_start_failed(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    id: &str,
    why: &str,
    output: &str,
) {
    let hook = hook_of(pod, container, "postStart");
    let tag = pod.tag();
    let what = if hook["exec"].is_object() {
        format!("Exec lifecycle hook ([{}])", words_of(&hook).join(" "))
    } else {
        format!("HTTP lifecycle hook ({})", probe::path_of(&hook["httpGet"]))
    };
    let message = format!(
        "{what} for Container \"{container}\" in Pod \"{tag}\" failed - error: {why}, message: {}",
        go_quoted(output)
    );
    let failed = "PostStartHook failed".to_owned();
    kubelet::event(
        world,
        pod,
        Some(container),
        true,
        "FailedPostStartHook",
        failed,
    );
    let killing = "FailedPostStartHook".to_owned();
    kubelet::event(world, pod, Some(container), false, "Killing", killing);
    sync::fail(pod, container, "PostStartHookError", &message);
    pod.worker.stage = Stage::Stopping {
        container: container.to_owned(),
        id: id.to_owned(),
    };
    if pod.running(container).is_none_or(|run| run.facts.id != id) {
        return sync::next_step(world, pod, EXEC_COST);
    }
    let grace = pod.spec()["terminationGracePeriodSeconds"]
        .as_u64()
        .unwrap_or(30);
    runtime::stop(world, pod, id, Duration::from_secs(grace));
}

/// A text as Go's `%q` prints it.
fn go_quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Begins to stop a container: its preStop hook, or SIGTERM at once.
pub fn pre_stop(world: &mut World, pod: &mut Pod, container: &str, id: &str, grace: Duration) {
    let hook = hook_of(pod, container, "preStop");
    let now = world.now();
    if let Some(run) = pod.run_mut(id) {
        run.pre_stop = Some(PreStop { since: now, grace });
    }
    if !hook.is_object() || grace.is_zero() {
        return pre_stop_done(world, pod, id);
    }
    let over = |wait: Duration, world: &mut World, pod: &Pod| {
        let work = Work::PreStopOver {
            pod: pod.uid.clone(),
            run: id.to_owned(),
        };
        world.after(wait, world::Work::Kubelet(work));
    };
    match begin(world, pod, container, id, &hook, Owner::PreStop) {
        Hook::Process(process) => {
            over(grace, world, pod);
            process::spawn(world, pod, id, *process);
        }
        Hook::Wait(wait) => over(wait.min(grace), world, pod),
        Hook::Done => pre_stop_done(world, pod, id),
        Hook::Failed(_) => {
            pre_stop_failed(world, pod, container);
            pre_stop_done(world, pod, id);
        }
    }
}

/// The process of a preStop hook has ended.
pub fn pre_stop_ended(world: &mut World, pod: &mut Pod, id: &str, code: i32) {
    let name = pod.run(id).map(|run| run.facts.name.clone());
    if let Some(name) = name.filter(|_| code != 0) {
        pre_stop_failed(world, pod, &name);
    }
    pre_stop_done(world, pod, id);
}

fn pre_stop_failed(world: &mut World, pod: &Pod, container: &str) {
    let message = "PreStopHook failed".to_owned();
    kubelet::event(
        world,
        pod,
        Some(container),
        true,
        "FailedPreStopHook",
        message,
    );
}

/// The time for a preStop hook is over; one that still runs has failed.
pub fn pre_stop_expired(world: &mut World, pod: &mut Pod, id: &str) {
    let Some(run) = pod.run_mut(id).filter(|run| run.pre_stop.is_some()) else {
        return;
    };
    let name = run.facts.name.clone();
    let before = run.processes.len();
    run.processes
        .retain(|process| process.owner != Owner::PreStop);
    if run.processes.len() < before {
        pre_stop_failed(world, pod, &name);
    }
    pre_stop_done(world, pod, id);
}

/// The preStop hook is over, or the grace period is: SIGTERM, and SIGKILL after what is left.
pub fn pre_stop_done(world: &mut World, pod: &mut Pod, id: &str) {
    let now = world.now();
    let uid = pod.uid.clone();
    let Some(run) = pod.run_mut(id) else { return };
    let Some(hook) = run.pre_stop.take() else {
        return;
    };
    let took = Duration::from_secs(now.since(hook.since).as_secs());
    let left = hook.grace.saturating_sub(took).max(LEAST_GRACE);
    let kill = Work::Kill {
        pod: uid,
        run: id.to_owned(),
    };
    world.after(left, world::Work::Kubelet(kill));
    // Signals take a moment through the runtime.
    process::terminate(world, pod, id);
    if let Some(run) = pod.run_mut(id)
        && let Some(main) = run.processes.iter().find(|process| process.id == 1)
        && main.pending_trap.is_some()
    {
        let interruptible = matches!(main.stack.last(), Some(Frame::WaitJobs));
        if interruptible {
            process::advance(world, pod, id, 1);
        }
    }
}
