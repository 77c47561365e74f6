//! Pods that the API server refuses to create.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::evidence::field::Field;
use crate::agent::evidence::quantity::thousandths;
use crate::agent::finding::{Finding, Repair, category, from_history};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let workload = look.workload;
    // An old refusal, of a template or a quota that has changed since, explains nothing any more.
    if workload.current_pods().count() as i64 >= workload.desired {
        return Vec::new();
    }
    let Some(message) = refusal(look) else {
        return Vec::new();
    };
    let explained = if message.contains("service account") || message.contains("serviceaccount") {
        service_account(look, &message)
    } else if message.contains("exceeded quota") {
        quota_exceeded(look, &message)
    } else if message.contains("failed quota") {
        quota_needs(look, &message)
    } else {
        other(look, &message)
    };
    vec![explained.quote(format!(
        "creating a pod of {} is refused: {message}",
        workload.subject
    ))]
}

/// The newest refusal: the condition that still holds, else the last event.
fn refusal(look: &Look<'_>) -> Option<String> {
    let condition = look
        .workload
        .condition("ReplicaFailure")
        .filter(|c| c.status == "True");
    let event = look.workload.events.iter().rev().find(|event| {
        event.reason == "FailedCreate"
            && (event.about.0 != "ReplicaSet"
                || Some(&event.about.1) == look.workload.current_set.as_ref())
    });
    condition
        .map(|condition| condition.message.clone())
        .or_else(|| event.map(|event| event.message.clone()))
}

fn service_account(look: &Look<'_>, message: &str) -> Finding {
    let workload = look.workload;
    let name = workload.template()["spec"]["serviceAccountName"]
        .as_str()
        .unwrap_or("default");
    let is_account =
        |field: &Field| field.is_at(&["serviceAccountName"]) || field.is_at(&["serviceAccount"]);
    let mut repairs = from_history(workload, is_account);
    if repairs.is_empty()
        && look
            .evidence
            .exists("ServiceAccount", &workload.subject.namespace, "default")
    {
        let spec = &workload.template()["spec"];
        let fields = ["serviceAccountName", "serviceAccount"]
            .into_iter()
            .filter(|key| spec[*key].is_string())
            .map(|key| {
                Field::set(
                    &["spec", "template", "spec", key],
                    spec.get(key).cloned(),
                    None,
                )
            })
            .collect();
        repairs.push(Repair {
            target: workload.subject.clone(),
            fields,
            restart: None,
            why: "the namespace's default account exists".to_owned(),
        });
    }
    let statement = format!(
        "{} was rolled out with service account {name}, which does not exist",
        workload.subject
    );
    let confidence = if message.contains("not found") {
        96
    } else {
        85
    };
    Finding::new(
        workload,
        "admission/service-account",
        category::ROLLOUT,
        confidence,
        statement,
    )
    .repairs(repairs)
}

fn quota_exceeded(look: &Look<'_>, message: &str) -> Finding {
    let workload = look.workload;
    let statement = format!(
        "a resource quota leaves no room for a pod of {}",
        workload.subject
    );
    let finding = Finding::new(
        workload,
        "admission/quota",
        category::ROLLOUT,
        90,
        statement,
    )
    .secondary(&[category::RESOURCE_LIMIT]);
    let repairs = raised_quota(look, message);
    let shrunk = from_history(workload, |field| field.is_at(&["resources"]));
    finding.repairs(shrunk).repairs(repairs)
}

/// The quota raised to what is used and asked for together, and not further.
fn raised_quota(look: &Look<'_>, message: &str) -> Option<Repair> {
    let name = between(message, "exceeded quota: ", ",")?;
    let requested = pairs(between(message, "requested: ", ", used:")?);
    let used = pairs(between(message, "used: ", ", limited:")?);
    let quota = look.evidence.quotas.iter().find(|quota| {
        quota.subject.name == name && quota.subject.namespace == look.workload.subject.namespace
    })?;
    let fields: Vec<Field> = requested
        .iter()
        .filter_map(|(resource, amount)| {
            let before = used
                .iter()
                .find(|(r, _)| r == resource)
                .map_or("0", |(_, a)| a.as_str());
            let sum = thousandths(amount)? + thousandths(before)?;
            let hard = quota.hard.get(resource)?;
            let wanted = if sum % 1_000 == 0 {
                (sum / 1_000).to_string()
            } else {
                format!("{sum}m")
            };
            Some(Field::set(
                &["spec", "hard", resource],
                Some(json!(hard)),
                Some(json!(wanted)),
            ))
        })
        .collect();
    (!fields.is_empty()).then(|| Repair {
        target: quota.subject.clone(),
        fields,
        // A controller that was refused some dozen times asks again only after minutes; a new ReplicaSet asks at once.
        restart: Some(look.workload.subject.clone()),
        why: "just enough for what is used and asked for".to_owned(),
    })
}

fn quota_needs(look: &Look<'_>, message: &str) -> Finding {
    let workload = look.workload;
    let repairs = from_history(workload, |field| field.is_at(&["resources"]));
    let needs = message
        .split_once("must specify ")
        .map_or("limits", |(_, rest)| rest);
    let statement = format!(
        "a resource quota wants every pod to specify {needs}, and {} does not",
        workload.subject
    );
    Finding::new(
        workload,
        "admission/quota-needs",
        category::ROLLOUT,
        90,
        statement,
    )
    .secondary(&[category::RESOURCE_LIMIT])
    .repairs(repairs)
}

fn other(look: &Look<'_>, message: &str) -> Finding {
    let workload = look.workload;
    let (key, what) = if message.contains("webhook") {
        (
            "admission/webhook",
            "an admission webhook cannot be asked or says no",
        )
    } else {
        ("admission/other", "its pod template is not admitted")
    };
    let statement = format!("pods of {} are not created: {what}", workload.subject);
    let mut repairs = from_history(workload, |field| field.is_at(&["securityContext"]));
    if key == "admission/other" && repairs.is_empty() {
        repairs = from_history(workload, |_| true);
    }
    let confidence = if repairs.is_empty() { 70 } else { 84 };
    Finding::new(workload, key, category::ROLLOUT, confidence, statement).repairs(repairs)
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inner, _)| inner))
}

/// `limits.memory=256Mi,pods=1`.
fn pairs(text: &str) -> Vec<(String, String)> {
    text.split(',')
        .filter_map(|pair| pair.trim().split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
