//! Affinity between pods and even spread over topology domains.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::embedded::controllers::object::{deleting, items, name, namespace, selects};
use crate::embedded::kind::Kind;
use crate::embedded::scheduler::filters::{Obstacle, Refusal, is_meant};
use crate::embedded::world::World;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A required term of pod affinity or anti-affinity, with the namespaces it is about.
struct Term<'a> {
    selector: &'a Value,
    namespaces: Vec<&'a str>,
    topology: &'a str,
}

fn terms<'a>(world: &'a World, pod: &'a Value, kind: &str) -> Vec<Term<'a>> {
    items(&pod["spec"]["affinity"][kind][REQUIRED])
        .iter()
        .map(|term| {
            let mut namespaces: Vec<&str> = items(&term["namespaces"])
                .iter()
                .filter_map(Value::as_str)
                .collect();
            if let Some(selector) = term.get("namespaceSelector") {
                let meant = world
                    .store
                    .all(Kind::Namespace)
                    .filter(|ns| selects(selector, &ns["metadata"]["labels"]));
                namespaces.extend(meant.map(|ns| name(ns)));
            } else if namespaces.is_empty() {
                namespaces.push(namespace(pod));
            }
            Term {
                selector: &term["labelSelector"],
                namespaces,
                topology: term["topologyKey"].as_str().unwrap_or_default(),
            }
        })
        .collect()
}

fn domain<'a>(world: &'a World, pod: &Value, topology: &str) -> Option<&'a Value> {
    let node = world
        .store
        .get(Kind::Node, "", pod["spec"]["nodeName"].as_str()?)?;
    node["metadata"]["labels"].get(topology)
}

/// Required affinity to, or anti-affinity against, the pods that are placed already.
pub(super) fn incompatible(
    world: &World,
    pod: &Value,
    node: &Value,
    placed: &[&Arc<Value>],
) -> Option<Refusal> {
    let labels = &node["metadata"]["labels"];
    let meets = |term: &Term<'_>| {
        let here = labels.get(term.topology);
        here.is_some()
            && placed.iter().any(|other| {
                is_meant(term.selector, &term.namespaces, other)
                    && domain(world, other, term.topology) == here
            })
    };
    let wanted = terms(world, pod, "podAffinity");
    let first_of_its_kind = || {
        wanted.iter().all(|term| {
            labels.get(term.topology).is_some()
                && is_meant(term.selector, &term.namespaces, pod)
                && !placed
                    .iter()
                    .any(|other| is_meant(term.selector, &term.namespaces, other))
        })
    };
    if !wanted.iter().all(&meets) && !first_of_its_kind() {
        let reason = "node(s) didn't match pod affinity rules";
        return Some(Refusal::new(reason, true, Obstacle::PodAffinity));
    }
    if terms(world, pod, "podAntiAffinity").iter().any(meets) {
        let reason = "node(s) didn't match pod anti-affinity rules";
        return Some(Refusal::new(reason, false, Obstacle::PodAffinity));
    }
    let shunned = placed.iter().any(|other| {
        terms(world, other, "podAntiAffinity").iter().any(|term| {
            let here = labels.get(term.topology);
            here.is_some()
                && is_meant(term.selector, &term.namespaces, pod)
                && domain(world, other, term.topology) == here
        })
    });
    shunned.then(|| {
        let reason = "node(s) didn't satisfy existing pods anti-affinity rules";
        Refusal::new(reason, false, Obstacle::PodAffinity)
    })
}

/// Topology spread constraints that must not be violated.
pub(super) fn uneven(
    world: &World,
    pod: &Value,
    node: &Value,
    placed: &[&Arc<Value>],
) -> Option<Refusal> {
    for constraint in items(&pod["spec"]["topologySpreadConstraints"]) {
        if constraint["whenUnsatisfiable"] != "DoNotSchedule" {
            continue;
        }
        let topology = constraint["topologyKey"].as_str().unwrap_or_default();
        let Some(here) = node["metadata"]["labels"].get(topology) else {
            let reason =
                "node(s) didn't match pod topology spread constraints (missing required label)";
            return Some(Refusal::new(reason, true, Obstacle::Spread));
        };
        let mut counts: BTreeMap<String, i64> = world
            .store
            .all(Kind::Node)
            .filter_map(|node| node["metadata"]["labels"].get(topology))
            .map(|value| (value.to_string(), 0))
            .collect();
        for other in placed {
            if namespace(other) == namespace(pod)
                && !deleting(other)
                && selects(&constraint["labelSelector"], &other["metadata"]["labels"])
                && let Some(value) = domain(world, other, topology)
            {
                *counts.entry(value.to_string()).or_default() += 1;
            }
        }
        let least = counts.values().min().copied().unwrap_or(0);
        let own = selects(&constraint["labelSelector"], &pod["metadata"]["labels"]);
        let mine = counts.get(&here.to_string()).copied().unwrap_or(0) + i64::from(own);
        if mine - least > constraint["maxSkew"].as_i64().unwrap_or(1) {
            let reason = "node(s) didn't match pod topology spread constraints";
            return Some(Refusal::new(reason, false, Obstacle::Spread));
        }
    }
    None
}
