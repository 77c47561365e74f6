//! What a cluster holds, compared without any code of the program; who lists the objects is another's business.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What people and agents can set. Pods and replica sets follow from these; they are looked at by readiness.
const PATHS: [&str; 15] = [
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/services",
    "/api/v1/serviceaccounts",
    "/api/v1/resourcequotas",
    "/api/v1/limitranges",
    "/api/v1/persistentvolumeclaims",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
];
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// Labels, annotations, spec and data of every object outside the system namespaces, by path, namespace and name.
pub type Held = BTreeMap<(String, String, String), Value>;

/// What the cluster holds now.
pub fn held(list: impl Fn(&str) -> Vec<Value>) -> Held {
    let mut held = Held::new();
    for path in PATHS {
        for object in list(path) {
            let meta = &object["metadata"];
            let part = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (part("namespace"), part("name"));
            let system = SYSTEM.contains(&namespace.as_str()) || SYSTEM.contains(&name.as_str());
            if !system {
                held.insert((path.to_owned(), namespace, name), content(&object));
            }
        }
    }
    held
}

fn content(object: &Value) -> Value {
    let mut content = Map::new();
    for field in ["spec", "data", "binaryData", "type", "immutable"] {
        content.insert(field.to_owned(), object[field].clone());
    }
    // Assigned anew to a Service, or a claim, that was made anew.
    for field in ["clusterIP", "clusterIPs", "volumeName"] {
        if let Some(spec) = content["spec"].as_object_mut()
            && spec.get(field).is_some_and(|value| *value != "None")
        {
            spec.remove(field);
        }
    }
    for field in ["labels", "annotations", "finalizers"] {
        let mut value = object["metadata"][field].clone();
        if let Some(map) = value.as_object_mut() {
            map.retain(|key, _| !key.starts_with("deployment.kubernetes.io/"));
        }
        let empty = value.as_object().is_some_and(Map::is_empty);
        content.insert(field.to_owned(), if empty { Value::Null } else { value });
    }
    let dying = object["metadata"].get("deletionTimestamp").is_some();
    content.insert("dying".to_owned(), dying.into());
    Value::Object(content)
}

/// Where two snapshots differ, for people.
pub fn differences(before: &Held, now: &Held) -> Vec<String> {
    let mut keys: Vec<_> = before.keys().chain(now.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter(|key| before.get(*key) != now.get(*key))
        .map(|key| match (before.get(key), now.get(key)) {
            (Some(then), Some(now)) => format!("{key:?} differs: {then} -> {now}"),
            (Some(_), None) => format!("{key:?} is gone"),
            _ => format!("{key:?} was not there"),
        })
        .collect()
}

/// The workloads that are not as their specs ask, with what their status says.
pub fn unready(list: impl Fn(&str) -> Vec<Value>) -> Vec<String> {
    let mut unready = Vec::new();
    for path in ["/apis/apps/v1/deployments", "/apis/apps/v1/statefulsets"] {
        for object in list(path) {
            let (spec, status) = (&object["spec"], &object["status"]);
            let wanted = spec["replicas"].as_i64().unwrap_or(1);
            let is = |field: &str| status[field].as_i64().unwrap_or(0) == wanted;
            let seen = status["observedGeneration"] == object["metadata"]["generation"];
            if !(seen && is("replicas") && is("readyReplicas") && is("updatedReplicas")) {
                unready.push(format!("{}: {status}", object["metadata"]["name"]));
            }
        }
    }
    unready
}
