//! The injector `pod-evict`: ready pods of a workload or selector, evicted through the API that asks their budgets.
//!
//! Victims are taken in the order of their names. A pod that nothing would make anew is refused. An eviction cannot be
//! taken back: the undo says so, and the reset proves the state.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::eviction::{Answer, evict};
use crate::cluster::{ClusterError, resource};
use crate::inject::InjectError;
use crate::inject::change::{Eviction, ObjectRef, Plan, reference};
use crate::inject::network_policy::{matches, selector};
use crate::inject::undo::Undone;
use crate::scenario::model::{EvictCount, EvictTarget};

/// Between two attempts where the server does not say: as `kubectl drain` waits.
const PAUSE: Duration = Duration::from_secs(5);

/// How long one pod's eviction is tried. A replacement that a budget waits for is ready within it; a budget that never
/// allows anything is found out.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The code of an eviction that a budget does not allow at the moment.
const BUSY: u16 = 429;

/// Plans the eviction of pods.
pub async fn plan(
    client: &kube::Client,
    namespace: &str,
    target: &EvictTarget,
    how_many: EvictCount,
) -> Result<Plan, InjectError> {
    let (whose, pods) = candidates(client, namespace, target).await?;
    let mut ready: Vec<Eviction> = Vec::new();
    for pod in pods.iter().filter(|pod| !is_leaving(pod)) {
        let object = reference("Pod", pod);
        let Some(owner) = owner(pod) else {
            return Err(InjectError::Unsupported {
                what: format!("the eviction of {object}, which nothing would make anew,"),
            });
        };
        if is_ready(pod) {
            ready.push(Eviction { pod: object, owner });
        }
    }
    ready.sort_by(|one, other| one.pod.name.cmp(&other.pod.name));
    let wanted = match how_many {
        EvictCount::Percentage(percent) => (ready.len() * usize::from(percent)).div_ceil(100),
        EvictCount::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
    }
    .max(1);
    if ready.len() < wanted {
        return Err(InjectError::TooFewPods {
            whose,
            ready: ready.len(),
            wanted,
        });
    }
    ready.truncate(wanted);
    let mut plan = Plan {
        evictions: ready,
        ..Plan::default()
    };
    for eviction in &plan.evictions {
        plan.warnings.extend(preview(client, eviction).await?);
    }
    Ok(plan)
}

/// The pods that may be meant, and whose they are in words.
async fn candidates(
    client: &kube::Client,
    namespace: &str,
    target: &EvictTarget,
) -> Result<(String, Vec<Value>), InjectError> {
    let pods = resource::of_kind("Pod")?;
    let (kind, name) = match target {
        EvictTarget::Selector(labels) => {
            let found = pods.list_matching(client, namespace, labels).await?;
            return Ok((format!("selector {labels} in {namespace}"), found));
        }
        EvictTarget::Deployment(name) => ("Deployment", name),
        EvictTarget::StatefulSet(name) => ("StatefulSet", name),
    };
    let whose = format!("{kind} {namespace}/{name}");
    let workload = resource::of_kind(kind)?
        .get(client, namespace, name)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: whose.clone(),
        })?;
    let mut makers = vec![uid(&workload)];
    if kind == "Deployment" {
        let sets = resource::of_kind("ReplicaSet")?
            .list(client, namespace)
            .await?;
        let own = sets
            .iter()
            .filter(|set| controller(set).is_some_and(|by| makers[0] == by["uid"]));
        makers = own.map(uid).collect();
    }
    let mut found = pods.list(client, namespace).await?;
    found.retain(|pod| {
        controller(pod).is_some_and(|by| makers.iter().any(|maker| by["uid"] == maker.as_str()))
    });
    Ok((whose, found))
}

/// Asks for each eviction without making it: a refusal that time does not change comes before anything is journaled.
async fn preview(
    client: &kube::Client,
    eviction: &Eviction,
) -> Result<Option<String>, InjectError> {
    let pod = &eviction.pod;
    let why = match evict(client, &pod.namespace, &pod.name, &pod.uid, true).await {
        Ok(Answer::Evicted) => return Ok(None),
        Ok(Answer::Gone) => {
            return Err(InjectError::TargetMissing {
                object: pod.to_string(),
            });
        }
        Ok(Answer::NotNow { message, .. }) => {
            format!("the server does not allow the eviction of {pod} now: {message}")
        }
        Ok(Answer::Refused { code, message }) => {
            return Err(refused(pod, code, message, &budgets(client, pod).await?));
        }
        Ok(Answer::Unclear { code, message }) => {
            let budgets = budgets(client, pod).await?;
            if budgets.len() > 1 {
                return Err(refused(pod, code, message, &budgets));
            }
            format!("the server could not preview the eviction of {pod}: {message}")
        }
        Err(error) if error.is_outage() => {
            format!("the server could not preview the eviction of {pod}: {error}")
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Some(why))
}

/// Evicts one pod, waiting while its budgets ask for it. Where an answer is lost, the pod itself tells.
pub async fn apply(client: &kube::Client, eviction: &Eviction) -> Result<(), InjectError> {
    let pod = &eviction.pod;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = evict(client, &pod.namespace, &pod.name, &pod.uid, false).await;
        let (wait, error) = match answer {
            Ok(Answer::Evicted) => return Ok(()),
            Ok(Answer::Gone) => {
                return Err(InjectError::TargetMissing {
                    object: pod.to_string(),
                });
            }
            Ok(Answer::NotNow { wait, message }) => {
                let budgets = budgets(client, pod).await?;
                (wait.unwrap_or(PAUSE), refused(pod, BUSY, message, &budgets))
            }
            Ok(Answer::Refused { code, message }) => {
                return Err(refused(pod, code, message, &budgets(client, pod).await?));
            }
            Ok(Answer::Unclear { code, message }) => {
                let budgets = budgets(client, pod).await?;
                // A server that is asked about two budgets at once breaks down by design.
                let wait = if budgets.len() > 1 {
                    PATIENCE * 2
                } else {
                    PAUSE
                };
                (wait, refused(pod, code, message, &budgets))
            }
            Err(error) if error.is_outage() => (PAUSE, error.into()),
            Err(error) => return Err(error.into()),
        };
        if is_evicted(client, pod).await? {
            return Ok(());
        }
        if Instant::now() + wait > deadline {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
    }
}

/// Whether the pod is gone or going.
async fn is_evicted(client: &kube::Client, pod: &ObjectRef) -> Result<bool, ClusterError> {
    let live = resource::of_kind("Pod")?
        .get(client, &pod.namespace, &pod.name)
        .await?;
    Ok(live.is_none_or(|live| uid(&live) != pod.uid || is_leaving(&live)))
}

/// The disruption budgets that a pod falls under.
async fn budgets(client: &kube::Client, pod: &ObjectRef) -> Result<Vec<String>, ClusterError> {
    let live = resource::of_kind("Pod")?
        .get(client, &pod.namespace, &pod.name)
        .await?
        .unwrap_or_default();
    let budgets = resource::of_kind("PodDisruptionBudget")?
        .list(client, &pod.namespace)
        .await?;
    Ok(budgets
        .iter()
        .filter(|budget| {
            selector(&budget["spec"]["selector"]).is_ok_and(|selector| matches(&selector, &live))
        })
        .filter_map(|budget| budget["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

/// Names the pod and its budgets.
fn refused(pod: &ObjectRef, code: u16, message: String, budgets: &[String]) -> InjectError {
    let message = if budgets.is_empty() {
        message
    } else {
        format!("{message} (PodDisruptionBudget {})", budgets.join(", "))
    };
    InjectError::Refused {
        object: pod.to_string(),
        code,
        message,
    }
}

/// Says what became of a pod: the eviction, if it was made, stays made.
pub async fn undo(
    client: &kube::Client,
    eviction: &Eviction,
    undone: &mut Undone,
) -> Result<(), ClusterError> {
    let Eviction { pod, owner } = eviction;
    if !is_evicted(client, pod).await? {
        undone.original.push(format!("{pod}: was not evicted"));
    } else {
        undone.kept.push(format!(
            "{pod}: its eviction cannot be taken back; {owner} makes another"
        ));
    }
    Ok(())
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn is_leaving(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    })
}

fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// What makes the pod anew, in words.
fn owner(pod: &Value) -> Option<String> {
    let by = controller(pod)?;
    let word = |field: &str| by[field].as_str().unwrap_or_default().to_owned();
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    Some(format!("{} {namespace}/{}", word("kind"), word("name")))
}
