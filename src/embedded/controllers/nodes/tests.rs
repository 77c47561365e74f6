//! Behaviour of nodes.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::embedded::bootstrap::{self, NODE};
use crate::embedded::image::Registry;
use crate::embedded::time::Time;

fn world() -> World {
    let start = Time::from_micros(1_772_444_467_000_000);
    let mut world = World::new(7, start, Registry::default());
    bootstrap::populate(&mut world);
    world
}

fn run(world: &mut World, seconds: u64) {
    world.run_until(world.now() + Duration::from_secs(seconds));
}

fn node(world: &World) -> Value {
    (**world.store.get(Kind::Node, "", NODE).unwrap()).clone()
}

#[test]
fn a_silent_node_is_lost_after_its_grace_period_and_found_again() {
    let mut world = world();
    // A finalizer and no images: only its conditions matter here.
    let pod = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": NODE, "containers": []},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-02T09:41:07Z"},
            {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-03-02T09:41:06Z"},
        ]},
    });
    run(&mut world, 5);
    silence(&mut world, NODE, true);
    run(&mut world, 40);
    assert!(condition_is(&node(&world), "Ready", "True"));
    world.create(Kind::Pod, pod).unwrap();
    run(&mut world, 20);
    let lost = node(&world);
    let ready = condition(&lost, "Ready").unwrap();
    assert_eq!(ready["status"], "Unknown");
    assert_eq!(ready["message"], "Kubelet stopped posting node status.");
    assert_eq!(lost["spec"]["taints"][0]["key"], UNREACHABLE);
    assert_eq!(items(&lost["spec"]["taints"]).len(), 1);
    let told = world.store.all(Kind::Event).any(|e| {
        e["message"] == "Node node-1 status is now: NodeNotReady"
            && e["source"]["component"] == "node-controller"
    });
    assert!(told);
    silence(&mut world, NODE, false);
    run(&mut world, 10);
    assert!(condition_is(&node(&world), "Ready", "True"));
    assert_eq!(node(&world)["spec"].get("taints"), None);
}

#[test]
fn a_cordoned_node_is_tainted_and_its_kubelet_says_so() {
    let mut world = world();
    world.update(Kind::Node, "", NODE, |n| {
        n["spec"]["unschedulable"] = json!(true);
    });
    run(&mut world, 12);
    assert_eq!(node(&world)["spec"]["taints"][0]["key"], UNSCHEDULABLE);
    let event = world
        .store
        .all(Kind::Event)
        .find(|e| e["reason"] == "NodeNotSchedulable")
        .unwrap();
    assert_eq!(
        event["message"],
        "Node node-1 status is now: NodeNotSchedulable"
    );
    assert_eq!(event["involvedObject"]["uid"], NODE);
    assert_eq!(event["metadata"]["namespace"], "default");
    world.update(Kind::Node, "", NODE, |n| {
        n["spec"].as_object_mut().unwrap().remove("unschedulable");
    });
    run(&mut world, 1);
    assert_eq!(node(&world)["spec"].get("taints"), None);
}
