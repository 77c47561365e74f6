//! The cells of a pod: above all its STATUS, which is no field but a summary of many.

use serde_json::{Value, json};

use crate::embedded::api::table::age;
use crate::embedded::api::table::cells::Subject;
use crate::embedded::api::table::labels::{NONE, list, number, text, text_or};
use crate::embedded::time::Time;

/// What the row of a pod that has run its course is marked with.
pub(super) fn completion(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(&pod["status"]["phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!({ "type": "Completed", "status": "True", "reason": reason, "message": message }))
}

/// What the containers' statuses add up to.
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Time>,
}

pub(super) fn cells(subject: &Subject) -> Vec<Value> {
    let pod = subject.object;
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let summary = summary(subject);
    let sidecars = list(&spec["initContainers"])
        .iter()
        .filter(|container| restarts_always(container))
        .count();
    let total = list(&spec["containers"]).len() + sidecars;
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            let seconds = subject.now.since(last).as_secs();
            let ago = age::span(i64::try_from(seconds).unwrap_or(i64::MAX));
            format!("{} ({ago} ago)", summary.restarts)
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        subject.name(),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        subject.age(),
        json!(text_or(&status["podIPs"][0]["ip"], NONE)),
        json!(text_or(&spec["nodeName"], NONE)),
        json!(text_or(&status["nominatedNodeName"], NONE)),
        json!(readiness_gates(spec, status)),
    ]
}

fn summary(subject: &Subject) -> Summary {
    let pod = subject.object;
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let phase = text(&status["phase"]);
    let mut reason = text_or(&status["reason"], phase).to_owned();
    if list(&status["conditions"]).iter().any(|condition| {
        condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
    }) {
        "SchedulingGated".clone_into(&mut reason);
    }
    let mut summary = Summary {
        reason,
        ready: 0,
        restarts: 0,
        last_restart: None,
    };
    let initializing = summary.add_init_containers(spec, status);
    if !initializing || condition_is_true(status, "Initialized") {
        summary.add_containers(spec, status);
    }
    if subject.is_being_deleted() {
        if status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

impl Summary {
    /// Whether an init container is still to be finished.
    fn add_init_containers(&mut self, spec: &Value, status: &Value) -> bool {
        let all = list(&spec["initContainers"]);
        for (n, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
            self.add_restarts(container);
            let sidecar = all
                .iter()
                .any(|one| one["name"] == container["name"] && restarts_always(one));
            let state = &container["state"];
            let ended = &state["terminated"];
            if !ended.is_null() && number(&ended["exitCode"]) == 0 {
                continue;
            }
            if sidecar && container["started"] == true {
                if container["ready"] == true {
                    self.ready += 1;
                }
                continue;
            }
            let waiting = text(&state["waiting"]["reason"]);
            self.reason = if !ended.is_null() {
                format!("Init:{}", ending(ended))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{n}/{}", all.len())
            };
            return true;
        }
        false
    }

    /// The containers proper; of the init containers' restarts only those of sidecars count from here on.
    fn add_containers(&mut self, spec: &Value, status: &Value) {
        self.restarts = 0;
        self.last_restart = None;
        let sidecars: Vec<&Value> = list(&spec["initContainers"])
            .iter()
            .filter(|container| restarts_always(container))
            .map(|container| &container["name"])
            .collect();
        for container in list(&status["initContainerStatuses"]) {
            if sidecars.contains(&&container["name"]) {
                self.add_restarts(container);
            }
        }
        let mut running = false;
        for container in list(&status["containerStatuses"]).iter().rev() {
            self.add_restarts(container);
            let state = &container["state"];
            let waiting = text(&state["waiting"]["reason"]);
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if !state["terminated"].is_null() {
                self.reason = ending(&state["terminated"]);
            } else if container["ready"] == true && !state["running"].is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = condition_is_true(status, "Ready");
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }

    fn add_restarts(&mut self, container: &Value) {
        self.restarts += number(&container["restartCount"]);
        let ended = age::moment(&container["lastState"]["terminated"]["finishedAt"]);
        self.last_restart = self.last_restart.max(ended);
    }
}

/// How a container ended, in one word.
fn ending(terminated: &Value) -> String {
    match text(&terminated["reason"]) {
        "" if number(&terminated["signal"]) != 0 => {
            format!("Signal:{}", number(&terminated["signal"]))
        }
        "" => format!("ExitCode:{}", number(&terminated["exitCode"])),
        reason => reason.to_owned(),
    }
}

fn restarts_always(init_container: &Value) -> bool {
    init_container["restartPolicy"] == "Always"
}

fn condition_is_true(status: &Value, kind: &str) -> bool {
    list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = list(&spec["readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition_is_true(status, text(&gate["conditionType"])))
        .count();
    format!("{open}/{}", gates.len())
}
