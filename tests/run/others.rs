//! A cluster that others use too: what they change during a run is not the agent's, and what keeps the agent from its
//! work makes the run no evidence.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::sync::Arc;
use std::time::Duration;

use agent_breakage::agent::{Agent, AgentError, Desk};
use agent_breakage::cluster::resource;
use agent_breakage::cluster::target::Target;
use agent_breakage::ids::Seed;
use agent_breakage::record::{FrameworkCode, Record, RunState, StageName};
use agent_breakage::run::{Order, RunKind, Watching, once};
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use crate::bench::{Bench, fault, paused};

/// Changes an object in the tenant's namespace, deletes the node, or puts a quota into ours.
#[derive(Clone, Copy)]
enum Act {
    Tenant,
    Node,
    Quota,
}

/// An agent that waits; in the meantime somebody acts, with the agent's own credential or with another.
struct Bystander {
    act: Act,
    /// Somebody else's client; nothing where the agent itself acts.
    other: Option<kube::Client>,
}

impl Agent for Bystander {
    fn name(&self) -> &'static str {
        "bystander"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let client = self.other.clone().unwrap_or(desk.client);
        let act = self.act;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            done(&client, act).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        })
    }
}

async fn done(client: &kube::Client, act: Act) {
    match act {
        Act::Tenant => {
            let configmaps = resource::of_kind("ConfigMap").unwrap();
            let live = configmaps
                .get(client, "tenant-a", "settings")
                .await
                .unwrap();
            let mut live = live.unwrap();
            live["data"] = json!({"colour": "green"});
            let replaced = configmaps
                .replace(client, "tenant-a", "settings", &live)
                .await;
            replaced.unwrap();
        }
        Act::Node => {
            let nodes = resource::of_kind("Node").unwrap();
            let name = nodes.list(client, "").await.unwrap()[0]["metadata"]["name"].clone();
            nodes
                .delete(client, "", name.as_str().unwrap())
                .await
                .unwrap();
        }
        Act::Quota => {
            create(
                client,
                "ResourceQuota",
                "prod-advocate",
                "team",
                json!({"spec": {"hard": {"pods": "3"}}}),
            )
            .await;
        }
    }
}

async fn create(client: &kube::Client, kind: &str, namespace: &str, name: &str, mut object: Value) {
    object["metadata"] = json!({"name": name, "namespace": namespace});
    let resource = resource::of_kind(kind).unwrap();
    resource.create(client, namespace, &object).await.unwrap();
}

/// A run in whose work stage somebody acts.
fn run(act: Act, by_agent: bool) -> Record {
    let bench = Bench::new();
    let scenario = bench.scenario(&fault(
        "spec.replicas = 0",
        "deployment.prod-advocate.advocate-api.readyReplicas >= 1",
    ));
    let setting = bench.setting();
    let order = Order {
        scenario: Arc::new(scenario),
        seed: Seed(1),
        qualified: false,
        kind: RunKind::Incident,
        watching: Watching::AsNeeded,
        part: None,
    };
    paused().block_on(async {
        let target = Target::embedded(order.seed);
        let client = target.client();
        let namespaces = resource::of_kind("Namespace").unwrap();
        let namespace = json!({"metadata": {"name": "tenant-a"}});
        namespaces.create(&client, "", &namespace).await.unwrap();
        create(
            &client,
            "ConfigMap",
            "tenant-a",
            "settings",
            json!({"data": {"colour": "blue"}}),
        )
        .await;
        let agent = Bystander {
            act,
            other: (!by_agent).then_some(client),
        };
        let finished = once(&setting, &order, &agent, &target, &mut |_| ()).await;
        finished.unwrap().record
    })
}

fn code(record: &Record) -> Option<FrameworkCode> {
    match &record.state {
        RunState::FrameworkError { code, .. } => Some(*code),
        _ => None,
    }
}

#[test]
fn what_another_tenant_changes_elsewhere_closes_nothing_and_is_in_no_score() {
    let record = run(Act::Tenant, false);
    assert_eq!(record.state, RunState::Timeout);
    assert!(
        record.state_changes.is_empty(),
        "{:?}",
        record.state_changes
    );
    assert!(!record.undo.quarantined && record.undo.succeeded);
    assert_eq!(record.state_hash_before, record.state_hash_after);
    let clean = record
        .stages
        .iter()
        .find(|entry| entry.stage == StageName::Clean);
    let note = clean.unwrap().note.as_deref().unwrap();
    assert_eq!(
        note,
        "elsewhere, by others: ConfigMap tenant-a/settings differs in data.colour"
    );
}

#[test]
fn the_same_change_by_the_agent_counts_against_it_and_closes_the_cluster() {
    let record = run(Act::Tenant, true);
    assert_eq!(record.state, RunState::Timeout);
    assert_eq!(record.state_changes.len(), 1, "{:?}", record.state_changes);
    assert!(record.undo.quarantined);
    assert_ne!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn a_node_that_goes_and_a_quota_of_somebody_else_make_the_run_no_evidence() {
    for act in [Act::Node, Act::Quota] {
        let record = run(act, false);
        assert_eq!(
            code(&record),
            Some(FrameworkCode::ClusterChanged),
            "{:?}",
            record.state
        );
        assert!(record.undo.attempted, "{:?}", record.undo);
    }
    // The agent's own quota is its own doing, and is taken away.
    let record = run(Act::Quota, true);
    assert_eq!(record.state, RunState::Timeout);
    assert!(!record.undo.quarantined);
    assert_eq!(record.state_hash_before, record.state_hash_after);
}

#[test]
fn a_policy_that_the_fault_itself_made_is_nobody_elses() {
    let bench = Bench::new();
    let scenario = bench.library.scenario("network-policy-wrong-peer-advocate");
    let record = bench.run_built_in(&scenario.unwrap(), "noop", 1).record;
    assert_eq!(record.state, RunState::Timeout);
    assert!(!record.undo.quarantined && record.undo.succeeded);
}
