//! Validation of pods and pod templates, and of what may change in a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::container;
use crate::embedded::api::validate::meta::{self, push_all};
use crate::embedded::api::validate::placement;
use crate::embedded::api::validate::{Errors, elements, name, one_of, required};
use crate::embedded::api::write::text;

/// Longest active deadline, in seconds.
const DEADLINE_MAX: i64 = i32::MAX as i64;

/// Kinds of volumes in the order in which the real server looks at them.
const SOURCES: [&str; 8] = [
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "persistentVolumeClaim",
    "configMap",
    "downwardAPI",
    "projected",
];

const ONLY_THESE_CHANGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn pod(object: &Value, errors: &mut Errors) {
    pod_spec(&Path::new("spec"), &object["spec"], &[], errors);
}

/// A template: metadata and spec.
pub fn template(path: &Path, template: &Value, errors: &mut Errors) {
    template_with(path, template, &[], errors);
}

/// A template whose pods get further volumes, by name.
pub fn template_with(path: &Path, template: &Value, more: &[&str], errors: &mut Errors) {
    let metadata = path.child("metadata");
    meta::annotations(
        &metadata.child("annotations"),
        &template["metadata"]["annotations"],
        errors,
    );
    meta::labels(
        // The real server leaves `metadata` out of this path.
        &path.child("labels"),
        &template["metadata"]["labels"],
        errors,
    );
    pod_spec(&path.child("spec"), &template["spec"], more, errors);
}

/// `more` names volumes that are not in the spec yet.
fn pod_spec(path: &Path, spec: &Value, more: &[&str], errors: &mut Errors) {
    let mut volumes = volumes(&path.child("volumes"), &spec["volumes"], errors);
    volumes.extend(more);
    let list = path.child("containers");
    let mut names = BTreeSet::new();
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(&list, ""));
    }
    container::containers(&list, &spec["containers"], &volumes, &mut names, errors);
    let list = path.child("initContainers");
    container::containers(&list, &spec["initContainers"], &volumes, &mut names, errors);
    one_of(
        &path.child("restartPolicy"),
        &spec["restartPolicy"],
        &["Always", "OnFailure", "Never"],
        errors,
    );
    one_of(
        &path.child("dnsPolicy"),
        &spec["dnsPolicy"],
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );
    meta::labels(&path.child("nodeSelector"), &spec["nodeSelector"], errors);
    let account = text(&spec["serviceAccountName"]);
    if !account.is_empty() {
        let at = path.child("serviceAccountName");
        push_all(
            &at,
            &spec["serviceAccountName"],
            name::subdomain(account),
            errors,
        );
    }
    deadline(
        &path.child("activeDeadlineSeconds"),
        &spec["activeDeadlineSeconds"],
        errors,
    );
    placement::check(path, spec, errors);
    tolerations(&path.child("tolerations"), &spec["tolerations"], errors);
}

fn deadline(path: &Path, seconds: &Value, errors: &mut Errors) {
    deadline_from(1, path, seconds, errors);
}

fn deadline_from(least: i64, path: &Path, seconds: &Value, errors: &mut Errors) {
    if seconds
        .as_i64()
        .is_some_and(|n| !(least..=DEADLINE_MAX).contains(&n))
    {
        let why = format!("must be between {least} and {DEADLINE_MAX}, inclusive");
        errors.push(FieldError::invalid(path, seconds, why));
    }
}

/// Checks the volumes; answers their names.
fn volumes<'a>(path: &Path, list: &'a Value, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (at, volume) in elements(path, list) {
        let given = text(&volume["name"]);
        let at_name = at.child("name");
        if required(&at_name, &volume["name"], errors) {
            push_all(&at_name, &volume["name"], name::label(given), errors);
            if !names.insert(given) {
                errors.push(FieldError::duplicate(&at_name, &volume["name"]));
            }
        }
        let sources: Vec<&String> = volume
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .filter(|field| *field != "name")
            .collect();
        let mut sources = sources;
        sources.sort_by_key(|source| SOURCES.iter().position(|known| known == source));
        // A volume with a mistake in its kind is no volume for the mounts.
        if sources.len() > 1 {
            names.remove(given);
        }
        for extra in sources.iter().skip(1) {
            errors.push(FieldError::forbidden(
                &at.child(extra),
                "may not specify more than 1 volume type",
            ));
        }
        if let Some(secret) = volume.get("secret") {
            required(
                &at.child("secret").child("secretName"),
                &secret["secretName"],
                errors,
            );
        }
        if let Some(map) = volume.get("configMap") {
            required(&at.child("configMap").child("name"), &map["name"], errors);
        }
        if let Some(claim) = volume.get("persistentVolumeClaim") {
            let at = at.child("persistentVolumeClaim").child("claimName");
            required(&at, &claim["claimName"], errors);
        }
        if let Some(host) = volume.get("hostPath") {
            required(&at.child("hostPath").child("path"), &host["path"], errors);
        }
    }
    names
}

fn tolerations(path: &Path, list: &Value, errors: &mut Errors) {
    for (at, one) in elements(path, list) {
        let operator = text(&one["operator"]);
        if text(&one["key"]).is_empty() && operator != "Exists" {
            errors.push(FieldError::invalid(
                &at.child("operator"),
                &Value::from(operator),
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
        if operator == "Exists" && !text(&one["value"]).is_empty() {
            errors.push(FieldError::invalid(
                &at.child("operator"),
                &one["value"],
                "value must be empty when `operator` is 'Exists'",
            ));
        }
        if !matches!(operator, "" | "Equal" | "Exists") {
            let at = at.child("operator");
            errors.push(FieldError::not_supported(
                &at,
                &one["operator"],
                &["Equal", "Exists"],
            ));
        }
        if one.get("tolerationSeconds").is_some() && one["effect"] != "NoExecute" {
            errors.push(FieldError::invalid(
                &at.child("effect"),
                &Value::from(text(&one["effect"])),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !text(&one["effect"]).is_empty() {
            one_of(&at.child("effect"), &one["effect"], &effects, errors);
        }
    }
}

/// What may change in a pod: images, tolerations by addition, the active deadline.
pub fn changed(old: &Value, object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    for list in ["containers", "initContainers"] {
        let count = |pod: &Value| pod["spec"][list].as_array().map_or(0, Vec::len);
        if count(old) != count(object) {
            errors.push(FieldError::forbidden(
                &path.child(list),
                "pod updates may not add or remove containers",
            ));
            return;
        }
        let at = path.child(list);
        for (at, container) in elements(&at, &object["spec"][list]) {
            required(&at.child("image"), &container["image"], errors);
        }
    }
    let deadline_at = path.child("activeDeadlineSeconds");
    let seconds = &object["spec"]["activeDeadlineSeconds"];
    deadline(&deadline_at, seconds, errors);
    deadline_from(0, &deadline_at, seconds, errors);
    if let Some(before) = old["spec"]["activeDeadlineSeconds"].as_i64() {
        match seconds.as_i64() {
            Some(now) if now > before => {
                let why = format!("must be less than or equal to previous value: {before}");
                errors.push(FieldError::invalid(&deadline_at, seconds, why));
            }
            Some(_) => {}
            None => errors.push(FieldError::invalid(
                &deadline_at,
                &Value::from(before),
                "must not update from a positive integer to nil value",
            )),
        }
    }
    if !tolerations_only_added(old, object) {
        errors.push(FieldError::forbidden(
            &path.child("tolerations"),
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    if fixed_part(old) != fixed_part(object) {
        errors.push(FieldError::forbidden(&path, ONLY_THESE_CHANGE));
    }
}

fn tolerations_only_added(old: &Value, object: &Value) -> bool {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(map) = toleration.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        toleration
    };
    let new: Vec<Value> = object["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(without_seconds)
        .collect();
    old["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|one| new.contains(&without_seconds(one)))
}

/// The spec without what may change.
fn fixed_part(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(map) = spec.as_object_mut() {
        map.remove("activeDeadlineSeconds");
        map.remove("tolerations");
        if map
            .get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|n| n < 0)
        {
            map.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(map) = container.as_object_mut() {
                map.remove("image");
            }
        }
    }
    spec
}
