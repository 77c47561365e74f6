//! Whole runs on the embedded cluster: every gate with its code, undo under an agent's hands, crashes, determinism.

#[path = "run/bench.rs"]
mod bench;
#[path = "run/control.rs"]
mod control;
#[path = "run/crash.rs"]
mod crash;
#[path = "run/cut.rs"]
mod cut;
#[path = "run/disk.rs"]
mod disk;
#[path = "run/harmless.rs"]
mod harmless;
#[path = "run/others.rs"]
mod others;

use agent_breakage::record::{FrameworkCode, RunState, StageName, StateChangeKind};
use agent_breakage::run::summary::Summary;

use bench::{Bench, Deed, Doing, fault};

/// The scenarios that need nothing but the advocate fixtures.
const ADVOCATE: [&str; 15] = [
    "bad-command-crashloop-advocate",
    "cpu-limit-throttling-advocate",
    "env-var-missing-advocate",
    "image-pull-failure-advocate",
    "liveness-probe-always-fails-advocate",
    "oom-advocate-api",
    "oom-advocate-api-k8s-only",
    "pod-pending-request-too-high-advocate",
    "readiness-probe-misconfigured-advocate",
    "replica-loss-amplification-advocate",
    "replicas-zero-advocate",
    "secret-missing-key-advocate",
    "secret-wrong-password-advocate",
    "serviceaccount-missing-advocate",
    "slow-startup-retry-storm-advocate",
];

#[test]
fn the_rules_repair_every_advocate_scenario_and_the_cluster_is_as_before() {
    let bench = Bench::new();
    for id in ADVOCATE {
        let scenario = bench.library.scenario(id).unwrap();
        let rules = bench.run_built_in(&scenario, "rules", 1);
        let noop = bench.run_built_in(&scenario, "noop", 1);
        let total = |finished: &agent_breakage::run::Finished| {
            finished.score.as_ref().map(|score| score.total.0)
        };
        let (good, floor) = (total(&rules), total(&noop));
        assert!(
            good >= Some(700_000) && good > floor,
            "{id}: {good:?}, noop {floor:?}"
        );
        assert_eq!(noop.record.state, RunState::Timeout, "{id}");
        for finished in [&rules, &noop] {
            let record = &finished.record;
            assert!(record.injected, "{id}");
            assert!(record.state_hash_before.is_some(), "{id}");
            assert_eq!(record.state_hash_before, record.state_hash_after, "{id}");
            assert!(!record.undo.quarantined && record.undo.succeeded, "{id}");
        }
        assert!(
            bench
                .store
                .journal::<serde_json::Value>()
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_two_workspaces_and_another_seed_others() {
    let text = |seed| {
        let bench = Bench::new();
        let scenario = bench
            .library
            .scenario("liveness-probe-always-fails-advocate")
            .unwrap();
        let finished = bench.run_built_in(&scenario, "rules", seed);
        serde_json::to_string(&Summary::of(&finished.record, finished.score.as_ref())).unwrap()
    };
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn a_second_run_of_the_same_seed_is_the_same_run() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let first = bench.run_built_in(&scenario, "rules", 3);
    let second = bench.run_built_in(&scenario, "rules", 3);
    assert_eq!(first.record, second.record);
    assert_eq!(bench.store.records().unwrap().len(), 1);
}

#[test]
fn whatever_makes_a_run_another_one_gives_it_another_id() {
    let scenario = Bench::new()
        .library
        .scenario("replicas-zero-advocate")
        .unwrap();
    let id = |change: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new();
        change(&mut bench);
        bench.run_built_in(&scenario, "noop", 3).record.run_id
    };
    let ids = std::collections::BTreeSet::from([
        id(&|_| ()),
        id(&|bench| bench.learn = true),
        id(&|bench| bench.rubric = "article"),
        id(&|bench| bench.fixtures = harmless::fixtures_with_another_limit()),
    ]);
    assert_eq!(ids.len(), 4, "{ids:?}");
}

/// Mutation, fixed_when, the code that the run ends with, and words of its message.
type Gate = (&'static str, &'static str, FrameworkCode, &'static str);

fn gates() -> [Gate; 9] {
    let ready = "deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas";
    let image = "spec.template.spec.containers[0].image = \"ghcr.io/acme/advocate-api:2.5.0\"";
    let request = "spec.template.spec.containers[0].resources.requests.memory = \"512Mi\"";
    let two = "deployment.prod-advocate.advocate-api.readyReplicas >= 2";
    let promql = "'promql: up == 1'";
    // Three replicas whose probe lets a minute pass: unready for longer than a rollout, and well again by itself.
    let heals = "spec.replicas = 3; \
                 spec.template.spec.containers[0].readinessProbe.initialDelaySeconds = 60";
    [
        (
            image,
            two,
            FrameworkCode::BaselineUnhealthy,
            "readyReplicas is 1",
        ),
        (
            image,
            promql,
            FrameworkCode::DetectorUnevaluable,
            "Prometheus",
        ),
        (
            "spec.replicas = 1",
            ready,
            FrameworkCode::InjectionWithoutEffect,
            "spec.replicas",
        ),
        (
            "spec.template.spec.containers[0].resources.limits.memory = \"0.25Gi\"",
            ready,
            FrameworkCode::InjectionWithoutEffect,
            "limits.memory",
        ),
        (
            "spec.template.spec.containers[name=ap].image = \"x:1\"",
            ready,
            FrameworkCode::InjectionWithoutEffect,
            "no element named ap; there are api",
        ),
        (
            request,
            ready,
            FrameworkCode::InjectionRefused,
            "must be less than or equal to memory limit",
        ),
        (
            "metadata.labels.tier = \"web\"",
            ready,
            FrameworkCode::FaultNotManifest,
            "readyReplicas is 1, desiredReplicas is 1, so the fault does not show",
        ),
        (
            "spec.replicsa = 3",
            ready,
            FrameworkCode::InjectionWithoutEffect,
            "has no field spec.replicsa",
        ),
        (
            heals,
            ready,
            FrameworkCode::FaultVanished,
            "had changed nothing",
        ),
    ]
}

#[test]
fn every_gate_ends_the_run_with_its_code_and_without_a_score() {
    let bench = Bench::new();
    for (mutation, fixed_when, expected, words) in gates() {
        let scenario = bench.scenario(&fault(mutation, fixed_when));
        let finished = bench.run_built_in(&scenario, "noop", 1);
        let RunState::FrameworkError { code, message } = &finished.record.state else {
            panic!("{mutation}: {:?}", finished.record.state);
        };
        assert_eq!(*code, expected, "{mutation}: {message}");
        assert!(message.contains(words), "{mutation}: {message}");
        assert!(finished.score.is_none(), "{mutation}");
        assert!(!finished.record.undo.quarantined, "{mutation}");
    }
    assert!(
        bench
            .store
            .journal::<serde_json::Value>()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_target_that_is_not_there_is_no_injection() {
    let bench = Bench::new();
    let text = fault(
        "spec.replicas = 0",
        "deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas",
    )
    .replace("deploy: advocate-api", "deploy: advocate-ui");
    let finished = bench.run_built_in(&bench.scenario(&text), "noop", 1);
    let RunState::FrameworkError { code, message } = &finished.record.state else {
        panic!("{:?}", finished.record.state);
    };
    assert_eq!(*code, FrameworkCode::InjectionWithoutEffect);
    assert!(
        message.contains("Deployment prod-advocate/advocate-ui does not exist"),
        "{message}"
    );
}

#[test]
fn what_an_agent_leaves_behind_is_told_and_taken_away() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let doing = Doing::new(vec![
        Deed::Create("ConfigMap", "prod-advocate", "scratch"),
        Deed::Merge(
            "Deployment",
            "prod-billing",
            "invoice-web",
            r#"{"spec":{"template":{"spec":{"priorityClassName":"","containers":[{"name":"web","image":"nginx:1.27","args":["-q"]}]}}}}"#,
        ),
        Deed::Merge(
            "Deployment",
            "prod-advocate",
            "advocate-api",
            r#"{"spec":{"replicas":1}}"#,
        ),
        Deed::Wait(60),
    ]);
    let record = bench.run(&scenario, &doing, 1).record;
    let told: Vec<(&str, &str, StateChangeKind, bool)> = record
        .state_changes
        .iter()
        .map(|c| (c.kind.as_str(), c.name.as_str(), c.what, c.in_scope))
        .collect();
    assert!(
        told.contains(&("ConfigMap", "scratch", StateChangeKind::Created, true)),
        "{told:?}"
    );
    assert!(
        told.iter().any(|(kind, name, what, in_scope)| {
            (*kind, *name, *what, *in_scope)
                == (
                    "Deployment",
                    "invoice-web",
                    StateChangeKind::FieldChanged,
                    false,
                )
        }),
        "{told:?}"
    );
    // The repaired field is the fault's own and no change to be told.
    assert!(
        !told.iter().any(|(_, name, ..)| *name == "advocate-api"),
        "{told:?}"
    );
    assert_eq!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn a_deleted_target_is_left_to_the_reset_and_comes_back() {
    let bench = Bench::new();
    let scenario = bench
        .library
        .scenario("image-pull-failure-advocate")
        .unwrap();
    let doing = Doing::new(vec![Deed::Delete(
        "Deployment",
        "prod-advocate",
        "advocate-api",
    )]);
    let record = bench.run(&scenario, &doing, 1).record;
    assert!(!record.detector.fixed);
    assert!(record.undo.succeeded);
    assert_eq!(
        record.undo.kept,
        ["Deployment prod-advocate/advocate-api is gone and was not put back"]
    );
    assert_eq!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn a_deleted_namespace_is_made_again() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let doing = Doing::new(vec![Deed::Delete("Namespace", "", "prod-advocate")]);
    let record = bench.run(&scenario, &doing, 1).record;
    assert!(!record.detector.fixed && record.undo.succeeded);
    assert!(!record.undo.quarantined, "{:?}", record.stages.last());
    assert_eq!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn what_a_finalizer_holds_quarantines_the_cluster_and_the_run_keeps_its_score() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let doing = Doing::new(vec![
        Deed::Merge(
            "Deployment",
            "prod-advocate",
            "advocate-api",
            r#"{"metadata":{"finalizers":["example.com/hold"]}}"#,
        ),
        Deed::Delete("Deployment", "prod-advocate", "advocate-api"),
    ]);
    let finished = bench.run(&scenario, &doing, 1);
    assert_eq!(finished.record.state, RunState::Timeout);
    assert!(finished.score.is_some());
    assert!(finished.record.undo.quarantined);
    assert_eq!(finished.record.state_hash_after, None);
}

#[test]
fn undo_keeps_what_the_agent_made_of_the_field() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("oom-advocate-api-k8s-only").unwrap();
    let doing = Doing::new(vec![
        Deed::Strategic(
            "Deployment",
            "prod-advocate",
            "advocate-api",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"api","resources":{"limits":{"memory":"512Mi"}}}]}}}}"#,
        ),
        Deed::Wait(60),
    ]);
    let record = bench.run(&scenario, &doing, 1).record;
    assert!(record.detector.fixed);
    assert!(record.undo.kept[0].ends_with("limits.memory: changed by someone else"));
    assert_eq!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn a_repair_written_at_the_last_moment_still_counts_when_it_lasts() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let doing = Doing::new(vec![Deed::Merge(
        "Deployment",
        "prod-advocate",
        "advocate-api",
        r#"{"spec":{"replicas":1}}"#,
    )]);
    let finished = bench.run(&scenario, &doing, 1);
    assert!(finished.record.detector.fixed);
    // Without a postmortem the run is a timeout by rule, and its repair counts all the same.
    assert_eq!(finished.record.state, RunState::Timeout);
    let score = finished.score.unwrap();
    assert_eq!(score.axes.fixed.earned, score.axes.fixed.possible);
    assert_eq!(score.axes.diagnosed.earned.0, 0);
}

#[test]
fn an_agent_that_breaks_down_or_outstays_the_budget_fails_itself_and_not_the_run() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    for (deed, note) in [
        (Deed::Panic, "the agent broke down"),
        (Deed::Wait(10_000), "the time budget ended"),
        (
            Deed::Delete("Deployment", "nowhere", "nothing"),
            "the agent left without a postmortem",
        ),
    ] {
        let record = bench.run(&scenario, &Doing::new(vec![deed]), 1).record;
        assert_eq!(record.state, RunState::Timeout);
        let work = record
            .stages
            .iter()
            .find(|s| s.stage == StageName::Work)
            .unwrap();
        assert_eq!(work.note.as_deref(), Some(note));
        assert_eq!(record.state_hash_before, record.state_hash_after);
    }
}

#[test]
fn an_interruption_during_the_work_undoes_and_is_recorded() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    let doing = Doing::new(vec![
        Deed::Wait(20),
        Deed::Interrupt(bench.stop.clone()),
        Deed::Wait(500),
    ]);
    let record = bench.run(&scenario, &doing, 1).record;
    assert!(
        matches!(&record.state, RunState::FrameworkError { code, .. } if *code == FrameworkCode::Interrupted),
        "{:?}",
        record.state
    );
    assert!(record.undo.attempted && record.undo.succeeded);
    assert_eq!(record.state_hash_before, record.state_hash_after);
    assert_eq!(bench.store.records().unwrap().len(), 1);
}

#[test]
fn a_postmortem_waits_in_quarantine_unless_the_run_was_to_learn() {
    let scenario_run = |learn: bool| {
        let mut bench = Bench::new();
        bench.learn = learn;
        let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
        let before = bench.served_count();
        bench.run_built_in(&scenario, "rules", 1);
        (
            bench.store.postmortem_count().unwrap(),
            bench.served_count() - before,
        )
    };
    let (kept, served) = scenario_run(false);
    assert_eq!(served, 0);
    assert_eq!(scenario_run(true), (kept, 1));
}
