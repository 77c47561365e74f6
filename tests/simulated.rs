//! The simulated agent: fitting past incidents raise its mean score, strange ones lower it, the truth changes nothing,
//! and nobody is shown what it earns without being told what it is.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

#[path = "run/bench.rs"]
#[expect(dead_code, reason = "the bench also serves tests that break runs")]
mod bench;

use std::sync::Arc;

use agent_breakage::agent::choice::Choice;
use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::entry::Entry;
use agent_breakage::experience::learner::Learner;
use agent_breakage::experience::seeds;
use agent_breakage::ids::Seed;
use agent_breakage::run::repeat::{Progress, Repetitions, repeat};
use agent_breakage::run::{RunKind, Watching};
use agent_breakage::scenario::model::Scenario;
use agent_breakage::store::Store;
use assert_cmd::Command;

use bench::Bench;

/// Runs of each arm that show the direction, and runs for the figures of the guide.
const FEW: u64 = 30;
const MANY: u64 = 100;
/// Where the direction is shown.
const SCENARIO: &str = "oom-advocate-api-k8s-only";
/// What the means of two arms must differ by. Everything is determined by the seeds, so that this is no matter of luck.
const MARGIN: f64 = 0.02;
/// Every exemplar of a corpus is near enough: what is served is decided by the corpus, not by the embedder.
const ANY_DISTANCE: f64 = 2.0;

/// What past incidents the runs of an arm are served from.
#[derive(Clone, Copy, Debug)]
enum Arm {
    /// Of the very mechanism.
    Aligned,
    /// Of other mechanisms and other categories.
    Misaligned,
    None,
}

fn corpus(arm: Arm, scenario: &Scenario) -> Vec<Entry> {
    let truth = &scenario.ground_truth.primary_category;
    seeds::entries()
        .into_iter()
        .filter(|entry| match arm {
            Arm::Aligned => entry.mechanism == scenario.mechanism,
            Arm::Misaligned => {
                entry.mechanism != scenario.mechanism && entry.postmortem.primary_category != *truth
            }
            Arm::None => false,
        })
        .collect()
}

/// Mean total and share of runs that were fixed.
fn mean(arm: Arm, scenario: &Scenario, runs: u64) -> (f64, f64) {
    let mut bench = Bench::new();
    bench.store = Arc::new(Store::in_memory().unwrap());
    // An empty base would be served from the seeds compiled in; the arm without exemplars serves nothing instead.
    let entries = match arm {
        Arm::None => seeds::entries(),
        _ => corpus(arm, scenario),
    };
    assert!(!entries.is_empty(), "{arm:?}");
    Learner::new(bench.store.clone(), BuiltIn::Lexical.embedder())
        .import(&entries, |_| ())
        .unwrap();
    let mut setting = bench.setting();
    setting.policy.max_distance = ANY_DISTANCE;
    if matches!(arm, Arm::None) {
        setting.policy.k = 0;
    }
    let choice = Choice::parse("simulated").unwrap();
    let make = || choice.make();
    let plan = Repetitions {
        scenario: Arc::new(scenario.clone()),
        qualified: false,
        kind: RunKind::Incident,
        watching: Watching::AsNeeded,
        base: Seed(1),
        count: runs,
        jobs: std::thread::available_parallelism().map_or(2, usize::from),
        agent: &make,
    };
    let (mut total, mut fixed) = (0.0, 0u32);
    repeat(&setting, &plan, |progress| {
        if let Progress::Done { outcome, .. } = progress {
            let finished = outcome.unwrap();
            assert!(finished.record.agent.simulation);
            total += finished.score.as_ref().unwrap().total.as_f64();
            fixed += u32::from(finished.record.detector.fixed);
        }
    });
    (total / runs as f64, f64::from(fixed) / runs as f64)
}

fn check_direction(id: &str, runs: u64) {
    let scenario = Bench::new().library.scenario(id).unwrap();
    let [aligned, none, misaligned] =
        [Arm::Aligned, Arm::None, Arm::Misaligned].map(|arm| mean(arm, &scenario, runs));
    println!(
        "{id}: mean total (share fixed) aligned {aligned:.3?}, none {none:.3?}, misaligned {misaligned:.3?}"
    );
    assert!(aligned.0 >= none.0 + MARGIN, "{id}: {aligned:?}, {none:?}");
    assert!(
        none.0 >= misaligned.0 + MARGIN,
        "{id}: {none:?}, {misaligned:?}"
    );
}

#[test]
fn fitting_incidents_raise_the_mean_score_and_strange_ones_lower_it() {
    check_direction(SCENARIO, FEW);
}

#[test]
#[ignore = "nine hundred runs, for the figures of the guide"]
fn the_direction_is_the_same_with_more_runs_and_on_other_scenarios() {
    for id in [
        SCENARIO,
        "readiness-probe-misconfigured-advocate",
        "secret-wrong-password-advocate",
    ] {
        check_direction(id, MANY);
    }
}

#[test]
fn another_truth_changes_neither_actions_nor_account() {
    let bench = Bench::new();
    let own = bench.library.scenario(SCENARIO).unwrap();
    let text = own
        .text
        .replace(
            "mechanism: memory-limit-below-working-set\n",
            "mechanism: readiness-path-wrong\n",
        )
        .replace(
            "primary_category: resource-limit-misconfiguration",
            "primary_category: probe-misconfigured",
        );
    assert_ne!(text, own.text);
    let other = bench.scenario(&text.replace("id: oom-advocate-api-k8s-only", "id: trial"));
    let agent = Choice::parse("simulated").unwrap().make();
    for seed in 1..=5 {
        let [one, two] = [&own, &other].map(|scenario| {
            let record = Bench::new().run(scenario, agent.as_ref(), seed).record;
            (
                record.actions,
                record.hypotheses,
                record.postmortem,
                record.retrievals,
            )
        });
        assert_eq!(one, two, "seed {seed}");
    }
}

#[test]
fn nobody_is_shown_a_simulation_without_being_told() {
    let folder = tempfile::tempdir().unwrap();
    let told = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_breakage"))
            .env("BREAKAGE_WORKSPACE", folder.path())
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let run = ["run", "replicas-zero-advocate", "--agent", "simulated"];
    assert!(told(&run).contains("is a simulation"));
    let json = [&run[..], &["--json", "--seed", "2"]].concat();
    assert!(told(&json).contains("\"agent_simulation\":true"));
    assert!(told(&[&run[..], &["--reps", "2"]].concat()).contains("simulated (a simulation)"));
    assert!(told(&["runs", "list"]).contains("a simulation"));
    assert!(told(&["runs", "list", "--json"]).contains("\"agent_simulation\": true"));
    assert!(told(&["runs", "show", "last"]).contains("is a simulation"));
    let rules = ["run", "replicas-zero-advocate"];
    assert!(!told(&rules).contains("simulation"));
}
