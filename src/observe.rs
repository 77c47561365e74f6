//! Readings of a cluster for detectors: exactly what their expressions need, and the wait on them.
//!
//! What could not be read is noted with the reason and is unknown, never absent; so is what was read from a server that
//! lags behind. A request is made once: the next reading comes soon enough. Nothing here judges.

pub mod facts;
pub mod prometheus;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, Resource};
use crate::detect::expression::Needs;
use crate::observe::prometheus::Prometheus;
use crate::record::observation::{Answer, Observation, WorkloadFacts};

/// Time between two readings: as the reference reads, and the kubelet reports no finer than about a second.
pub const POLL: Duration = Duration::from_secs(2);
/// One request may take this long; a reading that hangs longer would be an observation of another time.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Attempts to read a workload and find it unchanged an instant later. A controller that rolls out writes some times in a
/// second, so that one of these meets a pause.
const CONFIRMATIONS: u32 = 5;

/// Reads a cluster again and again on one run's clock.
pub struct Observer {
    client: kube::Client,
    needs: Needs,
    prometheus: Option<Prometheus>,
    started: Instant,
}

impl Observer {
    /// Times of observations count from `started`.
    pub fn new(client: kube::Client, needs: Needs, started: Instant) -> Observer {
        Observer {
            client,
            needs,
            prometheus: None,
            started,
        }
    }

    /// Asks this Prometheus what the cluster itself does not know.
    #[must_use]
    pub fn asking(mut self, prometheus: Option<Prometheus>) -> Observer {
        self.prometheus = prometheus;
        self
    }

    /// One reading. It always comes back; what failed stands in `unread`.
    pub async fn read(&self) -> Observation {
        let mut observation = Observation::default();
        for object in &self.needs.deployments {
            let read = self.workload("Deployment", &object.namespace, &object.name);
            let key = Observation::key(&object.namespace, &object.name);
            match read.await {
                Ok(Some(facts)) => {
                    observation.deployments.insert(key, facts);
                }
                Ok(None) => {}
                Err(reason) => {
                    let label = format!("deployment.{}.{}", object.namespace, object.name);
                    observation.unread.insert(label, reason);
                }
            }
        }
        for object in &self.needs.statefulsets {
            let read = self.workload("StatefulSet", &object.namespace, &object.name);
            let key = Observation::key(&object.namespace, &object.name);
            match read.await {
                Ok(Some(facts)) => {
                    observation.statefulsets.insert(key, facts);
                }
                Ok(None) => {}
                Err(reason) => {
                    let label = format!("statefulset.{}.{}", object.namespace, object.name);
                    observation.unread.insert(label, reason);
                }
            }
        }
        for namespace in &self.needs.pods {
            if let Err(reason) = self.pods(namespace, &mut observation).await {
                observation
                    .unread
                    .insert(format!("pods.{namespace}"), reason);
            }
        }
        if let Some(prometheus) = &self.prometheus {
            observation.metrics = Some(self.metrics(prometheus).await);
        }
        observation.at_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        observation
    }

    /// All queries at the same time: each may take as long as one reading should.
    async fn metrics(&self, prometheus: &Prometheus) -> BTreeMap<String, Answer> {
        let answers = self.needs.queries.iter().map(async |query| {
            let answer = prometheus.ask(query).await;
            (query.clone(), answer)
        });
        join_all(answers).await.into_iter().collect()
    }

    async fn workload(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<WorkloadFacts>, String> {
        let resource = resource::of_kind(kind).map_err(|error| error.to_string())?;
        let object = limited(resource.look(&self.client, namespace, name)).await?;
        object.as_ref().map(facts::workload).transpose()
    }

    /// Has the server's own store confirm that what is read of the workloads is the present: an answer from a cache that
    /// stands still looks like a cluster in which nothing happens.
    ///
    /// # Errors
    /// Why it could not be confirmed.
    pub async fn confirm(&self) -> Result<(), String> {
        let deployments = self.needs.deployments.iter().map(|o| ("Deployment", o));
        let statefulsets = self.needs.statefulsets.iter().map(|o| ("StatefulSet", o));
        for (kind, object) in deployments.chain(statefulsets) {
            self.confirm_one(kind, &object.namespace, &object.name)
                .await?;
        }
        Ok(())
    }

    async fn confirm_one(&self, kind: &str, namespace: &str, name: &str) -> Result<(), String> {
        let resource = resource::of_kind(kind).map_err(|error| error.to_string())?;
        for _ in 0..CONFIRMATIONS {
            let Some(live) = limited(resource.look(&self.client, namespace, name)).await? else {
                return Ok(());
            };
            let confirmed = resource.is_current(&self.client, &live).await;
            if confirmed.map_err(|error| error.to_string())? {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        Err(format!(
            "{kind} {namespace}/{name} as it is read is not as it is in the cluster"
        ))
    }

    async fn pods(&self, namespace: &str, into: &mut Observation) -> Result<(), String> {
        let list = async |kind: &str| -> Result<Vec<Value>, String> {
            let resource: &Resource = resource::of_kind(kind).map_err(|error| error.to_string())?;
            limited(resource.look_at_all(&self.client, namespace)).await
        };
        let pods = list("Pod").await?;
        let deployments: BTreeMap<String, String> = list("ReplicaSet")
            .await?
            .iter()
            .filter_map(facts::deployment_of)
            .collect();
        for pod in &pods {
            into.pods.push(facts::pod(pod, &deployments)?);
        }
        Ok(())
    }
}

/// Reads until `judge` has an answer or the deadline has passed: the only wait on a cluster's symptoms. There is at
/// least one reading.
pub async fn until<T>(
    observer: &Observer,
    deadline: Instant,
    mut judge: impl FnMut(&Observation) -> Option<T>,
) -> Option<T> {
    loop {
        let observation = observer.read().await;
        if let Some(answer) = judge(&observation) {
            return Some(answer);
        }
        let now = Instant::now();
        if now >= deadline {
            return None;
        }
        tokio::time::sleep_until(deadline.min(now + POLL)).await;
    }
}

async fn limited<T>(request: impl Future<Output = Result<T, ClusterError>>) -> Result<T, String> {
    match tokio::time::timeout(REQUEST_LIMIT, request).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", REQUEST_LIMIT.as_secs())),
    }
}
