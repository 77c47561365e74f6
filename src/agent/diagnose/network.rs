//! NetworkPolicies between a client and the peer that it cannot reach.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::diagnose::Look;
use crate::agent::diagnose::dependency::peers;
use crate::agent::diagnose::log_line::is_unreachable;
use crate::agent::evidence::field::Field;
use crate::agent::evidence::{Policy, Service, Workload, matches_labels};
use crate::agent::finding::{Finding, Repair, category};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (pod, container) in look.workload.containers() {
        let line = container
            .log_lines()
            .rev()
            .find(|line| is_unreachable(line));
        for (service, server) in peers(look, container) {
            if server.ready == 0 {
                continue;
            }
            for policy in &look.evidence.policies {
                let blocked = blocks(look, policy, server, service);
                let Some((direction, repair)) = blocked else {
                    continue;
                };
                let statement = format!(
                    "{} keeps {} from reaching {}: its {direction} rules do not allow the connection",
                    policy.subject, look.workload.subject, server.subject
                );
                let confidence = if line.is_some() { 92 } else { 58 };
                let quote = line.map(|line| {
                    format!(
                        "log of pod {}, container {}: {line}",
                        pod.name, container.name
                    )
                });
                let key = format!("network/{}/{direction}", policy.subject.name);
                found.push(
                    Finding::new(
                        look.workload,
                        key,
                        category::NETWORK_POLICY,
                        confidence,
                        statement,
                    )
                    .quotes(quote)
                    .repairs([repair]),
                );
            }
        }
    }
    found.extend(shut_off(look));
    found
}

/// Whether a policy stands between the client and the server, which way, and what would let the one through.
fn blocks(
    look: &Look<'_>,
    policy: &Policy,
    server: &Workload,
    service: &Service,
) -> Option<(&'static str, Repair)> {
    let client = look.workload;
    let port = target_port(service, server);
    let spec = &policy.object["spec"];
    if applies(policy, client, "Egress") && !allows(&spec["egress"], "to", labels(server), port) {
        let mut rules = vec![json!({"to": [peer(&service.selector)], "ports": ports(port)})];
        if !allows_port(&spec["egress"], 53) {
            rules.push(json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}));
        }
        return Some(("egress", widened(policy, "egress", rules)));
    }
    if applies(policy, server, "Ingress") && !allows(&spec["ingress"], "from", labels(client), port)
    {
        let own = selector_of(client);
        let rule = json!({"from": [peer(&own)], "ports": ports(port)});
        return Some(("ingress", widened(policy, "ingress", vec![rule])));
    }
    None
}

/// A policy that lets nobody in, on a workload that a Service offers to others: nothing in its own state shows it.
fn shut_off(look: &Look<'_>) -> Option<Finding> {
    let workload = look.workload;
    let service = look.evidence.services.iter().find(|s| {
        s.subject.namespace == workload.subject.namespace
            && !s.selector.is_empty()
            && matches_labels(labels(workload), &s.selector)
    })?;
    let policy = look.evidence.policies.iter().find(|policy| {
        let rules = &policy.object["spec"]["ingress"];
        applies(policy, workload, "Ingress") && rules.as_array().is_none_or(Vec::is_empty)
    })?;
    let rule = json!({"ports": ports(target_port(service, workload))});
    let statement = format!(
        "{} lets nobody in, so no client of {} can reach {}",
        policy.subject, service.subject, workload.subject
    );
    Some(
        Finding::new(
            workload,
            format!("network/{}/shut", policy.subject.name),
            category::NETWORK_POLICY,
            62,
            statement,
        )
        .quote(format!(
            "{} has policy type Ingress and no ingress rule",
            policy.subject
        ))
        .repairs([widened(policy, "ingress", vec![rule])]),
    )
}

fn labels(workload: &Workload) -> &Value {
    &workload.template()["metadata"]["labels"]
}

fn selector_of(workload: &Workload) -> BTreeMap<String, String> {
    string_map(&workload.object["spec"]["selector"]["matchLabels"])
}

fn string_map(value: &Value) -> BTreeMap<String, String> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn applies(policy: &Policy, workload: &Workload, direction: &str) -> bool {
    let spec = &policy.object["spec"];
    let types = spec["policyTypes"].as_array();
    // Without types a policy is about ingress.
    let typed = types.map_or(direction == "Ingress", |types| {
        types.iter().any(|t| t == direction)
    });
    typed
        && policy.subject.namespace == workload.subject.namespace
        && matches_labels(
            labels(workload),
            &string_map(&spec["podSelector"]["matchLabels"]),
        )
}

fn allows(rules: &Value, side: &str, peer: &Value, port: Option<i64>) -> bool {
    rules.as_array().into_iter().flatten().any(|rule| {
        let peers = rule[side].as_array().filter(|peers| !peers.is_empty());
        let peer_fits = peers.is_none_or(|peers| peers.iter().any(|p| peer_matches(p, peer)));
        peer_fits && rule_has_port(rule, port)
    })
}

/// Selectors by expression or namespace are taken to match: what cannot be judged here is not accused.
fn peer_matches(rule: &Value, labels: &Value) -> bool {
    if rule["ipBlock"].is_object() {
        return false;
    }
    if rule["namespaceSelector"].is_object() || rule["podSelector"]["matchExpressions"].is_array() {
        return true;
    }
    matches_labels(labels, &string_map(&rule["podSelector"]["matchLabels"]))
}

fn rule_has_port(rule: &Value, port: Option<i64>) -> bool {
    let Some(listed) = rule["ports"].as_array().filter(|ports| !ports.is_empty()) else {
        return true;
    };
    listed.iter().any(|entry| match entry["port"].as_i64() {
        Some(number) => Some(number) == port,
        // A named or absent port.
        None => true,
    })
}

fn allows_port(rules: &Value, port: i64) -> bool {
    rules
        .as_array()
        .into_iter()
        .flatten()
        .any(|rule| rule_has_port(rule, Some(port)))
}

fn peer(selector: &BTreeMap<String, String>) -> Value {
    json!({"podSelector": {"matchLabels": selector}})
}

fn ports(port: Option<i64>) -> Value {
    match port {
        Some(port) => json!([{"port": port, "protocol": "TCP"}]),
        None => json!([]),
    }
}

/// The port on which the server's container listens for this Service.
fn target_port(service: &Service, server: &Workload) -> Option<i64> {
    let entry = &service.object["spec"]["ports"][0];
    match &entry["targetPort"] {
        Value::String(name) => server.template()["spec"]["containers"]
            .as_array()?
            .iter()
            .filter_map(|container| container["ports"].as_array())
            .flatten()
            .find(|port| port["name"] == *name)?["containerPort"]
            .as_i64(),
        Value::Number(number) => number.as_i64(),
        _ => entry["port"].as_i64(),
    }
}

fn widened(policy: &Policy, list: &'static str, rules: Vec<Value>) -> Repair {
    let is = policy.object["spec"].get(list).cloned();
    let mut wanted = is
        .as_ref()
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    wanted.extend(rules);
    Repair {
        target: policy.subject.clone(),
        fields: vec![Field::set(&["spec", list], is, Some(Value::Array(wanted)))],
        restart: None,
        why: "lets this one connection through and leaves the rest of the policy".to_owned(),
    }
}
