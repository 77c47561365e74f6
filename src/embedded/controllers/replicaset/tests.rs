//! Behaviour of the ReplicaSet controller.

use std::time::Duration;

use serde_json::json;

use crate::embedded::controllers::bench::{Bench, NS, deployment};
use crate::embedded::controllers::object::{items, name};
use crate::embedded::kind::Kind;

fn running(replicas: i64) -> Bench {
    let mut bench = Bench::new();
    bench.create(
        Kind::Deployment,
        deployment(replicas, json!({"type": "Recreate"})),
    );
    bench.run(2);
    bench
}

#[test]
fn a_deleted_pod_is_replaced() {
    let mut bench = running(1);
    let old = name(&bench.only(Kind::Pod)).to_owned();
    bench.world.store.remove(Kind::Pod, NS, &old).unwrap();
    bench.run(1);
    assert_ne!(bench.only(Kind::Pod)["metadata"]["name"], old.as_str());
}

#[test]
fn a_pod_that_is_on_its_way_out_is_replaced_at_once() {
    let mut bench = running(1);
    let old = name(&bench.only(Kind::Pod)).to_owned();
    bench.update(Kind::Pod, &old, |p| {
        p["metadata"]["deletionTimestamp"] = json!("2026-03-02T10:00:00Z");
    });
    bench.run(1);
    assert_eq!(bench.list(Kind::Pod).len(), 2);
    assert_eq!(bench.only(Kind::ReplicaSet)["status"]["replicas"], 1);
}

#[test]
fn a_pod_that_loses_its_labels_is_released_and_a_matching_one_adopted() {
    let mut bench = running(1);
    let old = bench.only(Kind::Pod);
    bench.update(Kind::Pod, name(&old), |p| {
        p["metadata"]["labels"]["app"] = json!("other");
    });
    bench.run(1);
    assert_eq!(bench.list(Kind::Pod).len(), 2);
    assert!(items(&bench.get(Kind::Pod, name(&old))["metadata"]["ownerReferences"]).is_empty());
    bench.update(Kind::Pod, name(&old), |p| {
        p["metadata"]["labels"]["app"] = json!("web");
    });
    bench.run(1);
    assert_eq!(bench.list(Kind::Pod).len(), 1);
}

#[test]
fn a_refused_pod_is_tried_again_later_and_later() {
    let mut bench = running(0);
    // A namespace that is not there refuses every pod, and takes no events about it either.
    bench.world.store.remove(Kind::Namespace, "", NS).unwrap();
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["replicas"] = json!(2);
    });
    bench
        .world
        .run_until(bench.world.now() + Duration::from_secs(5));
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(rs["status"]["conditions"][0]["reason"], "FailedCreate");
    assert_eq!(
        rs["status"]["conditions"][0]["message"],
        "namespaces \"shop\" not found"
    );
    assert_eq!(rs["status"]["replicas"], 0);
    let attempts = bench
        .world
        .controllers
        .failures
        .values()
        .copied()
        .collect::<Vec<u32>>();
    assert_eq!(attempts, [10]);
    let namespace = json!({"metadata": {"name": NS}});
    bench.world.create(Kind::Namespace, namespace).unwrap();
    bench.run(6);
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(rs["status"].get("conditions"), None);
    assert_eq!(rs["status"]["replicas"], 2);
}

/// `FailedCreate` events: message and count, the combined one first.
fn refusals(bench: &Bench) -> Vec<(String, i64)> {
    let mut found: Vec<(String, i64)> = bench
        .list(Kind::Event)
        .iter()
        .filter(|e| e["reason"] == "FailedCreate")
        .map(|e| {
            let count = e["count"].as_i64().unwrap();
            (e["message"].as_str().unwrap().to_owned(), count)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_missing_service_account_refuses_every_pod_with_the_same_words() {
    let mut bench = Bench::new();
    let mut web = deployment(1, json!({"type": "Recreate"}));
    web["spec"]["template"]["spec"]["serviceAccountName"] = json!("advocate");
    bench.create(Kind::Deployment, web);
    bench.run(2);
    let prefix = format!("{}-", name(&bench.only(Kind::ReplicaSet)));
    let message = format!(
        "Error creating: pods \"{prefix}\" is forbidden: error looking up service account shop/advocate: \
         serviceaccount \"advocate\" not found"
    );
    assert_eq!(refusals(&bench), [(message.clone(), 9)]);
    bench.run(88);
    assert_eq!(refusals(&bench), [(message, 15)]);
    let (status, reason) = bench.condition(Kind::Deployment, "web", "ReplicaFailure");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "FailedCreate"));
    let (status, reason) = bench.condition(Kind::Deployment, "web", "Progressing");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", "NewReplicaSetCreated")
    );
}

#[test]
fn pods_beyond_a_quota_are_refused_by_name_and_the_tenth_refusal_is_combined() {
    let mut bench = Bench::new();
    let quota = json!({"metadata": {"name": "team", "namespace": NS},
                       "spec": {"hard": {"limits.memory": "100Mi"}}});
    bench.create(Kind::ResourceQuota, quota);
    bench.run(1);
    let mut web = deployment(1, json!({"type": "Recreate"}));
    web["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"memory": "256Mi"}});
    bench.create(Kind::Deployment, web);
    bench.run(90);
    let found = refusals(&bench);
    assert_eq!(found.len(), 10, "{found:?}");
    let tail = "is forbidden: exceeded quota: team, requested: limits.memory=256Mi, used: \
                limits.memory=0, limited: limits.memory=100Mi";
    assert!(
        found.iter().all(|(message, _)| message.ends_with(tail)),
        "{found:?}"
    );
    assert!(
        found[0]
            .0
            .starts_with("(combined from similar events): Error creating: pods")
    );
    assert_eq!(found[0].1, 6);
    let status = bench.get(Kind::Deployment, "web")["status"].clone();
    assert_eq!(status["unavailableReplicas"], 1);
    assert_eq!(status.get("replicas"), None);
}
