//! The API through a real client, in paused time.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::embedded::cluster::{Cluster, ClusterConfig};
use crate::embedded::image::Registry;
use crate::embedded::time::Time;

/// A new cluster with one namespace, `shop`.
pub(crate) async fn shop() -> Cluster {
    let cluster = Cluster::new(ClusterConfig {
        seed: 1,
        start: Time::from_micros(1_772_444_467_000_000),
        images: Registry::default(),
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
