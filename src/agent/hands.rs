//! Requests as kubectl sends them, one object at a time, for agents that act without judging: cheats and scripts.

use std::cell::Cell;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent::evidence::field::RESTARTED_AT;

/// A kind of object and where the API keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    prefix: &'static str,
    plural: &'static str,
    namespaced: bool,
}

const fn kind(name: &'static str, prefix: &'static str, plural: &'static str) -> Kind {
    Kind {
        name,
        prefix,
        plural,
        namespaced: true,
    }
}

pub const DEPLOYMENT: Kind = kind("Deployment", "/apis/apps/v1", "deployments");
pub const STATEFUL_SET: Kind = kind("StatefulSet", "/apis/apps/v1", "statefulsets");
pub const DAEMON_SET: Kind = kind("DaemonSet", "/apis/apps/v1", "daemonsets");
pub const REPLICA_SET: Kind = kind("ReplicaSet", "/apis/apps/v1", "replicasets");
pub const POD: Kind = kind("Pod", "/api/v1", "pods");

/// Every kind that can be named.
pub const KINDS: &[Kind] = &[
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    REPLICA_SET,
    POD,
    kind("Service", "/api/v1", "services"),
    kind("Endpoints", "/api/v1", "endpoints"),
    kind("Event", "/api/v1", "events"),
    kind("Secret", "/api/v1", "secrets"),
    kind("ConfigMap", "/api/v1", "configmaps"),
    kind("ServiceAccount", "/api/v1", "serviceaccounts"),
    kind("ResourceQuota", "/api/v1", "resourcequotas"),
    kind("LimitRange", "/api/v1", "limitranges"),
    kind("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    kind("Job", "/apis/batch/v1", "jobs"),
    kind(
        "NetworkPolicy",
        "/apis/networking.k8s.io/v1",
        "networkpolicies",
    ),
    kind(
        "PodDisruptionBudget",
        "/apis/policy/v1",
        "poddisruptionbudgets",
    ),
    kind(
        "HorizontalPodAutoscaler",
        "/apis/autoscaling/v2",
        "horizontalpodautoscalers",
    ),
    Kind {
        name: "Node",
        prefix: "/api/v1",
        plural: "nodes",
        namespaced: false,
    },
];

impl Kind {
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The path of the list in a namespace; objects without a namespace ignore it.
    fn list_path(&self, namespace: &str) -> String {
        let (prefix, plural) = (self.prefix, self.plural);
        if self.namespaced {
            format!("{prefix}/namespaces/{namespace}/{plural}")
        } else {
            format!("{prefix}/{plural}")
        }
    }

    fn path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.list_path(namespace))
    }
}

/// How a patch's body is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Merge,
    Strategic,
    Json,
}

impl PatchKind {
    fn content_type(self) -> &'static str {
        match self {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Strategic => "application/strategic-merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        }
    }
}

/// A client with a sense of the cluster's time.
pub struct Hands {
    client: Client,
    /// The newest time that any answer carried, and when it was read. Stamps come from the cluster, never from the
    /// clock of this process.
    clock: Cell<Option<(jiff::Timestamp, Instant)>>,
}

impl Hands {
    pub fn new(client: Client) -> Hands {
        Hands {
            client,
            clock: Cell::new(None),
        }
    }

    pub async fn get(&self, kind: &Kind, ns: &str, name: &str) -> Result<Value, kube::Error> {
        self.send(Request::get(kind.path(ns, name)), None).await
    }

    /// All objects of a kind in a namespace, in the order in which the server gives them.
    pub async fn list(&self, kind: &Kind, ns: &str) -> Result<Vec<Value>, kube::Error> {
        let mut list = self.send(Request::get(kind.list_path(ns)), None).await?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        })
    }

    pub async fn create(
        &self,
        kind: &Kind,
        ns: &str,
        object: &Value,
    ) -> Result<Value, kube::Error> {
        let request = Request::post(kind.list_path(ns)).header(CONTENT_TYPE, "application/json");
        self.send(request, Some(object)).await
    }

    pub async fn patch(
        &self,
        kind: &Kind,
        (ns, name): (&str, &str),
        how: PatchKind,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let request = Request::patch(kind.path(ns, name)).header(CONTENT_TYPE, how.content_type());
        self.send(request, Some(body)).await
    }

    pub async fn scale(
        &self,
        kind: &Kind,
        ns: &str,
        name: &str,
        replicas: i64,
    ) -> Result<Value, kube::Error> {
        let request = Request::patch(format!("{}/scale", kind.path(ns, name)))
            .header(CONTENT_TYPE, PatchKind::Merge.content_type());
        self.send(request, Some(&json!({"spec": {"replicas": replicas}})))
            .await
    }

    /// As `kubectl rollout restart` does it.
    pub async fn restart(&self, kind: &Kind, ns: &str, name: &str) -> Result<Value, kube::Error> {
        let stamp = json!({RESTARTED_AT: self.time_text()});
        let body = json!({"spec": {"template": {"metadata": {"annotations": stamp}}}});
        self.patch(kind, (ns, name), PatchKind::Strategic, &body)
            .await
    }

    pub async fn delete(&self, kind: &Kind, ns: &str, name: &str) -> Result<Value, kube::Error> {
        let options = json!({"propagationPolicy": "Background"});
        let request = Request::delete(kind.path(ns, name)).header(CONTENT_TYPE, "application/json");
        self.send(request, Some(&options)).await
    }

    /// The end of a container's log. Without a container the pod must have only one.
    pub async fn logs(
        &self,
        (ns, pod): (&str, &str),
        container: Option<&str>,
        previous: bool,
    ) -> Result<String, kube::Error> {
        let mut uri = format!("{}/log?tailLines={LOG_LINES}", POD.path(ns, pod));
        if let Some(container) = container {
            uri.push_str(&format!("&container={container}"));
        }
        if previous {
            uri.push_str("&previous=true");
        }
        let request = Request::get(uri)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = request.body(bytes).map_err(kube::Error::HttpError)?;
        let answer: Value = self.client.request(request).await?;
        if let Some(newest) = newest_time(&answer)
            && self.time().is_none_or(|known| newest > known)
        {
            self.clock.set(Some((newest, Instant::now())));
        }
        Ok(answer)
    }

    /// The cluster's time, as far as its answers tell: the newest one seen and what has passed since.
    fn time(&self) -> Option<jiff::Timestamp> {
        let (seen, at) = self.clock.get()?;
        let passed = Duration::from_secs(at.elapsed().as_secs());
        seen.checked_add(passed).ok()
    }

    /// In whole seconds, as kubectl writes it.
    fn time_text(&self) -> String {
        let time = self.time().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// The end of a log that is read.
const LOG_LINES: u32 = 60;
/// Deeper nesting than any Kubernetes object has.
const MAX_DEPTH: usize = 64;

/// The newest of the times by which the server says when something happened.
fn newest_time(answer: &Value) -> Option<jiff::Timestamp> {
    fn visit(value: &Value, depth: usize, newest: &mut Option<jiff::Timestamp>) {
        match value {
            Value::Object(map) if depth < MAX_DEPTH => {
                for (key, inner) in map {
                    let tells =
                        key == "time" || key.ends_with("Time") || key.ends_with("Timestamp");
                    let told = inner.as_str().filter(|_| tells);
                    match told.and_then(|text| text.parse().ok()) {
                        Some(time) => *newest = (*newest).max(Some(time)),
                        None => visit(inner, depth + 1, newest),
                    }
                }
            }
            Value::Array(items) if depth < MAX_DEPTH => {
                for item in items {
                    visit(item, depth + 1, newest);
                }
            }
            _ => {}
        }
    }
    let mut newest = None;
    visit(answer, 0, &mut newest);
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_time_is_found_wherever_the_server_tells_one() {
        let answer = json!({"items": [
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
            {"status": {"conditions": [{"lastTransitionTime": "2026-01-03T00:00:00Z"}]}},
            {"data": {"notAfter": "2030-01-01T00:00:00Z"}, "time": "soon"},
        ]});
        assert_eq!(newest_time(&answer), "2026-01-03T00:00:00Z".parse().ok());
        assert_eq!(newest_time(&json!({})), None);
    }

    #[test]
    fn objects_without_a_namespace_have_none_in_their_path() {
        let node = Kind::named("Node").unwrap();
        assert_eq!(node.path("a", "n1"), "/api/v1/nodes/n1");
        assert_eq!(
            DEPLOYMENT.path("a", "d"),
            "/apis/apps/v1/namespaces/a/deployments/d"
        );
        assert!(Kind::named("Gadget").is_none());
    }
}
