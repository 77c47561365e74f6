//! Endpoints and EndpointSlices of Services with selectors.
//!
//! Pods that resolve a Service's named ports alike share a slice. A Service without matching pods keeps one
//! empty slice. Services without a selector are left alone: their endpoints are somebody else's.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::{
    deleting, items, map_selects, name, owner_reference, uid,
};
use crate::embedded::controllers::{Key, pods};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const SLICE_MANAGER: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Pods with the same resolved ports.
struct Group {
    ports: Vec<Value>,
    pods: Vec<Arc<Value>>,
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let (ns, name) = (key.namespace.as_str(), key.name.as_str());
    let Some(service) = world.store.get(Kind::Service, ns, name).cloned() else {
        // Its slices go with it by their owner; the older kind has no owner.
        let _ = world.store.remove(Kind::Endpoints, ns, name);
        return;
    };
    let selector = &service["spec"]["selector"];
    if selector.as_object().is_none_or(Map::is_empty) || deleting(&service) {
        return;
    }
    let backing: Vec<Arc<Value>> = world
        .store
        .within(Kind::Pod, ns)
        .filter(|pod| {
            map_selects(selector, &pod["metadata"]["labels"])
                && !pods::finished(pod)
                && pod["status"]["podIP"]
                    .as_str()
                    .is_some_and(|ip| !ip.is_empty())
        })
        .cloned()
        .collect();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for pod in backing {
        let ports = resolved_ports(&service, &pod);
        groups
            .entry(Value::from(ports.clone()).to_string())
            .or_insert_with(|| Group {
                ports,
                pods: Vec::new(),
            })
            .pods
            .push(pod);
    }
    let groups: Vec<Group> = groups.into_values().collect();
    write_slices(world, &service, &groups);
    // The older kind lists no pods under a name that none of them has; a slice does.
    let named = !items(&service["spec"]["ports"]).is_empty();
    let groups: Vec<Group> = groups
        .into_iter()
        .filter(|group| !(named && group.ports.is_empty()))
        .collect();
    write_endpoints(world, &service, &groups);
}

/// A Service's ports as one pod serves them; named target ports that the pod does not have are left out.
fn resolved_ports(service: &Value, pod: &Value) -> Vec<Value> {
    let container_ports = || {
        items(&pod["spec"]["containers"])
            .iter()
            .flat_map(|container| items(&container["ports"]))
    };
    items(&service["spec"]["ports"])
        .iter()
        .filter_map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            let number = match &port["targetPort"] {
                Value::Number(number) => number.as_i64(),
                Value::String(wanted) if wanted.parse::<i64>().is_ok() => wanted.parse().ok(),
                Value::String(wanted) => container_ports()
                    .find(|p| {
                        p["name"] == wanted.as_str()
                            && p["protocol"].as_str().unwrap_or("TCP") == protocol
                    })
                    .and_then(|p| p["containerPort"].as_i64()),
                _ => port["port"].as_i64(),
            }?;
            let mut resolved = json!({
                "name": port["name"].as_str().unwrap_or_default(),
                "port": number,
                "protocol": protocol,
            });
            if let Some(app) = port.get("appProtocol") {
                resolved["appProtocol"] = app.clone();
            }
            Some(resolved)
        })
        .collect()
}

fn write_slices(world: &mut World, service: &Value, groups: &[Group]) {
    let ns = service["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let mut existing: Vec<Arc<Value>> = world
        .store
        .within(Kind::EndpointSlice, ns)
        .filter(|slice| {
            let labels = &slice["metadata"]["labels"];
            labels[SERVICE_NAME] == service["metadata"]["name"]
                && labels[SLICE_MANAGER] == SLICE_CONTROLLER
                && !deleting(slice)
        })
        .cloned()
        .collect();
    let empty = [Group {
        ports: Vec::new(),
        pods: Vec::new(),
    }];
    let wanted = if groups.is_empty() { &empty } else { groups };
    for group in wanted {
        let same = existing
            .iter()
            .position(|slice| items(&slice["ports"]) == group.ports.as_slice());
        let reused = same.or(if existing.is_empty() { None } else { Some(0) });
        let slice = reused.map(|at| existing.remove(at));
        write_slice(world, service, group, slice.as_deref());
    }
    for surplus in existing {
        // Read in this round, so it is there.
        let _ = world.store.remove(Kind::EndpointSlice, ns, name(&surplus));
    }
}

fn write_slice(world: &mut World, service: &Value, group: &Group, existing: Option<&Value>) {
    let ns = service["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let before = existing.map_or(&[][..], |slice| items(&slice["endpoints"]));
    let endpoints = in_stable_order(before, group.pods.iter().map(|pod| endpoint(service, pod)));
    let endpoints = or_null(endpoints);
    let ports = or_null(group.ports.clone());
    let mut labels = service["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    labels.insert(SLICE_MANAGER.to_owned(), SLICE_CONTROLLER.into());
    labels.insert(SERVICE_NAME.to_owned(), service["metadata"]["name"].clone());
    if headless(service) {
        labels.insert(HEADLESS.to_owned(), "".into());
    }
    let now = world.now().seconds_text();
    if let Some(slice) = existing {
        let same = slice["endpoints"] == endpoints
            && slice["ports"] == ports
            && slice["metadata"]["labels"].as_object() == Some(&labels);
        if !same {
            world.update(Kind::EndpointSlice, ns, name(slice), |stored| {
                stored["endpoints"] = endpoints;
                stored["ports"] = ports;
                stored["metadata"]["labels"] = labels.into();
                stored["metadata"]["annotations"][TRIGGER_TIME] = now.into();
            });
        }
        return;
    }
    let prefix = format!("{}-", name(service));
    let slice = json!({
        "metadata": {
            "name": format!("{prefix}{}", world.suffix(5)),
            "generateName": prefix,
            "namespace": ns,
            "generation": 1,
            "labels": labels,
            "annotations": {TRIGGER_TIME: now},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    });
    // A suffix taken by chance is drawn anew with the next change.
    let _ = world.create(Kind::EndpointSlice, slice);
}

/// Endpoints that stay keep their place, new ones come last.
fn in_stable_order(before: &[Value], wanted: impl Iterator<Item = Value>) -> Vec<Value> {
    let place = |endpoint: &Value| {
        before
            .iter()
            .position(|b| b["targetRef"]["uid"] == endpoint["targetRef"]["uid"])
            .unwrap_or(before.len())
    };
    let mut endpoints: Vec<Value> = wanted.collect();
    endpoints.sort_by_key(place);
    endpoints
}

fn or_null(list: Vec<Value>) -> Value {
    if list.is_empty() {
        Value::Null
    } else {
        list.into()
    }
}

fn headless(service: &Value) -> bool {
    service["spec"]["clusterIP"] == "None"
}

fn endpoint(service: &Value, pod: &Value) -> Value {
    let terminating = deleting(pod);
    let serving = pods::ready(pod);
    let unready_too = service["spec"]["publishNotReadyAddresses"] == true;
    let mut endpoint = json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": unready_too || (serving && !terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": target(pod),
    });
    if let Some(hostname) = hostname(service, pod) {
        endpoint["hostname"] = hostname.clone();
    }
    endpoint
}

fn hostname<'a>(service: &Value, pod: &'a Value) -> Option<&'a Value> {
    (pod["spec"]["subdomain"] == service["metadata"]["name"])
        .then(|| pod["spec"].get("hostname"))
        .flatten()
}

fn target(pod: &Value) -> Value {
    json!({
        "kind": "Pod",
        "name": name(pod),
        "namespace": pod["metadata"]["namespace"],
        "uid": uid(pod),
    })
}

/// The older kind: addresses and not-ready addresses per set of ports, without pods that are on their way out.
fn write_endpoints(world: &mut World, service: &Value, groups: &[Group]) {
    let ns = service["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let unready_too = service["spec"]["publishNotReadyAddresses"] == true;
    let mut subsets = Vec::new();
    for group in groups {
        let (mut ready, mut unready) = (Vec::new(), Vec::new());
        for pod in &group.pods {
            if deleting(pod) && !unready_too {
                continue;
            }
            let mut address = json!({
                "ip": pod["status"]["podIP"],
                "nodeName": pod["spec"]["nodeName"],
                "targetRef": target(pod),
            });
            if let Some(hostname) = hostname(service, pod) {
                address["hostname"] = hostname.clone();
            }
            let list = if pods::ready(pod) || unready_too {
                &mut ready
            } else {
                &mut unready
            };
            list.push(address);
        }
        let mut subset = Map::new();
        for (field, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !list.is_empty() {
                subset.insert(field.to_owned(), list.into());
            }
        }
        if !subset.is_empty() {
            if !group.ports.is_empty() {
                subset.insert(
                    "ports".to_owned(),
                    unnamed_without_name(&group.ports).into(),
                );
            }
            subsets.push(Value::from(subset));
        }
    }
    let mut labels = service["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    labels.insert(
        "endpoints.kubernetes.io/managed-by".to_owned(),
        "endpoint-controller".into(),
    );
    if headless(service) {
        labels.insert(HEADLESS.to_owned(), "".into());
    }
    store_endpoints(world, ns, name(service), labels, subsets);
}

fn store_endpoints(
    world: &mut World,
    ns: &str,
    name: &str,
    labels: Map<String, Value>,
    subsets: Vec<Value>,
) {
    let now = world.now().seconds_text();
    let Some(stored) = world.store.get(Kind::Endpoints, ns, name) else {
        let mut endpoints = json!({
            "metadata": {
                "name": name,
                "namespace": ns,
                "labels": labels,
                "annotations": {TRIGGER_TIME: now},
            },
        });
        if !subsets.is_empty() {
            endpoints["subsets"] = subsets.into();
        }
        // The name was free a moment ago.
        let _ = world.create(Kind::Endpoints, endpoints);
        return;
    };
    if items(&stored["subsets"]) == subsets.as_slice()
        && stored["metadata"]["labels"].as_object() == Some(&labels)
    {
        return;
    }
    world.update(Kind::Endpoints, ns, name, |stored| {
        stored["metadata"]["labels"] = labels.into();
        stored["metadata"]["annotations"][TRIGGER_TIME] = now.into();
        if let Some(stored) = stored.as_object_mut() {
            stored.remove("subsets");
            if !subsets.is_empty() {
                stored.insert("subsets".to_owned(), subsets.into());
            }
        }
    });
}

fn unnamed_without_name(ports: &[Value]) -> Vec<Value> {
    let mut ports = ports.to_vec();
    for port in &mut ports {
        if port["name"] == ""
            && let Some(port) = port.as_object_mut()
        {
            port.remove("name");
        }
    }
    ports
}

#[cfg(test)]
mod tests;
