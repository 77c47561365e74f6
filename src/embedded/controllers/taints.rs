//! Evictions by taints: pods that do not tolerate a `NoExecute` taint of their node are deleted, at once or when
//! the time that they tolerate it is over.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::controllers::object::{deleting, items, name, namespace};
use crate::embedded::controllers::{Controller, Key, enqueue, pods, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::scheduler;
use crate::embedded::world::World;

const COMPONENT: &str = "taint-eviction-controller";

/// How long a pod may stay on its node.
enum Stay {
    AsLongAsItLikes,
    For(Duration),
}

/// Queues the pods of a node whose taints may have changed.
pub(super) fn node_changed(world: &mut World, node: &Value) {
    if !drives_away(node) && world.controllers.tainted.is_empty() {
        return;
    }
    let here: Vec<(String, String)> = world
        .store
        .all(Kind::Pod)
        .filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"])
        .map(|pod| (namespace(pod).to_owned(), name(pod).to_owned()))
        .collect();
    for (ns, pod) in here {
        enqueue(world, Controller::Taint, &ns, &pod);
    }
}

/// Queues a pod that has got a node, where that drives pods away.
pub(super) fn pod_placed(world: &mut World, pod: &Value) {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let drives = world
        .store
        .get(Kind::Node, "", node)
        .is_some_and(|node| drives_away(node));
    if drives {
        enqueue(world, Controller::Taint, namespace(pod), name(pod));
    }
}

fn drives_away(node: &Value) -> bool {
    items(&node["spec"]["taints"])
        .iter()
        .any(|taint| taint["effect"] == "NoExecute")
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let pod = world
        .store
        .get(Kind::Pod, &key.namespace, &key.name)
        .cloned();
    let Some(pod) = pod.filter(|pod| !deleting(pod) && !pods::finished(pod)) else {
        world.controllers.tainted.remove(key);
        return;
    };
    let now = world.now();
    let stay = stay(world, &pod);
    let Some(Stay::For(tolerated)) = stay else {
        if world.controllers.tainted.remove(key).is_some() {
            let message = format!("Cancelling deletion of Pod {}/{}", key.namespace, key.name);
            tell(world, &pod, message);
        }
        return;
    };
    let since = *world.controllers.tainted.entry(key.clone()).or_insert(now);
    let due = since + tolerated;
    if due > now {
        return wake_at(world, key, due);
    }
    world.controllers.tainted.remove(key);
    evict(world, key, &pod);
}

/// What the node's taints allow the pod; `None` without any that matter.
fn stay(world: &World, pod: &Value) -> Option<Stay> {
    let node = pod["spec"]["nodeName"].as_str()?;
    let node: &Arc<Value> = world.store.get(Kind::Node, "", node)?;
    let mut least: Option<Duration> = None;
    let mut any = false;
    for taint in items(&node["spec"]["taints"]) {
        if taint["effect"] != "NoExecute" {
            continue;
        }
        any = true;
        let mut tolerating = items(&pod["spec"]["tolerations"])
            .iter()
            .filter(|toleration| scheduler::covers(toleration, taint))
            .peekable();
        if tolerating.peek().is_none() {
            return Some(Stay::For(Duration::ZERO));
        }
        let seconds = tolerating
            .filter_map(|toleration| toleration["tolerationSeconds"].as_i64())
            .min()
            .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        least = match (least, seconds) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    any.then(|| least.map_or(Stay::AsLongAsItLikes, Stay::For))
}

fn evict(world: &mut World, key: &Key, pod: &Value) {
    let message = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
    tell(world, pod, message);
    let now = world.now().seconds_text();
    world.update(Kind::Pod, &key.namespace, &key.name, |pod| {
        let mut conditions = items(&pod["status"]["conditions"]).to_vec();
        conditions.retain(|condition| condition["type"] != "DisruptionTarget");
        conditions.push(json!({
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }));
        pod["status"]["conditions"] = conditions.into();
    });
    pods::delete(world, pod);
}

fn tell(world: &mut World, pod: &Value, message: String) {
    let event = NewEvent {
        about: pod,
        field_path: None,
        warning: false,
        reason: "TaintManagerEviction",
        message,
        component: COMPONENT,
        host: None,
    };
    events::record(world, event);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::controllers::bench::{Bench, NS};

    fn pod(bench: &mut Bench, name: &str, tolerations: Value) {
        let pod = json!({"metadata": {"name": name, "namespace": NS}, "spec": {
            "nodeName": "n1", "tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]}});
        bench.create(Kind::Pod, pod);
    }

    fn left(bench: &Bench) -> Vec<String> {
        let pods = bench.list(Kind::Pod);
        pods.iter()
            .filter(|pod| !deleting(pod))
            .map(|pod| name(pod).to_owned())
            .collect()
    }

    #[test]
    fn a_taint_that_forbids_to_run_drives_pods_away_as_they_tolerate_it() {
        let mut bench = Bench::new();
        let node = json!({"metadata": {"name": "n1"}});
        bench.world.create(Kind::Node, node).unwrap();
        pod(&mut bench, "a", json!([]));
        pod(
            &mut bench,
            "b",
            json!([{"key": "maint", "operator": "Exists"}]),
        );
        let short = json!([{"key": "maint", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 8}]);
        pod(&mut bench, "c", short);
        bench.world.update(Kind::Node, "", "n1", |node| {
            node["spec"]["taints"] = json!([{"key": "maint", "effect": "NoExecute"}]);
        });
        let until = bench.world.now() + Duration::from_secs(2);
        bench.world.run_until(until);
        assert_eq!(left(&bench), ["b", "c"]);
        let until = bench.world.now() + Duration::from_secs(8);
        bench.world.run_until(until);
        assert_eq!(left(&bench), ["b"]);
        let events = bench.events("Pod");
        assert!(events.contains(&(
            "TaintManagerEviction".to_owned(),
            format!("Marking for deletion Pod {NS}/a")
        )));
    }
}
