//! Probes that ask the wrong question, at the wrong place, or too early.

use serde_json::{Value, json};

use crate::agent::diagnose::Look;
use crate::agent::diagnose::log_line::listening_port;
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::{Container, Pod, State};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

/// How a probe failed, as its events tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `readinessProbe`, `livenessProbe` or `startupProbe`.
    pub probe: &'static str,
    pub how: How,
    pub message: String,
    pub count: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    Status(u16),
    Refused,
    Timeout,
    Other,
}

impl Failure {
    pub fn is_timeout(&self) -> bool {
        self.how == How::Timeout
    }

    pub fn quote(&self) -> String {
        format!("event Unhealthy (x{}): {}", self.count, self.message)
    }
}

const PROBES: &[(&str, &str)] = &[
    ("Readiness", "readinessProbe"),
    ("Liveness", "livenessProbe"),
    ("Startup", "startupProbe"),
];

/// Patience given to a start-up where history has no numbers: five minutes in steps of ten seconds.
const PATIENT_THRESHOLD: i64 = 30;
/// Seconds given to a probe that times out where history has no number.
const PATIENT_TIMEOUT_S: i64 = 5;

/// Failures of the probes of one container of one pod.
pub fn probe_failures(look: &Look<'_>, pod: &Pod, container: &Container) -> Vec<Failure> {
    look.workload
        .events
        .iter()
        .filter(|event| {
            event.reason == "Unhealthy" && event.about == ("Pod".to_owned(), pod.name.clone())
        })
        .filter(|event| {
            event
                .container
                .as_ref()
                .is_none_or(|name| *name == container.name)
        })
        .filter_map(|event| {
            let (word, detail) = event
                .message
                .split_once(" probe failed: ")
                .or_else(|| event.message.split_once(" probe errored"))?;
            let (_, probe) = PROBES.iter().find(|(name, _)| *name == word)?;
            Some(Failure {
                probe,
                how: how(detail),
                message: event.message.clone(),
                count: event.count,
            })
        })
        .collect()
}

fn how(detail: &str) -> How {
    if let Some((_, code)) = detail.split_once("statuscode: ") {
        return How::Status(code.trim().parse().unwrap_or(0));
    }
    let lower = detail.to_lowercase();
    if lower.contains("connection refused") {
        How::Refused
    } else if ["deadline exceeded", "timeout", "timed out"]
        .iter()
        .any(|w| lower.contains(w))
    {
        How::Timeout
    } else {
        How::Other
    }
}

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (pod, container) in look.workload.containers() {
        // A program that ends by itself has another trouble, and refuses connections because of it.
        let killed = look.was_killed_by_probe(&container.name);
        if container.latest_end().is_some_and(|end| end.exit_code != 0) && !killed {
            continue;
        }
        if !matches!(container.state, State::Running) && !killed {
            continue;
        }
        for failure in probe_failures(look, pod, container) {
            let hurts = failure.probe != "readinessProbe" || !container.ready;
            if hurts && let Some(finding) = explain(look, container, &failure, killed) {
                found.push(finding);
            }
        }
    }
    found.sort_by(Finding::order);
    found.dedup_by(|a, b| a.key == b.key);
    found
}

fn explain(
    look: &Look<'_>,
    container: &Container,
    failure: &Failure,
    killed: bool,
) -> Option<Finding> {
    let spec = &look.spec(&container.name)[failure.probe];
    let history = from_history(look.workload, |field| {
        of_probe(field, container, failure.probe)
    });
    let changed = !history.is_empty();
    let listens = container.log_lines().rev().find_map(listening_port);
    let (confidence, what, repairs) = match failure.how {
        How::Status(code) => {
            let what = format!("asks {} and is answered {code}", endpoint(spec));
            let repairs =
                history
                    .into_iter()
                    .chain(sibling_endpoint(look, container, failure.probe));
            (
                if changed { 95 } else { 82 },
                what,
                repairs.collect::<Vec<_>>(),
            )
        }
        How::Refused if wrong_port(spec, look, container, listens) => {
            let what = format!("asks {}, where nothing listens", endpoint(spec));
            let repairs =
                history
                    .into_iter()
                    .chain(sibling_endpoint(look, container, failure.probe));
            (if changed { 94 } else { 80 }, what, repairs.collect())
        }
        How::Refused => return too_tight(look, container, failure, killed),
        How::Timeout => {
            let what = "gives no time for an answer".to_owned();
            let patient = patience(
                look,
                container,
                failure.probe,
                "timeoutSeconds",
                PATIENT_TIMEOUT_S,
            );
            (
                if changed { 89 } else { 48 },
                what,
                history.into_iter().chain(patient).collect(),
            )
        }
        How::Other if changed => (86, "fails since a rollout changed it".to_owned(), history),
        How::Other => return None,
    };
    Some(finding(
        look, container, failure, confidence, &what, repairs,
    ))
}

fn finding(
    look: &Look<'_>,
    container: &Container,
    failure: &Failure,
    confidence: u8,
    what: &str,
    repairs: Vec<Repair>,
) -> Finding {
    let statement = format!(
        "the {} of container {} of {} {what}: the probe is wrong, not the program",
        failure.probe, container.name, look.workload.subject
    );
    // A probe that restarts containers keeps a rollout from completing; one that only withholds traffic does not
    // fail it by itself.
    let restarts = failure.probe != "readinessProbe";
    Finding::new(
        look.workload,
        format!("probe/{}/{}", container.name, failure.probe),
        category::PROBE,
        confidence + u8::from(restarts),
        statement,
    )
    .secondary(if restarts { &[category::ROLLOUT] } else { &[] })
    .quote(failure.quote())
    .quotes(repairs.iter().map(Repair::words))
    .repairs(repairs)
}

/// Refused because the program is not up yet: a probe that does not wait for the start-up.
fn too_tight(
    look: &Look<'_>,
    container: &Container,
    failure: &Failure,
    killed: bool,
) -> Option<Finding> {
    let history = from_history(look.workload, |field| {
        PROBES
            .iter()
            .any(|(_, probe)| of_probe(field, container, probe))
    });
    if !killed && history.is_empty() {
        return None;
    }
    let confidence = match (killed, history.is_empty()) {
        (true, false) => 90,
        (true, true) => 70,
        (false, _) => 55,
    };
    let killer = ["startupProbe", "livenessProbe"]
        .into_iter()
        .find(|probe| look.spec(&container.name)[*probe].is_object());
    let patient = killer.and_then(|probe| {
        patience(
            look,
            container,
            probe,
            "failureThreshold",
            PATIENT_THRESHOLD,
        )
    });
    let repairs: Vec<Repair> = history.into_iter().chain(patient).collect();
    let what = "gives up before the program has started";
    let mut found = finding(look, container, failure, confidence, what, repairs);
    found.key = format!("probe/{}/tight", container.name);
    if killed {
        found = found.quote(format!(
            "container {} was restarted {} times by a failed probe",
            container.name, container.restarts
        ));
    }
    Some(found)
}

fn of_probe(field: &Field, container: &Container, probe: &str) -> bool {
    field.in_container(&container.name) && field.is_at(&[probe])
}

/// Where a probe asks, in words.
fn endpoint(spec: &Value) -> String {
    if let Some(http) = spec["httpGet"].as_object() {
        let path = http.get("path").and_then(Value::as_str).unwrap_or("/");
        return format!("{path} on port {}", shown(&spec["httpGet"]["port"]));
    }
    if spec["tcpSocket"].is_object() {
        return format!("port {}", shown(&spec["tcpSocket"]["port"]));
    }
    "its command".to_owned()
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn port_of(spec: &Value) -> &Value {
    if spec["httpGet"].is_object() {
        &spec["httpGet"]["port"]
    } else {
        &spec["tcpSocket"]["port"]
    }
}

/// The program says that it listens, on another port than the probe asks; or the port stands in no list.
fn wrong_port(spec: &Value, look: &Look<'_>, container: &Container, listens: Option<u16>) -> bool {
    let Some(asked) = numbered(port_of(spec), look.spec(&container.name)) else {
        return false;
    };
    listens.is_some_and(|port| i64::from(port) != asked)
}

/// A port as a number; names are looked up in the container's list.
fn numbered(port: &Value, container: &Value) -> Option<i64> {
    port.as_i64().or_else(|| {
        let name = port.as_str()?;
        name.parse().ok().or_else(|| {
            container["ports"]
                .as_array()?
                .iter()
                .find(|p| p["name"] == name)?["containerPort"]
                .as_i64()
        })
    })
}

/// The question of another probe of the same container that is answered, put in place of the failing one's.
fn sibling_endpoint(look: &Look<'_>, container: &Container, probe: &'static str) -> Option<Repair> {
    let spec = look.spec(&container.name);
    let failing: Vec<&str> = look
        .workload
        .current_pods()
        .flat_map(|pod| probe_failures(look, pod, container))
        .filter(|failure| matches!(failure.how, How::Status(_)))
        .map(|failure| failure.probe)
        .collect();
    let (_, good) = PROBES.iter().find(|(_, other)| {
        *other != probe && !failing.contains(other) && spec[*other]["httpGet"].is_object()
    })?;
    let field = Field {
        path: look.container_path(container, &[probe, "httpGet"]),
        is: spec[probe].get("httpGet").cloned(),
        wanted: Some(spec[*good]["httpGet"].clone()),
    };
    spec[probe]["httpGet"].is_object().then(|| {
        setting(
            &look.workload.subject,
            field,
            format!("what the {good} asks"),
        )
    })
}

fn patience(
    look: &Look<'_>,
    container: &Container,
    probe: &str,
    key: &str,
    at_least: i64,
) -> Option<Repair> {
    let is = look.spec(&container.name)[probe].get(key).cloned();
    if is.as_ref().and_then(Value::as_i64).unwrap_or(0) >= at_least {
        return None;
    }
    let mut path = look.container_path(container, &[probe]);
    path.push(Step::Key(key.to_owned()));
    let field = Field {
        path,
        is,
        wanted: Some(json!(at_least)),
    };
    Some(setting(
        &look.workload.subject,
        field,
        "more patience; history has no value",
    ))
}
