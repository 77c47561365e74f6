//! Defaults of Services, and the addresses and node ports that they are given.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::embedded::api::defaults::{each, fill};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// First address of the service range, 10.43.0.0/16.
const SERVICE_RANGE: Ipv4Addr = Ipv4Addr::new(10, 43, 0, 0);
/// The first addresses are kept free for services that ask for one (10.43.0.1, 10.43.0.10).
const FIRST_DYNAMIC: u32 = 256;
/// Addresses in the range.
const RANGE_SIZE: u32 = 1 << 16;
/// Node ports that are given out.
pub const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;
/// How often a drawn node port is drawn again when it is taken.
const PORT_TRIES: usize = 64;

pub fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        fill(
            &mut spec["sessionAffinityConfig"]["clientIP"],
            "timeoutSeconds",
            10_800,
        );
    }
    if let Some(ports) = spec.get_mut("ports") {
        each(ports, |port| {
            fill(port, "protocol", "TCP");
            let number = port["port"].clone();
            fill(port, "targetPort", number);
        });
    }
    let external = spec["type"] == "ExternalName";
    if !external {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_exposed(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn is_exposed(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

/// Gives a new Service its cluster address (in the order of creation) and node ports.
pub fn allocate(world: &mut World, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" {
        return;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        spec["clusterIP"] = free_address(world).to_string().into();
    }
    let address = spec["clusterIP"].clone();
    fill(spec, "clusterIPs", json!([address]));
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if is_exposed(spec) {
        fill_node_ports(world, spec);
    }
}

fn free_address(world: &World) -> Ipv4Addr {
    let taken: BTreeSet<&str> = world
        .store
        .all(Kind::Service)
        .filter_map(|service| service["spec"]["clusterIP"].as_str())
        .collect();
    (FIRST_DYNAMIC..RANGE_SIZE)
        .map(|offset| Ipv4Addr::from(u32::from(SERVICE_RANGE) + offset))
        .find(|address| !taken.contains(address.to_string().as_str()))
        .unwrap_or(SERVICE_RANGE)
}

/// Whether an address is one of those that Services get.
pub fn in_service_range(address: Ipv4Addr) -> bool {
    let first = u32::from(SERVICE_RANGE);
    (first..first + RANGE_SIZE).contains(&u32::from(address))
}

fn fill_node_ports(world: &mut World, spec: &mut Value) {
    let mut taken: BTreeSet<u64> = world
        .store
        .all(Kind::Service)
        .filter_map(|service| service["spec"]["ports"].as_array())
        .flatten()
        .filter_map(|port| port["nodePort"].as_u64())
        .collect();
    if let Some(ports) = spec.get_mut("ports") {
        each(ports, |port| {
            if port["nodePort"].as_u64().unwrap_or(0) > 0 {
                return;
            }
            for _ in 0..PORT_TRIES {
                let drawn = NODE_PORTS.start + world.below(NODE_PORTS.end - NODE_PORTS.start);
                if taken.insert(drawn) {
                    port["nodePort"] = drawn.into();
                    return;
                }
            }
        });
    }
}

/// A change keeps the addresses that it does not name, unless the Service ceases to have any.
pub fn keep(old: &Value, object: &mut Value) {
    if object["spec"]["type"] == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let value = old["spec"][field].clone();
        if !value.is_null() {
            fill(&mut object["spec"], field, value);
        }
    }
    let exposed = is_exposed(&object["spec"]);
    let old_ports = old["spec"]["ports"].as_array();
    if let Some(ports) = object["spec"].get_mut("ports") {
        each(ports, |port| {
            let before =
                old_ports.and_then(|list| list.iter().find(|one| one["port"] == port["port"]));
            if let Some(before) = before
                && exposed
                && before.get("nodePort").is_some()
            {
                fill(port, "nodePort", before["nodePort"].clone());
            }
        });
    }
}
