//! Validation of ConfigMaps, Secrets, quotas and network policies.

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::container::{port_number, resource_name};
use crate::embedded::api::validate::meta::{push_all, selector};
use crate::embedded::api::validate::{Errors, elements, immutable, name, one_of};
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;

/// Limit of the data of a ConfigMap or Secret, in bytes.
const DATA_MAX: usize = 1024 * 1024;

pub fn config_map(object: &Value, errors: &mut Errors) {
    let mut size = 0;
    for field in ["data", "binaryData"] {
        let path = Path::new(field);
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let at = path.key(key);
            let shown = Value::from(key.as_str());
            push_all(&at, &shown, name::config_key(key), errors);
            if field == "data" && object["binaryData"].get(key).is_some() {
                errors.push(FieldError::invalid(
                    &at,
                    &shown,
                    "duplicate of key present in binaryData",
                ));
            }
            size += if field == "data" {
                text(value).len()
            } else {
                decoded_len(text(value))
            };
        }
    }
    if size > DATA_MAX {
        // The real server names no field here.
        errors.push(FieldError::too_long(&Path::new("[]"), DATA_MAX));
    }
}

pub fn secret(object: &Value, errors: &mut Errors) {
    let path = Path::new("data");
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let shown = Value::from(key.as_str());
        push_all(&path.key(key), &shown, name::config_key(key), errors);
        size += decoded_len(text(value));
    }
    if size > DATA_MAX {
        errors.push(FieldError::too_long(&path, DATA_MAX));
    }
    let needed: &[&str] = match text(&object["type"]) {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    for key in needed {
        if object["data"].get(key).is_none() {
            errors.push(FieldError::required(&path.key(key), ""));
        }
    }
}

/// Bytes behind a valid base64 text.
fn decoded_len(encoded: &str) -> usize {
    encoded.trim_end_matches('=').len() * 3 / 4
}

/// What must not change in a ConfigMap or Secret.
pub fn unchanged(kind: Kind, old: &Value, object: &Value, errors: &mut Errors) {
    if kind == Kind::Secret {
        immutable(&Path::new("type"), &old["type"], &object["type"], errors);
    }
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        errors.push(FieldError::forbidden(&Path::new("immutable"), why));
    }
    for field in ["data", "binaryData"] {
        if old[field] != object[field] {
            errors.push(FieldError::forbidden(&Path::new(field), why));
        }
    }
}

pub fn resource_quota(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec").child("hard");
    for (resource, amount) in object["spec"]["hard"].as_object().into_iter().flatten() {
        let at = path.key(resource);
        let plain = resource
            .strip_prefix("requests.")
            .or_else(|| resource.strip_prefix("limits."))
            .unwrap_or(resource);
        let counted = [
            "pods",
            "services",
            "services.loadbalancers",
            "services.nodeports",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "configmaps",
            "persistentvolumeclaims",
            "storage",
        ];
        if !counted.contains(&plain) {
            resource_name(&at, plain, "quota", errors);
        }
        if Quantity::from_json(amount).is_ok_and(|amount| amount < Quantity::ZERO) {
            errors.push(FieldError::invalid(
                &at,
                amount,
                "must be greater than or equal to 0",
            ));
        }
    }
}

pub fn network_policy(object: &Value, errors: &mut Errors) {
    let spec = Path::new("spec");
    selector(
        &spec.child("podSelector"),
        &object["spec"]["podSelector"],
        errors,
    );
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let list = spec.child(direction);
        for (rule_at, rule) in elements(&list, &object["spec"][direction]) {
            let ports = rule_at.child("ports");
            for (at, port) in elements(&ports, &rule["ports"]) {
                one_of(
                    &at.child("protocol"),
                    &port["protocol"],
                    &["TCP", "UDP", "SCTP"],
                    errors,
                );
                match &port["port"] {
                    Value::Null => {}
                    Value::String(named) => {
                        push_all(
                            &at.child("port"),
                            &port["port"],
                            name::port_name(named),
                            errors,
                        );
                    }
                    number => port_number(&at.child("port"), number, errors),
                }
            }
            let list = rule_at.child(peers);
            for (at, peer) in elements(&list, &rule[peers]) {
                check_peer(&at, peer, errors);
            }
        }
    }
    let types = spec.child("policyTypes");
    for (at, direction) in elements(&types, &object["spec"]["policyTypes"]) {
        one_of(&at, direction, &["Ingress", "Egress"], errors);
    }
}

fn check_peer(at: &Path, peer: &Value, errors: &mut Errors) {
    let named = ["podSelector", "namespaceSelector", "ipBlock"];
    let given = named
        .iter()
        .filter(|field| peer.get(**field).is_some())
        .count();
    if given == 0 {
        errors.push(FieldError::required(at, "must specify a peer"));
    }
    if given > 1 && peer.get("ipBlock").is_some() {
        errors.push(FieldError::forbidden(
            at,
            "may not specify both ipBlock and another peer",
        ));
    }
    for field in ["podSelector", "namespaceSelector"] {
        selector(&at.child(field), &peer[field], errors);
    }
}
