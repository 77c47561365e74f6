//! Validation of probes and of the handlers that probes and lifecycle hooks share.

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::container::port_number;
use crate::embedded::api::validate::meta::push_all;
use crate::embedded::api::validate::{Errors, name, not_negative, one_of};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// All probes and hooks of a container.
pub fn probes(path: &Path, container: &Value, errors: &mut Errors) {
    if let Some(lifecycle) = container.get("lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(found) = lifecycle.get(hook) {
                handler(&path.child("lifecycle").child(hook), found, errors);
            }
        }
    }
    for which in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(which) else {
            continue;
        };
        let at = path.child(which);
        handler(&at, probe, errors);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            not_negative(&at.child(field), &probe[field], errors);
        }
        let grace = at.child("terminationGracePeriodSeconds");
        if which == "readinessProbe" {
            if probe.get("terminationGracePeriodSeconds").is_some() {
                let why = "must not be set for readinessProbes";
                errors.push(FieldError::invalid(
                    &grace,
                    &probe["terminationGracePeriodSeconds"],
                    why,
                ));
            }
            continue;
        }
        if probe["terminationGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|seconds| seconds <= 0)
        {
            errors.push(FieldError::invalid(
                &grace,
                &probe["terminationGracePeriodSeconds"],
                "must be greater than 0",
            ));
        }
        if probe["successThreshold"]
            .as_i64()
            .is_some_and(|count| count != 1)
        {
            errors.push(FieldError::invalid(
                &at.child("successThreshold"),
                &probe["successThreshold"],
                "must be 1",
            ));
        }
    }
}

fn handler(path: &Path, probe: &Value, errors: &mut Errors) {
    let given: Vec<&str> = HANDLERS
        .into_iter()
        .filter(|kind| probe.get(*kind).is_some())
        .collect();
    if given.is_empty() {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    for (n, kind) in given.into_iter().enumerate() {
        let at = path.child(kind);
        if n > 0 {
            errors.push(FieldError::forbidden(
                &at,
                "may not specify more than 1 handler type",
            ));
            continue;
        }
        let found = &probe[kind];
        match kind {
            "exec" if found["command"].as_array().is_none_or(Vec::is_empty) => {
                errors.push(FieldError::required(&at.child("command"), ""));
            }
            "httpGet" => {
                any_port(&at.child("port"), &found["port"], errors);
                one_of(
                    &at.child("scheme"),
                    &found["scheme"],
                    &["HTTP", "HTTPS"],
                    errors,
                );
            }
            "tcpSocket" => any_port(&at.child("port"), &found["port"], errors),
            "grpc" => port_number(&at.child("port"), &found["port"], errors),
            _ => {}
        }
    }
}

/// A port by number or by name.
pub fn any_port(path: &Path, port: &Value, errors: &mut Errors) {
    match port {
        Value::String(named) => push_all(path, port, name::port_name(named), errors),
        Value::Null => port_number(path, &Value::from(0), errors),
        number => port_number(path, number, errors),
    }
}
