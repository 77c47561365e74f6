//! Whether the network enforces policies, witnessed by two pods: a database, and a client that is kept from it.
//!
//! A cluster stores a NetworkPolicy whether anything enforces it or not, so only traffic tells. The same client is
//! let through first: without that, one that is cut off proves nothing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::ClusterError;
use crate::cluster::examine::{Finding, Grade};
use crate::cluster::ownership::Owned;
use crate::cluster::{pull, resource};

pub const CHECK: &str = "network-policy";
/// The namespace of the pods.
pub const NAMESPACE: &str = "network-check";
/// How long a pod may take to listen, or to connect. The client gives up connecting after 10 s itself.
const LIMIT: Duration = Duration::from_secs(40);
/// What network plug-ins take to put a new policy into effect; the slowest one seen took about 5 s.
const TAKES_EFFECT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_secs(1);

/// What became of a client.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Through,
    Not,
    /// It never ran, which says nothing.
    Nowhere,
}

/// Tries it. The namespace is removed again.
pub async fn policy(client: &kube::Client, owned: &mut Owned, image: &str) -> Finding {
    let work = async |client: &kube::Client| witness(client, image).await;
    match pull::in_own_namespace(client, owned, NAMESPACE, work).await {
        Ok(finding) => finding,
        Err(error) => Finding::not_told(CHECK, &error),
    }
}

async fn witness(client: &kube::Client, image: &str) -> Result<Finding, ClusterError> {
    let unknown = |found: &str| Ok(Finding::new(CHECK, Grade::Unknown, found));
    pull::create(client, &database(image)).await?;
    let Some(address) = address(client).await? else {
        return unknown("the pod that should be reached did not come up");
    };
    pull::create(client, &asking("api-1", image, &address)).await?;
    if came(client, "api-1").await? != Came::Through {
        return unknown("one pod did not reach another although no policy keeps it from it");
    }
    let policies = resource::of_kind("NetworkPolicy")?;
    policies.create(client, NAMESPACE, &no_way_in()).await?;
    tokio::time::sleep(TAKES_EFFECT).await;
    pull::create(client, &asking("api-2", image, &address)).await?;
    Ok(match came(client, "api-2").await? {
        Came::Nowhere => Finding::new(CHECK, Grade::Unknown, "the pod that a policy keeps out did not run"),
        Came::Not => Finding::new(CHECK, Grade::Good, "policies are enforced: a pod that one keeps out was kept out"),
        Came::Through => Finding::new(
            CHECK,
            Grade::Warning,
            "policies are stored and not enforced: a pod that one keeps out came through",
        )
        .todo("scenarios whose fault is a NetworkPolicy do not bite here; take a network plug-in that enforces them"),
    })
}

fn pod(name: &str, container: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "securityContext": pull::modest_pod(),
            "containers": [container],
        },
    })
}

/// What both sides know; it opens nothing anywhere.
const USER: &str = "ops";
const PASSWORD: &str = "Vt5mQw8r";

fn database(image: &str) -> Value {
    use acme_services::database;
    pod(
        "db",
        json!({
            "name": "db", "image": image,
            "command": [format!("/bin/{}", database::NAME)], "args": [acme_services::SERVE],
            "env": [
                {"name": database::USER, "value": USER},
                {"name": database::PASSWORD, "value": PASSWORD},
            ],
            "ports": [{"containerPort": database::PORT.default}],
            "readinessProbe": {"tcpSocket": {"port": database::PORT.default}, "periodSeconds": 1},
            "resources": pull::modest_resources(),
            "securityContext": pull::modest_container(),
        }),
    )
}

/// A client that listens once it has reached the database, and ends where it cannot.
fn asking(name: &str, image: &str, address: &str) -> Value {
    use acme_services::{api, database};
    let port = database::PORT.default;
    let url = format!("postgres://{USER}:{PASSWORD}@{address}:{port}/{USER}?sslmode=disable");
    let mut env = vec![
        json!({"name": api::INDEX_MB.env, "value": "1"}),
        json!({"name": api::STARTUP_MS.env, "value": "0"}),
    ];
    for required in api::REQUIRED {
        let value = if required == api::DATABASE_URL {
            &url
        } else {
            USER
        };
        env.push(json!({"name": required, "value": value}));
    }
    pod(
        name,
        json!({
            "name": "api", "image": image,
            "command": [format!("/bin/{}", api::NAME)], "args": [acme_services::SERVE],
            "env": env,
            "ports": [{"containerPort": api::PORT.default}],
            "readinessProbe": {"tcpSocket": {"port": api::PORT.default}, "periodSeconds": 1},
            "resources": pull::modest_resources(),
            "securityContext": pull::modest_container(),
        }),
    )
}

fn no_way_in() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "db", "namespace": NAMESPACE},
        "spec": {"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"]},
    })
}

/// The database's address once it listens; nothing when it does not in time.
async fn address(client: &kube::Client) -> Result<Option<String>, ClusterError> {
    let pods = resource::of_kind("Pod")?;
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(pod) = pods.get(client, NAMESPACE, "db").await?
            && is_ready(&pod)
        {
            return Ok(pod["status"]["podIP"].as_str().map(str::to_owned));
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(None)
}

/// Waits until a client listens or ended. One that runs and does not listen in time did not come through either.
async fn came(client: &kube::Client, name: &str) -> Result<Came, ClusterError> {
    let pods = resource::of_kind("Pod")?;
    let deadline = Instant::now() + LIMIT;
    let mut last = Came::Nowhere;
    while Instant::now() < deadline {
        if let Some(pod) = pods.get(client, NAMESPACE, name).await? {
            if is_ready(&pod) {
                return Ok(Came::Through);
            }
            let state = &pod["status"]["containerStatuses"][0]["state"];
            if state["terminated"].is_object() {
                return Ok(Came::Not);
            }
            if state["running"].is_object() {
                last = Came::Not;
            }
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(last)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}
