//! Changes that break nothing are no faults, and the records of repetitions do not depend on who was faster.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::sync::Arc;

use agent_breakage::agent;
use agent_breakage::cluster::fixture::{Fixtures, written_out};
use agent_breakage::ids::{FixtureId, Seed};
use agent_breakage::record::{FrameworkCode, RunState};
use agent_breakage::run::repeat::{Repetitions, repeat};

use crate::bench::{Bench, fault};

/// The compiled-in fixtures, with one that differs from its own in the memory limit of its neighbours.
pub fn fixtures_with_another_limit() -> Fixtures {
    let folder = tempfile::tempdir().unwrap();
    let (path, text) = written_out(&FixtureId::new("advocate")).unwrap();
    let path = folder.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.replace("64Mi", "72Mi")).unwrap();
    Fixtures::open(folder.path()).unwrap()
}

#[test]
fn the_gap_of_an_ordinary_rollout_is_no_fault() {
    let bench = Bench::new();
    for mutation in [
        "spec.template.metadata.annotations.note = \"x\"",
        "spec.template.spec.containers[0].env[name=LOG_LEVEL].value = \"debug\"",
        "spec.template.spec.containers[0].resources.limits.memory = \"200Mi\"",
        "spec.replicas = 5",
    ] {
        for fixed_when in [
            "deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas",
            "deployment.prod-advocate.advocate-api.readyReplicas == 1",
        ] {
            if mutation == "spec.replicas = 5" && fixed_when.ends_with('1') {
                continue;
            }
            let scenario = bench.scenario(&fault(mutation, fixed_when));
            let record = bench.run_built_in(&scenario, "noop", 1).record;
            assert!(
                matches!(&record.state, RunState::FrameworkError { code, .. }
                    if *code == FrameworkCode::FaultNotManifest),
                "{mutation}: {:?}",
                record.state
            );
        }
    }
}

#[test]
fn the_store_is_the_same_with_one_thread_and_with_two() {
    let content = |jobs| {
        let mut bench = Bench::new();
        bench.learn = true;
        let scenario = bench
            .library
            .scenario("secret-missing-key-advocate")
            .unwrap();
        let make = || agent::by_name("rules").unwrap();
        let plan = Repetitions {
            scenario: Arc::new(scenario),
            qualified: false,
            kind: agent_breakage::run::RunKind::Incident,
            watching: agent_breakage::run::Watching::AsNeeded,
            base: Seed(1),
            count: 8,
            jobs,
            agent: &make,
        };
        repeat(&bench.setting(), &plan, |_| ());
        (
            bench.store.records().unwrap(),
            bench.store.postmortems().unwrap(),
        )
    };
    let (records, postmortems) = content(1);
    assert_eq!(records.len(), 8);
    for _ in 0..3 {
        assert_eq!((records.clone(), postmortems.clone()), content(2));
    }
}
