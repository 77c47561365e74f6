//! The node, its lease, and the API server's own Service.

use serde_json::{Value, json};

use crate::embedded::bootstrap::{NODE, NODE_ADDRESS, place};
use crate::embedded::controllers::nodes::HEALTHY;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

pub(super) fn populate(world: &mut World) {
    let status = status(world);
    let node = json!({
        "metadata": {
            "name": NODE,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"podCIDR": "10.42.0.0/24", "podCIDRs": ["10.42.0.0/24"]},
    });
    let placed = place(world, Kind::Node, "", node);
    world.update(Kind::Node, "", NODE, |node| node["status"] = status);
    let uid = placed.map_or(Value::Null, |node| node["metadata"]["uid"].clone());
    let lease = json!({
        "metadata": {
            "name": NODE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid}],
        },
        "spec": {
            "holderIdentity": NODE,
            "leaseDurationSeconds": 40,
            "renewTime": world.now().micros_text(),
        },
    });
    place(world, Kind::Lease, "kube-node-lease", lease);
    api_service(world);
}

fn condition(world: &World, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind,
        "status": status,
        "lastHeartbeatTime": world.now().seconds_text(),
        "lastTransitionTime": world.now().seconds_text(),
        "reason": reason,
        "message": message,
    })
}

fn status(world: &mut World) -> Value {
    let conditions: Vec<Value> = HEALTHY
        .iter()
        .map(|(kind, status, reason, message)| condition(world, kind, status, reason, message))
        .collect();
    json!({
        "addresses": [
            {"type": "InternalIP", "address": NODE_ADDRESS},
            {"type": "Hostname", "address": NODE},
        ],
        "capacity": {
            "cpu": "2",
            "ephemeral-storage": "264212084Ki",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": "24614744Ki",
            "pods": "110",
        },
        "allocatable": {
            "cpu": "2",
            "ephemeral-storage": "243497856614",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": "24512344Ki",
            "pods": "110",
        },
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": world.uid(),
            "containerRuntimeVersion": "containerd://1.6.20",
            "kernelVersion": "6.1.0-41-amd64",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.34.4",
            "machineID": world.hex_id(32),
            "operatingSystem": "linux",
            "osImage": "Debian GNU/Linux 12 (bookworm)",
            "systemUUID": world.uid(),
        },
    })
}

fn api_service(world: &mut World) {
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.43.0.1",
            "clusterIPs": ["10.43.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    });
    place(world, Kind::Service, "default", service);
    let endpoints = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": NODE_ADDRESS}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        }],
    });
    place(world, Kind::Endpoints, "default", endpoints);
    let slice = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    });
    place(world, Kind::EndpointSlice, "default", slice);
}
