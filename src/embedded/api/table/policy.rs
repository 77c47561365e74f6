//! The cells of what limits and allows: quotas, disruption budgets, priorities, role bindings.

use serde_json::{Value, json};

use crate::embedded::api::table::cells::Subject;
use crate::embedded::api::table::labels::{list, number, number_or_text, text, text_or};

pub(super) fn quota(subject: &Subject) -> Vec<Value> {
    let status = &subject.object["status"];
    let mut names: Vec<&String> = status["hard"]
        .as_object()
        .into_iter()
        .flat_map(|hard| hard.keys())
        .collect();
    names.sort_unstable();
    let (limits, requests): (Vec<&String>, Vec<&String>) = names
        .into_iter()
        .partition(|name| name.starts_with("limits."));
    let shown = |names: Vec<&String>| -> Value {
        let parts: Vec<String> = names
            .into_iter()
            .map(|name| {
                let used = text_or(&status["used"][name.as_str()], "0");
                format!("{name}: {used}/{}", text(&status["hard"][name.as_str()]))
            })
            .collect();
        parts.join(", ").into()
    };
    vec![
        subject.name(),
        shown(requests),
        shown(limits),
        subject.age(),
    ]
}

pub(super) fn disruption_budget(subject: &Subject) -> Vec<Value> {
    let spec = &subject.object["spec"];
    let bound = |field: &str| json!(number_or_text(&spec[field]).unwrap_or("N/A".to_owned()));
    vec![
        subject.name(),
        bound("minAvailable"),
        bound("maxUnavailable"),
        json!(number(&subject.object["status"]["disruptionsAllowed"])),
        subject.age(),
    ]
}

pub(super) fn priority(subject: &Subject) -> Vec<Value> {
    let class = subject.object;
    vec![
        subject.name(),
        json!(number(&class["value"])),
        json!(class["globalDefault"] == true),
        subject.age(),
        json!(text(&class["preemptionPolicy"])),
    ]
}

pub(super) fn role_binding(subject: &Subject) -> Vec<Value> {
    let binding = subject.object;
    let role = &binding["roleRef"];
    let subjects = |kind: &str| -> Value {
        let names: Vec<String> = list(&binding["subjects"])
            .iter()
            .filter(|one| one["kind"] == kind)
            .map(|one| match (kind, text(&one["namespace"])) {
                ("ServiceAccount", namespace) if !namespace.is_empty() => {
                    format!("{namespace}/{}", text(&one["name"]))
                }
                _ => text(&one["name"]).to_owned(),
            })
            .collect();
        names.join(", ").into()
    };
    vec![
        subject.name(),
        json!(format!("{}/{}", text(&role["kind"]), text(&role["name"]))),
        subject.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
