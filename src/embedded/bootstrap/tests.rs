//! What the populated cluster looks like.

use super::*;
use crate::embedded::image::Registry;
use crate::embedded::time::Time;

const START: Time = Time::from_micros(1_772_444_467_000_000);

fn populated() -> World {
    let mut world = World::new(7, START, Registry::default());
    populate(&mut world);
    world
}

#[test]
fn the_cluster_is_days_old_when_it_is_made() {
    let world = populated();
    let count = |kind| world.store.all(kind).count();
    assert_eq!(count(Kind::Namespace), 4);
    assert_eq!(count(Kind::Deployment), 3);
    assert_eq!(count(Kind::Service), 3);
    for kind in [
        Kind::Namespace,
        Kind::Node,
        Kind::Deployment,
        Kind::Service,
        Kind::ClusterRole,
    ] {
        for object in world.store.all(kind) {
            let created = object["metadata"]["creationTimestamp"].as_str().unwrap();
            assert!(created < "2026-02-19", "{created}");
        }
    }
}

#[test]
fn the_systems_pods_come_up_through_the_controllers() {
    let mut world = populated();
    world.run_until(world.now() + Duration::from_secs(5));
    let pods: Vec<&Arc<Value>> = world.store.within(Kind::Pod, "kube-system").collect();
    assert_eq!(pods.len(), 3);
    for pod in pods {
        assert_eq!(pod["spec"]["nodeName"], NODE);
        assert!(controllers::pods::ready(pod), "{pod}");
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    }
    for deployment in world.store.within(Kind::Deployment, "kube-system") {
        assert_eq!(deployment["status"]["availableReplicas"], 1, "{deployment}");
    }
    let slices = world
        .store
        .within(Kind::EndpointSlice, "kube-system")
        .count();
    assert_eq!(slices, 2);
}

#[test]
fn the_node_renews_its_lease() {
    let mut world = populated();
    let renewed = |world: &World| {
        let lease = world
            .store
            .get(Kind::Lease, "kube-node-lease", NODE)
            .unwrap();
        lease["spec"]["renewTime"].as_str().unwrap().to_owned()
    };
    let before = renewed(&world);
    world.run_until(world.now() + Duration::from_secs(14));
    assert!(renewed(&world) > before);
}

#[test]
fn nothing_says_what_kind_of_cluster_it_is() {
    let mut world = populated();
    world.run_until(world.now() + Duration::from_secs(2));
    for info in crate::embedded::kind::KINDS {
        for object in world.store.all(info.kind) {
            let text = object.to_string().to_lowercase();
            for word in ["simul", "fake", "kwok", "embedded", "breakage", "mock"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}

#[test]
fn the_past_has_left_no_events_and_the_clock_shows_the_time_it_showed() {
    let world = populated();
    assert_eq!(world.store.all(Kind::Event).count(), 0);
    assert_eq!(world.now(), START);
    assert!(world.store.resource_version() > CHANGES);
    let node = world.store.get(Kind::Node, "", NODE).unwrap();
    let condition = &node["status"]["conditions"][3];
    assert_eq!(condition["lastHeartbeatTime"], START.seconds_text());
    assert!(condition["lastTransitionTime"].as_str().unwrap() < "2026-02-19");
    for pod in world.store.all(Kind::Pod) {
        let created = pod["metadata"]["creationTimestamp"].as_str().unwrap();
        assert!(created < "2026-02-19", "{created}");
    }
}
