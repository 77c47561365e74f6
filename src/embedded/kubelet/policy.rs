//! NetworkPolicies: which connections between pods are let through.
//!
//! A pod that some policy selects for a direction accepts only what one of those policies allows. The node
//! itself (probes) is always let in.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::Pod;
use crate::embedded::world::World;

/// A new pod's own traffic passes until the policy agent has met it.
const UNFILTERED: Duration = Duration::from_secs(2);

/// What becomes of a connection that no policy lets through. Nothing in an object tells: it is the network's own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denied {
    /// Refused at once, as kube-router does.
    #[default]
    Rejected,
    /// Never answered, as most networks do: clients run into their time-outs.
    Dropped,
}

/// One end of a connection.
struct End<'a> {
    namespace: &'a str,
    labels: &'a Value,
    address: &'a str,
    spec: &'a Value,
}

/// Whether a pod may connect to another pod's address and port.
pub fn allows(world: &World, from: &Pod, address: &str, port: u16) -> bool {
    if world.store.all(Kind::NetworkPolicy).next().is_none() {
        return true;
    }
    let target = world.kubelet.pods.values().find(|pod| {
        pod.sandbox
            .as_ref()
            .is_some_and(|sandbox| sandbox.ip == address)
    });
    let Some(target) = target else { return true };
    let source = end_of(from);
    let target = end_of(target);
    let fresh = from
        .sandbox
        .as_ref()
        .is_none_or(|sandbox| world.now().since(sandbox.since) < UNFILTERED);
    (fresh || passes(world, &source, &target, port, "Egress"))
        && passes(world, &target, &source, port, "Ingress")
}

fn end_of(pod: &Pod) -> End<'_> {
    End {
        namespace: &pod.namespace,
        labels: &pod.object["metadata"]["labels"],
        address: pod
            .sandbox
            .as_ref()
            .map_or("", |sandbox| sandbox.ip.as_str()),
        spec: &pod.object["spec"],
    }
}

/// Whether the policies that select `subject` for a direction let `peer` through.
fn passes(world: &World, subject: &End<'_>, peer: &End<'_>, port: u16, direction: &str) -> bool {
    let mut selected = false;
    for policy in world.store.within(Kind::NetworkPolicy, subject.namespace) {
        let spec = &policy["spec"];
        if !applies(spec, direction) || !selects(&spec["podSelector"], subject.labels) {
            continue;
        }
        selected = true;
        let (rules, peers) = if direction == "Egress" {
            ("egress", "to")
        } else {
            ("ingress", "from")
        };
        // Named ports are those of the pod that is connected to.
        let named = if direction == "Egress" {
            peer.spec
        } else {
            subject.spec
        };
        let allowed = spec[rules].as_array().into_iter().flatten().any(|rule| {
            peer_matches(world, rule, peers, peer, subject.namespace)
                && port_matches(rule, port, named)
        });
        if allowed {
            return true;
        }
    }
    !selected
}

fn applies(spec: &Value, direction: &str) -> bool {
    match spec["policyTypes"].as_array() {
        Some(types) => types.iter().any(|kind| kind == direction),
        None => direction == "Ingress" || spec.get("egress").is_some(),
    }
}

fn peer_matches(world: &World, rule: &Value, field: &str, peer: &End<'_>, own: &str) -> bool {
    let Some(peers) = rule[field].as_array().filter(|peers| !peers.is_empty()) else {
        return true;
    };
    peers.iter().any(|entry| {
        if let Some(block) = entry.get("ipBlock") {
            let inside = |cidr: &Value| {
                cidr.as_str()
                    .is_some_and(|cidr| in_block(peer.address, cidr))
            };
            return inside(&block["cidr"])
                && !block["except"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(inside));
        }
        let namespace_fits = match entry.get("namespaceSelector") {
            Some(selector) => world
                .store
                .get(Kind::Namespace, "", peer.namespace)
                .is_some_and(|namespace| selects(selector, &namespace["metadata"]["labels"])),
            None => peer.namespace == own,
        };
        namespace_fits
            && entry
                .get("podSelector")
                .is_none_or(|selector| selects(selector, peer.labels))
    })
}

fn port_matches(rule: &Value, port: u16, spec: &Value) -> bool {
    let Some(ports) = rule["ports"].as_array().filter(|ports| !ports.is_empty()) else {
        return true;
    };
    ports.iter().any(|entry| match &entry["port"] {
        Value::Null => true,
        Value::String(name) => {
            spec["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|container| {
                    container["ports"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|known| {
                            known["name"] == name.as_str()
                                && known["containerPort"].as_u64() == Some(u64::from(port))
                        })
                })
        }
        number => {
            let first = number.as_u64().unwrap_or(0);
            let last = entry["endPort"].as_u64().unwrap_or(first);
            (first..=last).contains(&u64::from(port))
        }
    })
}

/// Whether an IPv4 address lies in a block such as `10.42.0.0/16`.
fn in_block(address: &str, block: &str) -> bool {
    let number = |text: &str| text.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
    let (base, bits) = block.split_once('/').unwrap_or((block, "32"));
    let bits: u32 = bits.parse().unwrap_or(32);
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    match (number(address), number(base)) {
        (Some(address), Some(base)) => address & mask == base & mask,
        _ => false,
    }
}

/// Whether a label selector matches labels.
pub fn selects(selector: &Value, labels: &Value) -> bool {
    let equal = selector["matchLabels"]
        .as_object()
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| &labels[key] == value));
    let expressions = selector["matchExpressions"].as_array();
    equal
        && expressions.is_none_or(|all| {
            all.iter().all(|one| {
                let value = &labels[one["key"].as_str().unwrap_or_default()];
                let listed = one["values"]
                    .as_array()
                    .is_some_and(|values| values.contains(value));
                match one["operator"].as_str().unwrap_or_default() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => !value.is_null(),
                    _ => value.is_null(),
                }
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_compared_by_their_prefix() {
        assert!(in_block("10.42.0.9", "10.42.0.0/24"));
        assert!(!in_block("10.43.0.9", "10.42.0.0/16"));
        assert!(in_block("1.2.3.4", "0.0.0.0/0"));
    }
}
