//! A small shop to break, an agent that mends it, and whole runs with trouble in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::sync::Arc;
use std::time::Duration;

use agent_breakage::agent::{Agent, AgentError, Desk};
use agent_breakage::cluster::fixture::{Fixture, Fixtures};
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::resource;
use agent_breakage::cluster::state::{self, ClusterState};
use agent_breakage::cluster::target::Target;
use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::Reader;
use agent_breakage::experience::policy::Policy;
use agent_breakage::ids::{CategoryId, FixtureId, Seed};
use agent_breakage::inject::undo::undo;
use agent_breakage::record::{Postmortem, RunState};
use agent_breakage::run::event::Event;
use agent_breakage::run::{Finished, Order, RunKind, Setting, Watching, once};
use agent_breakage::scenario::library::{DEFAULT_RUBRIC, Library};
use agent_breakage::scenario::load;
use agent_breakage::scenario::model::Scenario;
use agent_breakage::store::Store;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::layer::{Trouble, Troubles};

/// No run may last longer on its own clock, whatever happens: four hours. The budget is a minute here; the waits for
/// rest and for deletions (180 s and 90 s an object), each with requests that time out, make up the rest.
pub const LONGEST_RUN: Duration = Duration::from_secs(4 * 3600);

/// One namespace with a Secret and what reads it: the smallest thing that can be broken in two objects.
fn fixture() -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-key", "namespace": "shop"},
            "stringData": {"TOKEN": "t0ps3cret", "OTHER": "x"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
                    "name": "web", "image": "nginx:1.27", "ports": [{"name": "http", "containerPort": 80}],
                    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "web-key", "key": "TOKEN"}}}],
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 2},
                }]}}}},
    ]})
}

const SCENARIO: &str = "id: lost-key
plane: config
symptom_class: unavailable
origin: synthetic:test
difficulty: easy
tier: coverage
status: active
source_tranche: null
fixture: shop
injector:
  type: secret-content
  target: {ns: shop, secret: web-key}
  values: {TOKEN: ''}
  restart_workloads: [{kind: Deployment, name: web}]
detector:
  fixed_when:
    - expression: deployment.shop.web.readyReplicas == desiredReplicas
      sustained_for_s: 10
  regressed_when: []
scorer:
  time_budget_s: 120
  scope: [shop]
  credits: {detected: 0.2, diagnosed: 0.3, fixed: 0.3, no_regressions: 0.2}
ground_truth:
  primary_category: secret-content-mismatch
  secondary_categories: []
";

/// What happens to objects by nobody's hand that a run knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Delete(&'static str, &'static str),
    Recreate(&'static str, &'static str),
    DeletePods,
}

impl Deed {
    pub async fn done(self, client: &kube::Client) {
        match self {
            Deed::Delete(kind, name) => {
                resource::of_kind(kind)
                    .unwrap()
                    .delete(client, "shop", name)
                    .await
                    .unwrap();
            }
            Deed::Recreate(kind, name) => recreate(client, kind, name).await,
            Deed::DeletePods => {
                let pods = resource::of_kind("Pod").unwrap();
                for pod in pods.list(client, "shop").await.unwrap() {
                    let name = pod["metadata"]["name"].as_str().unwrap();
                    pods.delete(client, "shop", name).await.unwrap();
                }
            }
        }
    }
}

/// The same object under another uid; an object that is not there stays away.
async fn recreate(client: &kube::Client, kind: &str, name: &str) {
    let resource = resource::of_kind(kind).unwrap();
    let Some(mut object) = resource.get(client, "shop", name).await.unwrap() else {
        return;
    };
    resource.delete(client, "shop", name).await.unwrap();
    for _ in 0..120 {
        if resource.get(client, "shop", name).await.unwrap().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    object["metadata"] = json!({"name": name, "namespace": "shop"});
    object.as_object_mut().unwrap().remove("status");
    resource.create(client, "shop", &object).await.unwrap();
}

/// Puts the key back, waits, and writes an account; whatever fails is left as it is.
pub struct Mender;

impl Agent for Mender {
    fn name(&self) -> &str {
        "mender"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(async move {
            let path = "/api/v1/namespaces/shop/secrets/web-key";
            let body = json!({"stringData": {"TOKEN": "t0ps3cret"}}).to_string();
            let looked = http::Request::get(path).body(Vec::new()).unwrap();
            let _ = patiently(desk.client.request::<Value>(looked)).await;
            let repair = http::Request::patch(path)
                .header("content-type", "application/merge-patch+json")
                .body(body.into_bytes())
                .unwrap();
            let _ = patiently(desk.client.request::<Value>(repair)).await;
            tokio::time::sleep(Duration::from_secs(40)).await;
            desk.notes.postmortem(account());
            Ok(())
        })
    }
}

/// An agent has a time limit of its own.
async fn patiently<T>(request: impl Future<Output = kube::Result<T>>) -> Option<T> {
    let answer = tokio::time::timeout(Duration::from_secs(10), request).await;
    answer.ok()?.ok()
}

pub fn account() -> Postmortem {
    Postmortem {
        final_diagnosis: "a key of the Secret was gone".to_owned(),
        primary_category: CategoryId::new("secret-content-mismatch"),
        secondary_categories: Vec::new(),
        confidence: 0.9,
        actions_taken: Vec::new(),
        fix_applied: "put it back".to_owned(),
        what_did_not_work: Vec::new(),
        time_to_diagnose_s: 1.0,
        time_to_fix_s: 1.0,
        side_effects_observed: Vec::new(),
    }
}

/// What all runs here share.
pub struct Shop {
    library: Library,
    fixtures: Fixtures,
    pub fixture: Fixture,
    pub scenario: Arc<Scenario>,
    /// The state that a run must leave.
    pub reference: ClusterState,
}

/// A finished run and what was seen around it.
pub struct Outcome {
    pub finished: Finished,
    pub records: usize,
    pub unjournalled: Vec<String>,
    /// Requests that met trouble.
    pub met: usize,
    /// What was left to be done until the cluster was as before, once the trouble was over.
    pub restored: Result<(), String>,
}

impl Shop {
    pub fn new() -> Shop {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("fixtures")).unwrap();
        let file = folder.path().join("fixtures/shop.json");
        std::fs::write(file, fixture().to_string()).unwrap();
        let fixtures = Fixtures::open(folder.path()).unwrap();
        let library = Library::open(None).unwrap();
        let loaded = load::scenario(SCENARIO, "lost-key.yaml", library.vocabulary()).unwrap();
        let fixture = fixtures.load(&[FixtureId::new("shop")]).unwrap();
        let reference = paused().block_on(async {
            let client = Target::embedded(Seed(1)).client();
            let mut owned = Owned::default();
            reset::apply(&client, &fixture, &mut owned).await.unwrap();
            reset::at_rest(&client, reset::REST_DEADLINE, &fixture.namespaces)
                .await
                .unwrap()
        });
        Shop {
            library,
            fixtures,
            fixture,
            scenario: Arc::new(loaded.scenario),
            reference,
        }
    }

    /// One whole run in trouble, and the restoration afterwards.
    pub fn run(&self, agent: &dyn Agent, troubles: &[Trouble], seed: u64) -> Outcome {
        let store = Arc::new(Store::in_memory().unwrap());
        let setting = self.setting(store.clone());
        let order = Order {
            scenario: self.scenario.clone(),
            seed: Seed(seed),
            qualified: false,
            kind: RunKind::Incident,
            watching: Watching::AsNeeded,
            part: None,
        };
        let troubles = Troubles::new(troubles, store.clone());
        let (finished, restored) = paused().block_on(async {
            let target = Target::embedded(order.seed).behind(troubles.layer());
            let mut emit = |event| {
                if let Event::Stage { stage, .. } = event {
                    troubles.enter(stage);
                }
            };
            let finished = once(&setting, &order, agent, &target, &mut emit)
                .await
                .unwrap();
            troubles.stop();
            let restored = self.restored(&target, &troubles).await;
            (finished, restored)
        });
        Outcome {
            finished,
            records: store.records().unwrap().len(),
            unjournalled: troubles.unjournalled(),
            met: troubles.met(),
            restored,
        }
    }

    /// What the next start does: undo from the journal, reset, and the proof by the cluster's own state.
    async fn restored(&self, target: &Target, troubles: &Troubles) -> Result<(), String> {
        let client = target.client();
        if let Some(entry) = troubles.entry() {
            let undone = undo(&client, &entry.plan).await;
            if !undone.is_complete() {
                return Err(undone.failed.join("; "));
            }
        }
        let mut owned = Owned::default();
        let namespaces = resource::of_kind("Namespace").unwrap();
        if let Some(live) = namespaces.get(&client, "", "shop").await.unwrap() {
            let uid = live["metadata"]["uid"].as_str().unwrap().to_owned();
            owned.namespaces.insert(uid, "shop".to_owned());
        }
        reset::to_reference(&client, &self.fixture, &mut owned, &self.reference)
            .await
            .map_err(|error| error.to_string())?;
        let reached = state::read(&client).await.map_err(|e| e.to_string())?;
        let differences = self.reference.differences(&reached);
        match reached.hash() == self.reference.hash() {
            true => Ok(()),
            false => Err(format!("{differences:?}")),
        }
    }

    fn setting(&self, store: Arc<Store>) -> Setting {
        let embedder = BuiltIn::Lexical.embedder();
        let reader = Reader::new(Some(store.clone()));
        Setting {
            vocabulary: Arc::new(self.library.vocabulary().clone()),
            fixtures: Arc::new(self.fixtures.clone()),
            rubric: self.library.rubric(DEFAULT_RUBRIC).unwrap().clone(),
            policy: Policy::default_for(embedder.as_ref()),
            snapshot: Arc::new(reader.snapshot(embedder.as_ref()).unwrap()),
            embedder,
            learn: false,
            prometheus: None,
            interrupted: watch::Sender::new(false).subscribe(),
            store,
        }
    }
}

/// A run's end in a word: its code where it is a framework error, with a mark where the cluster was closed.
pub fn word(finished: &Finished) -> String {
    let state = match &finished.record.state {
        RunState::Scored if finished.record.detector.fixed => "fixed".to_owned(),
        RunState::Scored => "not fixed".to_owned(),
        RunState::Timeout => "timeout".to_owned(),
        RunState::FrameworkError { code, .. } => code.as_str().to_owned(),
        RunState::NotRun { .. } => "not run".to_owned(),
    };
    match finished.record.undo.quarantined {
        true => format!("{state}, closed"),
        false => state,
    }
}

/// What does not hold although it must for every run, whatever happened in it.
pub fn broken(outcome: &Outcome) -> Vec<String> {
    let record = &outcome.finished.record;
    let ours = matches!(record.state, RunState::FrameworkError { .. });
    let lasted = Duration::from_millis(record.virtual_ms);
    let mut broken = outcome.unjournalled.clone();
    for (holds, what) in [
        (outcome.records == 1, format!("{} records", outcome.records)),
        (
            outcome.finished.score.is_none() == ours,
            "a score".to_owned(),
        ),
        (lasted < LONGEST_RUN, format!("it lasted {lasted:?}")),
        (
            outcome.restored.is_ok(),
            format!("not restored: {:?}", outcome.restored),
        ),
    ] {
        if !holds {
            broken.push(what);
        }
    }
    broken
}

/// A runtime whose clock jumps over every wait.
pub fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}
