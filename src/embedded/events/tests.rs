//! Behaviour of event recording.

use super::*;
use crate::embedded::image::Registry;

fn world() -> World {
    let mut world = World::new(
        1,
        Time::from_micros(1_772_444_467_000_000),
        Registry::default(),
    );
    for name in ["default", "shop"] {
        world
            .create(Kind::Namespace, json!({"metadata": {"name": name}}))
            .unwrap();
    }
    world
}

fn pod() -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata":
        {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"}})
}

fn say(world: &mut World, reason: &str, message: &str) {
    let pod = pod();
    record(
        world,
        NewEvent {
            about: &pod,
            field_path: Some("spec.containers{api}".to_owned()),
            warning: true,
            reason,
            message: message.to_owned(),
            component: "kubelet",
            host: Some("node-1"),
        },
    );
}

fn stored(world: &World) -> Vec<Value> {
    world
        .store
        .within(Kind::Event, "shop")
        .map(|e| (**e).clone())
        .collect()
}

#[test]
fn an_equal_event_counts_the_first_one_up() {
    let mut world = world();
    say(&mut world, "Unhealthy", "404");
    world.run_until(world.now() + Duration::from_secs(10));
    say(&mut world, "Unhealthy", "404");
    let events = stored(&world);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 2);
    assert_eq!(events[0]["firstTimestamp"], "2026-03-02T09:41:07Z");
    assert_eq!(events[0]["lastTimestamp"], "2026-03-02T09:41:17Z");
    assert_eq!(
        events[0]["involvedObject"]["fieldPath"],
        "spec.containers{api}"
    );
    assert_eq!(events[0]["involvedObject"]["uid"], "u1");
    assert_eq!(events[0]["reportingComponent"], "kubelet");
    assert!(
        events[0]["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("web.18")
    );
}

#[test]
fn the_tenth_similar_message_is_combined() {
    let mut world = world();
    for n in 0..12 {
        say(&mut world, "FailedCreate", &format!("pod {n}"));
    }
    let mut events = stored(&world);
    events.sort_by_key(|e| e["message"].to_string());
    assert_eq!(events.len(), 10);
    assert_eq!(
        events[0]["message"],
        "(combined from similar events): pod 11"
    );
    assert_eq!(events[0]["count"], 3);
    assert_eq!(events[0]["reportingComponent"], "");
    assert_eq!(events[1]["count"], 1);
}

#[test]
fn a_burst_of_more_than_twenty_five_events_is_cut_off_and_counted_later() {
    let mut world = world();
    for _ in 0..40 {
        say(&mut world, "BackOff", "again");
    }
    assert_eq!(stored(&world)[0]["count"], 25);
    world.run_until(world.now() + Duration::from_secs(301));
    say(&mut world, "BackOff", "again");
    assert_eq!(stored(&world)[0]["count"], 41);
}

#[test]
fn events_go_an_hour_after_their_last_write() {
    let mut world = world();
    say(&mut world, "BackOff", "once");
    say(&mut world, "Unhealthy", "twice");
    world.run_until(world.now() + Duration::from_secs(1800));
    say(&mut world, "Unhealthy", "twice");
    world.run_until(world.now() + Duration::from_secs(1900));
    let events = stored(&world);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["message"], "twice");
    world.run_until(world.now() + Duration::from_secs(1900));
    assert!(stored(&world).is_empty());
}

#[test]
fn scheduler_events_have_a_time_and_an_action_and_no_count() {
    let mut world = world();
    let pod = pod();
    for _ in 0..3 {
        record_scheduler(
            &mut world,
            SchedulerEvent {
                about: &pod,
                warning: true,
                reason: "FailedScheduling",
                action: "Scheduling",
                message: "no".to_owned(),
            },
        );
    }
    let events = stored(&world);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["eventTime"], "2026-03-02T09:41:07.000000Z");
    assert_eq!(events[0]["firstTimestamp"], Value::Null);
    assert_eq!(events[0].get("count"), None);
    assert_eq!(events[0]["series"]["count"], 2);
}

#[test]
fn no_event_is_written_into_a_namespace_that_is_not_there() {
    let mut world = world();
    let mut pod = pod();
    pod["metadata"]["namespace"] = "gone".into();
    record(
        &mut world,
        NewEvent {
            about: &pod,
            field_path: None,
            warning: false,
            reason: "Killing",
            message: "Stopping container api".to_owned(),
            component: "kubelet",
            host: None,
        },
    );
    assert_eq!(world.store.all(Kind::Event).count(), 0);
}
