//! What the kubelet and the container runtime remember of one pod.
//!
//! `runs` is the runtime's truth; `seen` is what the kubelet knew at its last look (it looks once a second),
//! from which statuses are made. The difference is why a status lags behind what happened.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::image::Image;
use crate::embedded::kubelet::cpu::Cpu;
use crate::embedded::kubelet::hooks::PreStop;
use crate::embedded::kubelet::log::Log;
use crate::embedded::kubelet::probe::{ProbeKind, ProbeWorker};
use crate::embedded::kubelet::process::Process;
use crate::embedded::kubelet::volumes::Volumes;
use crate::embedded::quantity::Quantity;
use crate::embedded::time::Time;

/// One pod on the node.
#[derive(Debug)]
pub struct Pod {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    /// The API object as last seen.
    pub object: Arc<Value>,
    pub first_seen: Time,
    pub worker: Worker,
    pub volumes: Volumes,
    pub sandbox: Option<Sandbox>,
    pub runs: Vec<Run>,
    pub seen: Vec<Facts>,
    pub seen_sandbox: bool,
    /// Why a container waits, by container name, as of the last sync: reason and message.
    pub reasons: BTreeMap<String, (String, String)>,
    pub backoffs: BTreeMap<String, BackOff>,
    pub probes: BTreeMap<(String, ProbeKind), ProbeWorker>,
    /// Probe results by container id.
    pub results: BTreeMap<(String, ProbeKind), bool>,
    pub termination: Option<Termination>,
    /// The status last set, whether or not the API server has it yet.
    pub status: Value,
    /// The pod's cgroup: container creation is paid from it.
    pub cpu: Cpu,
    /// The pod reached Succeeded or Failed; nothing more is done.
    pub finished: bool,
    /// Reason and message of an eviction.
    pub evicted: Option<(String, String)>,
}

/// The pod's worker: at most one sync at a time.
#[derive(Debug, Default)]
pub struct Worker {
    pub busy: bool,
    /// Another sync is asked for.
    pub pending: bool,
    /// A sync waits for the next look at the runtime.
    pub awaiting_look: bool,
    pub last_end: Option<Time>,
    /// Numbers the timer of the next regular sync; an older timer is void.
    pub timer: u64,
    /// Numbers the steps of syncs; an older step is void.
    pub step: u64,
    pub plan: VecDeque<Action>,
    pub stage: Stage,
    pub failed: bool,
    /// What the sync under way goes by: what was seen when it began.
    pub view: Vec<Facts>,
}

/// Where a sync stands between its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Idle,
    Mounting,
    Sandbox,
    Acting,
    Pulling {
        container: String,
    },
    Creating {
        container: String,
    },
    Starting {
        container: String,
        id: String,
    },
    /// A postStart hook is under way.
    Hooking {
        container: String,
        id: String,
    },
    Stopping {
        container: String,
        id: String,
    },
}

/// What a sync still has to do.
#[derive(Clone, Debug)]
pub enum Action {
    Start {
        container: String,
    },
    Stop {
        container: String,
        message: String,
        then_start: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Sandbox {
    pub ip: String,
    pub since: Time,
}

/// One run of a container.
#[derive(Debug)]
pub struct Run {
    pub facts: Facts,
    pub image: Arc<Image>,
    pub env: BTreeMap<String, String>,
    pub log: Log,
    pub cpu: Cpu,
    pub memory_kib: u64,
    pub memory_limit_kib: Option<u64>,
    /// Growth per minute since a moment, for leaks.
    pub leak: Option<(u64, Time)>,
    pub processes: Vec<Process>,
    pub next_process: u32,
    pub files: BTreeMap<String, String>,
    /// Bytes written, by mount path (`/` for the writable layer).
    pub written: BTreeMap<String, u64>,
    pub sockets: Vec<Socket>,
    /// The SIGKILL that follows a SIGTERM, by number of the stop; see `termination`.
    pub stopping: bool,
    /// Something in the container was killed for want of memory: however it ends, that is told as why.
    pub out_of_memory: bool,
    /// The preStop hook that runs before the SIGTERM.
    pub pre_stop: Option<PreStop>,
}

/// A listening socket of a running process.
#[derive(Clone, Debug)]
pub struct Socket {
    pub process: u32,
    pub port: u16,
    pub loopback: bool,
    pub listen: Arc<crate::embedded::image::program::Listen>,
    /// Accounts: user and password fixed when the server started.
    pub user: String,
    pub password: String,
    pub closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Created,
    Running,
    Exited,
}

/// What can be seen of a run from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub id: String,
    pub name: String,
    pub init: bool,
    pub state: RunState,
    pub restart_count: u64,
    /// Full image name and image id.
    pub image: String,
    pub image_id: String,
    pub created_at: Time,
    /// `None` when it never started.
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
    pub exit_code: i32,
    pub reason: String,
    pub message: String,
}

/// An exponential back-off.
#[derive(Clone, Debug)]
pub struct BackOff {
    pub delay: Duration,
    pub updated: Time,
    /// The last error, for the message of image back-offs.
    pub error: String,
}

/// First and largest back-off of containers and image pulls.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(10);
pub const BACKOFF_MOST: Duration = Duration::from_secs(300);

/// A pod being stopped for good.
#[derive(Clone, Debug)]
pub struct Termination {
    pub grace: Duration,
    pub started: Time,
    /// The containers are down; what is left is to clear up.
    pub stopped: bool,
    /// Removed from the API server when done (deletions), kept otherwise (evictions, deadlines).
    pub remove: bool,
}

impl Pod {
    /// A pod that the kubelet has just heard of.
    pub fn new(object: Arc<Value>, now: Time) -> Pod {
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let cpu = pod_cpu(&object);
        Pod {
            uid: text("uid"),
            namespace: text("namespace"),
            name: text("name"),
            first_seen: now,
            worker: Worker::default(),
            volumes: Volumes::default(),
            sandbox: None,
            runs: Vec::new(),
            seen: Vec::new(),
            seen_sandbox: false,
            reasons: BTreeMap::new(),
            backoffs: BTreeMap::new(),
            probes: BTreeMap::new(),
            results: BTreeMap::new(),
            termination: None,
            status: object["status"].clone(),
            cpu,
            finished: false,
            evicted: None,
            object,
        }
    }

    pub fn spec(&self) -> &Value {
        &self.object["spec"]
    }

    /// Specs of the init containers, then of the containers, each with whether it is an init container.
    pub fn container_specs(&self) -> impl Iterator<Item = (&Value, bool)> {
        let list = |field: &str| self.object["spec"][field].as_array().into_iter().flatten();
        list("initContainers")
            .map(|c| (c, true))
            .chain(list("containers").map(|c| (c, false)))
    }

    pub fn container_spec(&self, name: &str) -> Option<(&Value, bool)> {
        self.container_specs()
            .find(|(spec, _)| spec["name"] == name)
    }

    /// Whether a container is an init container that stays beside the others.
    pub fn is_sidecar(&self, name: &str) -> bool {
        self.container_spec(name)
            .is_some_and(|(spec, init)| init && stays(spec))
    }

    pub fn restart_policy(&self) -> &str {
        self.object["spec"]["restartPolicy"]
            .as_str()
            .unwrap_or("Always")
    }

    /// Pod name, namespace and uid as the kubelet writes them.
    pub fn tag(&self) -> String {
        format!("{}_{}({})", self.name, self.namespace, self.uid)
    }

    pub fn run(&self, id: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.facts.id == id)
    }

    pub fn run_mut(&mut self, id: &str) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.facts.id == id)
    }

    /// The newest run of a container as the sync under way knows it.
    pub fn newest_viewed(&self, name: &str) -> Option<&Facts> {
        self.worker
            .view
            .iter()
            .rev()
            .find(|facts| facts.name == name)
    }

    /// The newest run of a container as the kubelet has seen it.
    pub fn newest_seen(&self, name: &str) -> Option<&Facts> {
        self.seen.iter().rev().find(|facts| facts.name == name)
    }

    /// The run of a container that is running now.
    pub fn running(&self, name: &str) -> Option<&Run> {
        self.runs
            .iter()
            .find(|run| run.facts.name == name && run.facts.state == RunState::Running)
    }

    pub fn deleted(&self) -> bool {
        self.object["metadata"]
            .get("deletionTimestamp")
            .is_some_and(|t| !t.is_null())
    }

    /// Path of a container in event field paths.
    pub fn field_path(&self, name: &str) -> String {
        let init = self.container_spec(name).is_some_and(|(_, init)| init);
        let list = if init { "initContainers" } else { "containers" };
        format!("spec.{list}{{{name}}}")
    }
}

/// Whether an init container stays beside the others, as sidecars do.
pub fn stays(spec: &Value) -> bool {
    spec["restartPolicy"] == "Always"
}

impl Run {
    /// The working set now, leaks included.
    pub fn memory_at(&self, now: Time) -> u64 {
        let grown = self.leak.map_or(0, |(kib_per_minute, since)| {
            kib_per_minute * u64::try_from(now.since(since).as_millis()).unwrap_or(0) / 60_000
        });
        self.memory_kib + grown
    }

    pub fn main_process(&self) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == 1)
    }
}

impl BackOff {
    /// Whether an entry last raised at `updated` is too old to count for something that happened at `since`.
    fn expired(&self, since: Time) -> bool {
        since.since(self.updated) > BACKOFF_MOST * 2
    }

    /// Whether something that failed at `since` must still wait at `now`.
    pub fn holds(&self, since: Time, now: Time) -> bool {
        !self.expired(since) && now.since(since) < self.delay
    }
}

/// Raises a back-off: starts at the first delay, doubles, starts again after a long quiet time.
pub fn raise(
    backoffs: &mut BTreeMap<String, BackOff>,
    key: &str,
    since: Time,
    now: Time,
    error: &str,
) {
    let delay = match backoffs.get(key) {
        Some(old) if !old.expired(since) => (old.delay * 2).min(BACKOFF_MOST),
        _ => BACKOFF_FIRST,
    };
    backoffs.insert(
        key.to_owned(),
        BackOff {
            delay,
            updated: now,
            error: error.to_owned(),
        },
    );
}

/// The pod's processor quota: the sum of its containers' limits when all have one.
fn pod_cpu(object: &Value) -> Cpu {
    let limits: Option<Vec<u64>> = object["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| millicores(&container["resources"]["limits"]["cpu"]))
        .collect();
    Cpu::limited(
        limits
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum()),
    )
}

/// A cpu quantity in millicores, rounded up.
pub fn millicores(quantity: &Value) -> Option<u64> {
    u64::try_from(Quantity::from_json(quantity).ok()?.milli_value()).ok()
}

/// A memory quantity in bytes, rounded up.
pub fn bytes(quantity: &Value) -> Option<u64> {
    u64::try_from(Quantity::from_json(quantity).ok()?.value()).ok()
}
