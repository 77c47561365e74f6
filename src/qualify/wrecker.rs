//! The agent whose repair is real and destructive: it deletes what the fault touched and makes it anew as the fixture
//! has it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::agent::{Agent, AgentError, Desk};
use crate::cluster::fixture::Fixture;
use crate::cluster::reset::GONE_DEADLINE;
use crate::cluster::resource::{self, Resource};
use crate::detect::expression::Needs;
use crate::qualify::repairer::{BEFORE_REPAIR, carry_out, gave_up, true_account};
use crate::scenario::model::{Injector, RepairStep, Scenario};

/// Between two looks whether a deleted object is gone.
const GONE_POLL: Duration = Duration::from_secs(1);

/// See the module.
pub struct Wrecker {
    scenario: Arc<Scenario>,
    /// What is deleted, as it was before the fault.
    victims: Vec<Value>,
}

impl Wrecker {
    /// Without a fixture nothing is destroyed; its runs fail by themselves then.
    pub fn of(scenario: Arc<Scenario>, fixture: Option<Fixture>) -> Wrecker {
        let objects = fixture.map(|fixture| fixture.objects).unwrap_or_default();
        let victims = victims(&scenario, &objects);
        Wrecker { scenario, victims }
    }
}

/// The object that the fault is written to and the workloads that the detectors ask for.
fn victims(scenario: &Scenario, objects: &[Value]) -> Vec<Value> {
    let mut wanted: Vec<(String, String, String)> = Vec::new();
    let (kind, namespace, name) = match &scenario.injector {
        Injector::DeploymentPatch {
            namespace,
            deployment,
            ..
        } => ("Deployment", namespace, deployment.as_str()),
        Injector::ConfigmapPatch {
            namespace,
            configmap,
            ..
        }
        | Injector::FlagdFlag {
            namespace,
            configmap,
            ..
        } => ("ConfigMap", namespace, configmap.as_str()),
        Injector::SecretContent {
            namespace, secret, ..
        } => ("Secret", namespace, secret.as_str()),
        Injector::NetworkPolicy { namespace, .. } | Injector::PodEvict { namespace, .. } => {
            ("", namespace, "")
        }
    };
    wanted.push((kind.to_owned(), namespace.clone(), name.to_owned()));
    let asked = Needs::of(
        scenario
            .detector
            .fixed_when
            .iter()
            .map(|condition| &condition.expression),
    );
    for object in &asked.deployments {
        wanted.push((
            "Deployment".to_owned(),
            object.namespace.clone(),
            object.name.clone(),
        ));
    }
    for object in &asked.statefulsets {
        wanted.push((
            "StatefulSet".to_owned(),
            object.namespace.clone(),
            object.name.clone(),
        ));
    }
    objects
        .iter()
        .filter(|object| wanted.contains(&identity(object)))
        .cloned()
        .collect()
}

/// Kind, namespace and name.
fn identity(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&object["kind"]),
        text(&object["metadata"]["namespace"]),
        text(&object["metadata"]["name"]),
    )
}

impl Agent for Wrecker {
    fn name(&self) -> &str {
        "destructive-repair"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let scenario = self.scenario.clone();
        let victims = self.victims.clone();
        Box::pin(async move {
            tokio::time::sleep(BEFORE_REPAIR).await;
            for victim in &victims {
                make_anew(&desk.client, victim).await?;
            }
            for step in &scenario.reference_repair {
                if !touches(step, &victims) {
                    carry_out(&desk.client, step).await?;
                }
            }
            desk.notes.postmortem(true_account(&scenario));
            Ok(())
        })
    }
}

/// Whether a step patches an object that was made anew, and so has nothing left to mend.
fn touches(step: &RepairStep, victims: &[Value]) -> bool {
    let RepairStep::Patch {
        kind,
        namespace,
        name,
        ..
    } = step
    else {
        return false;
    };
    let target = (kind.clone(), namespace.clone(), name.clone());
    victims.iter().any(|victim| identity(victim) == target)
}

async fn make_anew(client: &kube::Client, object: &Value) -> Result<(), AgentError> {
    let (kind, namespace, name) = identity(object);
    let resource: &Resource = resource::of_kind(&kind).map_err(gave_up)?;
    resource
        .delete(client, &namespace, &name)
        .await
        .map_err(gave_up)?;
    let deadline = Instant::now() + GONE_DEADLINE;
    while resource
        .get(client, &namespace, &name)
        .await
        .map_err(gave_up)?
        .is_some()
    {
        if Instant::now() >= deadline {
            return Err(gave_up(format!("{kind} {namespace}/{name} does not go")));
        }
        tokio::time::sleep(GONE_POLL).await;
    }
    resource
        .create(client, &namespace, object)
        .await
        .map(drop)
        .map_err(gave_up)
}
