//! Pod statuses: made from what was seen, written to the API server when they differ.

use serde_json::{Value, json};

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{self, Facts, Pod, RunState};
use crate::embedded::kubelet::probe::{self, ProbeKind};
use crate::embedded::kubelet::{eviction, sync};
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// Conditions that the kubelet owns, in the order it writes them.
const OWN_CONDITIONS: [&str; 4] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
];

/// Makes the status from what was last seen, notes it and writes it.
pub fn generate(world: &mut World, pod: &mut Pod) {
    let waiting = if has_init(pod) && !initialised(pod) {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    let init: Vec<Value> = container_statuses(pod, true, "PodInitializing");
    let own: Vec<Value> = container_statuses(pod, false, waiting);
    let phase = phase(pod, &init, &own);
    let mut status = json!({});
    let seen_before = pod.status["startTime"].as_str().map(str::to_owned);
    let started = seen_before.unwrap_or_else(|| pod.first_seen.seconds_text());
    status["phase"] = phase.into();
    status["startTime"] = started.into();
    let node = host_address(world, pod);
    status["hostIP"] = node.clone().into();
    status["hostIPs"] = json!([{"ip": node}]);
    status["qosClass"] = match pod.status["qosClass"].as_str() {
        Some(class) => class.into(),
        None => quality(pod).into(),
    };
    if let (Some(sandbox), true) = (&pod.sandbox, pod.seen_sandbox) {
        status["podIP"] = sandbox.ip.clone().into();
        status["podIPs"] = json!([{"ip": sandbox.ip}]);
    }
    if !init.is_empty() {
        status["initContainerStatuses"] = init.into();
    }
    status["containerStatuses"] = own.into();
    // A pod that was told to go and whose containers all ended well reads as succeeded, evicted or not.
    if let Some((reason, message)) = &pod.evicted
        && status["phase"] != "Succeeded"
    {
        status["phase"] = "Failed".into();
        status["reason"] = reason.clone().into();
        status["message"] = message.clone().into();
    }
    let triggered = probe::update(world, pod, &mut status);
    set_conditions(world.now(), pod, &mut status);
    if matches!(status["phase"].as_str(), Some("Succeeded" | "Failed")) && eviction::may_finish(pod)
    {
        pod.finished = true;
    }
    write(world, pod, status);
    for container in triggered {
        probe::run_now(world, pod, &container);
    }
}

/// The readiness of a container changed by a probe alone.
pub fn set_ready(world: &mut World, pod: &mut Pod, container: &str, ready: bool) {
    let mut status = pod.status.clone();
    let mut found = false;
    let lists = status.as_object_mut().into_iter().flatten();
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
        if entry["name"] == container {
            entry["ready"] = ready.into();
            found = true;
        }
    }
    if found {
        set_conditions(world.now(), pod, &mut status);
        write(world, pod, status);
    }
}

fn has_init(pod: &Pod) -> bool {
    pod.container_specs().any(|(_, init)| init)
}

/// Whether all init containers have done their work.
fn initialised(pod: &Pod) -> bool {
    let started = pod.container_specs().any(|(spec, init)| {
        !init
            && pod
                .newest_seen(spec["name"].as_str().unwrap_or_default())
                .is_some()
    });
    started
        || pod
            .container_specs()
            .filter(|(_, init)| *init)
            .all(|(spec, _)| {
                pod.newest_seen(spec["name"].as_str().unwrap_or_default())
                    .is_some_and(|facts| {
                        if pod::stays(spec) {
                            sidecar_started(pod, facts)
                        } else {
                            facts.state == RunState::Exited && facts.exit_code == 0
                        }
                    })
            })
}

/// Whether a sidecar runs and has started as far as its startup probe is concerned.
pub fn sidecar_started(pod: &Pod, facts: &Facts) -> bool {
    facts.state == RunState::Running && started(pod, &facts.name, &facts.id)
}

fn container_statuses(pod: &Pod, init: bool, waiting: &str) -> Vec<Value> {
    let mut all: Vec<Value> = pod
        .container_specs()
        .filter(|(_, is_init)| *is_init == init)
        .map(|(spec, _)| container_status(pod, spec, waiting))
        .collect();
    if !init {
        all.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    }
    all
}

fn container_status(pod: &Pod, spec: &Value, waiting: &str) -> Value {
    let name = spec["name"].as_str().unwrap_or_default();
    let old = old_status(pod, name);
    let mut seen = pod.seen.iter().rev().filter(|facts| facts.name == name);
    let Some(newest) = seen.next() else {
        return waiting_status(pod, spec, &old, waiting);
    };
    let mut state = state_of(newest);
    let mut last = match seen.next() {
        Some(earlier) => state_of(earlier),
        None if old["containerID"] == containerd(&newest.id).as_str() => old["lastState"].clone(),
        None => json!({}),
    };
    let restarts = newest.state == RunState::Exited
        && (sync::should_restart(pod, newest)
            || (newest.init && newest.exit_code != 0 && pod.restart_policy() != "Never"))
        && !(newest.init && newest.exit_code == 0 && !pod::stays(spec))
        && pod.termination.is_none();
    if restarts && let Some((reason, message)) = pod.reasons.get(name) {
        last = state;
        state = waiting_state(reason, message);
    }
    if !last.is_object() {
        last = json!({});
    }
    json!({
        "name": name,
        "state": state,
        "lastState": last,
        "ready": newest.init && !pod::stays(spec) && newest.state == RunState::Exited && newest.exit_code == 0,
        "restartCount": newest.restart_count,
        "image": newest.image,
        "imageID": newest.image_id,
        "containerID": containerd(&newest.id),
        "started": false,
        "resources": spec.get("resources").cloned().unwrap_or_else(|| json!({})),
        "volumeMounts": volume_mounts(spec),
    })
}

/// A container that has never been there, or not since the last look.
fn waiting_status(pod: &Pod, spec: &Value, old: &Value, waiting: &str) -> Value {
    let name = spec["name"].as_str().unwrap_or_default();
    let state = match pod.reasons.get(name) {
        Some((reason, message)) => waiting_state(reason, message),
        None => waiting_state(waiting, ""),
    };
    let last = if old["state"]["terminated"].is_object() {
        old["state"].clone()
    } else {
        old.get("lastState")
            .filter(|last| last.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    json!({
        "name": name,
        "state": state,
        "lastState": last,
        "ready": false,
        "restartCount": old["restartCount"].as_u64().unwrap_or(0),
        "image": spec["image"],
        "imageID": "",
        "started": false,
        "volumeMounts": volume_mounts(spec),
    })
}

fn waiting_state(reason: &str, message: &str) -> Value {
    if message.is_empty() {
        json!({"waiting": {"reason": reason}})
    } else {
        json!({"waiting": {"reason": reason, "message": message}})
    }
}

fn old_status(pod: &Pod, name: &str) -> Value {
    ["initContainerStatuses", "containerStatuses"]
        .iter()
        .flat_map(|list| pod.status[list].as_array().into_iter().flatten())
        .find(|status| status["name"] == name)
        .cloned()
        .unwrap_or_default()
}

fn containerd(id: &str) -> String {
    format!("containerd://{id}")
}

fn state_of(facts: &Facts) -> Value {
    let started = facts
        .started_at
        .map_or_else(|| "1970-01-01T00:00:00Z".to_owned(), Time::seconds_text);
    match facts.state {
        RunState::Running => json!({"running": {"startedAt": started}}),
        RunState::Created => waiting_state("ContainerCreating", ""),
        RunState::Exited => {
            let mut terminated = json!({
                "exitCode": facts.exit_code,
                "reason": facts.reason,
                "startedAt": started,
                "finishedAt": facts.finished_at.map(Time::seconds_text).unwrap_or_default(),
                "containerID": containerd(&facts.id),
            });
            if !facts.message.is_empty() {
                terminated["message"] = facts.message.clone().into();
            }
            json!({"terminated": terminated})
        }
    }
}

fn volume_mounts(spec: &Value) -> Value {
    let mounts = spec["volumeMounts"].as_array().cloned().unwrap_or_default();
    mounts
        .into_iter()
        .map(|mount| {
            let mut entry = json!({"name": mount["name"], "mountPath": mount["mountPath"]});
            if mount["readOnly"] == true {
                entry["readOnly"] = true.into();
                entry["recursiveReadOnly"] = "Disabled".into();
            }
            entry
        })
        .collect()
}

fn phase(pod: &Pod, init: &[Value], own: &[Value]) -> &'static str {
    let ended = |status: &Value| status["state"]["terminated"].is_object();
    let never = pod.restart_policy() == "Never";
    let init_done = initialised(pod);
    if !init_done {
        let failed = init
            .iter()
            .any(|status| ended(status) && status["state"]["terminated"]["exitCode"] != 0);
        return if failed && never { "Failed" } else { "Pending" };
    }
    let count = |test: &dyn Fn(&Value) -> bool| own.iter().filter(|status| test(status)).count();
    let running = count(&|status| status["state"]["running"].is_object());
    let stopped = count(&ended)
        + count(&|status| {
            status["state"]["waiting"].is_object() && status["lastState"]["terminated"].is_object()
        });
    let succeeded =
        count(&|status| ended(status) && status["state"]["terminated"]["exitCode"] == 0);
    if running + stopped < own.len() {
        return "Pending";
    }
    let beside = init
        .iter()
        .any(|status| status["state"]["running"].is_object());
    if running > 0 || beside {
        return "Running";
    }
    let gone = pod
        .termination
        .as_ref()
        .is_some_and(|termination| termination.stopped);
    match pod.restart_policy() {
        _ if gone && succeeded == stopped => "Succeeded",
        _ if gone => "Failed",
        "Always" => "Running",
        _ if succeeded == stopped => "Succeeded",
        "Never" => "Failed",
        _ => "Running",
    }
}

fn set_conditions(now: Time, pod: &Pod, status: &mut Value) {
    let phase = status["phase"].as_str().unwrap_or_default().to_owned();
    let finished = phase == "Succeeded" || phase == "Failed";
    let names = |list: &Value, test: &dyn Fn(&Value) -> bool| -> Vec<String> {
        list.as_array()
            .into_iter()
            .flatten()
            .filter(|entry| test(entry))
            .map(|entry| entry["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let unready = names(&status["containerStatuses"], &|entry| {
        entry["ready"] != true
    });
    let raw = names(&status["initContainerStatuses"], &|entry| {
        entry["ready"] != true
    });
    let init_done = initialised(pod) || finished;
    let ready = match phase.as_str() {
        "Succeeded" => Some(("PodCompleted", String::new())),
        "Failed" => Some(("PodFailed", String::new())),
        _ if unready.is_empty() => None,
        _ => Some((
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        )),
    };
    let gates = readiness_gates(pod);
    let sandbox = pod.seen_sandbox && pod.sandbox.is_some() && !finished;
    let mut wanted = vec![
        condition("PodReadyToStartContainers", sandbox, None),
        condition(
            "Initialized",
            init_done,
            if phase == "Succeeded" {
                Some(("PodCompleted", String::new()))
            } else {
                (!init_done).then(|| {
                    (
                        "ContainersNotInitialized",
                        format!("containers with incomplete status: [{}]", raw.join(" ")),
                    )
                })
            },
        ),
        condition(
            "Ready",
            ready.is_none() && gates.is_none(),
            ready.clone().or(gates),
        ),
        condition("ContainersReady", ready.is_none(), ready),
    ];
    date_conditions(now, pod, &mut wanted);
    let generation = &pod.object["metadata"]["generation"];
    if !generation.is_null() {
        status["observedGeneration"] = generation.clone();
    }
    status["conditions"] = wanted.into();
}

/// Gives conditions the time of their last change and the generation they are about.
fn date_conditions(now: Time, pod: &Pod, conditions: &mut [Value]) {
    let generation = &pod.object["metadata"]["generation"];
    let old = pod.status["conditions"].as_array();
    for entry in conditions {
        let same = old
            .into_iter()
            .flatten()
            .find(|before| before["type"] == entry["type"] && before["status"] == entry["status"]);
        entry["lastTransitionTime"] = match same {
            Some(before) => before["lastTransitionTime"].clone(),
            None => now.seconds_text().into(),
        };
        entry["lastProbeTime"] = Value::Null;
        if !generation.is_null() {
            entry["observedGeneration"] = generation.clone();
        }
    }
}

fn readiness_gates(pod: &Pod) -> Option<(&'static str, String)> {
    let gates = pod.spec()["readinessGates"].as_array()?;
    let first = gates
        .iter()
        .find_map(|gate| gate["conditionType"].as_str())?;
    Some((
        "ReadinessGatesNotReady",
        format!("corresponding condition of pod readiness gate \"{first}\" does not exist."),
    ))
}

fn condition(kind: &str, truth: bool, why: Option<(&str, String)>) -> Value {
    let mut entry = json!({"type": kind, "status": if truth { "True" } else { "False" }});
    if let Some((reason, message)) = why {
        entry["reason"] = reason.into();
        if !message.is_empty() {
            entry["message"] = message.into();
        }
    }
    entry
}

/// Notes a status and writes it to the API server, leaving other writers' conditions as they are.
fn write(world: &mut World, pod: &mut Pod, status: Value) {
    let Some(stored) = world.store.get(Kind::Pod, &pod.namespace, &pod.name) else {
        pod.status = status;
        return;
    };
    if stored["metadata"]["uid"] != pod.uid.as_str() {
        return;
    }
    let mut merged = status;
    let others: Vec<Value> = stored["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| !OWN_CONDITIONS.iter().any(|own| entry["type"] == *own))
        .cloned()
        .collect();
    let generation = pod.object["metadata"]["generation"].clone();
    if let Some(list) = merged["conditions"].as_array_mut() {
        list.extend(others.into_iter().map(|mut entry| {
            if entry["type"] == "PodScheduled" && !generation.is_null() {
                entry["observedGeneration"] = generation.clone();
            }
            entry
        }));
    }
    pod.status = merged.clone();
    let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
    world.update(Kind::Pod, &namespace, &name, |object| {
        object["status"] = merged;
    });
}

fn host_address(world: &World, pod: &Pod) -> String {
    let node = pod.spec()["nodeName"].as_str().unwrap_or_default();
    world
        .store
        .get(Kind::Node, "", node)
        .and_then(|node| {
            node["status"]["addresses"]
                .as_array()?
                .iter()
                .find(|address| address["type"] == "InternalIP")?["address"]
                .as_str()
                .map(str::to_owned)
        })
        .unwrap_or_default()
}

/// The pod's quality of service, from its requests and limits.
fn quality(pod: &Pod) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for (spec, _) in pod.container_specs() {
        for resource in ["cpu", "memory"] {
            let request = &spec["resources"]["requests"][resource];
            let limit = &spec["resources"]["limits"][resource];
            any |= !request.is_null() || !limit.is_null();
            guaranteed &= !limit.is_null() && (request.is_null() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// Whether a container has started, as far as its startup probe is concerned.
pub fn started(pod: &Pod, name: &str, id: &str) -> bool {
    let probed = pod
        .probes
        .contains_key(&(name.to_owned(), ProbeKind::Startup));
    !probed || pod.results.get(&(id.to_owned(), ProbeKind::Startup)) == Some(&true)
}
