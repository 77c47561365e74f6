//! Pods that no node takes.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::evidence::Pod;
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::quantity::{mebibytes, millicores, thousandths};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

/// Where history has no smaller request: the share of the largest node that one container may ask for.
const NODE_SHARE: i128 = 10;

/// Phrases of the scheduler, and the fields of a pod that they are about.
const PHRASES: &[(&str, &[&str])] = &[
    ("node affinity/selector", &["nodeSelector", "affinity"]),
    ("anti-affinity rules", &["affinity"]),
    ("pod affinity rules", &["affinity"]),
    (
        "topology spread constraints",
        &["topologySpreadConstraints"],
    ),
    (
        "untolerated taint",
        &["tolerations", "nodeSelector", "affinity"],
    ),
    ("free ports", &["hostPort", "hostNetwork"]),
    ("persistentvolumeclaim", &["volumes", "volumeMounts"]),
    ("PersistentVolumeClaims", &["volumes", "volumeMounts"]),
    ("volume node affinity", &["volumes", "volumeMounts"]),
    ("Insufficient", &["requests", "limits", "resources"]),
];

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let Some((pod, message)) = look.workload.current_pods().find_map(unscheduled) else {
        return Vec::new();
    };
    let workload = look.workload;
    let phrases: Vec<_> = PHRASES
        .iter()
        .filter(|(phrase, _)| message.contains(phrase))
        .collect();
    let keys: Vec<&str> = phrases
        .iter()
        .flat_map(|(_, keys)| keys.iter().copied())
        .collect();
    let history = from_history(workload, |field| keys.iter().any(|key| field.is_at(&[key])));
    let changed = !history.is_empty();
    let unschedulable = look
        .evidence
        .nodes
        .iter()
        .filter(|node| node.unschedulable)
        .count();
    let about = if message.contains("were unschedulable") && !changed {
        format!(
            "{unschedulable} of {} nodes are cordoned",
            look.evidence.nodes.len()
        )
    } else {
        "its pod template asks for what no node offers".to_owned()
    };
    let repairs: Vec<Repair> = history
        .into_iter()
        .chain(smaller_requests(look, &message))
        .collect();
    let confidence = match (changed, repairs.is_empty()) {
        (true, _) => 95,
        (false, false) => 84,
        (false, true) => 75,
    };
    let statement = format!("{} cannot be scheduled: {about}", workload.subject);
    vec![
        Finding::new(
            workload,
            "scheduling",
            category::ROLLOUT,
            confidence,
            statement,
        )
        .quote(format!("pod {} is unschedulable: {message}", pod.name))
        .quotes(repairs.iter().map(Repair::words))
        .repairs(repairs),
    ]
}

fn unscheduled(pod: &Pod) -> Option<(&Pod, String)> {
    let condition = pod
        .conditions
        .iter()
        .find(|c| c.kind == "PodScheduled" && c.status == "False")?;
    Some((pod, condition.message.clone()))
}

/// Requests larger than every node can hold, cut to a share of the largest.
fn smaller_requests(look: &Look<'_>, message: &str) -> Vec<Repair> {
    let mut repairs = Vec::new();
    let lists = look.workload.template()["spec"]["containers"].as_array();
    for spec in lists.into_iter().flatten() {
        for resource in ["cpu", "memory"] {
            let Some(request) = spec["resources"]["requests"][resource].as_str() else {
                continue;
            };
            let largest = look
                .evidence
                .nodes
                .iter()
                .filter_map(|node| thousandths(node.allocatable.get(resource)?))
                .max();
            let (Some(asked), Some(largest)) = (thousandths(request), largest) else {
                continue;
            };
            if asked <= largest || !message.contains(&format!("Insufficient {resource}")) {
                continue;
            }
            let fits = largest / NODE_SHARE;
            let wanted = if resource == "cpu" {
                millicores(fits)
            } else {
                mebibytes(fits)
            };
            let name = spec["name"].as_str().unwrap_or_default();
            let field = Field {
                path: request_path(name, resource),
                is: Some(json!(request)),
                wanted: Some(json!(wanted)),
            };
            repairs.push(setting(
                &look.workload.subject,
                field,
                "no node holds the request; this one fits",
            ));
        }
    }
    repairs
}

fn request_path(container: &str, resource: &str) -> Vec<Step> {
    let key = |key: &str| Step::Key(key.to_owned());
    vec![
        key("spec"),
        key("template"),
        key("spec"),
        key("containers"),
        Step::Named(container.to_owned()),
        key("resources"),
        key("requests"),
        key(resource),
    ]
}
