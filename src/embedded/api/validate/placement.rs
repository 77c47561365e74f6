//! Validation of where a pod may go and as whom it runs: affinity, spread, security, names of hosts.

use serde_json::{Value, json};

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::meta::{self, push_all};
use crate::embedded::api::validate::{Errors, elements, name, one_of};
use crate::embedded::api::write::text;

/// Largest user or group id.
const ID_MAX: i64 = i32::MAX as i64;

/// Longest name of a kernel parameter.
const SYSCTL_MAX: usize = 253;

const SYSCTL: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Everything of a pod spec that this module is about.
pub fn check(path: &Path, spec: &Value, errors: &mut Errors) {
    if spec["dnsPolicy"] == "None" && spec["dnsConfig"].is_null() {
        errors.push(FieldError::required(
            &path.child("dnsConfig"),
            "must provide `dnsConfig` when `dnsPolicy` is None",
        ));
    }
    affinity(&path.child("affinity"), &spec["affinity"], errors);
    host_aliases(&path.child("hostAliases"), &spec["hostAliases"], errors);
    security(
        &path.child("securityContext"),
        &spec["securityContext"],
        errors,
    );
    for field in ["hostname", "subdomain"] {
        let given = text(&spec[field]);
        if !given.is_empty() {
            push_all(&path.child(field), &spec[field], name::label(given), errors);
        }
    }
    spread(
        &path.child("topologySpreadConstraints"),
        &spec["topologySpreadConstraints"],
        errors,
    );
}

fn affinity(path: &Path, affinity: &Value, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let node = &affinity["nodeAffinity"][REQUIRED];
    if node.is_object()
        && node["nodeSelectorTerms"]
            .as_array()
            .is_none_or(Vec::is_empty)
    {
        let at = path.child("nodeAffinity").child(REQUIRED);
        errors.push(FieldError::required(
            &at.child("nodeSelectorTerms"),
            "must have at least one node selector term",
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let list = path.child(kind).child(REQUIRED);
        for (at, term) in elements(&list, &affinity[kind][REQUIRED]) {
            meta::selector(&at.child("labelSelector"), &term["labelSelector"], errors);
            let at = at.child("topologyKey");
            let key = text(&term["topologyKey"]);
            if key.is_empty() {
                errors.push(FieldError::required(&at, "can not be empty"));
            }
            push_all(&at, &Value::from(key), name::qualified(key), errors);
        }
    }
}

fn spread(path: &Path, list: &Value, errors: &mut Errors) {
    for (at, constraint) in elements(path, list) {
        let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
        if skew <= 0 {
            let at = at.child("maxSkew");
            errors.push(FieldError::invalid(
                &at,
                &json!(skew),
                "must be greater than zero",
            ));
        }
        let key = text(&constraint["topologyKey"]);
        if key.is_empty() {
            errors.push(FieldError::required(
                &at.child("topologyKey"),
                "can not be empty",
            ));
        } else {
            push_all(
                &at.child("topologyKey"),
                &constraint["topologyKey"],
                name::qualified(key),
                errors,
            );
        }
        one_of(
            &at.child("whenUnsatisfiable"),
            &constraint["whenUnsatisfiable"],
            &["DoNotSchedule", "ScheduleAnyway"],
            errors,
        );
        meta::selector(
            &at.child("labelSelector"),
            &constraint["labelSelector"],
            errors,
        );
    }
}

fn host_aliases(path: &Path, list: &Value, errors: &mut Errors) {
    for (at, alias) in elements(path, list) {
        if text(&alias["ip"]).parse::<std::net::IpAddr>().is_err() {
            errors.push(FieldError::invalid(
                &at.child("ip"),
                &alias["ip"],
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ));
        }
        let names = at.child("hostnames");
        for (at, hostname) in elements(&names, &alias["hostnames"]) {
            push_all(&at, hostname, name::subdomain(text(hostname)), errors);
        }
    }
}

/// User and group ids of a pod's or a container's security context.
pub fn ids(path: &Path, context: &Value, errors: &mut Errors) {
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        if context[field]
            .as_i64()
            .is_some_and(|id| !(0..=ID_MAX).contains(&id))
        {
            errors.push(FieldError::invalid(
                &path.child(field),
                &context[field],
                "must be between 0 and 2147483647, inclusive",
            ));
        }
    }
}

fn security(path: &Path, context: &Value, errors: &mut Errors) {
    ids(path, context, errors);
    let list = path.child("sysctls");
    for (at, sysctl) in elements(&list, &context["sysctls"]) {
        let given = text(&sysctl["name"]);
        let part = |part: &str| {
            let inner =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
            let edge =
                |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            let bytes = part.as_bytes();
            edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|b| inner(*b))
        };
        if given.len() > SYSCTL_MAX || !given.split(['.', '/']).all(part) {
            errors.push(FieldError::invalid(
                &at.child("name"),
                &sysctl["name"],
                SYSCTL,
            ));
        }
    }
}

/// A container's security context.
pub fn container_security(path: &Path, context: &Value, errors: &mut Errors) {
    ids(path, context, errors);
    if context["privileged"] == true && context["allowPrivilegeEscalation"] == false {
        let shown = |field: &str| {
            context
                .get(field)
                .cloned()
                .unwrap_or(Value::Null)
                .to_string()
        };
        let value = format!(
            "{{\"Capabilities\":{},\"Privileged\":true,\"SELinuxOptions\":{},\"WindowsOptions\":{},\"RunAsUser\":{},\"RunAsGroup\":{},\"RunAsNonRoot\":{},\"ReadOnlyRootFilesystem\":{},\"AllowPrivilegeEscalation\":false,\"ProcMount\":{},\"SeccompProfile\":{},\"AppArmorProfile\":{}}}",
            shown("capabilities"),
            shown("seLinuxOptions"),
            shown("windowsOptions"),
            shown("runAsUser"),
            shown("runAsGroup"),
            shown("runAsNonRoot"),
            shown("readOnlyRootFilesystem"),
            shown("procMount"),
            shown("seccompProfile"),
            shown("appArmorProfile"),
        );
        errors.push(FieldError::invalid_text(
            path,
            value,
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ));
    }
}
