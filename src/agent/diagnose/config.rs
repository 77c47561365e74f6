//! Containers that cannot be set up: a Secret, a ConfigMap or a key in them is not there, or the security
//! context contradicts the image.

use crate::agent::diagnose::Look;
use crate::agent::diagnose::environment::key_repairs;
use crate::agent::evidence::field::Field;
use crate::agent::finding::{Finding, Repair, category, from_history};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let Some((message, quote)) = set_up_error(look).or_else(|| mount_error(look)) else {
        return Vec::new();
    };
    let explained = if let Some((key, kind, name)) = missing_key(&message) {
        key_finding(look, &key, kind, &name)
    } else if let Some((kind, name)) = missing_store(&message) {
        store_finding(look, kind, &name)
    } else if message.contains("runAsNonRoot") || message.contains("run as root") {
        let repairs = from_history(look.workload, |field| {
            field.is_at(&["securityContext"]) || field.is_at(&["image"]) || field.is_at(&["args"])
        });
        let statement = format!(
            "{} may not run as root, and its image does",
            look.workload.subject
        );
        Finding::new(
            look.workload,
            "config/non-root",
            category::ROLLOUT,
            88,
            statement,
        )
        .repairs(repairs)
    } else {
        let repairs = from_history(look.workload, |_| true);
        let confidence = if repairs.is_empty() { 50 } else { 72 };
        let statement = format!("a container of {} cannot be set up", look.workload.subject);
        Finding::new(
            look.workload,
            "config/other",
            category::ROLLOUT,
            confidence,
            statement,
        )
        .repairs(repairs)
    };
    vec![explained.quote(quote)]
}

fn set_up_error(look: &Look<'_>) -> Option<(String, String)> {
    look.workload.containers().find_map(|(pod, container)| {
        let (reason, message) = container.waiting()?;
        let quote = format!(
            "pod {}: container {} waits, {reason}: {message}",
            pod.name, container.name
        );
        (reason == "CreateContainerConfigError" || reason == "CreateContainerError")
            .then(|| (message.to_owned(), quote))
    })
}

fn mount_error(look: &Look<'_>) -> Option<(String, String)> {
    let waits = look.workload.containers().any(|(_, container)| {
        container
            .waiting()
            .is_some_and(|(reason, _)| reason == "ContainerCreating" || reason == "PodInitializing")
    });
    let event = look.workload.events.iter().rev().find(|event| {
        event.reason == "FailedMount"
            && look.is_current(event)
            // A new pod may be a moment ahead of the kubelet's cache; that passes.
            && !event.message.contains("failed to sync")
    })?;
    let quote = format!("event FailedMount (x{}): {}", event.count, event.message);
    waits.then(|| (event.message.clone(), quote))
}

/// `couldn't find key K in Secret ns/name`, `references non-existent secret key: K`.
fn missing_key(message: &str) -> Option<(String, &'static str, String)> {
    if let Some((_, rest)) = message.split_once("find key ") {
        let (key, rest) = rest.split_once(" in ")?;
        let (kind, name) = rest.split_once(' ')?;
        let kind = if kind.eq_ignore_ascii_case("secret") {
            "Secret"
        } else {
            "ConfigMap"
        };
        let name = name.rsplit('/').next()?.trim();
        return Some((key.to_owned(), kind, name.to_owned()));
    }
    let (_, key) = message.split_once("non-existent secret key: ")?;
    Some((key.trim().to_owned(), "Secret", String::new()))
}

/// `secret "x" not found`, `configmap "x" not found`.
fn missing_store(message: &str) -> Option<(&'static str, String)> {
    [("secret \"", "Secret"), ("configmap \"", "ConfigMap")]
        .into_iter()
        .find_map(|(start, kind)| {
            let (_, rest) = message.split_once(start)?;
            let (name, rest) = rest.split_once('"')?;
            rest.contains("not found").then(|| (kind, name.to_owned()))
        })
}

fn key_finding(look: &Look<'_>, key: &str, kind: &'static str, name: &str) -> Finding {
    let workload = look.workload;
    let introduced = from_history(workload, |field| mentions(field, key));
    let restored = if introduced.is_empty() {
        look.evidence
            .store(kind, &workload.subject.namespace, name)
            .map(|store| key_repairs(look, store, key))
            .unwrap_or_default()
    } else {
        Vec::new()
    };
    let statement = if introduced.is_empty() {
        format!(
            "{} refers to key {key} of {kind} {name}, which has no such key any more",
            workload.subject
        )
    } else {
        format!(
            "a rollout of {} refers to key {key} of {kind} {name}, which has no such key",
            workload.subject
        )
    };
    let secondary = if introduced.is_empty() {
        category::SECRET_MISSING
    } else {
        category::ROLLOUT
    };
    let repairs: Vec<Repair> = introduced.into_iter().chain(restored).collect();
    Finding::new(
        workload,
        format!("config/key/{key}"),
        category::SECRET_CONTENT,
        95,
        statement,
    )
    .secondary(&[secondary])
    .repairs(repairs)
}

fn store_finding(look: &Look<'_>, kind: &'static str, name: &str) -> Finding {
    let workload = look.workload;
    let introduced = from_history(workload, |field| {
        mentions(field, name) || field.is_at(&["volumeMounts"])
    });
    let elsewhere = look.evidence.stores.iter().find(|store| {
        store.subject.kind == kind
            && store.subject.name == name
            && store.subject.namespace != workload.subject.namespace
    });
    let statement = format!(
        "{} needs {kind} {name}, which does not exist in its namespace{}",
        workload.subject,
        elsewhere
            .map(|store| format!(" (one of that name is in {})", store.subject.namespace))
            .unwrap_or_default()
    );
    let primary = match (kind, elsewhere.is_some(), introduced.is_empty()) {
        (_, true, _) => category::CROSS_NAMESPACE,
        ("Secret", _, _) => category::SECRET_MISSING,
        _ => category::ROLLOUT,
    };
    let secondary: &[&'static str] = match (primary == category::ROLLOUT, introduced.is_empty()) {
        (false, false) => &[category::ROLLOUT],
        _ => &[],
    };
    Finding::new(
        workload,
        format!("config/{kind}/{name}"),
        primary,
        95,
        statement,
    )
    .secondary(secondary)
    .repairs(introduced)
}

/// Whether a change brings a word into the template.
fn mentions(field: &Field, word: &str) -> bool {
    let quoted = format!("\"{word}\"");
    let holds = |value: &Option<serde_json::Value>| {
        value
            .as_ref()
            .is_some_and(|v| v.to_string().contains(&quoted))
    };
    holds(&field.is) && !holds(&field.wanted)
}
