//! Containers: their configuration, creation, start, stop and end, as a container runtime does them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::image::reference::Reference;
use crate::embedded::image::{DEFAULT_PATH, Executable, Image};
use crate::embedded::kubelet::cpu::Cpu;
use crate::embedded::kubelet::environment;
use crate::embedded::kubelet::log::Log;
use crate::embedded::kubelet::pod::{self, Facts, Pod, Run, RunState, Stage};
use crate::embedded::kubelet::process::{self, Frame, Owner, Process, Sink};
use crate::embedded::kubelet::{self, hooks, pull, sync, termination, worker};
use crate::embedded::world::World;

/// Processor time of the runtime's own process in the container's cgroup, for creating and for starting.
const CREATE_CPU_US: u64 = 8_000;
const START_CPU_US: u64 = 20_000;

/// Below this limit not even the runtime's own process fits.
const LEAST_MEMORY_KIB: u64 = 3_000;

/// Memory of a shell or a small tool.
const TOOL_KIB: u64 = 700;

/// Dead runs kept of each container.
const DEAD_KEPT: usize = 1;

/// Checks a container's configuration, then creates it.
pub fn prepare(world: &mut World, pod: &mut Pod, container: &str) {
    if let Err(why) = configuration(world, pod, container) {
        kubelet::event(
            world,
            pod,
            Some(container),
            true,
            "Failed",
            format!("Error: {why}"),
        );
        sync::fail(pod, container, "CreateContainerConfigError", &why);
        return sync::act(world, pod);
    }
    pod.worker.stage = Stage::Creating {
        container: container.to_owned(),
    };
    let wait = kubelet::delay(world, 30, 30) + pod.cpu.alone(CREATE_CPU_US);
    sync::next_step(world, pod, wait);
}

/// Environment and image of a container, or why it cannot be configured.
fn configuration(
    world: &World,
    pod: &Pod,
    container: &str,
) -> Result<(BTreeMap<String, String>, Arc<Image>), String> {
    let (spec, _) = pod.container_spec(container).ok_or("container not found")?;
    let name = spec["image"].as_str().unwrap_or_default();
    let image = pull::full_name(name)
        .ok()
        .and_then(|full| world.kubelet.present.get(&full).cloned())
        .ok_or_else(|| format!("image \"{name}\" not found"))?;
    check_user(pod, spec, container, &image)?;
    let own = environment::resolve(world, pod, spec)?;
    let mut env: BTreeMap<String, String> = image.env.iter().cloned().collect();
    env.insert("HOSTNAME".to_owned(), pod.name.clone());
    env.extend(own);
    Ok((env, image))
}

fn check_user(pod: &Pod, spec: &Value, container: &str, image: &Image) -> Result<(), String> {
    let setting = |field: &str| {
        let own = &spec["securityContext"][field];
        if own.is_null() {
            pod.spec()["securityContext"][field].clone()
        } else {
            own.clone()
        }
    };
    if setting("runAsNonRoot") != true {
        return Ok(());
    }
    let place = format!("(pod: \"{}\", container: {container})", pod.tag());
    let name = image.user.split(':').next().unwrap_or_default();
    match setting("runAsUser").as_i64() {
        Some(0) => Err(format!(
            "container's runAsUser breaks non-root policy {place}"
        )),
        Some(_) => Ok(()),
        None if name.is_empty() || name == "0" || name == "root" => Err(format!(
            "container has runAsNonRoot and image will run as root {place}"
        )),
        None if name.parse::<u64>().is_err() => Err(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root {place}"
        )),
        None => Ok(()),
    }
}

/// Creates a container.
pub fn create(world: &mut World, pod: &mut Pod, container: &str) {
    let (env, image) = match configuration(world, pod, container) {
        Ok(ready) => ready,
        Err(why) => {
            sync::fail(pod, container, "CreateContainerConfigError", &why);
            return sync::act(world, pod);
        }
    };
    let Some((spec, init)) = pod.container_spec(container) else {
        return sync::act(world, pod);
    };
    let reference = Reference::parse(spec["image"].as_str().unwrap_or_default()).ok();
    let limits = &spec["resources"]["limits"];
    let run = Run {
        facts: Facts {
            id: world.hex_id(64),
            name: container.to_owned(),
            init,
            state: RunState::Created,
            restart_count: pod
                .newest_viewed(container)
                .map_or(0, |last| last.restart_count + 1),
            image: reference.as_ref().map(Reference::full).unwrap_or_default(),
            image_id: reference
                .as_ref()
                .map(|reference| format!("{}@{}", reference.repository(), image.digest))
                .unwrap_or_default(),
            created_at: world.now(),
            started_at: None,
            finished_at: None,
            exit_code: 0,
            reason: String::new(),
            message: String::new(),
        },
        image,
        env,
        log: Log::default(),
        cpu: Cpu::limited(pod::millicores(&limits["cpu"])),
        memory_kib: 0,
        memory_limit_kib: pod::bytes(&limits["memory"]).map(|bytes| bytes / 1024),
        leak: None,
        processes: Vec::new(),
        next_process: 1,
        files: BTreeMap::new(),
        written: BTreeMap::new(),
        sockets: Vec::new(),
        stopping: false,
        pre_stop: None,
        out_of_memory: false,
    };
    let id = run.facts.id.clone();
    let wait = kubelet::delay(world, 50, 50) + run.cpu.alone(START_CPU_US);
    pod.runs.push(run);
    kubelet::event(
        world,
        pod,
        Some(container),
        false,
        "Created",
        format!("Created container: {container}"),
    );
    pod.worker.stage = Stage::Starting {
        container: container.to_owned(),
        id,
    };
    sync::next_step(world, pod, wait);
}

/// Starts a created container.
pub fn start(world: &mut World, pod: &mut Pod, container: &str, id: &str) {
    let now = world.now();
    match main_process(pod, container, id) {
        Ok(process) => {
            if let Some(run) = pod.run_mut(id) {
                run.facts.state = RunState::Running;
                run.facts.started_at = Some(now);
                run.processes.push(process);
            }
            pod.reasons.remove(container);
            kubelet::event(
                world,
                pod,
                Some(container),
                false,
                "Started",
                format!("Started container {container}"),
            );
            worker::ask_for_look(world, &pod.uid);
            kubelet::eviction::watch(world, pod);
            process::advance(world, pod, id, 1);
            if hooks::post_start(world, pod, container, id) {
                return;
            }
        }
        Err(why) => {
            let message = format!(
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: {why}: unknown"
            );
            if let Some(run) = pod.run_mut(id) {
                run.facts.state = RunState::Exited;
                run.facts.finished_at = Some(now);
                run.facts.exit_code = 128;
                run.facts.reason = "StartError".to_owned();
                run.facts.message = message.clone();
            }
            kubelet::event(
                world,
                pod,
                Some(container),
                true,
                "Failed",
                format!("Error: {message}"),
            );
            sync::fail(pod, container, "RunContainerError", &message);
            worker::ask_for_look(world, &pod.uid);
        }
    }
    sync::act(world, pod);
}

/// Process 1 of a container, or why it cannot be started.
fn main_process(pod: &Pod, container: &str, id: &str) -> Result<Process, String> {
    let spec = pod
        .container_spec(container)
        .map(|(spec, _)| spec)
        .ok_or("container not found")?;
    let run = pod.run(id).ok_or("container not found")?;
    if run
        .memory_limit_kib
        .is_some_and(|limit| limit < LEAST_MEMORY_KIB)
    {
        return Err("container init was OOM-killed (memory limit too low?)".to_owned());
    }
    let list = |field: &str| -> Option<Vec<String>> {
        let items = spec[field].as_array().filter(|items| !items.is_empty())?;
        let lookup = |name: &str| run.env.get(name).cloned();
        Some(
            items
                .iter()
                .map(|item| environment::expand(item.as_str().unwrap_or_default(), &lookup))
                .collect(),
        )
    };
    let (command, args) = match (list("command"), list("args")) {
        (Some(command), args) => (command, args.unwrap_or_default()),
        (None, Some(args)) => (run.image.entrypoint.clone(), args),
        (None, None) => (run.image.entrypoint.clone(), run.image.cmd.clone()),
    };
    let words: Vec<String> = command.into_iter().chain(args).collect();
    let first = words.first().ok_or("no command specified")?;
    let path = run.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    if run.image.find(first, path).is_none() {
        return Err(format!("exec: \"{first}\": {}", not_found(first)));
    }
    Ok(command_process(run, 1, &words, Owner::Container))
}

/// What the runtime says of a command that the image does not have.
pub fn not_found(name: &str) -> String {
    if name.contains('/') {
        format!("stat {name}: no such file or directory")
    } else {
        "executable file not found in $PATH".to_owned()
    }
}

/// A process that runs a command line directly, as `exec` does, without a shell around it.
pub fn command_process(run: &Run, id: u32, words: &[String], owner: Owner) -> Process {
    let simple = kubelet::shell::Simple {
        words: words
            .iter()
            .map(|word| {
                let text = word.clone();
                kubelet::shell::Word(vec![kubelet::shell::Part::Text { text, quoted: true }])
            })
            .collect(),
        ..kubelet::shell::Simple::default()
    };
    let node = kubelet::shell::Node::Simple(simple);
    let mut process = Process::new(id, run.env.clone(), Frame::Node(node), owner);
    if id != 1 {
        process.captures.push(String::new());
        process.io.out = Sink::Capture(0);
        process.io.err = Sink::Capture(0);
    }
    process
}

/// Memory that a process takes before it does anything.
pub fn first_memory_kib(executable: Option<&Executable>) -> u64 {
    match executable {
        Some(Executable::Program(program)) => program.base_kib,
        _ => TOOL_KIB,
    }
}

/// A container ends.
pub fn exit_container(world: &mut World, pod: &mut Pod, id: &str, code: i32, reason: &str) {
    let now = world.now();
    let Some(run) = pod.run_mut(id) else { return };
    if run.facts.state != RunState::Running {
        return;
    }
    run.facts.state = RunState::Exited;
    run.facts.finished_at = Some(now);
    run.facts.exit_code = code;
    run.facts.reason = if run.out_of_memory {
        "OOMKilled"
    } else {
        reason
    }
    .to_owned();
    run.processes.clear();
    run.sockets.clear();
    run.memory_kib = 0;
    run.leak = None;
    let name = run.facts.name.clone();
    note_message(pod, id, &name, code);
    worker::ask_for_look(world, &pod.uid);
    if pod.termination.is_some() {
        return termination::stopped_one(world, pod);
    }
    if matches!(&pod.worker.stage, Stage::Hooking { id: waiting, .. } if waiting == id) {
        return hooks::post_start_lost(world, pod, &name, id);
    }
    let stopping =
        matches!(&pod.worker.stage, Stage::Stopping { id: waiting, .. } if waiting == id);
    if stopping && pod.worker.busy {
        sync::act(world, pod);
    }
}

/// The message a container leaves: its termination-log file, or its last output when it failed and asked so.
fn note_message(pod: &mut Pod, id: &str, name: &str, code: i32) {
    let (path, fall_back) = pod.container_spec(name).map_or_else(
        || (String::new(), false),
        |(spec, _)| {
            let path = spec["terminationMessagePath"]
                .as_str()
                .unwrap_or("/dev/termination-log");
            (
                path.to_owned(),
                spec["terminationMessagePolicy"] == "FallbackToLogsOnError",
            )
        },
    );
    let Some(run) = pod.run_mut(id) else { return };
    let text = run.files.get(&path).cloned().unwrap_or_default();
    run.facts.message = if text.is_empty() && fall_back && code != 0 {
        // The kubelet's limits for a message taken from the log.
        run.log.tail(80, 2048)
    } else {
        text.chars().take(4096).collect()
    };
}

/// Removes dead runs of a container beyond those kept.
pub fn forget_old(pod: &mut Pod, name: &str) {
    let dead: Vec<String> = pod
        .runs
        .iter()
        .rev()
        .filter(|run| run.facts.name == name && run.facts.state == RunState::Exited)
        .skip(DEAD_KEPT)
        .map(|run| run.facts.id.clone())
        .collect();
    pod.runs.retain(|run| !dead.contains(&run.facts.id));
}

/// Stops a running container: preStop hook, SIGTERM, and SIGKILL when the grace period is over.
pub fn stop(world: &mut World, pod: &mut Pod, id: &str, grace: Duration) {
    let Some(run) = pod.run_mut(id) else { return };
    if std::mem::replace(&mut run.stopping, true) {
        return;
    }
    let name = run.facts.name.clone();
    hooks::pre_stop(world, pod, &name, id, grace);
}
