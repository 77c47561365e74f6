//! network-policy: what is created, what the network makes of it, and whose it is when the undo comes.

use std::time::Duration;

use agent_breakage::cluster::fixture::Fixtures;
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::{images, resource};
use agent_breakage::embedded::bootstrap;
use agent_breakage::embedded::cluster::{Cluster, ClusterConfig};
use agent_breakage::embedded::kubelet::policy::Denied;
use agent_breakage::embedded::time::Time;
use agent_breakage::ids::FixtureId;
use agent_breakage::inject::{self, write};
use agent_breakage::scenario::model::{Injector, WorkloadRef};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage, object, paused};

fn policy(spec: Value) -> Injector {
    Injector::NetworkPolicy {
        namespace: NAMESPACE.to_owned(),
        spec,
        restart_workloads: Vec::new(),
    }
}

/// Lets in pods of a label that nobody carries.
fn wrong_peer() -> Value {
    json!({
        "podSelector": {"matchLabels": {"app": "advocate-db"}}, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "advocate"}}}]}],
    })
}

#[test]
fn a_policy_gets_a_name_that_is_free_and_goes_by_its_uid() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let theirs = json!({"spec": {"podSelector": {"matchLabels": {"app": "advocate-db"}}}});
        let theirs = object("NetworkPolicy", "advocate-db-ingress", theirs);
        stage.put(&theirs).await;
        let before = stage.list("NetworkPolicy").await;
        let plan = stage.plan(&policy(wrong_peer())).await.unwrap();
        assert_eq!(plan.created[0].object.name, "advocate-db-ingress-2");
        // Previewed, not made.
        assert_eq!(before, stage.list("NetworkPolicy").await);
        let plan = stage.inject(&policy(wrong_peer())).await;
        assert!(!plan.created[0].object.uid.is_empty());
        assert_eq!(stage.list("NetworkPolicy").await.len(), 2);
        let undone = stage.undo(&plan).await;
        assert_eq!(
            undone.restored,
            ["NetworkPolicy prod-advocate/advocate-db-ingress-2: deleted"]
        );
        assert_eq!(before, stage.list("NetworkPolicy").await);
        assert_eq!(stage.undo(&plan).await.original.len(), 1);
    });
}

#[test]
fn a_policy_that_others_deleted_changed_or_made_anew_is_left_to_them() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let name = "advocate-db-ingress";
        let plan = stage.inject(&policy(wrong_peer())).await;
        stage.away("NetworkPolicy", name).await;
        let undone = stage.undo(&plan).await;
        assert!(undone.kept.is_empty() && undone.restored.is_empty());

        // Made anew with the same contents: still not ours.
        stage
            .put(&object(
                "NetworkPolicy",
                name,
                json!({"spec": wrong_peer()}),
            ))
            .await;
        assert!(stage.undo(&plan).await.kept[0].ends_with("recreated by someone else"));
        stage.away("NetworkPolicy", name).await;

        let plan = stage.inject(&policy(wrong_peer())).await;
        let path = "/spec/ingress/0/from/0/podSelector/matchLabels/app";
        let repaired = json!({"op": "replace", "path": path, "value": "advocate-api"});
        stage.edit("NetworkPolicy", name, &[repaired]).await;
        assert!(stage.undo(&plan).await.kept[0].ends_with("changed by someone else"));
        assert!(stage.get("NetworkPolicy", name).await.is_some());
        stage.away("NetworkPolicy", name).await;

        // A label of theirs does not make the rules theirs.
        let plan = stage.inject(&policy(wrong_peer())).await;
        let label = json!({"op": "add", "path": "/metadata/labels", "value": {"owner": "sre"}});
        stage.edit("NetworkPolicy", name, &[label]).await;
        assert_eq!(stage.undo(&plan).await.restored.len(), 1);
        assert!(stage.get("NetworkPolicy", name).await.is_none());
    });
}

#[test]
fn a_crash_before_the_uid_was_noted_is_undone_by_the_contents() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let planned = stage.plan(&policy(wrong_peer())).await.unwrap();
        // Died before the creation.
        assert_eq!(stage.undo(&planned).await.original.len(), 1);
        // Died right after it.
        write::apply(&stage.client, &mut planned.clone())
            .await
            .unwrap();
        assert_eq!(stage.undo(&planned).await.restored.len(), 1);
        assert!(stage.list("NetworkPolicy").await.is_empty());
        // Somebody else took the name meanwhile.
        let other = json!({"spec": {"podSelector": {}}});
        stage
            .put(&object("NetworkPolicy", "advocate-db-ingress", other))
            .await;
        assert!(stage.undo(&planned).await.kept[0].ends_with("made by someone else"));
        assert_eq!(stage.list("NetworkPolicy").await.len(), 1);
    });
}

#[test]
fn a_policy_without_effect_and_one_that_the_server_refuses_are_told_before_anything_is_made() {
    paused(async {
        let stage = Stage::of("advocate").await;
        let mut same = wrong_peer();
        same["podSelector"]["matchLabels"]["app"] = "advocate-api".into();
        let stands = stage
            .put(&object("NetworkPolicy", "stands", json!({"spec": same})))
            .await;
        let mut bad_port = wrong_peer();
        bad_port["ingress"][0]["ports"] = json!([{"port": 99999, "protocol": "TCP"}]);
        for (spec, reason) in [
            (
                json!({"podSelector": {"matchLabels": {"app": "nobody"}}}),
                "matches no pod",
            ),
            (
                stands["spec"].clone(),
                "its policy \"stands\" says the same",
            ),
            (
                json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
                "label selector",
            ),
            (bad_port, "refused the fault (422)"),
        ] {
            let refusal = stage.refusal(&policy(spec)).await;
            assert!(refusal.contains(reason), "{refusal}");
        }
        assert_eq!(stage.list("NetworkPolicy").await.len(), 1);
    });
}

/// What the restarted service logs after some seconds, on a network of this kind; or its run before, when it ended.
async fn log_after(denied: Denied, seconds: u64, which: &str) -> String {
    let cluster = Cluster::new(ClusterConfig {
        seed: 7,
        start: Time::parse("2026-03-02T09:00:00Z").unwrap(),
        images: images::registry(),
        denied,
    });
    cluster.with(bootstrap::populate);
    let client = cluster.client(NAMESPACE);
    let fixture = Fixtures::compiled_in()
        .load(&[FixtureId::new("advocate")])
        .unwrap();
    reset::apply(&client, &fixture, &mut Owned::default())
        .await
        .unwrap();
    let fault = Injector::NetworkPolicy {
        namespace: NAMESPACE.to_owned(),
        spec: wrong_peer(),
        restart_workloads: vec![WorkloadRef {
            kind: "Deployment".to_owned(),
            name: "advocate-api".to_owned(),
        }],
    };
    let mut plan = inject::plan(&client, &fault, &cluster.now().seconds_text())
        .await
        .unwrap();
    write::apply(&client, &mut plan).await.unwrap();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let pods = resource::of_kind("Pod")
        .unwrap()
        .list_matching(&client, NAMESPACE, "app=advocate-api")
        .await
        .unwrap();
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    let path = format!(
        "{}/log{which}",
        resource::of_kind("Pod").unwrap().path(NAMESPACE, name)
    );
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

#[test]
fn denied_connections_are_refused_at_once_or_run_into_the_time_out_as_the_network_has_it() {
    paused(async {
        let rejected = log_after(Denied::Rejected, 5, "").await;
        assert!(
            rejected.contains("Connection refused (os error 111)"),
            "{rejected}"
        );
        let waiting = log_after(Denied::Dropped, 5, "").await;
        assert!(!waiting.contains("cannot connect"), "{waiting}");
        let dropped = log_after(Denied::Dropped, 20, "?previous=true").await;
        assert!(dropped.contains("timed out after 10s"), "{dropped}");
    });
}

#[test]
fn a_policy_at_the_servers_side_leaves_open_connections_and_probes_alone() {
    paused(async {
        let stage = Stage::of("advocate").await;
        stage.inject(&policy(wrong_peer())).await;
        stage
            .inject(&policy(json!({
                "podSelector": {"matchLabels": {"app": "advocate-api"}}, "policyTypes": ["Ingress"],
            })))
            .await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let deployment = stage.get("Deployment", "advocate-api").await.unwrap();
        assert_eq!(deployment["status"]["readyReplicas"], 1);
        let pods = stage.list("Pod").await;
        let restarts = pods
            .iter()
            .map(|pod| &pod["status"]["containerStatuses"][0]["restartCount"]);
        assert!(restarts.clone().all(|count| *count == 0), "{pods:?}");
    });
}
