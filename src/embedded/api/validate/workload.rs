//! Validation of workloads, disruption budgets and autoscalers.

use serde_json::{Value, json};

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::selector::Labels;
use crate::embedded::api::validate::{Errors, immutable, meta, not_negative, one_of, pod};
use crate::embedded::api::write::text;

const STATEFUL_SET_FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub fn deployment(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    not_negative(&path.child("replicas"), &spec["replicas"], errors);
    selector(&path, spec, "deployment", errors);
    template(&path, spec, errors);
    strategy(&path.child("strategy"), &spec["strategy"], errors);
    not_negative(
        &path.child("minReadySeconds"),
        &spec["minReadySeconds"],
        errors,
    );
    not_negative(
        &path.child("revisionHistoryLimit"),
        &spec["revisionHistoryLimit"],
        errors,
    );
    let deadline = &spec["progressDeadlineSeconds"];
    let at = path.child("progressDeadlineSeconds");
    not_negative(&at, deadline, errors);
    let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|seconds| seconds <= ready) {
        errors.push(FieldError::invalid(
            &at,
            deadline,
            "must be greater than minReadySeconds",
        ));
    }
}

pub fn replica_set(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    not_negative(&path.child("replicas"), &spec["replicas"], errors);
    not_negative(
        &path.child("minReadySeconds"),
        &spec["minReadySeconds"],
        errors,
    );
    selector(&path, spec, "deployment", errors);
    template(&path, spec, errors);
}

pub fn stateful_set(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    one_of(
        &path.child("podManagementPolicy"),
        &spec["podManagementPolicy"],
        &["OrderedReady", "Parallel"],
        errors,
    );
    one_of(
        &path.child("updateStrategy").child("type"),
        &spec["updateStrategy"]["type"],
        &["RollingUpdate", "OnDelete"],
        errors,
    );
    not_negative(&path.child("replicas"), &spec["replicas"], errors);
    not_negative(
        &path.child("minReadySeconds"),
        &spec["minReadySeconds"],
        errors,
    );
    selector(&path, spec, "statefulset", errors);
    template(&path, spec, errors);
}

pub fn daemon_set(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    selector(&path, spec, "daemonset", errors);
    template(&path, spec, errors);
    not_negative(
        &path.child("minReadySeconds"),
        &spec["minReadySeconds"],
        errors,
    );
}

/// The spec of a Job, or of a CronJob's template.
pub fn job(spec: &Value, path: &Path, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
    ] {
        not_negative(&path.child(field), &spec[field], errors);
    }
    pod::template(&path.child("template"), &spec["template"], errors);
    if spec["template"]["spec"]["restartPolicy"] == "Always" {
        errors.push(FieldError::required(
            &path.child("template").child("spec").child("restartPolicy"),
            "valid values: \"OnFailure\", \"Never\"",
        ));
    }
}

pub fn cron_job(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    if text(&spec["schedule"]).is_empty() {
        errors.push(FieldError::required(&path.child("schedule"), ""));
    }
    one_of(
        &path.child("concurrencyPolicy"),
        &spec["concurrencyPolicy"],
        &["Allow", "Forbid", "Replace"],
        errors,
    );
    job(
        &spec["jobTemplate"]["spec"],
        &path.child("jobTemplate").child("spec"),
        errors,
    );
}

/// A selector must be there, select something, and select the template's pods.
fn selector(path: &Path, spec: &Value, kind: &str, errors: &mut Errors) {
    let at = path.child("selector");
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    meta::selector(&at, selector, errors);
    let parsed = Labels::of(selector);
    if parsed.as_ref().is_some_and(Labels::is_empty) {
        let why = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(&at, selector, why));
    }
}

fn template(path: &Path, spec: &Value, errors: &mut Errors) {
    let at = path.child("template");
    let labels = &spec["template"]["metadata"]["labels"];
    let mismatched = Labels::of(&spec["selector"])
        .is_some_and(|selector| !selector.is_empty() && !selector.matches_labels(labels));
    if mismatched {
        let shown = if labels.is_null() {
            json!({})
        } else {
            labels.clone()
        };
        errors.push(FieldError::invalid(
            &at.child("metadata").child("labels"),
            &shown,
            "`selector` does not match template `labels`",
        ));
    }
    pod::template(&at, &spec["template"], errors);
    let policy = &spec["template"]["spec"]["restartPolicy"];
    let at = at.child("spec");
    one_of(&at.child("restartPolicy"), policy, &["Always"], errors);
    if spec["template"]["spec"]
        .get("activeDeadlineSeconds")
        .is_some()
    {
        errors.push(FieldError::forbidden(
            &at.child("activeDeadlineSeconds"),
            "activeDeadlineSeconds in ReplicaSet is not Supported",
        ));
    }
}

fn strategy(path: &Path, strategy: &Value, errors: &mut Errors) {
    let at = path.child("rollingUpdate");
    let rolling = &strategy["rollingUpdate"];
    match text(&strategy["type"]) {
        "Recreate" if !rolling.is_null() => errors.push(FieldError::forbidden(
            &at,
            "may not be specified when strategy `type` is 'Recreate'",
        )),
        "Recreate" => {}
        "RollingUpdate" => {
            for field in ["maxUnavailable", "maxSurge"] {
                int_or_percent(&at.child(field), &rolling[field], errors);
            }
            if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
                errors.push(FieldError::invalid(
                    &at.child("maxUnavailable"),
                    &rolling["maxUnavailable"],
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            if percent(&rolling["maxUnavailable"]).is_some_and(|share| share > 100) {
                errors.push(FieldError::invalid(
                    &at.child("maxUnavailable"),
                    &rolling["maxUnavailable"],
                    "must not be greater than 100%",
                ));
            }
        }
        _ => errors.push(FieldError::not_supported(
            &path.child("type"),
            &strategy["type"],
            &["Recreate", "RollingUpdate"],
        )),
    }
}

fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || percent(value) == Some(0)
}

/// A count or a percentage.
fn int_or_percent(path: &Path, value: &Value, errors: &mut Errors) {
    if value.is_string() && percent(value).is_none() {
        errors.push(FieldError::invalid(
            path,
            value,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ));
    }
    not_negative(path, value, errors);
}

pub fn selector_unchanged(old: &Value, object: &Value, errors: &mut Errors) {
    let path = Path::new("spec").child("selector");
    immutable(
        &path,
        &old["spec"]["selector"],
        &object["spec"]["selector"],
        errors,
    );
}

pub fn stateful_set_unchanged(old: &Value, object: &Value, errors: &mut Errors) {
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            if let Some(map) = spec.as_object_mut() {
                map.remove(field);
            }
        }
        spec
    };
    if fixed(old) != fixed(object) {
        errors.push(FieldError::forbidden(
            &Path::new("spec"),
            STATEFUL_SET_FIXED,
        ));
    }
}

pub fn job_unchanged(old: &Value, object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    for field in ["completions", "selector", "template", "completionMode"] {
        immutable(
            &path.child(field),
            &old["spec"][field],
            &object["spec"][field],
            errors,
        );
    }
}

pub fn disruption_budget(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        errors.push(FieldError::invalid(
            &path,
            spec,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        int_or_percent(&path.child(field), &spec[field], errors);
    }
    meta::selector(&path.child("selector"), &spec["selector"], errors);
}

pub fn autoscaler(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    let least = spec["minReplicas"].as_i64().unwrap_or(1);
    if least < 1 {
        errors.push(FieldError::invalid(
            &path.child("minReplicas"),
            &spec["minReplicas"],
            "must be greater than or equal to 1",
        ));
    }
    let at = path.child("maxReplicas");
    let most = &spec["maxReplicas"];
    if most.as_i64().unwrap_or(0) < 1 {
        errors.push(FieldError::invalid(
            &at,
            &json!(most.as_i64().unwrap_or(0)),
            "must be greater than 0",
        ));
    }
    if most.as_i64().unwrap_or(0) < least {
        errors.push(FieldError::invalid(
            &at,
            most,
            "must be greater than or equal to `minReplicas`",
        ));
    }
}
