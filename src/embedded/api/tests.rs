//! The API through a real client, in paused time.

mod admission;
mod wire;

use futures::{StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::embedded::cluster::{Cluster, ClusterConfig};
use crate::embedded::image::Registry;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::policy::Denied;
use crate::embedded::time::Time;

/// A new cluster with one namespace, `shop`.
pub(crate) async fn shop() -> Cluster {
    let cluster = Cluster::new(ClusterConfig {
        seed: 1,
        start: Time::from_micros(1_772_444_467_000_000),
        images: Registry::default(),
        denied: Denied::default(),
    });
    let namespaces: Api<Namespace> = Api::all(cluster.client("shop"));
    let object = typed(json!({"metadata": {"name": "shop"}}));
    namespaces
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    cluster
}

pub(crate) fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A bare request, for what the typed client cannot send.
pub(crate) async fn send(
    cluster: &Cluster,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(axum::body::Body::from(body.to_string()))
        .unwrap();
    let response = cluster.router().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

/// Code, reason and message of a refusal.
pub(crate) fn refusal(error: kube::Error) -> (u16, String, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not an API error: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_listed_and_deleted() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    for name in ["a", "b", "c"] {
        let map =
            typed(json!({"metadata": {"name": name, "labels": {"n": name}}, "data": {"k": "v"}}));
        let made = maps.create(&PostParams::default(), &map).await.unwrap();
        assert!(made.metadata.uid.is_some());
        assert_eq!(made.metadata.generation, None);
    }
    let error = maps
        .create(
            &PostParams::default(),
            &typed(json!({"metadata": {"name": "a"}})),
        )
        .await;
    assert_eq!(
        refusal(error.unwrap_err()),
        (
            409,
            "AlreadyExists".into(),
            "configmaps \"a\" already exists".into()
        )
    );
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.metadata.remaining_item_count, Some(1));
    let token = page.metadata.continue_.unwrap();
    let rest = maps
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(rest.items[0].metadata.name.as_deref(), Some("c"));
    let chosen = maps
        .list(&ListParams::default().labels("n in (a,b),n!=a"))
        .await
        .unwrap();
    assert_eq!(chosen.items.len(), 1);
    let gone = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(gone.is_right());
    let error = maps.get("a").await.unwrap_err();
    assert_eq!(
        refusal(error),
        (404, "NotFound".into(), "configmaps \"a\" not found".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_stale_resource_version_is_a_conflict() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let first = maps
        .create(
            &PostParams::default(),
            &typed(json!({"metadata": {"name": "a"}, "data": {"k": "1"}})),
        )
        .await
        .unwrap();
    let mut second = first.clone();
    second.data = Some([("k".to_owned(), "2".to_owned())].into());
    let stored = maps
        .replace("a", &PostParams::default(), &second)
        .await
        .unwrap();
    assert_ne!(
        stored.metadata.resource_version,
        first.metadata.resource_version
    );
    let again = maps
        .replace("a", &PostParams::default(), &stored)
        .await
        .unwrap();
    assert_eq!(
        again.metadata.resource_version,
        stored.metadata.resource_version
    );
    let error = maps
        .replace("a", &PostParams::default(), &second)
        .await
        .unwrap_err();
    assert_eq!(
        refusal(error).2,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_must_exist_and_must_not_be_going_away() {
    let cluster = shop().await;
    let nowhere: Api<ConfigMap> = Api::namespaced(cluster.client("x"), "nowhere");
    let late = typed(json!({"metadata": {"name": "late"}}));
    let error = nowhere
        .create(&PostParams::default(), &late)
        .await
        .unwrap_err();
    assert_eq!(refusal(error).2, "namespaces \"nowhere\" not found");
    let namespaces: Api<Namespace> = Api::all(cluster.client("shop"));
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let error = maps
        .create(&PostParams::default(), &late)
        .await
        .unwrap_err();
    assert_eq!(
        refusal(error).2,
        "configmaps \"late\" is forbidden: unable to create new content in namespace shop because it is being terminated"
    );
}

/// Type and name of the next event of a watch.
async fn next_event<S>(stream: &mut S) -> Option<(&'static str, String)>
where
    S: futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin,
{
    let named = |map: ConfigMap| map.metadata.name.unwrap_or_default();
    Some(match stream.try_next().await.unwrap()? {
        WatchEvent::Added(map) => ("ADDED", named(map)),
        WatchEvent::Modified(map) => ("MODIFIED", named(map)),
        WatchEvent::Deleted(map) => ("DELETED", named(map)),
        WatchEvent::Bookmark(mark) => ("BOOKMARK", mark.metadata.annotations.len().to_string()),
        WatchEvent::Error(status) => ("ERROR", status.message),
    })
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_is_there_then_changes_then_ends_at_its_time() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let make = |name: &str, tier: &str| {
        typed(json!({"metadata": {"name": name, "labels": {"tier": tier}}}))
    };
    maps.create(&PostParams::default(), &make("a", "front"))
        .await
        .unwrap();
    let params = WatchParams::default().labels("tier=front").timeout(90);
    let mut stream = maps.watch(&params, "0").await.unwrap().boxed();
    assert_eq!(next_event(&mut stream).await, Some(("ADDED", "a".into())));
    let begun = tokio::time::Instant::now();
    let writer = maps.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let away = json!({"metadata": {"labels": {"tier": "back"}}});
        let back = json!({"metadata": {"labels": {"tier": "front"}}});
        for patch in [&away, &back] {
            writer
                .patch("a", &PatchParams::default(), &Patch::Merge(patch))
                .await
                .unwrap();
        }
        let touch = json!({"data": {"k": "v"}});
        writer
            .patch("a", &PatchParams::default(), &Patch::Merge(&touch))
            .await
            .unwrap();
        let other = typed(json!({"metadata": {"name": "other"}}));
        writer.create(&PostParams::default(), &other).await.unwrap();
        writer.delete("a", &DeleteParams::default()).await.unwrap();
    });
    for what in ["DELETED", "ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(next_event(&mut stream).await, Some((what, "a".into())));
    }
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert_eq!(
        next_event(&mut stream).await,
        Some(("BOOKMARK", "0".into()))
    );
    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(
        next_event(&mut stream).await,
        Some(("BOOKMARK", "0".into()))
    );
    assert_eq!(next_event(&mut stream).await, None);
    assert_eq!(begun.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_shows_only_later_changes() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let make = |name: &str| typed(json!({"metadata": {"name": name}}));
    maps.create(&PostParams::default(), &make("a"))
        .await
        .unwrap();
    let version = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    maps.create(&PostParams::default(), &make("b"))
        .await
        .unwrap();
    let mut stream = maps
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();
    assert_eq!(next_event(&mut stream).await, Some(("ADDED", "b".into())));
    let params = WatchParams::default().initial_events();
    let mut stream = maps.watch(&params, "0").await.unwrap().boxed();
    for name in ["a", "b"] {
        assert_eq!(next_event(&mut stream).await, Some(("ADDED", name.into())));
    }
    assert_eq!(
        next_event(&mut stream).await,
        Some(("BOOKMARK", "1".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_gets_an_error_and_ends() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    maps.create(
        &PostParams::default(),
        &typed(json!({"metadata": {"name": "a"}})),
    )
    .await
    .unwrap();
    cluster.with(|world| {
        for n in 0..crate::embedded::store::CHANGES_KEPT {
            world.update(Kind::ConfigMap, "shop", "a", |map| {
                map["data"]["n"] = n.to_string().into();
            });
        }
    });
    let mut stream = maps
        .watch(&WatchParams::default(), "1")
        .await
        .unwrap()
        .boxed();
    let (what, message) = next_event(&mut stream).await.unwrap();
    assert_eq!(
        (what, message.as_str()),
        ("ERROR", "too old resource version: 1 (2)")
    );
    assert_eq!(next_event(&mut stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn patches_guard_against_changes_in_between() {
    let cluster = shop().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let params = PatchParams::default();
    let made = maps
        .create(
            &PostParams::default(),
            &typed(json!({"metadata": {"name": "a"}, "data": {"k": "1"}})),
        )
        .await
        .unwrap();
    let guarded = json!({"metadata": {"resourceVersion": made.metadata.resource_version}, "data": {"k": "2"}});
    maps.patch("a", &params, &Patch::Merge(&guarded))
        .await
        .unwrap();
    let error = maps
        .patch("a", &params, &Patch::Strategic(&guarded))
        .await
        .unwrap_err();
    assert_eq!(refusal(error).0, 409);
    let operations = json!([
        {"op": "test", "path": "/data/k", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "3"}]);
    let path = "/api/v1/namespaces/shop/configmaps/a";
    let (code, answer) = send(
        &cluster,
        "PATCH",
        path,
        "application/json-patch+json",
        &operations,
    )
    .await;
    assert_eq!(code, 422);
    assert_eq!(
        answer,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid",
            "message": "the server rejected our request due to an error in our request", "details": {}, "code": 422,
        })
    );
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_full_store_answers_as_a_full_etcd_and_goes_on_serving() {
    let cluster = shop().await;
    let there = cluster.with(|world| world.store.count());
    cluster.with(|world| {
        for n in there..super::write::MAX_OBJECTS {
            let map = json!({"metadata": {"name": format!("m{n}"), "namespace": "shop"}});
            world.create(Kind::ConfigMap, map).unwrap();
        }
    });
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client("shop"));
    let one_more = typed(json!({"metadata": {"name": "one-more"}}));
    let error = maps
        .create(&PostParams::default(), &one_more)
        .await
        .unwrap_err();
    let (code, _, message) = refusal(error);
    assert_eq!(code, 500);
    assert!(message.contains("database space exceeded"), "{message}");
    maps.delete("m1999", &DeleteParams::default())
        .await
        .unwrap();
    maps.create(&PostParams::default(), &one_more)
        .await
        .unwrap();
}
