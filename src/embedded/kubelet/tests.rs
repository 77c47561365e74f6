//! The kubelet driven directly: pods put into a world without an API server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::image::program::{Amount, Line, Listen, Path, Program, Protocol, Step};
use crate::embedded::image::{DEFAULT_PATH, Image, Registry};
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::{LogRequest, logs};
use crate::embedded::time::Time;
use crate::embedded::world::World;

fn world() -> World {
    let mut registry = Registry::default();
    let mut image = Image {
        digest: format!("sha256:{}", "a".repeat(64)),
        env: vec![("PATH".to_owned(), DEFAULT_PATH.to_owned())],
        ..Image::default()
    }
    .with_tools(&[
        "sh", "sleep", "echo", "cat", "true", "false", "test", "dd", "touch", "kill", "env",
    ])
    .with_program("/bin/server", server());
    image.cmd = vec!["sh".to_owned()];
    assert!(registry.add("docker.io/library/tools:1", Arc::new(image), true));
    let start = Time::parse("2026-03-02T09:00:00Z").unwrap();
    let mut world = World::new(3, start, registry);
    // Events are kept in namespaces that exist.
    let namespace = json!({"metadata": {"name": "a"}});
    world.create(Kind::Namespace, namespace).unwrap();
    world
}

fn server() -> Program {
    Program {
        name: "server".to_owned(),
        base_kib: 2_000,
        steps: vec![
            Step::HandleTerm {
                line: Some(Line::plain("bye")),
                exit: 0,
                drain_ms: 1000,
            },
            Step::Leak {
                kib_per_minute: Amount::env("LEAK_KIB", 0),
            },
            Step::Listen(Listen {
                port: Amount::fixed(8080),
                loopback: false,
                speaks: Protocol::Http {
                    paths: vec![Path {
                        path: "/ok".to_owned(),
                        prefix: false,
                        status: 200,
                        cpu_us_each: 100,
                        cpu_times: Amount::fixed(1),
                        ..Path::default()
                    }],
                    not_found: String::new(),
                },
            }),
        ],
        ..Program::default()
    }
}

fn put(world: &mut World, container: Value, more: Value) {
    let mut container = container;
    container["name"] = "c".into();
    container["image"] = "tools:1".into();
    let mut spec =
        json!({"nodeName": "node-1", "containers": [container], "restartPolicy": "Always"});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let pod = json!({"metadata": {"name": "p", "namespace": "a"}, "spec": spec});
    world.create(Kind::Pod, pod).unwrap();
}

fn run(world: &mut World, seconds: u64) {
    let until = world.now() + Duration::from_secs(seconds);
    world.run_until(until);
}

fn status(world: &World) -> Value {
    world.store.get(Kind::Pod, "a", "p").unwrap()["status"].clone()
}

fn log(world: &World) -> String {
    logs(world, "a", "p", &LogRequest::default()).unwrap()
}

#[test]
fn a_shell_line_runs_and_its_output_is_the_log() {
    let mut world = world();
    let line = "A=x; for i in 1 2; do echo \"$A$i\"; done; test -e /nope || echo none; exit 3";
    put(
        &mut world,
        json!({"command": ["sh", "-c", line]}),
        json!({"restartPolicy": "Never"}),
    );
    run(&mut world, 10);
    assert_eq!(log(&world), "x1\nx2\nnone\n");
    let status = status(&world);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(
        status["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        3
    );
}

#[test]
fn a_command_that_is_not_there_says_so_with_127() {
    let mut world = world();
    put(
        &mut world,
        json!({"command": ["sh", "-c", "nope --x"]}),
        json!({"restartPolicy": "Never"}),
    );
    run(&mut world, 10);
    assert_eq!(log(&world), "sh: nope: not found\n");
    assert_eq!(
        status(&world)["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        127
    );
}

#[test]
fn a_background_job_that_fills_a_volume_gets_the_pod_evicted() {
    let mut world = world();
    let line = "(sleep 3; dd if=/dev/zero of=/scratch/f bs=1M count=20 2>/dev/null) & exec server";
    put(
        &mut world,
        json!({"command": ["sh", "-c", line], "volumeMounts": [{"name": "s", "mountPath": "/scratch"}]}),
        json!({"volumes": [{"name": "s", "emptyDir": {"sizeLimit": "5Mi"}}]}),
    );
    run(&mut world, 150);
    // The server ended in good order, so the pod reads as succeeded although it was told to go.
    assert_eq!(status(&world)["phase"], "Succeeded");
}

#[test]
fn a_loop_that_doubles_a_text_or_forks_without_end_stays_small() {
    let mut world = world();
    let line =
        "X=$(echo a b | cat | cat); echo \"$X\"; while true; do X=\"$X$X\"; sleep 1000 & done";
    put(
        &mut world,
        json!({"command": ["sh", "-c", line]}),
        json!({}),
    );
    run(&mut world, 2);
    assert!(log(&world).starts_with("a b\n"), "{}", &log(&world)[..80]);
    run(&mut world, 10);
    let pod = world.kubelet.pods.values().next().unwrap();
    assert!(pod.runs[0].processes.len() <= 256);
}

#[test]
fn a_leak_ends_in_an_out_of_memory_kill() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["server"],
            "env": [{"name": "LEAK_KIB", "value": "4096"}],
            "resources": {"limits": {"memory": "10Mi"}},
        }),
        json!({}),
    );
    run(&mut world, 100);
    assert!(status(&world)["containerStatuses"][0]["state"]["running"].is_object());
    run(&mut world, 60);
    let container = status(&world)["containerStatuses"][0].clone();
    assert_eq!(container["restartCount"], 1);
    assert_eq!(container["lastState"]["terminated"]["reason"], "OOMKilled");
}

#[test]
fn a_shell_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["sh", "-c", "while true; do sleep 1; done"],
            "livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 1},
        }),
        json!({"terminationGracePeriodSeconds": 5}),
    );
    run(&mut world, 20);
    let last = status(&world)["containerStatuses"][0]["lastState"]["terminated"].clone();
    assert_eq!(last["exitCode"], 137);
    assert_eq!(last["reason"], "Error");
}

#[test]
fn a_trap_ends_a_waiting_shell_at_once() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["sh", "-c", "trap 'echo bye; exit 0' TERM; sleep 1000 & wait"],
            "livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 1},
        }),
        json!({}),
    );
    run(&mut world, 20);
    let last = status(&world)["containerStatuses"][0]["lastState"]["terminated"].clone();
    assert_eq!(last["exitCode"], 0);
}

#[test]
fn an_idle_ready_pod_costs_next_to_nothing() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["server"],
            "readinessProbe": {"httpGet": {"path": "/ok", "port": 8080}, "periodSeconds": 5},
        }),
        json!({}),
    );
    run(&mut world, 30);
    let before = world.store.resource_version();
    assert_eq!(status(&world)["containerStatuses"][0]["ready"], true);
    run(&mut world, 600);
    assert_eq!(world.store.resource_version(), before);
}

fn reasons(world: &World) -> Vec<String> {
    world
        .store
        .all(Kind::Event)
        .map(|event| {
            format!(
                "{} {}",
                event["reason"].as_str().unwrap(),
                event["message"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn a_post_start_hook_that_fails_ends_the_container_and_is_told_as_why_it_waits() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["sleep", "3600"],
            "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 9"]}}},
        }),
        json!({"terminationGracePeriodSeconds": 2}),
    );
    run(&mut world, 7);
    let waiting = status(&world)["containerStatuses"][0]["state"]["waiting"].clone();
    assert_eq!(waiting["reason"], "PostStartHookError");
    let message = waiting["message"].as_str().unwrap();
    assert!(message.ends_with(
        "failed - error: command 'sh -c echo no; exit 9' exited with 9, message: \"no\\n\""
    ));
    let reasons = reasons(&world);
    assert!(reasons.contains(&"FailedPostStartHook PostStartHook failed".to_owned()));
    assert!(reasons.contains(&"Killing FailedPostStartHook".to_owned()));
}

#[test]
fn a_pod_is_not_running_until_its_post_start_hook_is_over() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["sleep", "3600"],
            "lifecycle": {"postStart": {"exec": {"command": ["sleep", "15"]}}},
        }),
        json!({}),
    );
    run(&mut world, 10);
    assert_eq!(status(&world)["phase"], "Pending");
    run(&mut world, 10);
    assert_eq!(status(&world)["phase"], "Running");
}

#[test]
fn a_pre_stop_hook_longer_than_the_grace_period_leaves_two_seconds_for_the_end() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["sh", "-c", "while true; do sleep 1; done"],
            "lifecycle": {"preStop": {"exec": {"command": ["sleep", "60"]}}},
            "livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 1},
        }),
        json!({"terminationGracePeriodSeconds": 5}),
    );
    let ended = |world: &World| {
        let state = status(world)["containerStatuses"][0].clone();
        state["restartCount"] == 1
    };
    for _ in 0..20 {
        if reasons(&world)
            .iter()
            .any(|text| text.starts_with("Killing"))
        {
            break;
        }
        run(&mut world, 1);
    }
    run(&mut world, 5);
    assert!(!ended(&world));
    run(&mut world, 4);
    assert!(ended(&world));
}

#[test]
fn a_sidecar_starts_first_stays_and_ends_after_the_others() {
    let mut world = world();
    put(
        &mut world,
        json!({"command": ["sleep", "5"]}),
        json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "initContainers": [{"name": "side", "image": "tools:1", "restartPolicy": "Always", "command": ["sleep", "3600"]}],
        }),
    );
    run(&mut world, 5);
    let early = status(&world);
    assert_eq!(early["phase"], "Running");
    assert_eq!(early["initContainerStatuses"][0]["ready"], true);
    run(&mut world, 15);
    let late = status(&world);
    assert_eq!(late["phase"], "Succeeded");
    assert!(late["initContainerStatuses"][0]["state"]["terminated"].is_object());
}

#[test]
fn a_probe_of_a_port_by_a_wrong_name_is_told_and_counts_for_nothing() {
    let mut world = world();
    put(
        &mut world,
        json!({
            "command": ["server"],
            "livenessProbe": {"httpGet": {"path": "/ok", "port": "web"}, "periodSeconds": 2},
        }),
        json!({}),
    );
    run(&mut world, 60);
    assert_eq!(status(&world)["containerStatuses"][0]["restartCount"], 0);
    assert!(reasons(&world).iter().any(|text| text
        == "Unhealthy Liveness probe errored and resulted in unknown state: strconv.Atoi: parsing \"web\": invalid syntax"));
}

#[test]
fn a_pod_bound_to_a_node_that_is_not_there_stays_pending() {
    let mut world = world();
    let node = json!({"metadata": {"name": "node-2"}});
    world.create(Kind::Node, node).unwrap();
    put(&mut world, json!({"command": ["sleep", "1"]}), json!({}));
    run(&mut world, 20);
    assert!(status(&world).get("containerStatuses").is_none());
}

#[test]
fn a_tool_killed_for_want_of_memory_is_told_as_the_containers_end() {
    let mut world = world();
    let line = "dd if=/dev/zero of=/dev/null bs=64M count=1; echo rc $?; exit 3";
    put(
        &mut world,
        json!({"command": ["sh", "-c", line], "resources": {"limits": {"memory": "16Mi"}}}),
        json!({"restartPolicy": "Never"}),
    );
    run(&mut world, 10);
    assert_eq!(log(&world), "Killed\nrc 137\n");
    let ended = status(&world)["containerStatuses"][0]["state"]["terminated"].clone();
    assert_eq!(ended["reason"], "OOMKilled");
}

#[test]
fn a_missing_pull_secret_is_told_and_the_pull_is_tried_all_the_same() {
    let mut world = world();
    put(
        &mut world,
        json!({"command": ["sleep", "3600"]}),
        json!({"imagePullSecrets": [{"name": "registry"}]}),
    );
    run(&mut world, 10);
    assert_eq!(status(&world)["phase"], "Running");
    assert!(reasons(&world).iter().any(|text| text
        == "FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed."));
}
