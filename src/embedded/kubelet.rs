//! The kubelet and what stands below it: images, containers, probes, back-off, logs, the simulated network.
//!
//! It works like the real one: each pod has a worker that syncs it when the pod changes, when a look at the
//! runtime (once a second) shows a change, when a probe's result changes, or when its timer is over. A sync
//! first writes down the status as last seen, then acts. Nothing here knows any fault: what happens follows
//! from specs, images, Secrets, ConfigMaps, Services and policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;

use crate::embedded::events::{self, NewEvent};
use crate::embedded::image::{Image, Registry};
use crate::embedded::kind::Kind;
use crate::embedded::store::{Change, ChangeKind};
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

pub mod clients;
pub mod cpu;
pub mod database;
pub mod environment;
pub mod eviction;
pub mod files;
pub mod hooks;
pub mod httpd;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod network;
pub mod pod;
pub mod policy;
pub mod probe;
pub mod process;
pub mod pull;
pub mod running;
pub mod runtime;
pub mod shell;
pub mod status;
pub mod sync;
pub mod termination;
pub mod tools;
pub mod volumes;
pub mod words;
pub mod worker;

#[cfg(test)]
mod tests;

pub use log::{Position, follow, logs, start_following};
pub use metrics::metrics;

use crate::embedded::kubelet::pod::Pod;
use crate::embedded::kubelet::probe::ProbeKind;

/// Due work of the kubelet. Numbers tell a piece of work that is still wanted from a void one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A pod object is new or changed.
    Changed {
        pod: String,
        namespace: String,
        name: String,
    },
    /// Look at the runtime.
    Look,
    /// A pod's regular sync is due.
    Timer {
        pod: String,
        number: u64,
    },
    /// A sync goes on.
    Step {
        pod: String,
        number: u64,
    },
    Mount {
        pod: String,
        volume: String,
    },
    /// Sources of mounted files changed some while ago.
    Refresh {
        pod: String,
    },
    /// A process's wait is over.
    Process {
        pod: String,
        run: String,
        process: u32,
        wake: u64,
    },
    Probe {
        pod: String,
        container: String,
        kind: ProbeKind,
        number: u64,
    },
    ProbeAnswer {
        pod: String,
        container: String,
        kind: ProbeKind,
        number: u64,
    },
    /// A preStop hook's sleep is over.
    PreStopOver {
        pod: String,
        run: String,
    },
    /// The grace period of a container is over.
    Kill {
        pod: String,
        run: String,
    },
    /// A stopped pod's clearing up goes on.
    Clear {
        pod: String,
    },
    /// Check what a pod has written against its limits.
    Storage {
        pod: String,
    },
    /// `activeDeadlineSeconds` is over.
    Deadline {
        pod: String,
    },
}

/// Pods on the node, their containers, images and back-offs.
#[derive(Debug)]
pub struct State {
    pub images: Registry,
    /// Images on the node by full name.
    pub present: BTreeMap<String, Arc<Image>>,
    pub pods: BTreeMap<String, Pod>,
    /// What the network does with connections that a policy denies.
    pub denied: policy::Denied,
    /// Pods whose containers changed since the last look, or that wait for one.
    dirty: BTreeSet<String>,
    look_due: Option<Time>,
    /// Offset of the looks within a second.
    phase: Option<i64>,
    last_address: u32,
    /// The kubelet's own randomness: what others draw does not change when its timers are due.
    rng: ChaCha8Rng,
}

impl State {
    pub fn new(images: Registry, seed: u64) -> State {
        State {
            present: images.preloaded().collect(),
            images,
            pods: BTreeMap::new(),
            denied: policy::Denied::default(),
            dirty: BTreeSet::new(),
            look_due: None,
            phase: None,
            last_address: 4,
            rng: ChaCha8Rng::seed_from_u64(seed.rotate_left(17)),
        }
    }
}

/// What `GET …/pods/NAME/log` asks for.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    pub container: Option<String>,
    pub previous: bool,
    pub tail_lines: Option<usize>,
    pub since_seconds: Option<u64>,
    pub timestamps: bool,
    pub limit_bytes: Option<usize>,
}

pub fn on_change(world: &mut World, change: &Change) {
    let text = |field: &str| {
        change.object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    match change.kind {
        Kind::Pod => {
            if change.what != ChangeKind::Deleted && !concerns_us(change) {
                return;
            }
            let work = Work::Changed {
                pod: text("uid"),
                namespace: text("namespace"),
                name: text("name"),
            };
            let delay = delay(world, 4, 8);
            world.after(delay, world::Work::Kubelet(work));
        }
        Kind::ConfigMap | Kind::Secret if change.what == ChangeKind::Modified => {
            let (namespace, name) = (text("namespace"), text("name"));
            let users: Vec<String> = world
                .kubelet
                .pods
                .values()
                .filter(|pod| pod.namespace == namespace && volumes::uses(pod, change.kind, &name))
                .map(|pod| pod.uid.clone())
                .collect();
            for pod in users {
                // The pod's next regular sync, with a cache that is at most a few seconds old.
                let delay = delay(world, 55_000, 30_000);
                world.after(delay, world::Work::Kubelet(Work::Refresh { pod }));
            }
        }
        _ => {}
    }
}

/// Whether a pod's change is more than a status or a resource version, and the pod is on a node.
fn concerns_us(change: &Change) -> bool {
    let placed = |object: &Value| {
        object["spec"]["nodeName"]
            .as_str()
            .is_some_and(|name| !name.is_empty())
    };
    if !placed(&change.object) {
        return false;
    }
    let Some(old) = &change.old else { return true };
    old["spec"] != change.object["spec"]
        || [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "labels",
            "annotations",
        ]
        .iter()
        .any(|field| old["metadata"].get(field) != change.object["metadata"].get(field))
}

/// Does something with a pod taken out of the world, then puts it back.
pub fn with_pod(world: &mut World, uid: &str, f: impl FnOnce(&mut World, &mut Pod)) {
    if let Some(mut pod) = world.kubelet.pods.remove(uid) {
        f(world, &mut pod);
        world.kubelet.pods.insert(uid.to_owned(), pod);
    }
}

pub fn work(world: &mut World, work: Work) {
    match work {
        Work::Changed {
            pod,
            namespace,
            name,
        } => worker::changed(world, &pod, &namespace, &name),
        Work::Look => worker::look(world),
        Work::Timer { pod, number } => {
            with_pod(world, &pod, |world, pod| worker::timer(world, pod, number));
        }
        Work::Step { pod, number } => {
            with_pod(world, &pod, |world, pod| sync::step(world, pod, number));
        }
        Work::Mount { pod, volume } => {
            with_pod(world, &pod, |world, pod| {
                volumes::attempt(world, pod, &volume);
            });
        }
        Work::Refresh { pod } => with_pod(world, &pod, volumes::refresh),
        Work::Process {
            pod,
            run,
            process,
            wake,
        } => {
            with_pod(world, &pod, |world, pod| {
                process::woken(world, pod, &run, process, wake);
            });
        }
        Work::Probe {
            pod,
            container,
            kind,
            number,
        } => {
            with_pod(world, &pod, |world, pod| {
                probe::tick(world, pod, &container, kind, number);
            });
        }
        Work::ProbeAnswer {
            pod,
            container,
            kind,
            number,
        } => {
            with_pod(world, &pod, |world, pod| {
                probe::answered(world, pod, &container, kind, number);
            });
        }
        Work::PreStopOver { pod, run } => {
            with_pod(world, &pod, |world, pod| {
                hooks::pre_stop_expired(world, pod, &run);
            });
        }
        Work::Kill { pod, run } => {
            with_pod(world, &pod, |world, pod| {
                runtime::exit_container(world, pod, &run, 137, "Error");
            });
        }
        Work::Clear { pod } => termination::clear(world, &pod),
        Work::Storage { pod } => with_pod(world, &pod, eviction::check),
        Work::Deadline { pod } => with_pod(world, &pod, termination::deadline),
    }
}

/// Records an event about a pod, or about one of its containers.
pub fn event(
    world: &mut World,
    pod: &Pod,
    container: Option<&str>,
    warning: bool,
    reason: &str,
    message: String,
) {
    let host = pod.spec()["nodeName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    events::record(
        world,
        NewEvent {
            about: &pod.object,
            field_path: container.map(|name| pod.field_path(name)),
            warning,
            reason,
            message,
            component: "kubelet",
            host: Some(&host),
        },
    );
}

/// The next free pod address.
pub fn next_address(world: &mut World) -> String {
    let used: BTreeSet<u32> = world
        .kubelet
        .pods
        .values()
        .filter_map(|pod| pod.sandbox.as_ref()?.ip.rsplit('.').next()?.parse().ok())
        .collect();
    let mut last = world.kubelet.last_address;
    for _ in 0..250 {
        last = if last >= 254 { 2 } else { last + 1 };
        if !used.contains(&last) {
            break;
        }
    }
    world.kubelet.last_address = last;
    format!("10.42.0.{last}")
}

/// A delay of `least` to `least + spread` milliseconds.
pub fn delay(world: &mut World, least: u64, spread: u64) -> Duration {
    let drawn = match spread {
        0 => 0,
        _ => world.kubelet.rng.next_u64() % (spread * 1000),
    };
    Duration::from_micros(least * 1000 + drawn)
}
