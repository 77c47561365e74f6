//! Behaviour of the scheduler on one small node.

use super::*;
use crate::embedded::controllers::object::condition;
use crate::embedded::image::Registry;

fn world() -> World {
    let mut world = World::new(
        1,
        Time::from_micros(1_772_444_467_000_000),
        Registry::default(),
    );
    let create = |world: &mut World, kind, object| world.create(kind, object).unwrap();
    create(
        &mut world,
        Kind::Namespace,
        json!({"metadata": {"name": "shop"}}),
    );
    create(
        &mut world,
        Kind::Node,
        json!({
            "metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}},
            "spec": {},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}},
        }),
    );
    world
}

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "c", "image": "busybox"}]);
    }
    json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": spec,
        "status": {"phase": "Pending"},
    })
}

fn requesting(name: &str, cpu: &str) -> Value {
    pod(
        name,
        json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}),
    )
}

fn run(world: &mut World, seconds: u64) {
    world.run_until(world.now() + Duration::from_secs(seconds));
}

fn get(world: &World, name: &str) -> Value {
    (**world.store.get(Kind::Pod, "shop", name).unwrap()).clone()
}

fn message(world: &World, name: &str) -> String {
    get(world, name)["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn refusals(world: &World) -> usize {
    world
        .store
        .all(Kind::Event)
        .filter(|e| e["reason"] == "FailedScheduling")
        .count()
}

/// Creates a pod and returns why it could not be placed.
fn refused(world: &mut World, spec: Value) -> String {
    world.create(Kind::Pod, pod("late", spec)).unwrap();
    run(world, 1);
    let text = message(world, "late");
    assert_eq!(
        get(world, "late")["status"]["conditions"][0]["reason"],
        "Unschedulable"
    );
    text
}

const HOPELESS: &str = "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is \
                        not helpful for scheduling.";

#[test]
fn a_pod_that_fits_is_bound_and_the_binding_is_an_event() {
    let mut world = world();
    world.create(Kind::Pod, requesting("web", "500m")).unwrap();
    run(&mut world, 1);
    let pod = get(&world, "web");
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    let scheduled = condition(&pod, "PodScheduled").unwrap();
    assert_eq!(scheduled["status"], "True");
    assert_eq!(pod["metadata"]["generation"], 1);
    let event = world.store.all(Kind::Event).next().unwrap();
    assert_eq!(event["message"], "Successfully assigned shop/web to node-1");
    assert_eq!(event["action"], "Binding");
}

#[test]
fn more_than_the_node_has_is_refused_for_good_and_more_than_is_free_until_a_pod_leaves() {
    let mut world = world();
    world
        .create(Kind::Pod, requesting("first", "1500m"))
        .unwrap();
    run(&mut world, 1);
    world.create(Kind::Pod, requesting("huge", "32")).unwrap();
    world.create(Kind::Pod, requesting("second", "1")).unwrap();
    run(&mut world, 2);
    assert_eq!(
        message(&world, "huge"),
        format!("0/1 nodes are available: 1 Insufficient cpu. {HOPELESS}")
    );
    assert!(message(&world, "second").ends_with("1 No preemption victims found for incoming pod."));
    world.store.remove(Kind::Pod, "shop", "first").unwrap();
    run(&mut world, 2);
    assert_eq!(get(&world, "second")["spec"]["nodeName"], "node-1");
}

#[test]
fn node_selectors_taints_and_cordons_have_their_own_words() {
    let mut world = world();
    let text = refused(&mut world, json!({"nodeSelector": {"disk": "ssd"}}));
    assert_eq!(
        text,
        format!(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {HOPELESS}"
        )
    );
    world.store.remove(Kind::Pod, "shop", "late").unwrap();
    world.update(Kind::Node, "", "node-1", |n| {
        n["spec"]["unschedulable"] = true.into();
    });
    let text = refused(&mut world, json!({}));
    assert!(text.starts_with("0/1 nodes are available: 1 node(s) were unschedulable. "));
    world.update(Kind::Node, "", "node-1", |n| {
        n["spec"] = json!({"taints": [{"key": "a", "effect": "NoSchedule"}]});
    });
    run(&mut world, 2);
    assert!(message(&world, "late").contains("1 node(s) had untolerated taint(s). "));
    world.update(Kind::Node, "", "node-1", |n| n["spec"] = json!({}));
    run(&mut world, 3);
    assert_eq!(get(&world, "late")["spec"]["nodeName"], "node-1");
}

#[test]
fn two_pods_that_shun_each_other_do_not_share_a_node() {
    let mut world = world();
    let shun = json!({"affinity": {"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    ]}}});
    world.create(Kind::Pod, pod("web", shun.clone())).unwrap();
    run(&mut world, 1);
    let text = refused(&mut world, shun);
    assert_eq!(
        text,
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to \
         deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
}

#[test]
fn missing_and_unbound_claims_are_named() {
    let mut world = world();
    let spec = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "cases"}}]});
    let text = refused(&mut world, spec);
    assert_eq!(
        text,
        "0/1 nodes are available: persistentvolumeclaim \"cases\" not found. not found"
    );
    let claim = json!({"metadata": {"name": "cases", "namespace": "shop"}, "spec": {}});
    world.create(Kind::PersistentVolumeClaim, claim).unwrap();
    run(&mut world, 2);
    assert_eq!(
        message(&world, "late"),
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    );
}

#[test]
fn a_waiting_pod_is_left_alone_for_five_minutes() {
    let mut world = world();
    world.create(Kind::Pod, requesting("huge", "32")).unwrap();
    run(&mut world, 299);
    assert_eq!(refusals(&world), 1);
    run(&mut world, 40);
    assert_eq!(refusals(&world), 2);
}
