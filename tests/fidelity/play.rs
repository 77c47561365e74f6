//! Plays the recorded commands through a `kube::Client`.

use std::time::Duration;

use http::Request;
use serde_json::{Value, json};

use crate::values::NAMESPACE;

/// What one command takes: a process start and a request or two.
const COMMAND: Duration = Duration::from_millis(150);

/// Plays one recorded command; answers the server's refusal, if it refuses.
pub async fn play(client: &kube::Client, command: &Value) -> Result<(), String> {
    tokio::time::sleep(COMMAND).await;
    let name = command["name"].as_str().unwrap_or_default();
    let path = |name: &str| object_path(command["kind"].as_str().unwrap_or_default(), name);
    match command["op"].as_str().unwrap_or_default() {
        "patch" => {
            patch(
                client,
                &path(name),
                command["type"].as_str().unwrap_or_default(),
                &filled(&command["body"]),
            )
            .await
        }
        "scale" => {
            let body = json!({"spec": {"replicas": command["replicas"]}});
            patch(client, &format!("{}/scale", path(name)), "merge", &body).await
        }
        "rollout-restart" => {
            let stamp = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-30T21:00:00Z"});
            let body = json!({"spec": {"template": {"metadata": {"annotations": stamp}}}});
            patch(client, &path(name), "strategic", &body).await
        }
        "rollout-pause" => {
            patch(
                client,
                &path(name),
                "strategic",
                &json!({"spec": {"paused": true}}),
            )
            .await
        }
        "apply" => create(client, &filled(&command["object"])).await,
        "delete" => delete(client, &command["args"]).await,
        _ => raw(client, command["command"].as_str().unwrap_or_default()).await,
    }
}

/// Recorded commands name the namespace by a shell variable.
fn filled(body: &Value) -> Value {
    let text = body.to_string().replace("$NS", NAMESPACE);
    serde_json::from_str(&text).expect("replacing a word keeps JSON valid")
}

/// Commands that were not plain enough to be recorded as data.
async fn raw(client: &kube::Client, command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if let ["sleep", seconds] = words.as_slice() {
        let seconds = seconds
            .parse()
            .map_err(|_| format!("not a number: {seconds}"))?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        return Ok(());
    }
    if command.contains("/eviction") {
        let pod = first_pod(client).await?;
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}});
        let path = format!("{}/eviction", object_path("pod", &pod));
        // A refusal is part of what was recorded; what it leads to is compared.
        let _ = send(client, "POST", &path, "application/json", &body).await;
        return Ok(());
    }
    if command.starts_with("kubectl cordon") {
        let body = json!({"spec": {"unschedulable": true}});
        return patch(client, "/api/v1/nodes/node-1", "strategic", &body).await;
    }
    if command.contains("scale deploy coredns") {
        let path = "/apis/apps/v1/namespaces/kube-system/deployments/coredns/scale";
        return patch(client, path, "merge", &json!({"spec": {"replicas": 0}})).await;
    }
    if command.contains("finalizers") {
        let pod = first_pod(client).await?;
        let body = json!({"metadata": {"finalizers": ["acme.io/audit"]}});
        return patch(client, &object_path("pod", &pod), "merge", &body).await;
    }
    if command.contains(" exec ") {
        // A look from inside; it changes nothing.
        return Ok(());
    }
    Err(format!("not a known command: {command}"))
}

async fn first_pod(client: &kube::Client) -> Result<String, String> {
    pods(client)
        .await?
        .into_iter()
        .next()
        .ok_or_else(|| "no pod".to_owned())
}

async fn pods(client: &kube::Client) -> Result<Vec<String>, String> {
    let path = format!(
        "{}?labelSelector=app%3Dadvocate-api",
        object_path("pod", "")
    );
    let list = send(
        client,
        "GET",
        path.trim_end_matches('/'),
        "application/json",
        &Value::Null,
    )
    .await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

async fn delete(client: &kube::Client, args: &Value) -> Result<(), String> {
    let args: Vec<&str> = args
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let names = if args.contains(&"-l") {
        pods(client).await?
    } else {
        vec![args[1].to_owned()]
    };
    for name in names {
        let body = json!({"propagationPolicy": "Background"});
        send(
            client,
            "DELETE",
            &object_path(args[0], &name),
            "application/json",
            &body,
        )
        .await?;
    }
    Ok(())
}

/// Creates an object in the namespace of the fixture, unless it says another or is of the whole cluster.
pub async fn create(client: &kube::Client, object: &Value) -> Result<(), String> {
    let mut object = object.clone();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if object["metadata"]["namespace"].is_null() && kind != "Namespace" {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    let path = object_path(&kind.to_lowercase(), "");
    send(
        client,
        "POST",
        path.trim_end_matches('/'),
        "application/json",
        &object,
    )
    .await
    .map(drop)
}

async fn patch(client: &kube::Client, path: &str, kind: &str, body: &Value) -> Result<(), String> {
    let content = match kind {
        "json" => "application/json-patch+json",
        "merge" => "application/merge-patch+json",
        _ => "application/strategic-merge-patch+json",
    };
    send(client, "PATCH", path, content, body).await.map(drop)
}

async fn send(
    client: &kube::Client,
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<Value, String> {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(bytes)
        .map_err(|error| error.to_string())?;
    client
        .request::<Value>(request)
        .await
        .map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })
}

fn object_path(kind: &str, name: &str) -> String {
    let (group, plural) = match kind {
        "deploy" | "deployment" => ("apis/apps/v1", "deployments"),
        "sts" | "statefulset" => ("apis/apps/v1", "statefulsets"),
        "svc" | "service" => ("api/v1", "services"),
        "secret" => ("api/v1", "secrets"),
        "configmap" => ("api/v1", "configmaps"),
        "pod" => ("api/v1", "pods"),
        "persistentvolumeclaim" => ("api/v1", "persistentvolumeclaims"),
        "resourcequota" => ("api/v1", "resourcequotas"),
        "networkpolicy" => ("apis/networking.k8s.io/v1", "networkpolicies"),
        "poddisruptionbudget" => ("apis/policy/v1", "poddisruptionbudgets"),
        "storageclass" => return format!("/apis/storage.k8s.io/v1/storageclasses/{name}"),
        "job" => ("apis/batch/v1", "jobs"),
        "namespace" => return format!("/api/v1/namespaces/{name}"),
        other => panic!("no path for {other}"),
    };
    format!("/{group}/namespaces/{NAMESPACE}/{plural}/{name}")
}
