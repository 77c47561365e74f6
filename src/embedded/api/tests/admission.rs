//! Refusals that controllers and clients meet, compared with what a Kubernetes v1.34.4 cluster was recorded to say.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{refusal, send, shop, typed};
use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::cluster::Cluster;
use crate::embedded::kind::Kind;

/// A pod as a ReplicaSet makes it.
fn pod(resources: &Value) -> Value {
    json!({
        "metadata": {"generateName": "web-6d4cf56db6-", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "api", "image": "i:1", "resources": resources}]},
    })
}

/// Creates a pod as a component does.
fn create(cluster: &Cluster, object: Value) -> Result<Value, String> {
    cluster.with(|world| {
        write::create(world, Kind::Pod, "shop", object, &WriteOptions::of("test"))
            .map(|object| (*object).clone())
            .map_err(|status| status.message)
    })
}

/// A cluster whose namespace `shop` has its default service account.
async fn with_account() -> Cluster {
    let cluster = shop().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client("shop"));
    if accounts.get("default").await.is_err() {
        let account = typed(json!({"metadata": {"name": "default"}}));
        accounts
            .create(&PostParams::default(), &account)
            .await
            .unwrap();
    }
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_missing_service_account_is_named_with_the_generated_names_prefix() {
    let cluster = with_account().await;
    let mut object = pod(&json!({}));
    object["spec"]["serviceAccountName"] = "sa".into();
    assert_eq!(
        create(&cluster, object).unwrap_err(),
        "pods \"web-6d4cf56db6-\" is forbidden: error looking up service account shop/sa: serviceaccount \"sa\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_gets_what_reads_of_real_pods_show() {
    let cluster = with_account().await;
    let made = create(&cluster, pod(&json!({"limits": {"memory": "0.5Gi"}}))).unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(
        name.starts_with("web-6d4cf56db6-") && name.len() == 20,
        "{name}"
    );
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(
        made["status"],
        json!({"phase": "Pending", "qosClass": "Burstable"})
    );
    let spec = &made["spec"];
    assert_eq!(
        spec["containers"][0]["resources"],
        json!({"limits": {"memory": "512Mi"}, "requests": {"memory": "512Mi"}})
    );
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["tolerations"][1]["tolerationSeconds"], 300);
    assert_eq!(spec["priority"], 0);
    assert_eq!(spec["enableServiceLinks"], true);
}

#[tokio::test(start_paused = true)]
async fn quotas_refuse_with_the_recorded_texts() {
    let cluster = with_account().await;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(cluster.client("shop"));
    let quota =
        |hard: Value| typed(json!({"metadata": {"name": "team-quota"}, "spec": {"hard": hard}}));
    let limited = json!({"limits": {"memory": "256Mi"}});
    create(&cluster, pod(&limited)).unwrap();
    let hard = quota(json!({"limits.memory": "300Mi", "pods": "10"}));
    quotas.create(&PostParams::default(), &hard).await.unwrap();
    let message = create(&cluster, pod(&limited)).unwrap_err();
    let (head, tail) = message.split_at("pods \"web-6d4cf56db6-".len() + 5);
    assert!(head.starts_with("pods \"web-6d4cf56db6-"));
    assert_eq!(
        tail,
        "\" is forbidden: exceeded quota: team-quota, requested: limits.memory=256Mi, used: limits.memory=256Mi, limited: limits.memory=300Mi"
    );
    quotas
        .delete("team-quota", &DeleteParams::default())
        .await
        .unwrap();
    let hard = quota(json!({"limits.cpu": "4", "requests.memory": "2Gi"}));
    quotas.create(&PostParams::default(), &hard).await.unwrap();
    let message = create(&cluster, pod(&json!({}))).unwrap_err();
    assert!(
        message.ends_with("\" is forbidden: failed quota: team-quota: must specify limits.cpu for: api; requests.memory for: api"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_cannot_be_reached_refuses_what_it_guards() {
    let cluster = with_account().await;
    let hook = json!({
        "metadata": {"name": "policy"},
        "webhooks": [{
            "name": "pods.policy.acme.io",
            "clientConfig": {"service": {"name": "policy", "namespace": "policy-system", "path": "/validate"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(
        send(&cluster, "POST", path, "application/json", &hook)
            .await
            .0,
        201
    );
    assert_eq!(
        create(&cluster, pod(&json!({}))).unwrap_err(),
        "Internal error occurred: failed calling webhook \"pods.policy.acme.io\": failed to call webhook: Post \
         \"https://policy.policy-system.svc:443/validate?timeout=10s\": service \"policy\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn evictions_respect_budgets() {
    let cluster = with_account().await;
    let made = create(&cluster, pod(&json!({}))).unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    cluster.with(|world| {
        world.update(Kind::Pod, "shop", name, |pod| {
            pod["spec"]["nodeName"] = "node-1".into();
            pod["status"]["phase"] = "Running".into();
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        })
    });
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(cluster.client("shop"));
    let budget = typed(
        json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    budgets
        .create(&PostParams::default(), &budget)
        .await
        .unwrap();
    let set = |allowed: i64| {
        cluster.with(|world| {
            world.update(Kind::PodDisruptionBudget, "shop", "web", |budget| {
                budget["status"] = json!({"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
                                          "expectedPods": 1, "observedGeneration": 1});
            })
        });
    };
    set(0);
    let path = format!("/api/v1/namespaces/shop/pods/{name}/eviction");
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let (code, refused) = send(&cluster, "POST", &path, "application/json", &body).await;
    assert_eq!(code, 429);
    assert_eq!(refused["reason"], "TooManyRequests");
    assert_eq!(
        refused["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(
        refused["details"]["causes"],
        json!([{"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1 currently"}])
    );
    set(1);
    let pods: Api<Pod> = Api::default_namespaced(cluster.client("shop"));
    pods.evict(name, &EvictParams::default()).await.unwrap();
    let going = pods.get(name).await.unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    let conditions = going.status.unwrap().conditions.unwrap();
    let target = conditions
        .iter()
        .find(|one| one.type_ == "DisruptionTarget")
        .unwrap();
    assert_eq!(target.reason.as_deref(), Some("EvictionByEvictionAPI"));
    assert_eq!(target.message.as_deref(), Some("Eviction API: evicting"));
    assert_eq!(
        budgets
            .get("web")
            .await
            .unwrap()
            .status
            .unwrap()
            .disruptions_allowed,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_keeps_its_grace_and_one_without_goes_at_once() {
    let cluster = with_account().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client("shop"));
    let name = |made: &Value| made["metadata"]["name"].as_str().unwrap().to_owned();
    let unscheduled = name(&create(&cluster, pod(&json!({}))).unwrap());
    let scheduled = name(&create(&cluster, pod(&json!({}))).unwrap());
    cluster.with(|world| {
        world.update(Kind::Pod, "shop", &scheduled, |pod| {
            pod["spec"]["nodeName"] = "elsewhere".into();
        })
    });
    assert!(
        pods.delete(&unscheduled, &DeleteParams::default())
            .await
            .unwrap()
            .is_left()
    );
    assert!(pods.get(&unscheduled).await.is_err());
    let before = cluster.now();
    pods.delete(&scheduled, &DeleteParams::default())
        .await
        .unwrap();
    let going = pods.get(&scheduled).await.unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(
        serde_json::to_value(going.metadata.deletion_timestamp).unwrap(),
        (before + std::time::Duration::from_secs(30)).seconds_text()
    );
    pods.delete(&scheduled, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(pods.get(&scheduled).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_and_their_removal_releases() {
    let cluster = shop().await;
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client("shop"));
    let object = typed(
        json!({"metadata": {"name": "s", "finalizers": ["acme.io/audit"]}, "stringData": {"k": "v"}}),
    );
    secrets
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let held = secrets
        .delete("s", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(held.metadata.deletion_grace_period_seconds, Some(0));
    let bare = json!({"metadata": {"finalizers": null}});
    secrets
        .patch("s", &PatchParams::default(), &Patch::Merge(&bare))
        .await
        .unwrap();
    assert!(secrets.get("s").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_in_order_and_keep_them() {
    let cluster = shop().await;
    let services: Api<Service> = Api::default_namespaced(cluster.client("shop"));
    let make = |name: &str| {
        typed(
            json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
        )
    };
    let mut addresses = Vec::new();
    for name in ["a", "b"] {
        let made = services
            .create(&PostParams::default(), &make(name))
            .await
            .unwrap();
        addresses.push(made.spec.unwrap().cluster_ip.unwrap());
    }
    assert_eq!(addresses, ["10.43.1.0", "10.43.1.1"]);
    let mut again: Service = make("a");
    again.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].port = 81;
    let kept = services
        .replace("a", &PostParams::default(), &again)
        .await
        .unwrap();
    assert_eq!(kept.spec.unwrap().cluster_ip.as_deref(), Some("10.43.1.0"));
}

/// A Deployment that needs nothing else.
fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "api", "image": "i:1"}]}},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn scale_changes_replicas_and_nothing_else() {
    let cluster = shop().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client("shop"));
    let made = deployments
        .create(&PostParams::default(), &typed(deployment()))
        .await
        .unwrap();
    assert_eq!(
        deployments
            .get_scale("web")
            .await
            .unwrap()
            .spec
            .unwrap()
            .replicas,
        Some(2)
    );
    let patch = json!({"spec": {"replicas": 0}});
    let scaled = deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(scaled.status.unwrap().selector.as_deref(), Some("app=web"));
    let now = deployments.get("web").await.unwrap();
    assert_eq!(now.spec.as_ref().unwrap().replicas, Some(0));
    assert_eq!(now.spec.unwrap().template, made.spec.unwrap().template);
    let patch = json!({"spec": {"replicas": -1}});
    let error = deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap_err();
    assert_eq!(
        refusal(error).2,
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
}

#[tokio::test(start_paused = true)]
async fn apply_owns_conflicts_and_lets_go() {
    let cluster = shop().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client("shop"));
    let deployer = PatchParams::apply("deployer");
    let mut config = deployment();
    config["metadata"]["labels"] = json!({"team": "a"});
    deployments
        .patch("web", &deployer, &Patch::Apply(&config))
        .await
        .unwrap();
    let same = deployments
        .patch("web", &deployer, &Patch::Apply(&config))
        .await
        .unwrap();
    let again = deployments
        .patch("web", &deployer, &Patch::Apply(&config))
        .await
        .unwrap();
    assert_eq!(
        same.metadata.resource_version,
        again.metadata.resource_version
    );

    let other = PatchParams {
        field_manager: Some("ops".to_owned()),
        ..PatchParams::default()
    };
    deployments
        .patch(
            "web",
            &other,
            &Patch::Merge(&json!({"spec": {"replicas": 5}})),
        )
        .await
        .unwrap();
    let error = deployments
        .patch("web", &deployer, &Patch::Apply(&config))
        .await
        .unwrap_err();
    assert_eq!(
        refusal(error),
        (
            409,
            "Conflict".into(),
            "Apply failed with 1 conflict: conflict with \"ops\" using apps/v1: .spec.replicas"
                .into()
        )
    );
    let forced = deployments
        .patch("web", &deployer.clone().force(), &Patch::Apply(&config))
        .await
        .unwrap();
    assert_eq!(forced.spec.unwrap().replicas, Some(2));

    config["metadata"].as_object_mut().unwrap().remove("labels");
    let dropped = deployments
        .patch("web", &deployer, &Patch::Apply(&config))
        .await
        .unwrap();
    assert_eq!(dropped.metadata.labels, None);
    let managers = dropped.metadata.managed_fields.unwrap();
    assert_eq!(managers[0].manager.as_deref(), Some("deployer"));
    assert_eq!(managers[0].operation.as_deref(), Some("Apply"));
    assert!(managers[0].time.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_checked_and_not_stored() {
    let cluster = shop().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client("shop"));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let made = deployments
        .create(&dry, &typed(deployment()))
        .await
        .unwrap();
    assert!(made.metadata.uid.is_some());
    assert!(deployments.get("web").await.is_err());
    let mut wrong = deployment();
    wrong["spec"]["replicas"] = (-1).into();
    let error = deployments.create(&dry, &typed(wrong)).await.unwrap_err();
    assert_eq!(refusal(error).0, 422);
}
