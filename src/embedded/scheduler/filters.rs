//! Whether a pod fits on a node. Filters are asked in a fixed order; the first that refuses gives the reasons.

use std::sync::Arc;

use serde_json::Value;

use crate::embedded::controllers::object::{
    items, map_selects, name, namespace, requirement_holds, selects,
};
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;
use crate::embedded::scheduler::affinity;
use crate::embedded::scheduler::resources::{self, Amounts};
use crate::embedded::world::World;

/// What kind of thing stands in a pod's way, so that only changes of that kind try it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Obstacle {
    NoNode,
    Node,
    Ports,
    Resources,
    Volume,
    Spread,
    PodAffinity,
}

/// The verdict about one node.
pub(super) enum Fit {
    /// It fits; `room` is what stays free, in thousandths of a cpu.
    Yes {
        room: i64,
    },
    No(Refusal),
}

/// Why a node does not take the pod.
#[derive(Debug)]
pub(super) struct Refusal {
    pub reasons: Vec<String>,
    /// Removing other pods would not help.
    pub hopeless: bool,
    pub obstacle: Obstacle,
}

impl Refusal {
    pub(super) fn new(reason: &str, hopeless: bool, obstacle: Obstacle) -> Refusal {
        Refusal {
            reasons: vec![reason.to_owned()],
            hopeless,
            obstacle,
        }
    }
}

/// Asks all filters about one node; `placed` are the pods on all nodes.
pub(super) fn fit(world: &World, pod: &Value, node: &Value, placed: &[&Arc<Value>]) -> Fit {
    let here: Vec<&Arc<Value>> = placed
        .iter()
        .filter(|other| other["spec"]["nodeName"] == node["metadata"]["name"])
        .copied()
        .collect();
    let refusal = refused(pod, node)
        .or_else(|| ports_taken(pod, &here))
        .or_else(|| too_small(pod, node, &here))
        .or_else(|| affinity::uneven(world, pod, node, placed))
        .or_else(|| affinity::incompatible(world, pod, node, placed));
    match refusal {
        Some(refusal) => Fit::No(refusal),
        None => Fit::Yes {
            room: free_cpu(node, &here),
        },
    }
}

/// Whether cordon, taints and the pod's wishes allow the node.
pub(super) fn admitted(pod: &Value, node: &Value) -> bool {
    refused(pod, node).is_none()
}

fn refused(pod: &Value, node: &Value) -> Option<Refusal> {
    cordoned(pod, node)
        .or_else(|| tainted(pod, node))
        .or_else(|| unwanted(pod, node))
}

/// A problem with the pod's volume claims that no node could solve.
pub(super) fn volumes(world: &World, pod: &Value) -> Option<String> {
    for volume in items(&pod["spec"]["volumes"]) {
        let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() else {
            continue;
        };
        let Some(stored) = world
            .store
            .get(Kind::PersistentVolumeClaim, namespace(pod), claim)
        else {
            return Some(format!("persistentvolumeclaim \"{claim}\" not found"));
        };
        let bound = stored["status"]["phase"] == "Bound";
        if !bound && !binds_late(world, stored) {
            return Some("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
    }
    None
}

/// Whether a claim waits for its first pod before it gets a volume.
fn binds_late(world: &World, claim: &Value) -> bool {
    claim["spec"]["storageClassName"]
        .as_str()
        .and_then(|class| world.store.get(Kind::StorageClass, "", class))
        .is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer")
}

fn cordoned(pod: &Value, node: &Value) -> Option<Refusal> {
    let tolerated = || {
        let taint = serde_json::json!({
            "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
        });
        tolerates(pod, &taint)
    };
    (node["spec"]["unschedulable"] == true && !tolerated())
        .then(|| Refusal::new("node(s) were unschedulable", true, Obstacle::Node))
}

fn tainted(pod: &Value, node: &Value) -> Option<Refusal> {
    items(&node["spec"]["taints"])
        .iter()
        .any(|taint| {
            matches!(taint["effect"].as_str(), Some("NoSchedule" | "NoExecute"))
                && !tolerates(pod, taint)
        })
        .then(|| Refusal::new("node(s) had untolerated taint(s)", true, Obstacle::Node))
}

/// Whether one of the pod's tolerations covers a taint.
fn tolerates(pod: &Value, taint: &Value) -> bool {
    items(&pod["spec"]["tolerations"])
        .iter()
        .any(|toleration| covers(toleration, taint))
}

/// Whether a toleration is about a taint.
pub(super) fn covers(toleration: &Value, taint: &Value) -> bool {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    let effect_fits = text("effect").is_empty() || toleration["effect"] == taint["effect"];
    let key_fits = text("key").is_empty() || toleration["key"] == taint["key"];
    let value_fits = text("operator") == "Exists"
        || (!text("key").is_empty()
            && text("value") == taint["value"].as_str().unwrap_or_default());
    effect_fits && key_fits && value_fits
}

fn unwanted(pod: &Value, node: &Value) -> Option<Refusal> {
    let labels = &node["metadata"]["labels"];
    let required =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let named = required.is_null()
        || items(&required["nodeSelectorTerms"]).iter().any(|term| {
            let fields = serde_json::json!({"metadata.name": name(node)});
            let some = term.get("matchExpressions").is_some() || term.get("matchFields").is_some();
            some && items(&term["matchExpressions"])
                .iter()
                .all(|requirement| requirement_holds(requirement, labels))
                && items(&term["matchFields"])
                    .iter()
                    .all(|requirement| requirement_holds(requirement, &fields))
        });
    let selected = map_selects(&pod["spec"]["nodeSelector"], labels);
    (!named || !selected).then(|| {
        let reason = "node(s) didn't match Pod's node affinity/selector";
        Refusal::new(reason, true, Obstacle::Node)
    })
}

fn host_ports(pod: &Value) -> Vec<(i64, String, String)> {
    items(&pod["spec"]["containers"])
        .iter()
        .flat_map(|container| items(&container["ports"]))
        .filter_map(|port| {
            let text =
                |field: &str, default: &str| port[field].as_str().unwrap_or(default).to_owned();
            let number = port["hostPort"].as_i64().filter(|number| *number > 0)?;
            Some((number, text("protocol", "TCP"), text("hostIP", "0.0.0.0")))
        })
        .collect()
}

fn ports_taken(pod: &Value, here: &[&Arc<Value>]) -> Option<Refusal> {
    let wanted = host_ports(pod);
    let any = |ip: &str| ip == "0.0.0.0";
    let taken = !wanted.is_empty()
        && here.iter().flat_map(|other| host_ports(other)).any(|used| {
            wanted.iter().any(|port| {
                port.0 == used.0
                    && port.1 == used.1
                    && (port.2 == used.2 || any(&port.2) || any(&used.2))
            })
        });
    taken.then(|| {
        let reason = "node(s) didn't have free ports for the requested pod ports";
        Refusal::new(reason, false, Obstacle::Ports)
    })
}

fn used(here: &[&Arc<Value>]) -> Amounts {
    let mut sum = Amounts::new();
    for other in here {
        resources::add(&mut sum, &resources::of_pod(other, "requests"));
    }
    sum
}

fn too_small(pod: &Value, node: &Value, here: &[&Arc<Value>]) -> Option<Refusal> {
    let allocatable = resources::amounts(&node["status"]["allocatable"]);
    let of = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or(Quantity::ZERO);
    let used = used(here);
    let mut reasons = Vec::new();
    let mut hopeless = false;
    if here.len() as i64 + 1 > of(&allocatable, "pods").value() {
        reasons.push("Too many pods".to_owned());
    }
    for (resource, wanted) in resources::of_pod(pod, "requests") {
        let whole = of(&allocatable, &resource);
        if !wanted.is_zero() && wanted > whole.minus(of(&used, &resource)) {
            hopeless |= wanted > whole;
            reasons.push(format!("Insufficient {resource}"));
        }
    }
    (!reasons.is_empty()).then_some(Refusal {
        reasons,
        hopeless,
        obstacle: Obstacle::Resources,
    })
}

fn free_cpu(node: &Value, here: &[&Arc<Value>]) -> i64 {
    let of = |amounts: &Amounts| amounts.get("cpu").map_or(0, |cpu| cpu.milli_value());
    of(&resources::amounts(&node["status"]["allocatable"])) - of(&used(here))
}

/// Whether a pod is of the kind a label selector and a set of namespaces describe.
pub(super) fn is_meant(selector: &Value, namespaces: &[&str], other: &Value) -> bool {
    namespaces.contains(&namespace(other)) && selects(selector, &other["metadata"]["labels"])
}
