//! Every advocate scenario bites and lasts: left alone for the whole budget nothing counts as repaired, and the
//! reference repair does. In virtual time on the embedded cluster.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_breakage::agent::{Agent, AgentError, Desk};
use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::cluster::resource;
use agent_breakage::embed::lexical::Lexical;
use agent_breakage::experience::Reader;
use agent_breakage::experience::policy::Policy;
use agent_breakage::ids::Seed;
use agent_breakage::record::{Postmortem, Record, RunState};
use agent_breakage::run::Setting;
use agent_breakage::run::repeat::{Progress, Repetitions, repeat};
use agent_breakage::scenario::library::Library;
use agent_breakage::scenario::model::{RepairStep, Scenario};
use agent_breakage::store::Store;
use futures::future::LocalBoxFuture;
use serde_json::json;

/// Longer than the longest window of a scenario and than the slowest start.
const AFTER_REPAIR: Duration = Duration::from_secs(200);
/// The fault has settled by then.
const BEFORE_REPAIR: Duration = Duration::from_secs(60);

/// Waits until the budget is over.
struct Idle;

impl Agent for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn work(&self, _desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(std::future::pending())
    }
}

/// Applies the scenario's reference repair.
struct Mender(Arc<Scenario>);

impl Agent for Mender {
    fn name(&self) -> &'static str {
        "mender"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let scenario = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(BEFORE_REPAIR).await;
            for step in &scenario.reference_repair {
                desk.client
                    .request::<serde_json::Value>(request(step))
                    .await
                    .unwrap();
            }
            tokio::time::sleep(AFTER_REPAIR).await;
            desk.notes.postmortem(account(&scenario));
            Ok(())
        })
    }
}

fn request(step: &RepairStep) -> http::Request<Vec<u8>> {
    let (kind, namespace, name, patch_type, body) = match step {
        RepairStep::Patch {
            kind,
            namespace,
            name,
            patch_type,
            body,
        } => (kind, namespace, name, patch_type.as_str(), body.clone()),
        RepairStep::Restart {
            kind,
            namespace,
            name,
        } => {
            let stamp = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
            let body = json!({"spec": {"template": {"metadata": {"annotations": stamp}}}});
            (kind, namespace, name, "strategic", body)
        }
    };
    let path = resource::of_kind(kind).unwrap().path(namespace, name);
    let content = match patch_type {
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        _ => "application/strategic-merge-patch+json",
    };
    http::Request::patch(path)
        .header("content-type", content)
        .body(body.to_string().into_bytes())
        .unwrap()
}

fn account(scenario: &Scenario) -> Postmortem {
    Postmortem {
        final_diagnosis: "as the reference repair says".to_owned(),
        primary_category: scenario.ground_truth.primary_category.clone(),
        secondary_categories: Vec::new(),
        confidence: 1.0,
        actions_taken: Vec::new(),
        fix_applied: "the reference repair".to_owned(),
        what_did_not_work: Vec::new(),
        time_to_diagnose_s: 0.0,
        time_to_fix_s: 0.0,
        side_effects_observed: Vec::new(),
    }
}

fn run(
    library: &Library,
    scenario: &Arc<Scenario>,
    agent: &(dyn Fn() -> Box<dyn Agent> + Sync),
) -> Record {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open_or_create(&folder.path().join("store.redb")).unwrap());
    let embedder = Arc::new(Lexical);
    let (_stop, interrupted) = tokio::sync::watch::channel(false);
    let setting = Setting {
        snapshot: Arc::new(
            Reader::new(Some(store.clone()))
                .snapshot(embedder.as_ref())
                .unwrap(),
        ),
        store,
        vocabulary: Arc::new(library.vocabulary().clone()),
        fixtures: Arc::new(Fixtures::compiled_in()),
        rubric: library.rubric("v0.1").unwrap().clone(),
        policy: Policy::off(embedder.as_ref()),
        embedder,
        learn: false,
        interrupted,
    };
    let plan = Repetitions {
        scenario: scenario.clone(),
        qualified: false,
        kind: agent_breakage::run::RunKind::Incident,
        watching: agent_breakage::run::Watching::AsNeeded,
        base: Seed(1),
        count: 1,
        jobs: 1,
        agent,
    };
    let kept = Mutex::new(None);
    repeat(&setting, &plan, |progress| {
        if let Progress::Done { outcome, .. } = progress {
            *kept.lock().unwrap() = Some(outcome.unwrap().record);
        }
    });
    kept.into_inner().unwrap().unwrap()
}

fn here(library: &Library) -> Vec<Arc<Scenario>> {
    library
        .scenarios()
        .filter(|scenario| scenario.needs.is_empty())
        .cloned()
        .map(Arc::new)
        .collect()
}

#[test]
fn left_alone_no_advocate_scenario_is_ever_repaired() {
    let library = Library::open(None).unwrap();
    let scenarios = here(&library);
    assert_eq!(scenarios.len(), 18);
    let mut wrong = Vec::new();
    for scenario in &scenarios {
        let record = run(&library, scenario, &|| Box::new(Idle));
        let held = record.detector.fixed || !record.detector.regressions.is_empty();
        if record.state != RunState::Timeout || held {
            wrong.push(format!(
                "{}: {:?} {:?}",
                scenario.id, record.state, record.detector
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reference_repair_of_every_advocate_scenario_counts_as_fixed() {
    let library = Library::open(None).unwrap();
    let mut wrong = Vec::new();
    for scenario in here(&library) {
        let mender = scenario.clone();
        let record = run(&library, &scenario, &move || {
            Box::new(Mender(mender.clone()))
        });
        let clean = record.detector.regressions.is_empty();
        if record.state != RunState::Scored || !record.detector.fixed || !clean {
            wrong.push(format!(
                "{}: {:?} {:?}",
                scenario.id, record.state, record.detector
            ));
        }
        if record.state_hash_before != record.state_hash_after || record.undo.quarantined {
            wrong.push(format!("{}: not reset: {:?}", scenario.id, record.undo));
        }
        let touched: Vec<String> = record
            .state_changes
            .iter()
            .filter(|change| change.protected)
            .map(|change| format!("{} {} {}", change.kind, change.name, change.path))
            .collect();
        if !touched.is_empty() {
            wrong.push(format!(
                "{}: the repair touches protected {touched:?}",
                scenario.id
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
