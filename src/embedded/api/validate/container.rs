//! Validation of containers: names, images, ports, environment, mounts, resources.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::meta::push_all;
use crate::embedded::api::validate::{Errors, elements, name, one_of, placement, probe, required};
use crate::embedded::api::write::text;
use crate::embedded::quantity::Quantity;

/// Resources that containers may name without a domain.
const STANDARD_RESOURCES: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// What a variable may take of the container's own resources.
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What a variable may take of its pod.
const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of pods that can be named at all.
const POD_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.hostIP",
    "status.hostIPs",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

/// All containers of a list. `names` holds those seen so far in other lists.
pub fn containers<'a>(
    path: &Path,
    list: &'a Value,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    for (at, container) in elements(path, list) {
        let given = text(&container["name"]);
        if required(&at.child("name"), &container["name"], errors) {
            push_all(
                &at.child("name"),
                &container["name"],
                name::label(given),
                errors,
            );
            if !names.insert(given) {
                errors.push(FieldError::duplicate(&at.child("name"), &container["name"]));
            }
        }
        one_container(&at, container, volumes, errors);
    }
}

fn one_container(at: &Path, container: &Value, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let image = text(&container["image"]);
    if image.is_empty() {
        errors.push(FieldError::required(&at.child("image"), ""));
    } else if image.trim() != image && !at.text().contains("template.") {
        // Templates may name such an image; only their pods are refused.
        errors.push(FieldError::invalid(
            &at.child("image"),
            &container["image"],
            "must not have leading or trailing whitespace",
        ));
    }
    one_of(
        &at.child("terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &["File", "FallbackToLogsOnError"],
        errors,
    );
    if at.text().contains(".initContainers[") && container["restartPolicy"] != "Always" {
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if container.get(probe).is_some() {
                errors.push(FieldError::forbidden(
                    &at.child(probe),
                    "may not be set for init containers without restartPolicy=Always",
                ));
            }
        }
    } else {
        probe::probes(at, container, errors);
    }
    ports(&at.child("ports"), &container["ports"], errors);
    env(&at.child("env"), &container["env"], errors);
    env_from(&at.child("envFrom"), &container["envFrom"], errors);
    mounts(
        &at.child("volumeMounts"),
        &container["volumeMounts"],
        volumes,
        errors,
    );
    one_of(
        &at.child("imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    resources(&at.child("resources"), &container["resources"], errors);
    placement::container_security(
        &at.child("securityContext"),
        &container["securityContext"],
        errors,
    );
}

fn ports(path: &Path, list: &Value, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for (at, port) in elements(path, list) {
        let host = (
            text(&port["protocol"]),
            text(&port["hostIP"]),
            port["hostPort"].as_i64().unwrap_or(0),
        );
        if host.2 != 0 && !taken.insert(host) {
            let shown = Value::from(format!("{}/{}/{}", host.0, host.1, host.2));
            errors.push(FieldError::duplicate(&at.child("hostPort"), &shown));
        }
        let named = text(&port["name"]);
        if !named.is_empty() {
            let wrong = name::port_name(named);
            let valid = wrong.is_empty();
            push_all(&at.child("name"), &port["name"], wrong, errors);
            if valid && !names.insert(named) {
                errors.push(FieldError::duplicate(&at.child("name"), &port["name"]));
            }
        }
        if port["containerPort"].as_i64().unwrap_or(0) == 0 {
            errors.push(FieldError::required(&at.child("containerPort"), ""));
        } else {
            port_number(&at.child("containerPort"), &port["containerPort"], errors);
        }
        if port["hostPort"].as_i64().unwrap_or(0) != 0 {
            port_number(&at.child("hostPort"), &port["hostPort"], errors);
        }
        one_of(
            &at.child("protocol"),
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            errors,
        );
    }
}

/// A port number.
pub fn port_number(path: &Path, value: &Value, errors: &mut Errors) {
    if !value
        .as_i64()
        .is_some_and(|port| (1..=65_535).contains(&port))
    {
        errors.push(FieldError::invalid(
            path,
            value,
            "must be between 1 and 65535, inclusive",
        ));
    }
}

fn env(path: &Path, list: &Value, errors: &mut Errors) {
    for (at, entry) in elements(path, list) {
        if required(&at.child("name"), &entry["name"], errors) {
            let wrong = name::env_name(text(&entry["name"]));
            push_all(&at.child("name"), &entry["name"], wrong, errors);
        }
        if let Some(source) = entry.get("valueFrom") {
            env_source(&at.child("valueFrom"), entry, source, errors);
        }
    }
}

fn env_source(at: &Path, entry: &Value, source: &Value, errors: &mut Errors) {
    let kinds = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    let given = kinds
        .iter()
        .filter(|kind| source.get(**kind).is_some())
        .count();
    if source.get("fieldRef").is_some() {
        field_path(
            &at.child("fieldRef").child("fieldPath"),
            &source["fieldRef"]["fieldPath"],
            errors,
        );
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        let at = at.child("resourceFieldRef").child("resource");
        let resource = text(&reference["resource"]);
        if required(&at, &reference["resource"], errors)
            && !RESOURCE_FIELDS.contains(&resource)
            && !resource.contains(".hugepages-")
        {
            errors.push(FieldError::not_supported(
                &at,
                &reference["resource"],
                RESOURCE_FIELDS,
            ));
        }
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.get(kind) {
            required(&at.child(kind).child("name"), &reference["name"], errors);
            let key = at.child(kind).child("key");
            if required(&key, &reference["key"], errors) {
                push_all(
                    &key,
                    &reference["key"],
                    name::config_key(text(&reference["key"])),
                    errors,
                );
            }
        }
    }
    // The value shown is empty: the real server does not print a struct here.
    let mut complain = |why: &str| errors.push(FieldError::invalid(at, &Value::from(""), why));
    if given == 0 {
        complain(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        );
    }
    if !text(&entry["value"]).is_empty() && given != 0 {
        complain("may not be specified when `value` is not empty");
    } else if given > 1 {
        complain("may not have more than one field specified at a time");
    }
}

/// A field of the pod that a variable may take.
fn field_path(at: &Path, given: &Value, errors: &mut Errors) {
    if !required(at, given, errors) {
        return;
    }
    let field = text(given);
    let (plain, key) = match field.split_once("['") {
        Some((plain, rest)) => (plain, rest.strip_suffix("']")),
        None => (field, None),
    };
    let keyed = matches!(plain, "metadata.annotations" | "metadata.labels");
    if keyed && key.is_some() {
        return;
    }
    if !POD_FIELDS.contains(&field) {
        if keyed {
            return errors.push(FieldError::not_supported(at, given, ENV_FIELDS));
        }
        let why = format!("error converting fieldPath: field label not supported: {field}");
        errors.push(FieldError::invalid(at, given, why));
    } else if !ENV_FIELDS.contains(&field) {
        errors.push(FieldError::not_supported(at, given, ENV_FIELDS));
    }
}

fn env_from(path: &Path, list: &Value, errors: &mut Errors) {
    for (at, source) in elements(path, list) {
        let kinds = ["configMapRef", "secretRef"];
        let given = kinds
            .iter()
            .filter(|kind| source.get(**kind).is_some())
            .count();
        for kind in kinds {
            if let Some(reference) = source.get(kind) {
                required(&at.child(kind).child("name"), &reference["name"], errors);
            }
        }
        let mut complain = |why: &str| errors.push(FieldError::invalid(&at, &Value::from(""), why));
        if given == 0 {
            complain("must specify one of: `configMapRef` or `secretRef`");
        } else if given > 1 {
            complain("may not have more than one field specified at a time");
        }
    }
}

fn mounts(path: &Path, list: &Value, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for (at, mount) in elements(path, list) {
        let volume = text(&mount["name"]);
        if required(&at.child("name"), &mount["name"], errors) && !volumes.contains(volume) {
            errors.push(FieldError::not_found(&at.child("name"), &mount["name"]));
        }
        if required(&at.child("mountPath"), &mount["mountPath"], errors)
            && !paths.insert(text(&mount["mountPath"]))
        {
            errors.push(FieldError::invalid(
                &at.child("mountPath"),
                &mount["mountPath"],
                "must be unique",
            ));
        }
        sub_path(&path.child("subPath"), &mount["subPath"], errors);
    }
}

/// The path of this error has no index, as in the real server.
fn sub_path(at: &Path, given: &Value, errors: &mut Errors) {
    let path = text(given);
    if path.starts_with('/') {
        errors.push(FieldError::invalid(at, given, "must be a relative path"));
    }
    if path.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(at, given, "must not contain '..'"));
    }
}

/// Limits and requests of a container.
pub fn resources(path: &Path, resources: &Value, errors: &mut Errors) {
    for which in ["limits", "requests"] {
        let list = path.child(which);
        for (resource, amount) in resources[which].as_object().into_iter().flatten() {
            let at = list.key(resource);
            resource_name(&at, resource, "containers", errors);
            let Ok(quantity) = Quantity::from_json(amount) else {
                continue;
            };
            if quantity < Quantity::ZERO {
                errors.push(FieldError::invalid(
                    &at,
                    amount,
                    "must be greater than or equal to 0",
                ));
            }
            if resource.contains('/') && quantity.milli_value() % 1000 != 0 {
                errors.push(FieldError::invalid(&at, amount, "must be an integer"));
            }
            if which == "requests" {
                against_limit(
                    &path.child("limits"),
                    &list,
                    resources,
                    resource,
                    quantity,
                    errors,
                );
            }
        }
    }
}

fn against_limit(
    limits: &Path,
    path: &Path,
    resources: &Value,
    resource: &str,
    request: Quantity,
    errors: &mut Errors,
) {
    let Ok(limit) = Quantity::from_json(&resources["limits"][resource]) else {
        if resource.contains('/') {
            errors.push(FieldError::required(
                limits,
                "Limit must be set for non overcommitable resources",
            ));
        }
        return;
    };
    let shown = Value::from(request.to_string());
    if resource.contains('/') && request != limit {
        let why = format!("must be equal to {resource} limit of {limit}");
        errors.push(FieldError::invalid(path, &shown, why));
    } else if request > limit {
        let why = format!("must be less than or equal to {resource} limit of {limit}");
        errors.push(FieldError::invalid(path, &shown, why));
    }
}

/// The name of a resource in limits, requests or quotas; `of` says whose.
pub fn resource_name(path: &Path, resource: &str, of: &str, errors: &mut Errors) {
    let shown = Value::from(resource);
    let wrong = name::qualified(resource);
    let valid = wrong.is_empty();
    push_all(path, &shown, wrong, errors);
    let standard = STANDARD_RESOURCES.contains(&resource) || resource.starts_with("hugepages-");
    if valid && !resource.contains('/') && !standard {
        errors.push(FieldError::invalid(
            path,
            &shown,
            "must be a standard resource type or fully qualified",
        ));
        let why = format!("must be a standard resource for {of}");
        errors.push(FieldError::invalid(path, &shown, why));
    }
}
