//! Containers killed because they need more memory than their limit.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::quantity::{mebibytes, thousandths};
use crate::agent::evidence::{Container, State};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

/// Doublings tried where history gives no value: up to eight times the limit.
const DOUBLINGS: u32 = 3;
/// No doubling goes beyond this share of the smallest node, lest the neighbours starve.
const NODE_SHARE: i128 = 2;

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let workload = look.workload;
    let mut found = Vec::new();
    for (pod, container) in workload.containers() {
        let Some(end) = container.latest_end().filter(|end| {
            end.reason == "OOMKilled" || end.message.to_lowercase().contains("oom-killed")
        }) else {
            continue;
        };
        let limit = look.limit(&container.name, "memory");
        let repairs = repairs(look, container);
        let lowered = from_history(workload, |field| is_memory(field, &container.name));
        let confidence = match (&container.state, lowered.is_empty()) {
            (State::Running, _) if container.ready && workload.is_settled() => 60,
            (_, false) => 96,
            (_, true) => 88,
        };
        let statement = format!(
            "container {} of {} is killed for want of memory: its working set does not fit in its memory limit of {}",
            container.name,
            workload.subject,
            limit.as_deref().unwrap_or("the node")
        );
        found.push(
            Finding::new(
                workload,
                format!("memory/{}", container.name),
                category::RESOURCE_LIMIT,
                confidence,
                statement,
            )
            .quote(format!(
                "pod {}: container {} ended with reason {}, exit code {}, {} restarts",
                pod.name, container.name, end.reason, end.exit_code, container.restarts
            ))
            .quotes(lowered.iter().map(Repair::words))
            .repairs(repairs),
        );
        break;
    }
    found
}

fn is_memory(field: &Field, container: &str) -> bool {
    field.in_container(container)
        && field.path.last() == Some(&Step::Key("memory".to_owned()))
        && field.is_at(&["resources"])
}

fn repairs(look: &Look<'_>, container: &Container) -> Vec<Repair> {
    let Some(limit) = look.limit(&container.name, "memory") else {
        return Vec::new();
    };
    let Some(now) = thousandths(&limit) else {
        return Vec::new();
    };
    // Only a larger limit (or none) can help, whatever history holds.
    let mut repairs: Vec<Repair> = from_history(look.workload, |f| is_memory(f, &container.name))
        .into_iter()
        .filter(|repair| {
            repair.fields.iter().any(|field| {
                field.is_at(&["limits", "memory"])
                    && field
                        .wanted
                        .as_ref()
                        .and_then(|value| value.as_str())
                        .is_none_or(|value| thousandths(value).is_some_and(|was| was > now))
            })
        })
        .collect();
    let ceiling = look
        .evidence
        .nodes
        .iter()
        .filter_map(|node| thousandths(node.allocatable.get("memory")?))
        .min()
        .map_or(i128::MAX, |memory| memory / NODE_SHARE);
    for doubling in 1..=DOUBLINGS {
        let raised = now << doubling;
        if raised > ceiling {
            break;
        }
        let field = Field {
            path: look.container_path(container, &["resources", "limits", "memory"]),
            is: Some(json!(limit)),
            wanted: Some(json!(mebibytes(raised))),
        };
        let why = format!(
            "{} times the limit; history has no larger one that helped",
            1 << doubling
        );
        repairs.push(setting(&look.workload.subject, field, why));
    }
    repairs
}
