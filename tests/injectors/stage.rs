//! A cluster with a fixture, and short words for what the tests do to it.

use std::time::Duration;

use agent_breakage::cluster::fixture::{Fixture, Fixtures};
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::resource::{self, JsonPatch};
use agent_breakage::cluster::target::Target;
use agent_breakage::ids::{FixtureId, Seed};
use agent_breakage::inject::change::Plan;
use agent_breakage::inject::undo::{Undone, undo};
use agent_breakage::inject::{self, InjectError, write};
use agent_breakage::scenario::model::Injector;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "prod-advocate";

/// A fixture at rest on a cluster of its own.
pub struct Stage {
    pub target: Target,
    pub client: kube::Client,
    pub fixture: Fixture,
    pub owned: Owned,
}

/// Runs a test in virtual time.
pub fn paused<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

impl Stage {
    pub async fn of(fixture: &str) -> Stage {
        let target = Target::embedded(Seed(3));
        let client = target.client();
        let fixture = Fixtures::compiled_in()
            .load(&[FixtureId::new(fixture)])
            .unwrap();
        let mut owned = Owned::default();
        reset::apply(&client, &fixture, &mut owned).await.unwrap();
        Stage {
            target,
            client,
            fixture,
            owned,
        }
    }

    pub async fn put(&self, object: &Value) -> Value {
        resource::of_kind(object["kind"].as_str().unwrap())
            .unwrap()
            .create(&self.client, NAMESPACE, object)
            .await
            .unwrap()
    }

    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        resource::of_kind(kind)
            .unwrap()
            .get(&self.client, NAMESPACE, name)
            .await
            .unwrap()
    }

    pub async fn list(&self, kind: &str) -> Vec<Value> {
        resource::of_kind(kind)
            .unwrap()
            .list(&self.client, NAMESPACE)
            .await
            .unwrap()
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        resource::of_kind(kind)
            .unwrap()
            .delete(&self.client, NAMESPACE, name)
            .await
            .unwrap();
    }

    /// Deletes, and waits until the object is gone.
    pub async fn away(&self, kind: &str, name: &str) {
        self.delete(kind, name).await;
        while self.get(kind, name).await.is_some() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What somebody else changes.
    pub async fn edit(&self, kind: &str, name: &str, operations: &[Value]) {
        let patch = JsonPatch {
            operations,
            manager: "kubectl-edit",
            dry_run: false,
        };
        resource::of_kind(kind)
            .unwrap()
            .patch(&self.client, NAMESPACE, name, &patch)
            .await
            .unwrap();
    }

    pub async fn plan(&self, injector: &Injector) -> Result<Plan, InjectError> {
        inject::plan(&self.client, injector, &self.target.now_text()).await
    }

    /// Plans and writes.
    pub async fn inject(&self, injector: &Injector) -> Plan {
        let mut plan = self.plan(injector).await.unwrap();
        write::apply(&self.client, &mut plan).await.unwrap();
        // What a journal keeps is what the undo goes by.
        serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap()
    }

    /// Why the plan is refused, with all causes.
    pub async fn refusal(&self, injector: &Injector) -> String {
        told(&self.plan(injector).await.unwrap_err())
    }

    pub async fn undo(&self, plan: &Plan) -> Undone {
        let undone = undo(&self.client, plan).await;
        assert_eq!(undone.failed, Vec::<String>::new());
        undone
    }
}

/// An error with its causes.
pub fn told(error: &InjectError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(" {error}"));
        cause = error.source();
    }
    text
}

/// An object of the namespace.
pub fn object(kind: &str, name: &str, rest: Value) -> Value {
    let version = match kind {
        "NetworkPolicy" => "networking.k8s.io/v1",
        "PodDisruptionBudget" => "policy/v1",
        _ => "v1",
    };
    let mut object = json!({
        "apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
    });
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}
