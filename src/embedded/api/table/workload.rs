//! The cells of what runs pods: Deployments and their kin, Jobs, autoscalers.

use serde_json::{Value, json};

use crate::embedded::api::table::age;
use crate::embedded::api::table::cells::Subject;
use crate::embedded::api::table::labels::{
    NONE, UNSET, containers, first_of, labels, list, number, selector_or_none, selector_text, text,
    text_or,
};

/// Targets of an autoscaler that are shown.
const TARGETS_SHOWN: usize = 2;

fn row(subject: &Subject, between: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut cells = vec![subject.name()];
    cells.extend(between);
    cells.push(subject.age());
    cells
}

/// Adds containers, images and the selector.
fn with_template(mut cells: Vec<Value>, spec: &Value) -> Vec<Value> {
    cells.extend(containers(&spec["template"]["spec"]));
    cells.push(json!(selector_or_none(&spec["selector"])));
    cells
}

pub(super) fn deployment(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let ready = format!(
        "{}/{}",
        number(&status["readyReplicas"]),
        number(&spec["replicas"])
    );
    let counts = [
        json!(ready),
        json!(number(&status["updatedReplicas"])),
        json!(number(&status["availableReplicas"])),
    ];
    let mut cells = row(subject, counts);
    cells.extend(containers(&spec["template"]["spec"]));
    cells.push(json!(selector_text(&spec["selector"])));
    cells
}

pub(super) fn replica_set(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let counts = [
        json!(number(&spec["replicas"])),
        json!(number(&status["replicas"])),
        json!(number(&status["readyReplicas"])),
    ];
    with_template(row(subject, counts), spec)
}

pub(super) fn stateful_set(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let ready = format!(
        "{}/{}",
        number(&status["readyReplicas"]),
        number(&spec["replicas"])
    );
    let mut cells = row(subject, [json!(ready)]);
    cells.extend(containers(&spec["template"]["spec"]));
    cells
}

pub(super) fn daemon_set(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let count = |field: &str| json!(number(&status[field]));
    let between = [
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        json!(labels(&spec["template"]["spec"]["nodeSelector"])),
    ];
    with_template(row(subject, between), spec)
}

/// Conditions of a Job and what its STATUS says then, the first that holds. One that is being deleted comes between.
const JOB_ENDINGS: [(&str, &str); 2] = [("Complete", "Complete"), ("Failed", "Failed")];
const JOB_STATES: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

pub(super) fn job(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let succeeded = number(&status["succeeded"]);
    let parallelism = number(&spec["parallelism"]);
    let completions = match spec["completions"].as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let duration = age::moment(&status["startTime"]).map_or(String::new(), |start| {
        let end = age::moment(&status["completionTime"]).unwrap_or(subject.now);
        age::span((end.micros() - start.micros()).div_euclid(1_000_000))
    });
    let holds = |kind: &str| {
        list(&status["conditions"])
            .iter()
            .any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    let state = JOB_ENDINGS
        .iter()
        .find(|(condition, _)| holds(condition))
        .map(|(_, state)| *state)
        .or_else(|| subject.is_being_deleted().then_some("Terminating"))
        .or_else(|| JOB_STATES.into_iter().find(|state| holds(state)))
        .unwrap_or("Running");
    let between = [json!(state), json!(completions), json!(duration)];
    with_template(row(subject, between), spec)
}

pub(super) fn cron_job(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let suspend = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = match &status["lastScheduleTime"] {
        Value::Null => NONE.to_owned(),
        at => age::since(at, subject.now),
    };
    let between = [
        json!(text(&spec["schedule"])),
        json!(text_or(&spec["timeZone"], NONE)),
        json!(suspend),
        json!(list(&status["active"]).len()),
        json!(last),
    ];
    with_template(row(subject, between), &spec["jobTemplate"]["spec"])
}

pub(super) fn controller_revision(subject: &Subject) -> Vec<Value> {
    let owner = list(&subject.object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
        .map_or(NONE.to_owned(), |owner| {
            let group = text(&owner["apiVersion"])
                .split_once('/')
                .map_or("", |(group, _)| group);
            let kind = text(&owner["kind"]);
            let kind = if group.is_empty() {
                kind.to_lowercase()
            } else {
                format!("{kind}.{group}").to_lowercase()
            };
            format!("{kind}/{}", text(&owner["name"]))
        });
    let revision = number(&subject.object["revision"]);
    row(subject, [json!(owner), json!(revision)])
}

pub(super) fn autoscaler(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let target = &spec["scaleTargetRef"];
    let minimum = spec["minReplicas"]
        .as_i64()
        .map_or(UNSET.to_owned(), |n| n.to_string());
    let between = [
        json!(format!(
            "{}/{}",
            text(&target["kind"]),
            text(&target["name"])
        )),
        json!(targets(spec, status)),
        json!(minimum),
        json!(number(&spec["maxReplicas"])),
        json!(number(&status["currentReplicas"])),
    ];
    row(subject, between)
}

fn targets(spec: &Value, status: &Value) -> String {
    let metrics = list(&spec["metrics"]);
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let parts: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(n, metric)| target_text(metric, &status["currentMetrics"][n]))
        .collect();
    first_of(&parts, TARGETS_SHOWN, ", ")
}

/// One metric: what is measured, and what it should be.
fn target_text(metric: &Value, current: &Value) -> String {
    let unknown = "<unknown>";
    let (field, named) = match text(&metric["type"]) {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = &metric[field]["target"];
    let now = &current[field]["current"];
    let (current, target) = match wanted["averageValue"].as_str() {
        Some(value) => (
            text_or(&now["averageValue"], unknown).to_owned(),
            value.to_owned(),
        ),
        None if named => {
            let percent = |value: &Value| value.as_i64().map(|n| format!("{n}%"));
            (
                percent(&now["averageUtilization"]).unwrap_or(unknown.to_owned()),
                percent(&wanted["averageUtilization"]).unwrap_or("<auto>".to_owned()),
            )
        }
        None => (
            text_or(&now["value"], unknown).to_owned(),
            text(&wanted["value"]).to_owned(),
        ),
    };
    let average = wanted["averageValue"].is_string() && matches!(field, "object" | "external");
    let suffix = if average { " (avg)" } else { "" };
    let prefix = if named {
        format!("{}: ", text(&metric[field]["name"]))
    } else {
        String::new()
    };
    format!("{prefix}{current}/{target}{suffix}")
}
