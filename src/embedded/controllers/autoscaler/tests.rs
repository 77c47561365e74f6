//! Behaviour of autoscalers, on the pods of the populated cluster's own DNS.

use super::*;
use crate::embedded::bootstrap;
use crate::embedded::image::Registry;

const NS: &str = "kube-system";

fn scaled_dns(resource: &str, request: Value, maximum: i64) -> World {
    let start = Time::from_micros(1_772_444_467_000_000);
    let mut world = World::new(7, start, Registry::default());
    bootstrap::populate(&mut world);
    world.update(Kind::Deployment, NS, "coredns", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": request});
    });
    world.run_until(world.now() + Duration::from_secs(60));
    let scaler = json!({
        "metadata": {"name": "coredns", "namespace": NS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"},
            "minReplicas": 1,
            "maxReplicas": maximum,
            "metrics": [{"type": "Resource", "resource": {"name": resource,
                "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    });
    world.create(Kind::HorizontalPodAutoscaler, scaler).unwrap();
    world.run_until(world.now() + Duration::from_secs(40));
    world
}

fn reason(world: &World, kind: &str) -> String {
    let scaler = world
        .store
        .get(Kind::HorizontalPodAutoscaler, NS, "coredns")
        .unwrap();
    condition(scaler, kind).unwrap()["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn said(world: &World, message: &str) -> bool {
    world
        .store
        .all(Kind::Event)
        .any(|e| e["message"].as_str().unwrap().starts_with(message))
}

#[test]
fn use_above_the_target_scales_up_to_the_maximum() {
    let world = scaled_dns("memory", json!({"memory": "4Mi"}), 2);
    let target = world.store.get(Kind::Deployment, NS, "coredns").unwrap();
    assert_eq!(replicas(target), 2);
    assert!(said(
        &world,
        "New size: 2; reason: memory resource utilization (percentage of request) above target"
    ));
    assert_eq!(reason(&world, "ScalingLimited"), "TooManyReplicas");
    assert_eq!(reason(&world, "ScalingActive"), "ValidMetricFound");
}

#[test]
fn a_missing_request_is_named() {
    let world = scaled_dns("cpu", json!({"memory": "4Mi"}), 3);
    assert!(said(
        &world,
        "failed to get cpu utilization: missing request for cpu in container coredns of Pod coredns-"
    ));
    assert!(said(
        &world,
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: "
    ));
    assert_eq!(reason(&world, "ScalingActive"), "FailedGetResourceMetric");
}
