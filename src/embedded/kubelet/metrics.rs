//! What metrics.k8s.io serves: processor and memory use of running containers.

use std::time::Duration;

use crate::embedded::kubelet::pod::RunState;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// The scraper's interval: usage is averaged over it, and a container younger than it has no entry.
pub const WINDOW: Duration = Duration::from_secs(15);

/// Use of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerUse {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub node: String,
    /// Billionths of a core.
    pub cpu_nanocores: u64,
    /// Working set in KiB.
    pub memory_kib: u64,
    pub taken_at: Time,
}

/// Use of all running containers, by namespace, pod and container.
pub fn metrics(world: &World) -> Vec<ContainerUse> {
    let now = world.now();
    let mut all: Vec<ContainerUse> = world
        .kubelet
        .pods
        .values()
        .filter(|pod| pod.termination.is_none())
        .flat_map(|pod| {
            pod.runs
                .iter()
                .filter(|run| run.facts.state == RunState::Running)
                .filter(|run| {
                    run.facts
                        .started_at
                        .is_some_and(|since| now.since(since) >= WINDOW)
                })
                .map(|run| ContainerUse {
                    namespace: pod.namespace.clone(),
                    pod: pod.name.clone(),
                    container: run.facts.name.clone(),
                    node: pod.spec()["nodeName"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    cpu_nanocores: run.cpu.nanocores(now, WINDOW),
                    memory_kib: run.memory_at(now),
                    taken_at: now,
                })
        })
        .collect();
    all.sort_by(|a, b| {
        (&a.namespace, &a.pod, &a.container).cmp(&(&b.namespace, &b.pod, &b.container))
    });
    all
}
