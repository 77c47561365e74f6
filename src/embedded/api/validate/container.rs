//! Validation of containers: names, images, ports, environment, mounts, resources.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::meta::push_all;
use crate::embedded::api::validate::{Errors, elements, name, one_of, probe, required};
use crate::embedded::api::write::text;
use crate::embedded::quantity::Quantity;

/// Resources that containers may name without a domain.
const STANDARD_RESOURCES: &[&str] = &["cpu", "memory", "ephemeral-storage"];

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
    } else if image.trim() != image {
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
    probe::probes(at, container, errors);
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
}

fn ports(path: &Path, list: &Value, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (at, port) in elements(path, list) {
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
        let field = at.child("fieldRef").child("fieldPath");
        required(&field, &source["fieldRef"]["fieldPath"], errors);
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
    }
}

/// Limits and requests of a container.
pub fn resources(path: &Path, resources: &Value, errors: &mut Errors) {
    for which in ["limits", "requests"] {
        let list = path.child(which);
        for (resource, amount) in resources[which].as_object().into_iter().flatten() {
            let at = list.key(resource);
            resource_name(&at, resource, errors);
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
            if which == "requests" {
                against_limit(&list, resources, resource, quantity, errors);
            }
        }
    }
}

fn against_limit(
    path: &Path,
    resources: &Value,
    resource: &str,
    request: Quantity,
    errors: &mut Errors,
) {
    let Ok(limit) = Quantity::from_json(&resources["limits"][resource]) else {
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

/// The name of a resource in limits, requests or quotas.
pub fn resource_name(path: &Path, resource: &str, errors: &mut Errors) {
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
    }
}
