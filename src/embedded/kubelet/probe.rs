//! Probes: one worker per container and kind, ticking from the pod's first sync on.
//!
//! A tick looks at the pod's status as last set, so a new run of a container is met a moment late. A changed
//! result asks for a sync; the readiness worker of a container that is not ready is also run right after each
//! sync, and its clock starts anew then.

mod target;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::kubelet::pod::{self, Pod};
use crate::embedded::kubelet::process::{self, Owner};
use crate::embedded::kubelet::{self, Work, runtime, status, worker};
use crate::embedded::world::{self, World};

pub use target::{bad_port, http_refused, missing_executable, path_of, port_of};
use target::{grpc, http, tcp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    Startup,
    Readiness,
    Liveness,
}

impl ProbeKind {
    fn field(self) -> &'static str {
        match self {
            ProbeKind::Startup => "startupProbe",
            ProbeKind::Readiness => "readinessProbe",
            ProbeKind::Liveness => "livenessProbe",
        }
    }

    fn title(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Readiness => "Readiness",
            ProbeKind::Liveness => "Liveness",
        }
    }

    /// What counts before the first probe of a run.
    fn initial(self) -> Option<bool> {
        match self {
            ProbeKind::Startup => None,
            ProbeKind::Readiness => Some(false),
            ProbeKind::Liveness => Some(true),
        }
    }
}

/// The worker of one probe.
#[derive(Debug, Default)]
pub struct ProbeWorker {
    /// The probe as the pod's spec has it; specs of probes never change in a pod.
    spec: Arc<Value>,
    container_id: String,
    last: Option<bool>,
    repeats: u64,
    /// The run failed for good; probing goes on with the next one.
    on_hold: bool,
    in_flight: Option<Outcome>,
    /// A tick came while a probe was under way.
    missed: bool,
    number: u64,
    answer_number: u64,
}

/// What a probe under way will say.
#[derive(Clone, Debug)]
enum Outcome {
    Success,
    Failure(String),
    /// Could not be tried: that is told, and counts for nothing.
    Unknown(String),
    /// An exec probe; the process's id.
    Running(u32),
}

/// Starts the workers of a pod's probes, once.
pub fn add_workers(world: &mut World, pod: &mut Pod) {
    let wanted: Vec<(String, ProbeKind)> = pod
        .container_specs()
        .filter(|(spec, init)| !init || pod::stays(spec))
        .flat_map(|(spec, _)| {
            let name = spec["name"].as_str().unwrap_or_default().to_owned();
            [
                ProbeKind::Startup,
                ProbeKind::Readiness,
                ProbeKind::Liveness,
            ]
            .into_iter()
            .filter(|kind| spec.get(kind.field()).is_some_and(Value::is_object))
            .map(move |kind| (name.clone(), kind))
        })
        .collect();
    for (container, kind) in wanted {
        let key = (container.clone(), kind);
        if !pod.probes.contains_key(&key) {
            let spec = pod
                .container_spec(&container)
                .map(|(spec, _)| spec[kind.field()].clone());
            let worker = ProbeWorker {
                spec: Arc::new(spec.unwrap_or_default()),
                ..ProbeWorker::default()
            };
            pod.probes.insert(key, worker);
            rearm(world, pod, &container, kind);
        }
    }
}

fn spec_of(pod: &Pod, container: &str, kind: ProbeKind) -> Arc<Value> {
    pod.probes
        .get(&(container.to_owned(), kind))
        .map(|worker| worker.spec.clone())
        .unwrap_or_default()
}

fn number_of(spec: &Value, field: &str, default: u64) -> u64 {
    spec[field].as_u64().unwrap_or(default)
}

/// Plans the next tick a period from now.
fn rearm(world: &mut World, pod: &mut Pod, container: &str, kind: ProbeKind) {
    let period = number_of(&spec_of(pod, container, kind), "periodSeconds", 10).max(1);
    let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind)) else {
        return;
    };
    worker.number += 1;
    let work = Work::Probe {
        pod: pod.uid.clone(),
        container: container.to_owned(),
        kind,
        number: worker.number,
    };
    world.after(Duration::from_secs(period), world::Work::Kubelet(work));
}

/// A worker's clock ticks.
pub fn tick(world: &mut World, pod: &mut Pod, container: &str, kind: ProbeKind, number: u64) {
    let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind)) else {
        return;
    };
    if worker.number != number {
        return;
    }
    if worker.in_flight.is_some() {
        worker.missed = true;
    }
    rearm(world, pod, container, kind);
    probe(world, pod, container, kind);
}

/// Runs a readiness worker out of turn.
pub fn run_now(world: &mut World, pod: &mut Pod, container: &str) {
    rearm(world, pod, container, ProbeKind::Readiness);
    probe(world, pod, container, ProbeKind::Readiness);
}

/// Fills `started` and `ready` into a new status; answers which readiness workers are to run now.
pub fn update(_world: &World, pod: &Pod, new: &mut Value) -> Vec<String> {
    let mut trigger = Vec::new();
    let lists = new.as_object_mut().into_iter().flatten();
    let entries = lists
        .filter(|(field, _)| {
            matches!(
                field.as_str(),
                "initContainerStatuses" | "containerStatuses"
            )
        })
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten();
    for entry in entries {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let id = id_of(entry);
        let plain_init = pod
            .container_spec(&name)
            .is_some_and(|(spec, init)| init && !pod::stays(spec));
        if plain_init {
            continue;
        }
        if !entry["state"]["running"].is_object() {
            continue;
        }
        let started = status::started(pod, &name, &id);
        entry["started"] = started.into();
        if !started {
            continue;
        }
        let probed = pod
            .probes
            .contains_key(&(name.clone(), ProbeKind::Readiness));
        let good = pod.results.get(&(id, ProbeKind::Readiness)) == Some(&true);
        entry["ready"] = (good || !probed).into();
        if probed && !good {
            trigger.push(name);
        }
    }
    trigger
}

fn id_of(entry: &Value) -> String {
    entry["containerID"]
        .as_str()
        .unwrap_or_default()
        .trim_start_matches("containerd://")
        .to_owned()
}

fn set_result(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    kind: ProbeKind,
    id: &str,
    good: bool,
) {
    let key = (id.to_owned(), kind);
    if pod.results.insert(key, good) == Some(good) {
        return;
    }
    match kind {
        ProbeKind::Liveness if good => return,
        ProbeKind::Readiness => status::set_ready(world, pod, container, good),
        _ => {}
    }
    worker::trigger(world, pod);
}

/// One round of a worker.
fn probe(world: &mut World, pod: &mut Pod, container: &str, kind: ProbeKind) {
    let entry = ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .filter_map(|list| pod.status[list].as_array())
        .flatten()
        .find(|entry| entry["name"] == container);
    let Some(entry) = entry else { return };
    let id = id_of(entry);
    let running = entry["state"]["running"].is_object();
    let key = (container.to_owned(), kind);
    if id.is_empty() || pod.finished {
        return;
    }
    let Some(worker) = pod.probes.get_mut(&key) else {
        return;
    };
    if worker.in_flight.is_some() {
        return;
    }
    if worker.container_id != id {
        let old = std::mem::replace(&mut worker.container_id, id.clone());
        worker.on_hold = false;
        pod.results.remove(&(old, kind));
        if let Some(initial) = kind.initial() {
            set_result(world, pod, container, kind, &id, initial);
        }
    }
    if pod.probes.get(&key).is_none_or(|worker| worker.on_hold) {
        return;
    }
    if !running {
        set_result(world, pod, container, kind, &id, false);
        return;
    }
    if pod.termination.is_some() && kind != ProbeKind::Readiness {
        return;
    }
    let spec = spec_of(pod, container, kind);
    let since = pod.run(&id).and_then(|run| run.facts.started_at);
    let up = since.map_or(Duration::ZERO, |since| world.now().since(since));
    if up.as_secs() < number_of(&spec, "initialDelaySeconds", 0) {
        return;
    }
    let started = status::started(pod, container, &id);
    if started == (kind == ProbeKind::Startup) {
        return;
    }
    launch(world, pod, container, kind, &spec);
}

/// Sends a probe on its way.
fn launch(world: &mut World, pod: &mut Pod, container: &str, kind: ProbeKind, spec: &Value) {
    let timeout = Duration::from_secs(number_of(spec, "timeoutSeconds", 1).max(1));
    let command: Vec<String> = spec["exec"]["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    if !command.is_empty() {
        return launch_exec(world, pod, container, kind, &command, timeout);
    }
    let (outcome, wait) =
        if let Some(target) = spec.get("httpGet").filter(|target| target.is_object()) {
            http(world, pod, container, target, timeout)
        } else if let Some(target) = spec.get("tcpSocket").filter(|target| target.is_object()) {
            tcp(pod, container, target)
        } else {
            grpc(pod, container, &spec["grpc"], timeout)
        };
    arrive(world, pod, container, kind, outcome, wait);
}

fn arrive(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    kind: ProbeKind,
    outcome: Outcome,
    wait: Duration,
) {
    let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind)) else {
        return;
    };
    worker.in_flight = Some(outcome);
    worker.answer_number += 1;
    let work = Work::ProbeAnswer {
        pod: pod.uid.clone(),
        container: container.to_owned(),
        kind,
        number: worker.answer_number,
    };
    world.after(wait, world::Work::Kubelet(work));
}

fn launch_exec(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    kind: ProbeKind,
    command: &[String],
    timeout: Duration,
) {
    let Some(run) = pod.running(container) else {
        return;
    };
    let id = run.facts.id.clone();
    let owner = Owner::Probe {
        container: container.to_owned(),
        kind,
    };
    if let Some(what) = missing_executable(world, run, &command[0]) {
        let message = format!(
            "{} probe errored and resulted in unknown state: {what}",
            kind.title()
        );
        return kubelet::event(world, pod, Some(container), true, "Unhealthy", message);
    }
    let process = runtime::command_process(run, 2, command, owner);
    let expired = Outcome::Failure(format!(
        "command timed out: \"{}\" timed out after {}s",
        command.join(" "),
        timeout.as_secs()
    ));
    // Noted first: a command that does not wait ends within `spawn`.
    arrive(world, pod, container, kind, expired, timeout);
    if let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind)) {
        worker.in_flight = Some(Outcome::Running(0));
    }
    let process = process::spawn(world, pod, &id, process);
    if let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind))
        && matches!(worker.in_flight, Some(Outcome::Running(_)))
    {
        worker.in_flight = Some(Outcome::Running(process));
    }
}

/// An exec probe's process has ended.
pub fn exec_done(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    kind: ProbeKind,
    code: i32,
    output: &str,
) {
    let outcome = if code == 0 {
        Outcome::Success
    } else {
        Outcome::Failure(output.to_owned())
    };
    // An exec costs the runtime some 30 ms more than the command.
    arrive(
        world,
        pod,
        container,
        kind,
        outcome,
        Duration::from_millis(30),
    );
}

/// A probe's answer, or the end of its patience.
pub fn answered(world: &mut World, pod: &mut Pod, container: &str, kind: ProbeKind, number: u64) {
    let key = (container.to_owned(), kind);
    let Some(worker) = pod.probes.get_mut(&key) else {
        return;
    };
    if worker.answer_number != number {
        return;
    }
    let Some(outcome) = worker.in_flight.take() else {
        return;
    };
    let missed = std::mem::take(&mut worker.missed);
    let id = worker.container_id.clone();
    let outcome = match outcome {
        Outcome::Running(process) => {
            let spec = spec_of(pod, container, kind);
            if let Some(run) = pod.run_mut(&id) {
                run.processes.retain(|entry| entry.id != process);
            }
            timed_out(&spec)
        }
        other => other,
    };
    let alive = pod
        .run(&id)
        .is_some_and(|run| run.facts.state == pod::RunState::Running);
    if alive {
        conclude(world, pod, container, kind, &id, outcome);
    }
    if missed {
        probe(world, pod, container, kind);
    }
}

fn timed_out(spec: &Value) -> Outcome {
    let words: Vec<&str> = spec["exec"]["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let seconds = number_of(spec, "timeoutSeconds", 1).max(1);
    Outcome::Failure(format!(
        "command timed out: \"{}\" timed out after {seconds}s",
        words.join(" ")
    ))
}

fn conclude(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    kind: ProbeKind,
    id: &str,
    outcome: Outcome,
) {
    let good = matches!(outcome, Outcome::Success);
    if let Outcome::Unknown(why) = &outcome {
        let message = format!(
            "{} probe errored and resulted in unknown state: {why}",
            kind.title()
        );
        return kubelet::event(world, pod, Some(container), true, "Unhealthy", message);
    }
    if let Outcome::Failure(why) = &outcome {
        let message = format!("{} probe failed: {why}", kind.title());
        kubelet::event(world, pod, Some(container), true, "Unhealthy", message);
    }
    let spec = spec_of(pod, container, kind);
    let Some(worker) = pod.probes.get_mut(&(container.to_owned(), kind)) else {
        return;
    };
    if worker.last == Some(good) {
        worker.repeats += 1;
    } else {
        worker.last = Some(good);
        worker.repeats = 1;
    }
    let enough = if good {
        number_of(&spec, "successThreshold", 1)
    } else {
        number_of(&spec, "failureThreshold", 3)
    };
    if worker.repeats < enough {
        return;
    }
    if !good && kind != ProbeKind::Readiness {
        worker.on_hold = true;
        worker.repeats = 0;
    }
    set_result(world, pod, container, kind, id, good);
}
