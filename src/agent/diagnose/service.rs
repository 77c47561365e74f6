//! Services that lead nowhere: a selector that matches no pod, a target port that no container has.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::diagnose::Look;
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::{Service, Workload};
use crate::agent::finding::{Finding, Repair, category, setting};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    look.evidence
        .services
        .iter()
        .filter(|service| service.subject.namespace == look.workload.subject.namespace)
        .flat_map(|service| [lost_selector(look, service), lost_port(look, service)])
        .flatten()
        .collect()
}

/// The selector matches nothing, and this workload is the one that it nearly matches.
fn lost_selector(look: &Look<'_>, service: &Service) -> Option<Finding> {
    let workload = look.workload;
    let namespace = &service.subject.namespace;
    if service.selector.is_empty()
        || look
            .evidence
            .selected(namespace, &service.selector)
            .next()
            .is_some()
    {
        return None;
    }
    let wanted = own_labels(workload, service)?;
    // The Service named like the workload, else the only workload that nothing else selects.
    let namesake = workload.subject.name == service.subject.name;
    let orphans: Vec<&Workload> = look
        .evidence
        .workloads
        .iter()
        .filter(|other| other.subject.namespace == *namespace && !is_selected(look, other))
        .collect();
    let only_orphan = orphans.len() == 1 && orphans[0].subject == workload.subject;
    if !namesake && !only_orphan {
        return None;
    }
    let fields: Vec<Field> = service
        .selector
        .iter()
        .filter(|(key, value)| wanted.get(*key) != Some(value))
        .map(|(key, value)| Field {
            path: ["spec", "selector", key]
                .map(|step| Step::Key(step.to_owned()))
                .to_vec(),
            is: Some(json!(value)),
            wanted: wanted.get(key).map(|value| json!(value)),
        })
        .collect();
    let statement = format!(
        "{} leads nowhere: its selector matches no pod, though {} is meant",
        service.subject, workload.subject
    );
    let repair = Repair {
        target: service.subject.clone(),
        fields,
        restart: None,
        why: "the labels that the pods carry".to_owned(),
    };
    Some(
        Finding::new(
            workload,
            format!("service/{}/selector", service.subject.name),
            category::DNS,
            88,
            statement,
        )
        .quote(format!(
            "{} selects {:?}; pods carry {:?}",
            service.subject, service.selector, wanted
        ))
        .repairs([repair]),
    )
}

fn is_selected(look: &Look<'_>, workload: &Workload) -> bool {
    look.evidence.services.iter().any(|service| {
        service.subject.namespace == workload.subject.namespace
            && look
                .evidence
                .selected(&service.subject.namespace, &service.selector)
                .any(|selected| selected.subject == workload.subject)
    })
}

/// The workload's own values under the keys that the selector uses; `None` unless it has them all.
fn own_labels(workload: &Workload, service: &Service) -> Option<BTreeMap<String, String>> {
    let labels = &workload.template()["metadata"]["labels"];
    service
        .selector
        .keys()
        .map(|key| Some((key.clone(), labels[key.as_str()].as_str()?.to_owned())))
        .collect()
}

/// The target port is in no container's list, where lists are kept.
fn lost_port(look: &Look<'_>, service: &Service) -> Option<Finding> {
    let workload = look.workload;
    let selected = look
        .evidence
        .selected(&service.subject.namespace, &service.selector)
        .any(|other| other.subject == workload.subject);
    let offered: Vec<&Value> = workload.template()["spec"]["containers"]
        .as_array()?
        .iter()
        .filter_map(|container| container["ports"].as_array())
        .flatten()
        .collect();
    if !selected || offered.is_empty() {
        return None;
    }
    let ports = service.object["spec"]["ports"].as_array()?;
    let (index, port) = ports.iter().enumerate().find(|(_, port)| {
        !offered.iter().any(|offer| match &port["targetPort"] {
            Value::String(name) => offer["name"] == *name,
            Value::Number(number) => offer["containerPort"].as_i64() == number.as_i64(),
            _ => offer["containerPort"] == port["port"],
        })
    })?;
    let namesake = offered
        .iter()
        .find(|offer| !offer["name"].is_null() && offer["name"] == port["name"]);
    let right = namesake.or((offered.len() == 1).then_some(&offered[0]))?;
    let wanted = if right["name"].is_string() {
        right["name"].clone()
    } else {
        right["containerPort"].clone()
    };
    let is = port.get("targetPort").cloned();
    let mut entries = ports.clone();
    entries[index]["targetPort"] = wanted.clone();
    let path = ["spec", "ports"]
        .map(|step| Step::Key(step.to_owned()))
        .to_vec();
    let field = Field {
        path,
        is: Some(Value::Array(ports.clone())),
        wanted: Some(Value::Array(entries)),
    };
    let statement = format!(
        "{} sends to port {}, where no container of {} listens",
        service.subject,
        is.map(|value| value.to_string()).unwrap_or_default(),
        workload.subject
    );
    Some(
        Finding::new(
            workload,
            format!("service/{}/port", service.subject.name),
            category::DNS,
            88,
            statement,
        )
        .quote(format!("containers of {} offer {wanted}", workload.subject))
        .repairs([setting(
            &service.subject,
            field,
            "the port that the container declares",
        )]),
    )
}
