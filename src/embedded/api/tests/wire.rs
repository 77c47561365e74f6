//! What goes over the wire beside objects: discovery, warnings, refusals of requests themselves.

use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;

use super::{send, shop};

#[tokio::test(start_paused = true)]
async fn clients_discover_what_is_served() {
    let cluster = shop().await;
    let client = cluster.client("shop");
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.34.4");
    let groups = client.list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|group| group.name == "apps"));
    for group in &groups.groups {
        for one in &group.versions {
            let list = client
                .list_api_group_resources(&one.group_version)
                .await
                .unwrap();
            assert!(!list.resources.is_empty(), "{}", one.group_version);
        }
    }
    let core = client.list_core_api_resources("v1").await.unwrap();
    assert!(core.resources.iter().any(|one| one.name == "pods/log"));
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_methods_and_types_are_refused_with_a_status() {
    let cluster = shop().await;
    let json = "application/json";
    let empty = json!({});
    for (method, path, content, code, reason) in [
        ("GET", "/apis/nope/v1/things", json, 404, "NotFound"),
        (
            "GET",
            "/api/v1/namespaces/shop/pods/p/ear",
            json,
            404,
            "NotFound",
        ),
        (
            "PUT",
            "/api/v1/namespaces/shop/configmaps",
            json,
            405,
            "MethodNotAllowed",
        ),
        ("POST", "/api/v1/configmaps", json, 405, "MethodNotAllowed"),
        (
            "PATCH",
            "/api/v1/namespaces/shop/configmaps/a",
            json,
            415,
            "UnsupportedMediaType",
        ),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.foo%3D1",
            json,
            400,
            "BadRequest",
        ),
        (
            "GET",
            "/api/v1/pods?labelSelector=a%20in%20b",
            json,
            400,
            "BadRequest",
        ),
    ] {
        let (got, status) = send(&cluster, method, path, content, &empty).await;
        assert_eq!(got, code, "{method} {path}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["reason"], reason, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_warn_by_default_and_are_refused_when_strict() {
    let cluster = shop().await;
    let map = json!({"metadata": {"name": "a"}, "dta": {"k": "v"}});
    let path = "/api/v1/namespaces/shop/configmaps";
    let strict = format!("{path}?fieldValidation=Strict");
    let (code, status) = send(&cluster, "POST", &strict, "application/json", &map).await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dta\""
    );
    // A body without a content type counts as JSON.
    let request = http::Request::post(path)
        .body(axum::body::Body::from(map.to_string()))
        .unwrap();
    let response = cluster.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["warning"],
        "299 - \"unknown field \\\"dta\\\"\""
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let made: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(made.get("dta").is_none());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_objects_are_refused() {
    let cluster = shop().await;
    let path = "/api/v1/namespaces/shop/configmaps";
    for body in [
        json!([1]),
        json!("x"),
        json!({"metadata": "x"}),
        json!({"metadata": {"labels": 1}}),
    ] {
        let (code, status) = send(&cluster, "POST", path, "application/json", &body).await;
        assert_eq!(
            (code, status["reason"].as_str()),
            (400, Some("BadRequest")),
            "{body}"
        );
    }
}
