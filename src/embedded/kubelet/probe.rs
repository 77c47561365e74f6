//! Probes: one worker per container and kind, ticking from the pod's first sync on.
//!
//! A tick looks at the pod's status as last set, so a new run of a container is met a moment late. A changed
//! result asks for a sync; the readiness worker of a container that is not ready is also run right after each
//! sync, and its clock starts anew then.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::image::program::Protocol;
use crate::embedded::kubelet::pod::Pod;
use crate::embedded::kubelet::process::{self, Owner};
use crate::embedded::kubelet::{self, Work, network, runtime, status, worker};
use crate::embedded::world::{self, World};

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
    /// An exec probe; the process's id.
    Running(u32),
}

/// Starts the workers of a pod's probes, once.
pub fn add_workers(world: &mut World, pod: &mut Pod) {
    let wanted: Vec<(String, ProbeKind)> = pod
        .container_specs()
        .filter(|(_, init)| !init)
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
    for entry in new["containerStatuses"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let id = id_of(entry);
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
    let entry = pod.status["containerStatuses"]
        .as_array()
        .into_iter()
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
    let path = run.env.get("PATH").cloned().unwrap_or_default();
    if run.image.find(&command[0], &path).is_none() {
        let what = format!(
            "rpc error: code = Unknown desc = failed to exec in container: failed to start exec \"{}\": OCI runtime exec failed: exec failed: unable to start container process: exec: \"{}\": executable file not found in $PATH: unknown",
            world.hex_id(64),
            command[0]
        );
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
        .is_some_and(|run| run.facts.state == kubelet::pod::RunState::Running);
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

/// The number of a probe's port, which may be a name.
fn port_of(pod: &Pod, container: &str, port: &Value) -> Option<u16> {
    if let Some(number) = port.as_u64() {
        return u16::try_from(number).ok();
    }
    let name = port.as_str()?;
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let (spec, _) = pod.container_spec(container)?;
    let ports = spec["ports"].as_array()?;
    let found = ports.iter().find(|entry| entry["name"] == name)?;
    u16::try_from(found["containerPort"].as_u64()?).ok()
}

fn address_of(pod: &Pod) -> String {
    pod.sandbox
        .as_ref()
        .map(|sandbox| sandbox.ip.clone())
        .unwrap_or_default()
}

fn refused(address: &str, port: u16) -> String {
    format!("dial tcp {address}:{port}: connect: connection refused")
}

fn http(
    world: &mut World,
    pod: &mut Pod,
    container: &str,
    target: &Value,
    timeout: Duration,
) -> (Outcome, Duration) {
    let quick = Duration::from_millis(2);
    let Some(port) = port_of(pod, container, &target["port"]) else {
        let why = format!(
            "couldn't find port: {} in container {container}",
            target["port"]
        );
        return (Outcome::Failure(why), quick);
    };
    let address = match target["host"].as_str().filter(|host| !host.is_empty()) {
        Some(host) => host.to_owned(),
        None => address_of(pod),
    };
    let scheme = target["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
    let path = target["path"]
        .as_str()
        .filter(|path| !path.is_empty())
        .unwrap_or("/");
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let url = format!("Get \"{scheme}://{address}:{port}{path}\"");
    let found =
        network::socket_of(pod, port, false).map(|(run, index)| (run.facts.id.clone(), index));
    let Some((id, index)) = found.filter(|_| address == address_of(pod)) else {
        return (
            Outcome::Failure(format!("{url}: {}", refused(&address, port))),
            quick,
        );
    };
    if scheme == "https" {
        let why = format!("{url}: http: server gave HTTP response to HTTPS client");
        return (Outcome::Failure(why), quick);
    }
    let now = world.now();
    let at = pod.runs.iter().position(|run| run.facts.id == id);
    let answer = at.and_then(|at| network::serve(world, &mut pod.runs[at], index, &path));
    match answer {
        None => (Outcome::Failure(format!("{url}: EOF")), quick),
        Some(answer) if answer.at.since(now) > timeout => {
            let why = format!(
                "{url}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            );
            (Outcome::Failure(why), timeout)
        }
        Some(answer) if (200..400).contains(&answer.status) => {
            (Outcome::Success, answer.at.since(now))
        }
        Some(answer) => {
            let why = format!("HTTP probe failed with statuscode: {}", answer.status);
            (Outcome::Failure(why), answer.at.since(now))
        }
    }
}

fn tcp(pod: &Pod, container: &str, target: &Value) -> (Outcome, Duration) {
    let quick = Duration::from_millis(1);
    let Some(port) = port_of(pod, container, &target["port"]) else {
        let why = format!(
            "couldn't find port: {} in container {container}",
            target["port"]
        );
        return (Outcome::Failure(why), quick);
    };
    let address = address_of(pod);
    match network::socket_of(pod, port, false) {
        Some(_) => (Outcome::Success, quick),
        None => (Outcome::Failure(refused(&address, port)), quick),
    }
}

/// No program of the model speaks gRPC: the connection fails, or the answer is not understood.
fn grpc(pod: &Pod, container: &str, target: &Value, timeout: Duration) -> (Outcome, Duration) {
    let port = port_of(pod, container, &target["port"]).unwrap_or(0);
    let address = address_of(pod);
    let speaks = network::socket_of(pod, port, false).is_some_and(|(run, index)| {
        matches!(run.sockets[index].listen.speaks, Protocol::Http { .. })
    });
    if speaks {
        let why = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)";
        return (Outcome::Failure(why.to_owned()), Duration::from_millis(3));
    }
    let why = format!(
        "timeout: failed to connect service \"{address}:{port}\" within {}s: context deadline exceeded",
        timeout.as_secs()
    );
    (Outcome::Failure(why), timeout)
}
