//! Validation of Services.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::container::port_number;
use crate::embedded::api::validate::meta::{self, push_all};
use crate::embedded::api::validate::probe::any_port;
use crate::embedded::api::validate::{Errors, elements, name, one_of, required};
use crate::embedded::api::write::text;

pub fn service(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &object["spec"];
    let external = spec["type"] == "ExternalName";
    let headless = spec["clusterIP"] == "None";
    if spec["ports"].as_array().is_none_or(Vec::is_empty) && !external && !headless {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if external {
        required(&path.child("externalName"), &spec["externalName"], errors);
    }
    ports(&path.child("ports"), &spec["ports"], errors);
    meta::labels(&path.child("selector"), &spec["selector"], errors);
    one_of(
        &path.child("sessionAffinity"),
        &spec["sessionAffinity"],
        &["ClientIP", "None"],
        errors,
    );
    one_of(
        &path.child("type"),
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        errors,
    );
}

fn ports(path: &Path, list: &Value, errors: &mut Errors) {
    let several = list.as_array().is_some_and(|list| list.len() > 1);
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (at, port) in elements(path, list) {
        let named = text(&port["name"]);
        if named.is_empty() {
            if several {
                errors.push(FieldError::required(&at.child("name"), ""));
            }
        } else {
            push_all(&at.child("name"), &port["name"], name::label(named), errors);
            if !names.insert(named) {
                errors.push(FieldError::duplicate(&at.child("name"), &port["name"]));
            }
        }
        let number = if port["port"].is_null() {
            &Value::from(0)
        } else {
            &port["port"]
        };
        port_number(&at.child("port"), number, errors);
        one_of(
            &at.child("protocol"),
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            errors,
        );
        any_port(&at.child("targetPort"), &port["targetPort"], errors);
        if !seen.insert((text(&port["protocol"]), port["port"].as_i64())) {
            errors.push(FieldError::duplicate(&at, port));
        }
    }
}

/// A Service keeps its address as long as it has one.
pub fn unchanged(old: &Value, object: &Value, errors: &mut Errors) {
    let released =
        object["spec"]["type"] == "ExternalName" || old["spec"]["type"] == "ExternalName";
    let before = &old["spec"]["clusterIP"];
    if !released && before.is_string() && *before != object["spec"]["clusterIP"] {
        errors.push(FieldError::invalid(
            &Path::new("spec").child("clusterIPs").index(0),
            &Value::Array(vec![object["spec"]["clusterIP"].clone()]),
            "may not change once set",
        ));
    }
}
