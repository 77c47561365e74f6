//! Local storage limits: what a pod writes is measured every ten seconds, and a pod over a limit is evicted.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::kubelet::pod::{self, Pod, RunState};
use crate::embedded::kubelet::{self, Work, status, termination};
use crate::embedded::quantity::Quantity;
use crate::embedded::time::Time;
use crate::embedded::world::{self, World};

/// How often the eviction manager looks.
const PERIOD: Duration = Duration::from_secs(10);

/// Volumes are measured anew after one to two minutes.
const MEASURE_MS: u64 = 60_000;

/// Starts to watch a pod's storage, when it has any limit on it.
pub fn watch(world: &mut World, pod: &mut Pod) {
    if limited(pod) {
        if pod.volumes.measure_due == Time::default() {
            pod.volumes.measure_due = world.now() + kubelet::delay(world, MEASURE_MS, MEASURE_MS);
        }
        let work = Work::Storage {
            pod: pod.uid.clone(),
        };
        world.after(PERIOD, world::Work::Kubelet(work));
    }
}

fn limited(pod: &Pod) -> bool {
    let volumes = pod.spec()["volumes"].as_array();
    volumes.is_some_and(|list| {
        list.iter()
            .any(|volume| !volume["emptyDir"]["sizeLimit"].is_null())
    }) || pod
        .container_specs()
        .any(|(spec, _)| !spec["resources"]["limits"]["ephemeral-storage"].is_null())
}

/// Whether a pod that reads as finished may be taken as such: an evicted one only when it is down.
pub fn may_finish(pod: &Pod) -> bool {
    pod.evicted.is_none()
        || pod
            .termination
            .as_ref()
            .is_some_and(|termination| termination.stopped)
}

/// Compares what was written with the limits.
pub fn check(world: &mut World, pod: &mut Pod) {
    if pod.finished || pod.termination.is_some() {
        return;
    }
    let now = world.now();
    if pod.volumes.measure_due <= now {
        pod.volumes.measured = pod.volumes.written.clone();
        pod.volumes.measure_due = now + kubelet::delay(world, MEASURE_MS, MEASURE_MS);
    }
    match over(pod) {
        Some(message) => evict(world, pod, message),
        None => watch(world, pod),
    }
}

fn over(pod: &Pod) -> Option<String> {
    for volume in pod.spec()["volumes"].as_array().into_iter().flatten() {
        let name = volume["name"].as_str().unwrap_or_default();
        let limit = &volume["emptyDir"]["sizeLimit"];
        let written = pod.volumes.measured.get(name).copied().unwrap_or(0);
        if pod::bytes(limit).is_some_and(|bytes| written > bytes) {
            let limit = limit.as_str().unwrap_or_default();
            return Some(format!(
                "Usage of EmptyDir volume \"{name}\" exceeds the limit \"{limit}\". "
            ));
        }
    }
    let limits: Vec<&Value> = pod
        .container_specs()
        .filter(|(_, init)| !init)
        .map(|(spec, _)| &spec["resources"]["limits"]["ephemeral-storage"])
        .filter(|limit| !limit.is_null())
        .collect();
    let total: u64 = limits.iter().filter_map(|limit| pod::bytes(limit)).sum();
    let layers: u64 = pod
        .runs
        .iter()
        .filter(|run| run.facts.state == RunState::Running)
        .flat_map(|run| run.written.values())
        .sum();
    let volumes: u64 = pod.volumes.measured.values().sum();
    (!limits.is_empty() && layers + volumes > total).then(|| {
        let text = match limits.as_slice() {
            [only] => only.as_str().unwrap_or_default().to_owned(),
            _ => Quantity::bytes(i64::try_from(total).unwrap_or(i64::MAX)).to_string(),
        };
        format!("Pod ephemeral local storage usage exceeds the total limit of containers {text}. ")
    })
}

fn evict(world: &mut World, pod: &mut Pod, message: String) {
    kubelet::event(world, pod, None, true, "Evicted", message.clone());
    pod.evicted = Some(("Evicted".to_owned(), message));
    status::generate(world, pod);
    // Local storage evictions give a moment's grace only.
    termination::stop_all(world, pod, Duration::from_secs(1), false);
}
