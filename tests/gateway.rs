//! The recording layer in front of a small router: what is recorded, what passes through, what revocation does.

use agent_breakage::gateway::record::Recorder;
use agent_breakage::gateway::{RecordLayer, layer};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, patch};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};
use tower::Layer;

/// A server that lists one pod, takes patches of one Secret and refuses those of another.
fn server() -> Router {
    Router::new()
        .route(
            "/api/v1/namespaces/{ns}/pods",
            get(|| async {
                axum::Json(json!({"kind": "PodList", "apiVersion": "v1", "metadata": {},
                    "items": [{"metadata": {"name": "p"}}]}))
            }),
        )
        .route(
            "/api/v1/namespaces/{ns}/secrets/{name}",
            patch(|path: axum::extract::Path<(String, String)>| async move {
                if path.1 == "held" {
                    let refusal = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": "no", "reason": "Forbidden", "code": 403});
                    return (StatusCode::FORBIDDEN, axum::Json(refusal));
                }
                (StatusCode::OK, axum::Json(json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": path.1}})))
            }),
        )
}

fn client(recorder: &Recorder) -> Client {
    Client::new(layer(server(), recorder.clone()), "shop")
}

fn secret_patch() -> Patch<serde_json::Value> {
    Patch::Merge(json!({"stringData": {"TOKEN": "hunter2"}}))
}

#[tokio::test(start_paused = true)]
async fn every_request_is_recorded_with_its_time_tool_and_status() {
    let recorder = Recorder::new(Instant::now());
    let client = client(&recorder);
    sleep(Duration::from_millis(1500)).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    assert_eq!(
        pods.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    let secrets: Api<Secret> = Api::namespaced(client, "shop");
    secrets
        .patch("open", &PatchParams::default(), &secret_patch())
        .await
        .unwrap();
    secrets
        .patch("held", &PatchParams::default(), &secret_patch())
        .await
        .unwrap_err();
    secrets
        .patch("open", &PatchParams::default().dry_run(), &secret_patch())
        .await
        .unwrap();

    let actions = recorder.actions();
    let seen: Vec<_> = actions
        .iter()
        .map(|a| {
            (
                a.tool.as_str(),
                a.verb.as_str(),
                a.name.as_str(),
                a.tier,
                a.status,
                a.changed_something,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("kubectl_get", "list", "", 1, 200, false),
            ("kubectl_patch", "patch", "open", 2, 200, true),
            ("kubectl_patch", "patch", "held", 2, 403, false),
            ("kubectl_patch", "patch", "open", 1, 200, false),
        ]
    );
    assert_eq!(actions[0].at_ms, 1500);
    assert_eq!(actions[0].namespace, "shop");
    assert!(actions.iter().all(|a| !a.summary.contains("hunter2")));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_credential_is_answered_401_and_reaches_nothing() {
    let recorder = Recorder::new(Instant::now());
    let client = client(&recorder);
    recorder.revoke();
    let secrets: Api<Secret> = Api::namespaced(client, "shop");
    let error = secrets
        .patch("open", &PatchParams::default(), &secret_patch())
        .await
        .unwrap_err();
    assert!(
        matches!(error, kube::Error::Api(ref status) if status.code == 401),
        "{error:?}"
    );
    assert!(recorder.actions().is_empty());
    assert_eq!(recorder.refused_after_revocation(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_servers_limit_is_refused_as_the_server_would() {
    let recorder = Recorder::new(Instant::now());
    let secrets: Api<Secret> = Api::namespaced(client(&recorder), "shop");
    let huge = Patch::Merge(json!({"stringData": {"BLOB": "x".repeat(4 << 20)}}));
    let error = secrets
        .patch("open", &PatchParams::default(), &huge)
        .await
        .unwrap_err();
    assert!(
        matches!(error, kube::Error::Api(ref status) if status.code == 413),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_layer_form_records_the_same() {
    let recorder = Recorder::new(Instant::now());
    let client = Client::new(RecordLayer::new(recorder.clone()).layer(server()), "shop");
    let pods: Api<Pod> = Api::namespaced(client, "shop");
    pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(recorder.actions().len(), 1);
}
