//! What every cheat has at hand: the workloads in scope, a category by its seed, and a confident account.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::agent::hands::{DAEMON_SET, DEPLOYMENT, Hands, Kind, STATEFUL_SET};
use crate::agent::{AgentError, Desk, StatedHypothesis};
use crate::ids::CategoryId;
use crate::record::Postmortem;

/// What runs pods.
pub(super) const WORKLOADS: &[&Kind] = &[&DEPLOYMENT, &STATEFUL_SET, &DAEMON_SET];
/// What is named where there is no vocabulary to guess from.
const UNINFORMED: &str = "symptom-misdiagnosis";
/// How sure a cheat says it is.
const CONFIDENCE: f64 = 0.95;

/// One cheat at its desk.
pub(super) struct Play {
    pub desk: Desk,
    pub hands: Hands,
    started: Instant,
}

/// A workload as it was read.
pub(super) struct Found {
    pub kind: &'static Kind,
    pub ns: String,
    pub name: String,
    pub object: Value,
}

impl Found {
    /// Containers of the template that run to stay.
    pub fn containers(&self) -> impl Iterator<Item = &Value> {
        let containers = &self.object["spec"]["template"]["spec"]["containers"];
        containers.as_array().into_iter().flatten()
    }
}

impl Play {
    pub fn new(desk: Desk) -> Play {
        Play {
            hands: Hands::new(desk.client.clone()),
            started: Instant::now(),
            desk,
        }
    }

    /// Every workload of these kinds in the task's namespaces.
    pub async fn workloads(&self, kinds: &[&'static Kind]) -> Result<Vec<Found>, AgentError> {
        let mut found = Vec::new();
        for ns in &self.desk.task.namespaces {
            for kind in kinds {
                let objects = self.hands.list(kind, ns).await.map_err(cluster)?;
                found.extend(objects.into_iter().map(|object| {
                    Found {
                        kind,
                        ns: ns.clone(),
                        name: object["metadata"]["name"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                        object,
                    }
                }));
            }
        }
        Ok(found)
    }

    /// The share of the budget that has passed, 0 to 1.
    pub fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / f64::from(self.desk.task.time_budget_s)
    }

    /// A fifth of the budget: long enough for a rollout and for any condition to hold.
    pub async fn let_it_show(&self) {
        sleep(Duration::from_secs(
            u64::from(self.desk.task.time_budget_s) / 5,
        ))
        .await;
    }

    /// A category of the vocabulary, picked by the seed.
    pub fn guess(&self) -> CategoryId {
        let categories = &self.desk.vocabulary;
        let pick = self.desk.seed.child("guess", 0).0;
        // A remainder by a length always fits.
        let index = pick.checked_rem(categories.len() as u64).unwrap_or(0) as usize;
        categories.get(index).map_or_else(
            || CategoryId::new(UNINFORMED),
            |category| category.id.clone(),
        )
    }

    pub fn state(&self, category: &CategoryId) {
        self.desk.notes.hypothesis(StatedHypothesis {
            primary_category: category.clone(),
            secondary_categories: Vec::new(),
            confidence: CONFIDENCE,
            reasoning: "this is what it must be".to_owned(),
        });
    }

    /// Claims that the incident is over, with the category by the seed.
    pub fn claim(&self, fix: &str) {
        self.account(
            self.guess(),
            Vec::new(),
            "The cause was found and removed; the service is well.",
            fix,
        );
    }

    pub fn account(
        &self,
        primary: CategoryId,
        secondary: Vec<CategoryId>,
        diagnosis: &str,
        fix: &str,
    ) {
        let passed = self.started.elapsed().as_secs_f64();
        self.desk.notes.postmortem(Postmortem {
            final_diagnosis: diagnosis.to_owned(),
            primary_category: primary,
            secondary_categories: secondary,
            confidence: CONFIDENCE,
            actions_taken: Vec::new(),
            fix_applied: fix.to_owned(),
            what_did_not_work: Vec::new(),
            time_to_diagnose_s: passed,
            time_to_fix_s: passed,
            side_effects_observed: Vec::new(),
        });
    }
}

/// A write that the server refused stops no cheat; a server that does not answer does.
pub(super) fn press_on(result: Result<Value, kube::Error>) -> Result<(), AgentError> {
    match result {
        Ok(_) | Err(kube::Error::Api(_)) => Ok(()),
        Err(error) => Err(cluster(error)),
    }
}

pub(super) fn cluster(error: kube::Error) -> AgentError {
    AgentError::Cluster(Box::new(error))
}
