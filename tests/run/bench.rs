//! What the tests of whole runs stand on: a store in memory, the library, agents that do as told.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use agent_breakage::agent::{self, Agent, AgentError, Desk};
use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::cluster::resource;
use agent_breakage::cluster::target::Target;
use agent_breakage::embed::BuiltIn;
use agent_breakage::experience::learner::Learner;
use agent_breakage::experience::policy::Policy;
use agent_breakage::experience::{Reader, seeds};
use agent_breakage::ids::Seed;
use agent_breakage::run::{Finished, Order, RunKind, Setting, Watching, once};
use agent_breakage::scenario::library::{DEFAULT_RUBRIC, Library};
use agent_breakage::scenario::load;
use agent_breakage::scenario::model::Scenario;
use agent_breakage::store::Store;
use futures::future::LocalBoxFuture;
use tokio::sync::watch;

/// One workspace without a file.
pub struct Bench {
    pub store: Arc<Store>,
    pub library: Library,
    pub learn: bool,
    pub rubric: &'static str,
    pub fixtures: Fixtures,
    pub stop: watch::Sender<bool>,
}

impl Bench {
    pub fn new() -> Bench {
        let store = Arc::new(Store::in_memory().unwrap());
        let embedder = BuiltIn::Lexical.embedder();
        Learner::new(store.clone(), embedder)
            .import(&seeds::entries(), |_| ())
            .unwrap();
        Bench {
            store,
            library: Library::open(None).unwrap(),
            learn: false,
            rubric: DEFAULT_RUBRIC,
            fixtures: Fixtures::compiled_in(),
            stop: watch::Sender::new(false),
        }
    }

    pub fn scenario(&self, text: &str) -> Scenario {
        load::scenario(text, "trial.yaml", self.library.vocabulary())
            .unwrap()
            .scenario
    }

    pub fn run_built_in(&self, scenario: &Scenario, agent: &str, seed: u64) -> Finished {
        self.run(scenario, agent::by_name(agent).unwrap().as_ref(), seed)
    }

    /// One whole run in paused time.
    pub fn run(&self, scenario: &Scenario, agent: &dyn Agent, seed: u64) -> Finished {
        self.ordered(scenario, agent, seed, RunKind::Incident, Watching::AsNeeded)
    }

    /// One whole run of any kind in paused time.
    pub fn ordered(
        &self,
        scenario: &Scenario,
        agent: &dyn Agent,
        seed: u64,
        kind: RunKind,
        watching: Watching,
    ) -> Finished {
        let order = Order {
            scenario: Arc::new(scenario.clone()),
            seed: Seed(seed),
            qualified: false,
            kind,
            watching,
            part: None,
        };
        let setting = self.setting();
        paused().block_on(async {
            let target = Target::embedded(order.seed);
            once(&setting, &order, agent, &target, &mut |_| ())
                .await
                .unwrap()
        })
    }

    /// How many postmortems a run would be served from.
    pub fn served_count(&self) -> usize {
        let setting = self.setting();
        setting.snapshot.eligible(&setting.policy)
    }

    pub fn setting(&self) -> Setting {
        let embedder = BuiltIn::Lexical.embedder();
        let reader = Reader::new(Some(self.store.clone()));
        Setting {
            store: self.store.clone(),
            vocabulary: Arc::new(self.library.vocabulary().clone()),
            fixtures: Arc::new(self.fixtures.clone()),
            rubric: self.library.rubric(self.rubric).unwrap().clone(),
            policy: Policy::default_for(embedder.as_ref()),
            snapshot: Arc::new(reader.snapshot(embedder.as_ref()).unwrap()),
            embedder,
            learn: self.learn,
            prometheus: None,
            interrupted: self.stop.subscribe(),
        }
    }
}

/// The namespaces of the advocate fixtures.
pub fn namespaces() -> std::collections::BTreeSet<String> {
    ["prod-advocate", "prod-billing"].map(str::to_owned).into()
}

/// A runtime whose clock jumps over every wait.
pub fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A scenario on the advocate service with a mutation and one fixed_when expression.
pub fn fault(mutation: &str, fixed_when: &str) -> String {
    format!(
        "id: trial
plane: config
symptom_class: unavailable
origin: synthetic:test
difficulty: easy
tier: coverage
status: active
source_tranche: null
fixture: advocate
injector:
  type: deployment-patch
  target: {{ns: prod-advocate, deploy: advocate-api}}
  mutation: '{mutation}'
detector:
  fixed_when:
    - expression: {fixed_when}
      sustained_for_s: 10
  regressed_when: []
scorer:
  time_budget_s: 600
  scope: [prod-advocate]
  credits: {{detected: 0.2, diagnosed: 0.3, fixed: 0.3, no_regressions: 0.2}}
ground_truth:
  primary_category: deployment-rollout-failure
  secondary_categories: []
"
    )
}

/// One thing that an agent does.
pub enum Deed {
    Create(&'static str, &'static str, &'static str),
    Delete(&'static str, &'static str, &'static str),
    Merge(&'static str, &'static str, &'static str, &'static str),
    Strategic(&'static str, &'static str, &'static str, &'static str),
    Wait(u64),
    Interrupt(watch::Sender<bool>),
    Panic,
}

/// An agent that does as told, once, and leaves without a word.
pub struct Doing {
    deeds: RefCell<Vec<Deed>>,
}

impl Doing {
    pub fn new(deeds: Vec<Deed>) -> Doing {
        Doing {
            deeds: RefCell::new(deeds),
        }
    }
}

impl Agent for Doing {
    fn name(&self) -> &'static str {
        "doing"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let deeds = self.deeds.take();
        Box::pin(async move {
            for deed in deeds {
                deed.done(&desk.client).await;
            }
            Ok(())
        })
    }
}

impl Deed {
    async fn done(self, client: &kube::Client) {
        match self {
            Deed::Create(kind, namespace, name) => {
                let object =
                    serde_json::json!({"metadata": {"name": name, "namespace": namespace}});
                let resource = resource::of_kind(kind).unwrap();
                resource.create(client, namespace, &object).await.unwrap();
            }
            Deed::Delete(kind, namespace, name) => {
                let resource = resource::of_kind(kind).unwrap();
                resource.delete(client, namespace, name).await.unwrap();
            }
            Deed::Merge(kind, namespace, name, body) => {
                patch(client, kind, namespace, name, body, "merge-patch").await;
            }
            Deed::Strategic(kind, namespace, name, body) => {
                patch(client, kind, namespace, name, body, "strategic-merge-patch").await;
            }
            Deed::Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Deed::Interrupt(stop) => {
                stop.send_replace(true);
            }
            Deed::Panic => panic!("the agent lost its mind"),
        }
    }
}

async fn patch(
    client: &kube::Client,
    kind: &str,
    namespace: &str,
    name: &str,
    body: &str,
    patch_type: &str,
) {
    let resource = resource::of_kind(kind).unwrap();
    let path = format!(
        "/{}/namespaces/{namespace}/{}/{name}",
        resource.prefix, resource.plural
    );
    let request = http::Request::patch(path)
        .header("content-type", format!("application/{patch_type}+json"))
        .body(body.as_bytes().to_vec())
        .unwrap();
    let _: serde_json::Value = client.request(request).await.unwrap();
}
