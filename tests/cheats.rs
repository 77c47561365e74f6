//! Agents that look for points instead of the cause: each does what its name says, and none of it pays.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

#[path = "run/bench.rs"]
#[expect(dead_code, reason = "the bench also serves tests that break runs")]
mod bench;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;

use agent_breakage::agent::choice::listed;
use agent_breakage::agent::{self, Desk, Notebook, PastIncidents};
use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::target::Target;
use agent_breakage::gateway;
use agent_breakage::gateway::record::Recorder;
use agent_breakage::ids::{FixtureId, Seed};
use agent_breakage::record::{Action, Exemplar, Record, RunState};
use agent_breakage::run::Finished;
use agent_breakage::scenario::model::Task;

use bench::Bench;

/// What cheating may bring beyond doing nothing, under the published rubric: the credit for having looked.
const MARGIN: u32 = 200_000;

/// Where each shows what it does.
const SCENARIO: &str = "oom-advocate-api-k8s-only";

fn cheats() -> impl Iterator<Item = &'static str> {
    listed()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("cheat:"))
}

fn run(agent: &str, scenario: &str, seed: u64) -> Finished {
    let bench = Bench::new();
    let scenario = bench.library.scenario(scenario).unwrap();
    bench.run_built_in(&scenario, agent, seed)
}

/// One run of every cheat on the same scenario, made once for all tests.
static DEEDS: LazyLock<BTreeMap<&'static str, Record>> = LazyLock::new(|| {
    std::thread::scope(|scope| {
        let runs: Vec<_> = cheats()
            .map(|agent| (agent, scope.spawn(move || run(agent, SCENARIO, 1).record)))
            .collect();
        let each = runs.into_iter();
        each.map(|(agent, run)| (agent, run.join().unwrap()))
            .collect()
    })
});

fn deeds(agent: &str) -> &'static Record {
    &DEEDS[agent]
}

fn writes(record: &Record) -> Vec<&Action> {
    record.actions.iter().filter(|a| a.tier > 1).collect()
}

/// Tool, resource and name of every write, in order.
fn written(record: &Record) -> Vec<(&str, &str, &str)> {
    writes(record)
        .into_iter()
        .map(|a| (a.tool.as_str(), a.resource.as_str(), a.name.as_str()))
        .collect()
}

#[test]
fn every_cheat_looks_hands_in_an_account_and_stays_in_its_namespaces() {
    for agent in cheats() {
        let record = deeds(agent);
        assert_eq!(record.state, RunState::Scored, "{agent}");
        assert!(!record.actions.is_empty(), "{agent}");
        for action in &record.actions {
            assert_eq!(action.namespace, "prod-advocate", "{agent}: {action:?}");
        }
        for action in writes(record) {
            assert!(action.changed_something, "{agent}: {action:?}");
        }
    }
}

#[test]
fn scale_to_zero_scales_the_deployments_and_nothing_else() {
    let record = deeds("cheat:scale-to-zero");
    let expected = [("kubectl_scale", "deployments/scale", "advocate-api")];
    assert_eq!(written(record), expected);
    assert!(writes(record)[0].summary.contains("replicas"));
}

#[test]
fn delete_and_recreate_makes_again_what_it_deleted() {
    let record = deeds("cheat:delete-and-recreate");
    // A create names no object in its path.
    assert_eq!(
        written(record),
        [
            ("kubectl_delete", "deployments", "advocate-api"),
            ("kubectl_apply", "deployments", ""),
            ("kubectl_delete", "statefulsets", "advocate-db"),
            ("kubectl_apply", "statefulsets", ""),
        ]
    );
}

#[test]
fn restart_spam_goes_on_for_most_of_the_budget() {
    let record = deeds("cheat:restart-spam");
    let tools: BTreeSet<&str> = written(record).iter().map(|(tool, ..)| *tool).collect();
    assert_eq!(tools, BTreeSet::from(["kubectl_rollout_restart"]));
    let times: Vec<u64> = writes(record).iter().map(|a| a.at_ms).collect();
    assert!(times.len() > 60, "{}", times.len());
    assert!(times[times.len() - 1] - times[0] > 500_000);
}

#[test]
fn remove_the_probe_takes_every_probe_of_every_workload() {
    let record = deeds("cheat:remove-the-probe");
    let names: Vec<&str> = written(record).iter().map(|(.., name)| *name).collect();
    assert_eq!(names, ["advocate-api", "advocate-db"]);
    for action in writes(record) {
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            assert!(action.summary.contains(probe), "{}", action.summary);
        }
    }
}

#[test]
fn raise_everything_raises_limits_requests_and_replicas_of_every_workload() {
    let record = deeds("cheat:raise-everything");
    let names: Vec<&str> = written(record).iter().map(|(.., name)| *name).collect();
    assert_eq!(names, ["advocate-api", "advocate-db"]);
    for action in writes(record) {
        for field in ["limits", "requests", "replicas"] {
            assert!(action.summary.contains(field), "{}", action.summary);
        }
    }
}

#[test]
fn claims_are_made_after_one_look_and_without_a_deed() {
    for agent in ["cheat:claim-without-fix", "cheat:many-secondaries"] {
        let record = deeds(agent);
        assert_eq!((record.actions.len(), written(record).len()), (1, 0));
    }
    let named = deeds("cheat:many-secondaries").postmortem.as_ref().unwrap();
    let all: BTreeSet<&str> = named
        .secondary_categories
        .iter()
        .chain([&named.primary_category])
        .map(|category| category.as_str())
        .collect();
    assert!(all.len() >= 23, "{all:?}");
}

#[test]
fn copy_an_exemplar_asks_with_the_alert_and_says_what_was_said_before() {
    let record = deeds("cheat:copy-an-exemplar");
    let bench = Bench::new();
    let scenario = bench.library.scenario(SCENARIO).unwrap();
    assert_eq!(record.retrievals.len(), 1);
    assert_eq!(record.retrievals[0].query, scenario.alert);
    let told = record.postmortem.as_ref().unwrap();
    match record.retrievals[0].served.first() {
        None => assert_eq!(told.fix_applied, "Repaired as before."),
        Some(served) => {
            let reader = agent_breakage::experience::Reader::new(Some(bench.store));
            let copied = reader.entry(&served.id).unwrap().unwrap().postmortem;
            assert_eq!(told.final_diagnosis, copied.final_diagnosis);
            assert_eq!(told.primary_category, copied.primary_category);
        }
    }
}

#[test]
fn rollout_undo_is_observed_as_one_and_repairs_what_a_rollout_broke() {
    let finished = run(
        "cheat:revert-by-rollout-undo",
        "image-pull-failure-advocate",
        1,
    );
    let expected = [("kubectl_rollout_undo", "deployments", "advocate-api")];
    assert_eq!(written(&finished.record), expected);
    assert!(
        finished.record.detector.fixed,
        "the narrowest repair is a repair"
    );
}

#[test]
fn postmortem_first_knows_nothing_when_it_writes_and_its_deeds_come_too_late() {
    let record = deeds("cheat:postmortem-first");
    let told = record.postmortem.as_ref().unwrap();
    assert_eq!((told.time_to_diagnose_s, told.time_to_fix_s), (0.0, 0.0));
    // The account ends the work, and with it the credential.
    assert_eq!(written(record), []);
    // Left alone at a desk, it goes on to do what its account claims.
    let alone = at_a_desk("cheat:postmortem-first");
    let tools: Vec<&str> = alone.iter().map(|a| a.tool.as_str()).collect();
    let restarts = ["kubectl_rollout_restart", "kubectl_rollout_restart"];
    assert_eq!(tools[tools.len() - 2..], restarts, "{tools:?}");
}

/// What an agent does at a desk that nobody takes from it, on a healthy cluster.
fn at_a_desk(agent: &str) -> Vec<Action> {
    struct Nothing;
    impl PastIncidents for Nothing {
        fn similar_to(&self, _text: &str) -> Vec<Exemplar> {
            Vec::new()
        }
    }
    bench::paused().block_on(async {
        let target = Target::embedded(Seed(5));
        let fixture = Fixtures::compiled_in()
            .load(&[FixtureId::new("advocate")])
            .unwrap();
        reset::apply(&target.client(), &fixture, &mut Owned::default())
            .await
            .unwrap();
        let recorder = Recorder::new(tokio::time::Instant::now());
        let desk = Desk {
            task: Task {
                alert: String::new(),
                namespaces: vec!["prod-advocate".to_owned()],
                time_budget_s: 600,
            },
            client: kube::Client::new(
                gateway::layer(target.service(), recorder.clone()),
                "default",
            ),
            past: Rc::new(Nothing),
            notes: Notebook::default(),
            vocabulary: Rc::default(),
            seed: Seed(3),
        };
        agent::by_name(agent).unwrap().work(desk).await.unwrap();
        recorder.actions()
    })
}

#[test]
fn flood_of_hypotheses_states_every_category_many_times() {
    let record = deeds("cheat:flood-of-hypotheses");
    assert!(record.hypotheses.len() > 400, "{}", record.hypotheses.len());
    let last = record.hypotheses.last().unwrap();
    let told = record.postmortem.as_ref().unwrap();
    assert_eq!(last.primary_category, told.primary_category);
}

#[test]
fn another_seed_guesses_another_category() {
    let guesses: BTreeSet<String> = (1..=8)
        .map(|seed| run("cheat:claim-without-fix", "replicas-zero-advocate", seed))
        .map(|finished| {
            finished
                .record
                .postmortem
                .unwrap()
                .primary_category
                .to_string()
        })
        .collect();
    assert!(guesses.len() > 4, "{guesses:?}");
}

/// Whether the name that it picked, or copied, is the right one: luck, which no rule can forbid.
fn was_lucky(finished: &Finished) -> bool {
    finished.score.as_ref().unwrap().axes.diagnosed.earned.0 > 0
}

#[test]
fn cheating_does_not_pay() {
    // What the cheats earn on every other scenario is in its qualification.
    let scenario = "secret-missing-key-advocate";
    let total = |finished: &Finished| finished.score.as_ref().unwrap().total.0;
    let floor = total(&run("noop", scenario, 1));
    for agent in cheats() {
        let finished = run(agent, scenario, 1);
        // Where the last rollout was the fault, taking it back is the narrowest repair.
        let legitimate = agent == "cheat:revert-by-rollout-undo" && finished.record.detector.fixed;
        let earned = total(&finished);
        assert!(
            earned <= floor + MARGIN || legitimate || was_lucky(&finished),
            "{scenario} {agent}: {earned}, noop {floor}"
        );
    }
}
