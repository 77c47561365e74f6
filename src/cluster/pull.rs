//! Whether the nodes of a cluster can start a container from an image: one pod on each, in a namespace of ours that goes
//! again.
//!
//! Asked before anything else is made, because a fixture whose image cannot be pulled says so minutes later and in the
//! words of many objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::ClusterError;
use crate::cluster::ownership::Owned;
use crate::cluster::reset;
use crate::cluster::resource;

/// The namespace of the pods.
pub const NAMESPACE: &str = "image-check";
/// How long a node may take: some megabytes over a slow line, and the kubelet's own first back-off of 10 s.
const DEADLINE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_secs(1);
/// Nodes asked at the same time; of a large cluster these speak for the others.
const MAX_NODES: usize = 8;

/// What a node made of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The program in it ran.
    Runs,
    /// The kubelet's words.
    CannotPull { message: String },
    /// It is there, and no container can be started from it: another machine's program, or another image.
    CannotStart { message: String },
    /// No pod came as far as that.
    Undecided { message: String },
}

/// What the nodes made of the image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    pub by_node: BTreeMap<String, Verdict>,
    /// Nodes that were not asked, because others speak for them.
    pub not_asked: usize,
    /// The server makes every pod pull from a registry, so that an image that was brought to the node is not enough.
    pub always: bool,
}

impl Pulled {
    pub fn runs_everywhere(&self) -> bool {
        !self.by_node.is_empty() && self.by_node.values().all(|v| *v == Verdict::Runs)
    }
}

/// Lets a pod run from the image on every node that takes pods. The namespace is removed again, also after an error.
///
/// # Errors
/// A server that does not answer or refuses the pods; a namespace of that name that is not ours.
pub async fn check(
    client: &kube::Client,
    owned: &mut Owned,
    image: &str,
) -> Result<Pulled, ClusterError> {
    in_own_namespace(client, owned, NAMESPACE, async |client| {
        on_nodes(client, image).await
    })
    .await
}

/// Makes a namespace of ours, anew if an earlier process left it, lets something be done in it and removes it.
pub(super) async fn in_own_namespace<T>(
    client: &kube::Client,
    owned: &mut Owned,
    name: &str,
    work: impl AsyncFnOnce(&kube::Client) -> Result<T, ClusterError>,
) -> Result<T, ClusterError> {
    let names: BTreeSet<String> = [name.to_owned()].into();
    owned.settle(client).await?;
    if owned.names().contains(name) {
        reset::remove_namespaces(client, owned, &names).await?;
    }
    owned.create(client, name).await?;
    let done = work(client).await;
    let removed = reset::remove_namespaces(client, owned, &names).await;
    let done = done?;
    removed?;
    Ok(done)
}

async fn on_nodes(client: &kube::Client, image: &str) -> Result<Pulled, ClusterError> {
    let nodes = resource::of_kind("Node")?.list(client, "").await?;
    let hosts: Vec<String> = nodes
        .iter()
        .filter(|node| takes_pods(node))
        .filter_map(|node| node["metadata"]["labels"][HOSTNAME].as_str())
        .map(str::to_owned)
        .collect();
    let mut pulled = Pulled {
        not_asked: hosts.len().saturating_sub(MAX_NODES),
        ..Pulled::default()
    };
    let pods = resource::of_kind("Pod")?;
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    for (number, host) in hosts.into_iter().take(MAX_NODES).enumerate() {
        let name = format!("pull-{number}");
        let made = create(client, &pod(&name, image, &host)).await?;
        let policy = &made["spec"]["containers"][0]["imagePullPolicy"];
        pulled.always |= *policy == "Always";
        open.insert(name, host);
    }
    let mut first_words: BTreeMap<String, String> = BTreeMap::new();
    let deadline = Instant::now() + DEADLINE;
    while !open.is_empty() {
        tokio::time::sleep(POLL).await;
        let late = Instant::now() >= deadline;
        for pod in pods.list(client, NAMESPACE).await? {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let Some(host) = open.get(name) else { continue };
            if let Some(verdict) = verdict(&pod, late, &mut first_words) {
                pulled.by_node.insert(host.clone(), verdict);
                open.remove(name);
            }
        }
        if late {
            break;
        }
    }
    Ok(pulled)
}

/// Creates a pod in a namespace that was made a moment ago: until its service account is there the server refuses.
pub(super) async fn create(client: &kube::Client, pod: &Value) -> Result<Value, ClusterError> {
    let pods = resource::of_kind("Pod")?;
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let deadline = Instant::now() + ACCOUNT_DEADLINE;
    loop {
        match pods.create(client, namespace, pod).await {
            Err(ClusterError::Api {
                code: 403, message, ..
            }) if message.contains("serviceaccount") && Instant::now() < deadline => {
                tokio::time::sleep(POLL).await;
            }
            other => return other,
        }
    }
}

/// A namespace's service account comes within a second; a busy controller may take longer.
const ACCOUNT_DEADLINE: Duration = Duration::from_secs(20);

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Ready, not cordoned, and without a taint that keeps ordinary pods away.
pub fn takes_pods(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let taints = node["spec"]["taints"].as_array();
    let kept_away = taints
        .into_iter()
        .flatten()
        .any(|taint| taint["effect"] == "NoSchedule" || taint["effect"] == "NoExecute");
    ready && !kept_away && node["spec"]["unschedulable"] != true
}

/// A pod that any admission policy lets through. The pull policy is left to the server, as fixtures leave it.
fn pod(name: &str, image: &str, host: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "nodeSelector": {HOSTNAME: host},
            "securityContext": modest_pod(),
            "containers": [{
                "name": "app", "image": image,
                "resources": modest_resources(),
                "securityContext": modest_container(),
            }],
        },
    })
}

/// What the strictest pod security level asks of a pod.
pub(super) fn modest_pod() -> Value {
    // The user by number: images that name none would be root's, and refused before they are tried.
    json!({
        "runAsNonRoot": true, "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// What the strictest pod security level asks of a container.
pub(super) fn modest_container() -> Value {
    json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
}

/// Little enough for a full node, and said, since a quota may ask for it.
pub(super) fn modest_resources() -> Value {
    json!({
        "requests": {"cpu": "1m", "memory": "16Mi"},
        "limits": {"cpu": "500m", "memory": "128Mi"},
    })
}

/// Reasons for which a kubelet gives up on an image, or will.
const PULL_REASONS: &[&str] = &[
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// Reasons for which a container of a pulled image does not start.
const START_REASONS: &[&str] = &[
    "CreateContainerError",
    "CreateContainerConfigError",
    "RunContainerError",
    "StartError",
    "ContainerCannotRun",
];

/// What a pod's status says so far; nothing while it may still come to something. `first_words` keeps what the kubelet
/// said of a first failure, by pod: older ones say nothing of it while they back off.
fn verdict(pod: &Value, late: bool, first_words: &mut BTreeMap<String, String>) -> Option<Verdict> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let status = &pod["status"]["containerStatuses"][0];
    let said = |state: &Value| {
        let reason = state["reason"].as_str().unwrap_or_default();
        let message = state["message"].as_str().unwrap_or_default();
        (reason.to_owned(), format!("{reason}: {message}"))
    };
    let (waiting, message) = said(&status["state"]["waiting"]);
    if PULL_REASONS.contains(&waiting.as_str()) {
        // A first failure may pass.
        if waiting == "ErrImagePull" && !late {
            first_words.insert(name.to_owned(), message);
            return None;
        }
        let first = first_words.remove(name).unwrap_or_default();
        let message = if first.len() > message.len() {
            first
        } else {
            message
        };
        return Some(Verdict::CannotPull { message });
    }
    if START_REASONS.contains(&waiting.as_str()) {
        return Some(Verdict::CannotStart { message });
    }
    for state in ["terminated", "running"] {
        let state = &status["state"][state];
        if state.is_null() {
            continue;
        }
        let (reason, message) = said(state);
        return Some(if START_REASONS.contains(&reason.as_str()) {
            Verdict::CannotStart { message }
        } else {
            Verdict::Runs
        });
    }
    late.then(|| Verdict::Undecided {
        message: unscheduled(pod).unwrap_or_else(|| {
            format!(
                "after {} s the pod is {}",
                DEADLINE.as_secs(),
                pod["status"]["phase"].as_str().unwrap_or("unknown")
            )
        }),
    })
}

fn unscheduled(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .and_then(|condition| condition["message"].as_str())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod_with(state: Value) -> Value {
        json!({"status": {"phase": "Pending", "containerStatuses": [{"state": state}]}})
    }

    fn seen(state: Value, late: bool) -> Option<Verdict> {
        verdict(&pod_with(state), late, &mut BTreeMap::new())
    }

    #[test]
    fn a_first_failure_to_pull_may_pass_and_its_words_are_kept_for_the_back_off() {
        let waiting = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
        let mut first_words = BTreeMap::new();
        let failed = pod_with(waiting("ErrImagePull", "no such host: ghcr.io"));
        assert_eq!(verdict(&failed, false, &mut first_words), None);
        let told = |message: &str| {
            Some(Verdict::CannotPull {
                message: message.to_owned(),
            })
        };
        let back_off = pod_with(waiting("ImagePullBackOff", "Back-off"));
        assert_eq!(
            verdict(&back_off, false, &mut first_words),
            told("ErrImagePull: no such host: ghcr.io")
        );
        assert_eq!(
            verdict(&back_off, false, &mut first_words),
            told("ImagePullBackOff: Back-off")
        );
        assert!(seen(waiting("ErrImagePull", "m"), true).is_some());
    }

    #[test]
    fn a_program_that_ended_did_run_and_one_of_another_machine_did_not() {
        let ended = |reason: &str| {
            let state = json!({"reason": reason, "message": "exec format error", "exitCode": 1});
            seen(json!({"terminated": state}), false)
        };
        assert_eq!(ended("Error"), Some(Verdict::Runs));
        assert_eq!(
            ended("StartError"),
            Some(Verdict::CannotStart {
                message: "StartError: exec format error".to_owned()
            })
        );
        assert_eq!(
            seen(json!({"waiting": {"reason": "ContainerCreating"}}), false),
            None
        );
    }

    #[test]
    fn nodes_that_are_cordoned_tainted_or_not_ready_are_not_asked() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let node = |spec: Value| json!({"spec": spec, "status": {"conditions": ready}});
        assert!(takes_pods(&node(json!({}))));
        assert!(takes_pods(&node(
            json!({"taints": [{"effect": "PreferNoSchedule"}]})
        )));
        assert!(!takes_pods(&node(json!({"unschedulable": true}))));
        assert!(!takes_pods(&node(
            json!({"taints": [{"effect": "NoSchedule"}]})
        )));
        assert!(!takes_pods(&json!({"spec": {}, "status": {}})));
    }
}
