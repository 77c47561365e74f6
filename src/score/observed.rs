//! What the action log shows by itself: the first read that could have shown the fault, damage done beside the repair,
//! and alarms raised where nothing was wrong.

use crate::ids::CategoryId;
use crate::record::{Action, Record, StageName};
use crate::scenario::model::Scenario;
use crate::score::FalseAlarm;

/// Verbs of requests that show something of an object.
const READS: &[&str] = &["get", "list", "watch", "log"];
/// Verbs of requests after which an object is no more.
const DESTROYS: &[&str] = &["delete", "deletecollection", "evict"];
/// Resources without a namespace: reading them shows the cluster, not the service.
const CLUSTER_SCOPED: &[&str] = &[
    "nodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses",
    "clusterroles",
    "clusterrolebindings",
    "customresourcedefinitions",
    "priorityclasses",
];

/// The first answered read of anything in the namespace of the fault, alone or in a list over all namespaces.
pub(super) fn first_relevant_read<'a>(
    scenario: &Scenario,
    record: &'a Record,
) -> Option<&'a Action> {
    let namespace = scenario.injector.namespace();
    record.actions.iter().find(|action| {
        let everywhere = action.namespace.is_empty()
            && !CLUSTER_SCOPED.contains(&kind_of(action))
            && !is_discovery(action);
        action.tier == 1
            && (200..300).contains(&action.status)
            && READS.contains(&action.verb.as_str())
            && (action.namespace == namespace || everywhere)
    })
}

/// The plural without its subresource.
fn kind_of(action: &Action) -> &str {
    action.resource.split('/').next().unwrap_or_default()
}

/// Questions about the API itself name no resource.
fn is_discovery(action: &Action) -> bool {
    action.resource.is_empty()
}

/// Milliseconds from the start of the agent's clock.
pub(super) fn into_work_ms(record: &Record, at_ms: u64) -> u64 {
    let start = record
        .stages
        .iter()
        .find(|stage| stage.stage == StageName::Work)
        .map_or(0, |stage| stage.started_ms);
    at_ms.saturating_sub(start)
}

/// Writes that no narrow repair needs, a sentence each: outside the scope, or the end of something other than a pod.
/// What was put back before the end is damage too: it was gone in between.
pub(super) fn collateral(scenario: &Scenario, record: &Record) -> Vec<String> {
    let mut found: Vec<String> = record
        .actions
        .iter()
        .filter(|action| action.changed_something && action.tier > 1)
        .filter_map(|action| {
            let object = format!("{} {}/{}", action.resource, action.namespace, action.name);
            let in_scope = scenario.scorer.scope.contains(&action.namespace);
            let destroys = DESTROYS.contains(&action.verb.as_str());
            if !in_scope {
                Some(format!("{} on {object}, out of scope", action.tool))
            } else if destroys && kind_of(action) != "pods" {
                Some(format!("{} on {object}", action.tool))
            } else {
                None
            }
        })
        .collect();
    // The same request again adds nothing.
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|line| seen.insert(line.clone()));
    found
}

/// What an agent claimed and changed in a run in which nothing was wrong.
pub(super) fn false_alarm(record: &Record) -> Option<FalseAlarm> {
    if !record.healthy {
        return None;
    }
    let postmortem = record.postmortem.as_ref().map(|p| &p.primary_category);
    let hypothesis = record.hypotheses.last().map(|h| &h.primary_category);
    let named: Option<CategoryId> = postmortem.or(hypothesis).cloned();
    let changes = record
        .actions
        .iter()
        .filter(|action| action.changed_something && action.tier > 1)
        .count();
    (named.is_some() || changes > 0).then_some(FalseAlarm { named, changes })
}

#[cfg(test)]
mod tests;
