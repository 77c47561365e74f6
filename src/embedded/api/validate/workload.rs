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
    let policy = &spec["podManagementPolicy"];
    if !matches!(text(policy), "" | "OrderedReady" | "Parallel") {
        errors.push(FieldError::invalid(
            &path.child("podManagementPolicy"),
            policy,
            "must be 'OrderedReady' or 'Parallel'",
        ));
    }
    let update = &spec["updateStrategy"];
    if !matches!(text(&update["type"]), "" | "RollingUpdate" | "OnDelete") {
        errors.push(FieldError::invalid_text(
            &path.child("updateStrategy"),
            strategy_text(update, &["partition", "maxUnavailable"]),
            "must be 'RollingUpdate' or 'OnDelete'",
        ));
    }
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
    let update = &spec["updateStrategy"];
    if !matches!(text(&update["type"]), "" | "RollingUpdate" | "OnDelete") {
        errors.push(FieldError::not_supported_text(
            &path.child("updateStrategy"),
            strategy_text(update, &["maxUnavailable", "maxSurge"]),
            &["RollingUpdate", "OnDelete"],
        ));
    }
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
    let schedule = text(&spec["schedule"]);
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        errors.push(FieldError::required(&path.child("schedule"), ""));
    } else if !schedule.starts_with('@') && fields.len() != 5 {
        let why = format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        );
        errors.push(FieldError::invalid(
            &path.child("schedule"),
            &spec["schedule"],
            why,
        ));
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
    let before = errors.len();
    meta::selector(&at, selector, errors);
    if errors.len() > before {
        errors.push(FieldError::invalid(&at, selector, "invalid label selector"));
        return;
    }
    let parsed = Labels::of(selector);
    if parsed.as_ref().is_some_and(Labels::is_empty) {
        let why = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(&at, selector, why));
    }
}

fn template(path: &Path, spec: &Value, errors: &mut Errors) {
    let at = path.child("template");
    let labels = &spec["template"]["metadata"]["labels"];
    let absent = spec["selector"].is_null();
    let mismatched = absent
        || Labels::of(&spec["selector"])
            .is_some_and(|selector| !selector.is_empty() && !selector.matches_labels(labels));
    if mismatched {
        let shown = if labels.is_null() && !absent {
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
    let claimed: Vec<&str> = spec["volumeClaimTemplates"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|claim| text(&claim["metadata"]["name"]))
        .collect();
    pod::template_with(&at, &spec["template"], &claimed, errors);
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
        _ => errors.push(FieldError::not_supported_text(
            path,
            strategy_text(strategy, &["maxUnavailable", "maxSurge"]),
            &["Recreate", "RollingUpdate"],
        )),
    }
}

/// The parameters of a rolling update as the real server prints its own struct.
fn rolling_update(rolling: &Value, fields: &[&str]) -> String {
    if rolling.is_null() {
        return "null".to_owned();
    }
    let shown = |field: &str| {
        let (first, rest) = field.split_at(1);
        format!("\"{}{rest}\":{}", first.to_uppercase(), rolling[field])
    };
    let fields: Vec<String> = fields.iter().map(|field| shown(field)).collect();
    format!("{{{}}}", fields.join(","))
}

fn strategy_text(strategy: &Value, fields: &[&str]) -> String {
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{}}}",
        json!(text(&strategy["type"])),
        rolling_update(&strategy["rollingUpdate"], fields)
    )
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
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec["minAvailable"],
            spec["selector"],
            spec["maxUnavailable"],
            spec["unhealthyPodEvictionPolicy"]
        );
        errors.push(FieldError::invalid_text(
            &path,
            shown,
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
