//! A process that dies at any moment of a run leaves a cluster that the next start restores.
//!
//! The embedded cluster outlives the "process" here: the plan and the journal are written by the same code as in a run,
//! which then simply stops.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::sync::Arc;

use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::resource;
use agent_breakage::cluster::state;
use agent_breakage::cluster::target::Target;
use agent_breakage::ids::{RunId, Seed};
use agent_breakage::inject::change::Plan;
use agent_breakage::inject::journal::{JournalEntry, Place};
use agent_breakage::inject::{self, undo, write};
use agent_breakage::run::recover::{Outcome, Recovery, recover};
use agent_breakage::scenario::model::Scenario;
use agent_breakage::store::Store;

use crate::bench::{Bench, namespaces, paused};

/// Where the process dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crash {
    BeforeTheWrite,
    BetweenTwoObjects,
    AfterTheWrite,
    AfterTheUndo,
}

async fn standing(scenario: &Scenario) -> (Target, kube::Client) {
    let target = Target::embedded(Seed(5));
    let client = target.client();
    let fixture = Fixtures::compiled_in().load(&scenario.fixture).unwrap();
    reset::apply(&client, &fixture, &mut Owned::default())
        .await
        .unwrap();
    (target, client)
}

async fn place(client: &kube::Client) -> Place {
    let namespaces = resource::of_kind("Namespace").unwrap();
    let system = namespaces
        .get(client, "", "kube-system")
        .await
        .unwrap()
        .unwrap();
    Place {
        cluster_uid: system["metadata"]["uid"].as_str().unwrap().to_owned(),
        ..Place::default()
    }
}

fn entry(scenario: &Scenario, place: Place, plan: &Plan) -> JournalEntry {
    JournalEntry::new(
        RunId::new("run-1"),
        scenario.id.clone(),
        place,
        plan.clone(),
    )
}

fn outcomes(recovery: &Recovery) -> Vec<&Outcome> {
    recovery.runs.iter().map(|run| &run.outcome).collect()
}

#[test]
fn every_moment_of_a_crash_is_restored_by_the_next_start() {
    let bench = Bench::new();
    let scenario = bench
        .library
        .scenario("secret-missing-key-advocate")
        .unwrap();
    for crash in [
        Crash::BeforeTheWrite,
        Crash::BetweenTwoObjects,
        Crash::AfterTheWrite,
        Crash::AfterTheUndo,
    ] {
        paused().block_on(async {
            let (target, client) = standing(&scenario).await;
            let before = state::read(&client).await.unwrap();
            let store = Arc::new(Store::in_memory().unwrap());
            let mut plan = inject::plan(&client, &scenario.injector, &target.now_text())
                .await
                .unwrap();
            assert_eq!(plan.changes.len(), 2);
            entry(&scenario, place(&client).await, &plan)
                .put(&store)
                .unwrap();
            let mut written = plan.clone();
            match crash {
                Crash::BeforeTheWrite => {}
                Crash::BetweenTwoObjects => {
                    written.changes.truncate(1);
                    write::apply(&client, &mut written).await.unwrap();
                }
                Crash::AfterTheWrite => write::apply(&client, &mut plan).await.unwrap(),
                Crash::AfterTheUndo => {
                    write::apply(&client, &mut plan).await.unwrap();
                    assert!(undo::undo(&client, &plan).await.is_complete());
                }
            }
            let recovery = recover(&store, Some(&target)).await.unwrap();
            let [Outcome::Undone(undone)] = outcomes(&recovery)[..] else {
                panic!("{crash:?}: {recovery:?}");
            };
            assert!(undone.kept.is_empty(), "{crash:?}: {undone:?}");
            reset::at_rest(&client, reset::REST_DEADLINE, &namespaces())
                .await
                .unwrap();
            let after = state::read(&client).await.unwrap();
            assert_eq!(before.differences(&after), [], "{crash:?}");
            // Proven, so the secrets in the entry are gone; a further start finds nothing to do.
            let again = recover(&store, Some(&target)).await.unwrap();
            assert_eq!(again, Recovery::default());
        });
    }
}

#[test]
fn an_entry_of_another_cluster_is_left_alone_and_one_whose_cluster_is_gone_is_dropped() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("replicas-zero-advocate").unwrap();
    paused().block_on(async {
        let (target, client) = standing(&scenario).await;
        let plan = inject::plan(&client, &scenario.injector, &target.now_text())
            .await
            .unwrap();
        let store = Arc::new(Store::in_memory().unwrap());
        let elsewhere = Place {
            cluster_uid: "another".to_owned(),
            ..Place::default()
        };
        entry(&scenario, elsewhere, &plan).put(&store).unwrap();
        let recovery = recover(&store, Some(&target)).await.unwrap();
        assert_eq!(outcomes(&recovery), [&Outcome::Elsewhere]);
        assert_eq!(recover(&store, None).await.unwrap(), recovery);
        entry(&scenario, Place::passing(), &plan)
            .put(&store)
            .unwrap();
        let recovery = recover(&store, None).await.unwrap();
        assert_eq!(outcomes(&recovery), [&Outcome::Gone]);
        assert_eq!(recover(&store, None).await.unwrap(), Recovery::default());
    });
}

#[test]
fn nothing_that_an_agent_can_read_gives_the_game_away() {
    let bench = Bench::new();
    for scenario in bench.library.scenarios() {
        if !scenario.needs.is_empty() {
            continue;
        }
        let seen = paused().block_on(async {
            let (target, client) = standing(scenario).await;
            let mut plan = inject::plan(&client, &scenario.injector, &target.now_text())
                .await
                .unwrap();
            write::apply(&client, &mut plan).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(120)).await;
            everything(&client).await
        });
        let id = scenario.id.as_str();
        for word in [
            "breakage", "chaos", "inject", "bench", "fixture", "fault", id,
        ] {
            // `default` holds the letters of one of them.
            let seen = seen.replace("default", "");
            assert!(!seen.contains(word), "{id}: {word}");
        }
    }
}

/// All objects and events as one text, in lower case.
async fn everything(client: &kube::Client) -> String {
    let mut text = String::new();
    for resource in resource::RESOURCES {
        for object in resource.list(client, "").await.unwrap() {
            text.push_str(&object.to_string());
        }
    }
    let request = http::Request::get("/api/v1/events")
        .body(Vec::new())
        .unwrap();
    text.push_str(&client.request_text(request).await.unwrap());
    text.to_lowercase()
}
