//! A world for the controllers' tests, with a stand-in that makes pods run.
//!
//! The pods name a scheduler that does not exist and get no node, so neither scheduler nor kubelet touches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers::object::{deleting, items, name, replicas};
use crate::embedded::image::Registry;
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

pub(crate) const NS: &str = "shop";

/// See the module documentation.
pub(crate) struct Bench {
    pub world: World,
    /// Images whose pods run but never become ready.
    pub broken: BTreeSet<String>,
    addresses: u32,
}

impl Bench {
    pub fn new() -> Bench {
        let start = Time::from_micros(1_772_444_467_000_000);
        let mut world = World::new(1, start, Registry::default());
        let namespace = json!({"metadata": {"name": NS}, "spec": {"finalizers": ["kubernetes"]}});
        world.create(Kind::Namespace, namespace).unwrap();
        let account = json!({"metadata": {"name": "default", "namespace": NS}});
        world.create(Kind::ServiceAccount, account).unwrap();
        Bench {
            world,
            broken: BTreeSet::new(),
            addresses: 0,
        }
    }

    pub fn create(&mut self, kind: Kind, object: Value) -> Arc<Value> {
        write::create(&mut self.world, kind, NS, object, &WriteOptions::of("test")).unwrap()
    }

    pub fn update(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        assert!(self.world.update(kind, NS, name, change));
    }

    /// Lets time pass, making pods run every 100 ms.
    pub fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            let next = self.world.now() + Duration::from_millis(100);
            self.world.run_until(next);
            self.start_pods();
        }
    }

    fn start_pods(&mut self) {
        let new: Vec<Arc<Value>> = self
            .world
            .store
            .within(Kind::Pod, NS)
            .filter(|pod| !deleting(pod) && pod["status"]["phase"] != "Running")
            .cloned()
            .collect();
        for pod in new {
            self.addresses += 1;
            let ip = format!("10.42.0.{}", self.addresses);
            let image = pod["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap_or_default();
            let ready = if self.broken.contains(image) {
                "False"
            } else {
                "True"
            };
            let now = self.world.now().seconds_text();
            self.update(Kind::Pod, name(&pod), |pod| {
                pod["status"] = json!({
                    "phase": "Running",
                    "podIP": ip,
                    "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}],
                });
            });
        }
    }

    pub fn get(&self, kind: Kind, name: &str) -> Value {
        (**self.world.store.get(kind, NS, name).unwrap()).clone()
    }

    pub fn list(&self, kind: Kind) -> Vec<Value> {
        self.world
            .store
            .within(kind, NS)
            .map(|object| (**object).clone())
            .collect()
    }

    pub fn only(&self, kind: Kind) -> Value {
        let all = self.list(kind);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    /// The ReplicaSet with this image.
    pub fn set_of(&self, image: &str) -> Value {
        self.list(Kind::ReplicaSet)
            .into_iter()
            .find(|rs| rs["spec"]["template"]["spec"]["containers"][0]["image"] == image)
            .unwrap()
    }

    /// Specified replicas of all ReplicaSets, by image.
    pub fn sizes(&self) -> Vec<(String, i64)> {
        let mut sizes: Vec<(String, i64)> = self
            .list(Kind::ReplicaSet)
            .iter()
            .map(|rs| {
                let image = &rs["spec"]["template"]["spec"]["containers"][0]["image"];
                (image.as_str().unwrap().to_owned(), replicas(rs))
            })
            .collect();
        sizes.sort();
        sizes
    }

    /// Reasons and messages of all events about objects of a kind, in the order of their names.
    pub fn events(&self, kind: &str) -> Vec<(String, String)> {
        let mut events = self.list(Kind::Event);
        events.sort_by_key(|e| e["metadata"]["name"].as_str().unwrap().to_owned());
        events
            .iter()
            .filter(|e| e["involvedObject"]["kind"] == kind)
            .map(|e| {
                let text = |field: &str| e[field].as_str().unwrap().to_owned();
                (text("reason"), text("message"))
            })
            .collect()
    }

    /// `reason` of a status condition, with its status.
    pub fn condition(&self, kind: Kind, name: &str, condition: &str) -> (String, String) {
        let object = self.get(kind, name);
        let found = items(&object["status"]["conditions"])
            .iter()
            .find(|c| c["type"] == condition)
            .unwrap_or_else(|| panic!("{condition} in {object}"));
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }
}

/// A pod template as in the other tests of this module: one container, picked by `app=web`.
pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "schedulerName": "none",
            "containers": [{"name": "c", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}],
        },
    })
}

pub(crate) fn deployment(replicas: i64, strategy: Value) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": NS},
        "spec": {
            "replicas": replicas,
            "strategy": strategy,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("one"),
        },
    })
}

pub(crate) fn service() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": NS},
        "spec": {
            "selector": {"app": "web"},
            "clusterIP": "10.43.0.50",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}
