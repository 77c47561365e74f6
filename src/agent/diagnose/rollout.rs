//! Workloads that run too few replicas, stand still, or have not come up since their template changed.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::evidence::events::scaling;
use crate::agent::evidence::field::Field;
use crate::agent::evidence::{Workload, matches_labels};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(too_few(look));
    found.extend(paused(look));
    found.extend(stuck(look));
    found
}

/// How many replicas were wanted before, and what tells so.
pub fn wanted_before(workload: &Workload) -> Option<(i64, String)> {
    // Scaling of the current set; of an older one it would be part of a rollout.
    let scaled = workload.events.iter().rev().find_map(|event| {
        let (set, from, to) = scaling(event)?;
        let current = workload
            .current_set
            .as_deref()
            .is_none_or(|name| name == set);
        (current && to == workload.desired && from > to)
            .then(|| (from, format!("event {}: {}", event.reason, event.message)))
    });
    let stamped = || {
        workload
            .earlier
            .first()
            .and_then(|revision| Some((revision.desired?, revision.number)))
            .filter(|(desired, _)| *desired > workload.desired)
            .map(|(desired, number)| (desired, format!("revision {number} ran {desired} replicas")))
    };
    // Each deletion of a pod by its StatefulSet's controller is one replica fewer.
    let deleted = || {
        let gone = workload
            .events
            .iter()
            .filter(|event| {
                event.reason == "SuccessfulDelete" && event.about.1 == workload.subject.name
            })
            .count() as i64;
        (gone > 0 && workload.subject.kind == "StatefulSet" && workload.desired == 0)
            .then(|| (gone, format!("its controller deleted {gone} pods")))
    };
    scaled.or_else(stamped).or_else(deleted)
}

/// Scales a workload.
pub fn raised_to(workload: &Workload, replicas: i64, why: &str) -> Repair {
    let is = workload.object["spec"].get("replicas").cloned();
    let field = Field::set(&["spec", "replicas"], is, Some(json!(replicas)));
    setting(&workload.subject, field, why)
}

fn too_few(look: &Look<'_>) -> Option<Finding> {
    let workload = look.workload;
    let kind = workload.subject.kind;
    let autoscaled = look
        .evidence
        .autoscaled
        .contains(&(kind.to_owned(), workload.subject.name.clone()));
    if kind == "DaemonSet" || (autoscaled && workload.desired > 0) {
        return None;
    }
    let before = wanted_before(workload);
    let offered = look
        .evidence
        .services
        .iter()
        .filter(|service| {
            service.subject.namespace == workload.subject.namespace && !service.selector.is_empty()
        })
        .any(|service| {
            matches_labels(
                &workload.template()["metadata"]["labels"],
                &service.selector,
            )
        });
    let (count, sign, confidence) = match (workload.desired, before) {
        (0, Some((count, sign))) => (count, sign, 93),
        (0, None) if offered => (1, "a Service offers it, and it runs nothing".to_owned(), 80),
        (1.., Some((count, sign))) => (count, sign, 82),
        _ => return None,
    };
    let statement = format!(
        "{} was scaled to {} replicas; it ran {count} before and cannot serve its load with fewer",
        workload.subject, workload.desired
    );
    Some(
        Finding::new(
            workload,
            "rollout/replicas",
            category::ROLLOUT,
            confidence,
            statement,
        )
        .quote(format!(
            "{}: {} replicas wanted, {} ready",
            workload.subject, workload.desired, workload.ready
        ))
        .quote(sign)
        .repairs([raised_to(workload, count, "as many as before")]),
    )
}

fn paused(look: &Look<'_>) -> Option<Finding> {
    let workload = look.workload;
    if !workload.paused || workload.updated >= workload.desired.max(1) {
        return None;
    }
    let statement = format!(
        "the rollout of {} is paused, so its newest template never runs",
        workload.subject
    );
    let field = Field::set(&["spec", "paused"], Some(json!(true)), None);
    Some(
        Finding::new(workload, "rollout/paused", category::ROLLOUT, 86, statement)
            .quote(format!(
                "{}: paused, {} of {} updated",
                workload.subject, workload.updated, workload.desired
            ))
            .repairs([setting(&workload.subject, field, "resumes the rollout")]),
    )
}

/// Not up, and nothing else explains it: whatever the last rollout changed is the suspect.
fn stuck(look: &Look<'_>) -> Option<Finding> {
    let workload = look.workload;
    if workload.is_settled() || workload.paused || !workload.observed {
        return None;
    }
    let repairs = from_history(workload, |_| true);
    let overdue = workload
        .condition("Progressing")
        .is_some_and(|c| c.reason == "ProgressDeadlineExceeded");
    let confidence = match (repairs.is_empty(), overdue) {
        (true, _) => return None,
        (false, true) => 60,
        (false, false) => 38,
    };
    let statement = format!(
        "{} has not come up since its last rollout",
        workload.subject
    );
    let conditions = workload
        .conditions
        .iter()
        .filter(|c| c.status != "True")
        .map(|c| {
            format!(
                "{}: {} {}, {}",
                workload.subject, c.kind, c.reason, c.message
            )
        })
        .collect::<Vec<_>>();
    Some(
        Finding::new(
            workload,
            "rollout/stuck",
            category::ROLLOUT,
            confidence,
            statement,
        )
        .quotes(conditions)
        .quotes(repairs.iter().map(Repair::words))
        .repairs(repairs),
    )
}
