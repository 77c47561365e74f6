//! Local storage limits: what a pod writes is measured every ten seconds, and a pod over a limit is evicted.

use std::time::Duration;

use serde_json::json;

use crate::embedded::kubelet::pod::{self, Pod};
use crate::embedded::kubelet::{self, Work, status, termination};
use crate::embedded::world::{self, World};

/// How often the eviction manager looks.
const PERIOD: Duration = Duration::from_secs(10);

/// Starts to watch a pod's storage, when it has any limit on it.
pub fn watch(world: &mut World, pod: &Pod) {
    if limited(pod) {
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
    match over(pod) {
        Some(message) => evict(world, pod, message),
        None => watch(world, pod),
    }
}

fn over(pod: &Pod) -> Option<String> {
    for volume in pod.spec()["volumes"].as_array().into_iter().flatten() {
        let name = volume["name"].as_str().unwrap_or_default();
        let limit = &volume["emptyDir"]["sizeLimit"];
        let written = pod.volumes.written.get(name).copied().unwrap_or(0);
        if pod::bytes(limit).is_some_and(|bytes| written > bytes) {
            let limit = limit.as_str().unwrap_or_default();
            return Some(format!(
                "Usage of EmptyDir volume \"{name}\" exceeds the limit \"{limit}\". "
            ));
        }
    }
    for (spec, _) in pod.container_specs() {
        let name = spec["name"].as_str().unwrap_or_default();
        let limit = &spec["resources"]["limits"]["ephemeral-storage"];
        let written: u64 = pod
            .running(name)
            .map_or(0, |run| run.written.values().sum());
        if pod::bytes(limit).is_some_and(|bytes| written > bytes) {
            let limit = limit.as_str().unwrap_or_default();
            return Some(format!(
                "Container {name} exceeded its local ephemeral storage limit \"{limit}\". "
            ));
        }
    }
    None
}

fn evict(world: &mut World, pod: &mut Pod, message: String) {
    kubelet::event(world, pod, None, true, "Evicted", message.clone());
    pod.evicted = Some(("Evicted".to_owned(), message.clone()));
    status::generate(world, pod);
    let now = world.now().seconds_text();
    status::add_condition(
        world,
        pod,
        json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": message,
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "observedGeneration": pod.object["metadata"]["generation"],
        }),
    );
    // Local storage evictions give a moment's grace only.
    termination::stop_all(world, pod, Duration::from_secs(1), false);
}
