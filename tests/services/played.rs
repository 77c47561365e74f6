//! The image in the embedded cluster: a database and a service that does not come up.

use std::time::Duration;

use agent_breakage::cluster::images;
use agent_breakage::embedded::bootstrap;
use agent_breakage::embedded::cluster::{Cluster, ClusterConfig};
use agent_breakage::embedded::kubelet::policy::Denied;
use agent_breakage::embedded::time::Time;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use kube::api::{Api, LogParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const NAMESPACE: &str = "shop";

/// What was left of a start.
pub struct Played {
    pub exit: i32,
    /// The logs of both.
    pub service: String,
    pub database: String,
}

impl Played {
    /// Lets a service start once with an environment, beside a database of the fixtures' user and password.
    pub fn failed_start(env: &[(&str, &str)]) -> Played {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(play(env))
    }
}

async fn play(env: &[(&str, &str)]) -> Played {
    let cluster = Cluster::new(ClusterConfig {
        seed: 1,
        start: Time::from_micros(1_772_444_467_000_000),
        images: images::registry(),
        denied: Denied::default(),
    });
    cluster.with(bootstrap::populate);
    let client = cluster.client(NAMESPACE);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let namespace = object::<Namespace>(json!({"metadata": {"name": NAMESPACE}}));
    let all: Api<Namespace> = Api::all(client.clone());
    all.create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    // Its default service account comes a moment later.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    // Nobody listens on the second one.
    let ports = json!([{"name": "pg", "port": 5432}, {"name": "other", "port": 5433}]);
    let service = json!({"metadata": {"name": "advocate-db"}, "spec": {"selector": {"app": "db"}, "ports": ports}});
    services
        .create(&PostParams::default(), &object(service))
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let command = json!(["/bin/advocate-db"]);
    let db = pod("db", &crate::USER, json!({"command": command}));
    pods.create(&PostParams::default(), &db).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let api = pod("api", env, json!({}));
    pods.create(&PostParams::default(), &api).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let ended = serde_json::to_value(pods.get("api").await.unwrap()).unwrap();
    let state = &ended["status"]["containerStatuses"][0]["state"]["terminated"];
    let log = LogParams::default();
    Played {
        exit: i32::try_from(state["exitCode"].as_i64().unwrap()).unwrap(),
        service: pods.logs("api", &log).await.unwrap(),
        database: pods.logs("db", &log).await.unwrap(),
    }
}

fn pod(name: &str, env: &[(&str, &str)], more: Value) -> Pod {
    let env: Vec<Value> = env
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let mut container = json!({"name": "c", "image": acme_services::IMAGE, "env": env});
    for (key, value) in more.as_object().unwrap() {
        container[key] = value.clone();
    }
    object(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container]}
    }))
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
