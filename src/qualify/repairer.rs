//! The agent that knows the truth: it applies the scenario's reference repair and writes the true account.
//!
//! It lives here and not among the agents, which may not see a scenario.

use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use crate::agent::{Agent, AgentError, Desk};
use crate::cluster::resource;
use crate::record::Postmortem;
use crate::scenario::model::{RepairStep, Scenario};

/// The fault has settled by then: the slowest of the recorded ones shows its lasting form within a minute.
pub const BEFORE_REPAIR: Duration = Duration::from_secs(60);
/// What a rollout restart stamps; any moment that the fault does not use.
const RESTARTED_AT: &str = "2026-01-01T00:00:00Z";

/// See the module.
pub struct Repairer {
    scenario: Arc<Scenario>,
}

impl Repairer {
    pub fn of(scenario: Arc<Scenario>) -> Repairer {
        Repairer { scenario }
    }
}

impl Agent for Repairer {
    fn name(&self) -> &str {
        "reference-repair"
    }

    fn version(&self) -> &str {
        "1"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        let scenario = self.scenario.clone();
        Box::pin(async move {
            tokio::time::sleep(BEFORE_REPAIR).await;
            for step in &scenario.reference_repair {
                carry_out(&desk.client, step).await?;
            }
            desk.notes.postmortem(true_account(&scenario));
            Ok(())
        })
    }
}

/// Sends one step of a repair.
pub async fn carry_out(client: &kube::Client, step: &RepairStep) -> Result<(), AgentError> {
    let restart = json!({"spec": {"template": {"metadata": {"annotations": {
        "kubectl.kubernetes.io/restartedAt": RESTARTED_AT,
    }}}}});
    let (kind, namespace, name, patch_type, body) = match step {
        RepairStep::Patch {
            kind,
            namespace,
            name,
            patch_type,
            body,
        } => (kind, namespace, name, patch_type.as_str(), body),
        RepairStep::Restart {
            kind,
            namespace,
            name,
        } => (kind, namespace, name, "strategic", &restart),
    };
    let resource = resource::of_kind(kind).map_err(gave_up)?;
    let content = match patch_type {
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        _ => "application/strategic-merge-patch+json",
    };
    let path = format!(
        "/{}/namespaces/{namespace}/{}/{name}",
        resource.prefix, resource.plural
    );
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(body.to_string().into_bytes())
        .map_err(gave_up)?;
    client
        .request::<Value>(request)
        .await
        .map(drop)
        .map_err(|error| AgentError::Cluster(Box::new(error)))
}

/// The truth, as a postmortem tells it.
pub fn true_account(scenario: &Scenario) -> Postmortem {
    Postmortem {
        final_diagnosis: "the cause that the scenario holds for true".to_owned(),
        primary_category: scenario.ground_truth.primary_category.clone(),
        secondary_categories: scenario.ground_truth.secondary_categories.clone(),
        confidence: 1.0,
        actions_taken: Vec::new(),
        fix_applied: "the repair that the scenario names".to_owned(),
        what_did_not_work: Vec::new(),
        time_to_diagnose_s: 0.0,
        time_to_fix_s: 0.0,
        side_effects_observed: Vec::new(),
    }
}

/// An agent of ours that cannot go on.
pub fn gave_up(error: impl std::fmt::Display) -> AgentError {
    AgentError::GaveUp(error.to_string())
}
