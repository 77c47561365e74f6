//! Asks the cluster. Reads only, and only in the namespaces of the task (nodes excepted, which have none).

use std::collections::BTreeMap;

use http::Request;
use kube::Client;
use serde_json::Value;

use crate::agent::evidence::Evidence;
use crate::agent::evidence::reading::{Answers, text};

/// Kind, API path prefix and plural of every list of a full look.
const LISTS: &[(&str, &str, &str)] = &[
    ("Deployment", "/apis/apps/v1", "deployments"),
    ("StatefulSet", "/apis/apps/v1", "statefulsets"),
    ("DaemonSet", "/apis/apps/v1", "daemonsets"),
    ("ReplicaSet", "/apis/apps/v1", "replicasets"),
    ("Pod", "/api/v1", "pods"),
    ("Event", "/api/v1", "events"),
    ("Service", "/api/v1", "services"),
    ("Secret", "/api/v1", "secrets"),
    ("ConfigMap", "/api/v1", "configmaps"),
    ("ResourceQuota", "/api/v1", "resourcequotas"),
    ("ServiceAccount", "/api/v1", "serviceaccounts"),
    ("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    (
        "NetworkPolicy",
        "/apis/networking.k8s.io/v1",
        "networkpolicies",
    ),
    (
        "HorizontalPodAutoscaler",
        "/apis/autoscaling/v2",
        "horizontalpodautoscalers",
    ),
];

/// What a short look reads: enough to see whether workloads are well.
const SHORT: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Pod",
];

/// Objects asked for at a time.
const PAGE: u32 = 500;
/// Pages of one list; a namespace with more objects than this is not looked at to its end.
const MAX_PAGES: usize = 20;
/// The end of a log that is read. A crash says its reason in its last lines, a start-up in its first few.
const LOG_LINES: u32 = 60;
/// Containers whose logs are read in one look, the troubled ones first.
const MAX_LOGS: usize = 24;

/// Everything of interest in the namespaces.
pub async fn everything(client: &Client, namespaces: &[String]) -> Result<Evidence, kube::Error> {
    let mut answers = Answers::default();
    for namespace in namespaces {
        for (kind, prefix, plural) in LISTS {
            list(
                client,
                &mut answers,
                kind,
                &format!("{prefix}/namespaces/{namespace}/{plural}"),
            )
            .await?;
        }
    }
    list(client, &mut answers, "Node", "/api/v1/nodes").await?;
    read_logs(client, &mut answers).await?;
    Ok(answers.evidence())
}

/// Workloads and pods only.
pub async fn workloads(client: &Client, namespaces: &[String]) -> Result<Evidence, kube::Error> {
    let mut answers = Answers::default();
    for namespace in namespaces {
        for (kind, prefix, plural) in LISTS.iter().filter(|(kind, _, _)| SHORT.contains(kind)) {
            list(
                client,
                &mut answers,
                kind,
                &format!("{prefix}/namespaces/{namespace}/{plural}"),
            )
            .await?;
        }
    }
    Ok(answers.evidence())
}

/// One list, page by page. A refusal (no such type, no right to read it) is noted; a dead credential or a server
/// that does not answer is an error.
async fn list(
    client: &Client,
    answers: &mut Answers,
    kind: &'static str,
    path: &str,
) -> Result<(), kube::Error> {
    let mut token = String::new();
    for _ in 0..MAX_PAGES {
        let uri = match token.as_str() {
            "" => format!("{path}?limit={PAGE}"),
            token => format!("{path}?limit={PAGE}&continue={token}"),
        };
        let mut page: Value = match client.request(get(&uri)?).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code != 401 => {
                answers.unread.push(format!("{kind}: {}", status.message));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Some(items) = page["items"].as_array_mut() {
            let items = items.drain(..).map(|mut item| {
                // Elements of lists carry no kind of their own.
                item["kind"] = Value::from(kind);
                item
            });
            answers.lists.entry(kind).or_default().extend(items);
        }
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
    }
    Ok(())
}

async fn read_logs(client: &Client, answers: &mut Answers) -> Result<(), kube::Error> {
    let mut wanted: Vec<(bool, String, String, String, bool)> = Vec::new();
    for pod in answers.lists.get("Pod").into_iter().flatten() {
        let status = &pod["status"];
        for list in ["initContainerStatuses", "containerStatuses"] {
            for container in status[list].as_array().into_iter().flatten() {
                let restarted = container["restartCount"].as_i64().unwrap_or(0) > 0;
                let calm = container["ready"] == true && !restarted;
                let started = container["state"].get("waiting").is_none() || restarted;
                if started {
                    wanted.push((
                        calm,
                        text(&pod["metadata"]["namespace"]),
                        text(&pod["metadata"]["name"]),
                        text(&container["name"]),
                        restarted,
                    ));
                }
            }
        }
    }
    wanted.sort();
    let mut logs = BTreeMap::new();
    for (calm, namespace, pod, container, restarted) in wanted.into_iter().take(MAX_LOGS) {
        if calm {
            continue;
        }
        for previous in [false, true] {
            if previous && !restarted {
                continue;
            }
            let uri = format!(
                "/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&tailLines={LOG_LINES}&previous={previous}"
            );
            match client.request_text(get(&uri)?).await {
                Ok(log) => {
                    logs.insert(
                        (namespace.clone(), pod.clone(), container.clone(), previous),
                        log,
                    );
                }
                Err(kube::Error::Api(status)) if status.code != 401 => {}
                Err(error) => return Err(error),
            }
        }
    }
    answers.logs = logs;
    Ok(())
}

fn get(uri: &str) -> Result<Request<Vec<u8>>, kube::Error> {
    Request::get(uri)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}
