//! Flattens a cluster's state into single values with paths: the recording's samples and the embedded
//! cluster's store give the same paths.

use std::collections::BTreeMap;

use agent_breakage::embedded::kind::Kind;
use agent_breakage::embedded::kubelet::{self, LogRequest};
use agent_breakage::embedded::world::World;
use serde_json::{Value, json};

use crate::names::Names;

pub const NAMESPACE: &str = "prod-advocate";

/// Values by path.
pub type Values = BTreeMap<String, String>;

/// The embedded cluster's state in the shape of a recorded sample.
pub fn sample_of(world: &World) -> Value {
    let list = |kind: Kind| -> Vec<Value> {
        world
            .store
            .within(kind, NAMESPACE)
            .map(|object| (**object).clone())
            .collect()
    };
    let workload = |object: &Value| {
        json!({
            "name": object["metadata"]["name"],
            "generation": object["metadata"]["generation"],
            "creationTimestamp": object["metadata"]["creationTimestamp"],
            "revision": object["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
            "replicas": object["spec"]["replicas"],
            "status": object["status"],
        })
    };
    let pods: Vec<Value> = list(Kind::Pod)
        .iter()
        .map(|pod| {
            let meta = &pod["metadata"];
            json!({
                "name": meta["name"],
                "creationTimestamp": meta["creationTimestamp"],
                "deletionTimestamp": meta["deletionTimestamp"],
                "owner": [meta["ownerReferences"][0]["name"]],
                "node": pod["spec"]["nodeName"],
                "spec": pod["spec"],
                "status": pod["status"],
            })
        })
        .collect();
    let slices: Vec<Value> = list(Kind::EndpointSlice)
        .iter()
        .map(|slice| {
            let endpoints: Vec<Value> = slice["endpoints"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|e| json!({"conditions": e["conditions"], "target": e["targetRef"]["name"]}))
                .collect();
            json!({"name": slice["metadata"]["name"], "ports": slice["ports"], "endpoints": endpoints})
        })
        .collect();
    let logs = logs_of(world, &pods);
    json!({
        "pods": pods,
        "deployments": list(Kind::Deployment).iter().map(workload).collect::<Vec<_>>(),
        "replicasets": list(Kind::ReplicaSet).iter().map(workload).collect::<Vec<_>>(),
        "statefulsets": list(Kind::StatefulSet).iter().map(workload).collect::<Vec<_>>(),
        "endpointslices": slices,
        "logs": logs,
    })
}

fn logs_of(world: &World, pods: &[Value]) -> Value {
    let mut all = json!({});
    for pod in pods {
        let name = pod["name"].as_str().unwrap_or_default();
        for list in ["initContainers", "containers"] {
            for spec in pod["spec"][list].as_array().into_iter().flatten() {
                let container = spec["name"].as_str().unwrap_or_default();
                for previous in [false, true] {
                    let request = LogRequest {
                        container: Some(container.to_owned()),
                        previous,
                        ..LogRequest::default()
                    };
                    let which = if previous { "previous" } else { "current" };
                    let answer = match kubelet::logs(world, NAMESPACE, name, &request) {
                        Ok(text) => text.into(),
                        Err(why) => {
                            json!({"error": format!("Error from server (BadRequest): {why}")})
                        }
                    };
                    all[format!("{name}/{container}/{which}")] = answer;
                }
            }
        }
    }
    all
}

/// All values of a sample.
pub fn values(sample: &Value, names: &Names, skip_database: bool) -> Values {
    let mut all = Values::new();
    let roles = pods(sample, names, skip_database, &mut all);
    for (list, label) in [
        ("deployments", "deployment"),
        ("replicasets", "replicaset"),
        ("statefulsets", "statefulset"),
    ] {
        for object in sample[list].as_array().into_iter().flatten() {
            let name = names.plain(object["name"].as_str().unwrap_or_default());
            if skip_database && name.contains("advocate-db") {
                continue;
            }
            workload(object, &format!("{label} {name}"), names, &mut all);
        }
    }
    for slice in sample["endpointslices"].as_array().into_iter().flatten() {
        let name = slice["name"].as_str().unwrap_or_default();
        let service = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
        if skip_database && service == "advocate-db" {
            continue;
        }
        let mut endpoints: Vec<String> = slice["endpoints"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| {
                let condition = |field: &str| e["conditions"][field] == true;
                format!(
                    "{} ready={} serving={} terminating={}",
                    names.plain(e["target"].as_str().unwrap_or_default()),
                    condition("ready"),
                    condition("serving"),
                    condition("terminating")
                )
            })
            .collect();
        endpoints.sort();
        all.insert(format!("endpoints {service}"), endpoints.join("; "));
        let ports: Vec<String> = slice["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|port| {
                format!(
                    "{}:{}",
                    port["name"].as_str().unwrap_or_default(),
                    port["port"]
                )
            })
            .collect();
        all.insert(format!("endpoint ports {service}"), ports.join(","));
    }
    for (key, text) in sample["logs"].as_object().into_iter().flatten() {
        let (pod, rest) = key.split_once('/').unwrap_or((key, ""));
        let Some(role) = roles.get(pod) else { continue };
        let text = match &text["error"] {
            Value::String(error) => format!("error: {error}"),
            _ => text.as_str().unwrap_or_default().to_owned(),
        };
        all.insert(format!("log {role}/{rest}"), names.plain(&text));
    }
    all
}

/// Adds the pods' values; answers each pod's role.
fn pods(
    sample: &Value,
    names: &Names,
    skip_database: bool,
    all: &mut Values,
) -> BTreeMap<String, String> {
    let mut by_role: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for pod in sample["pods"].as_array().into_iter().flatten() {
        let name = names.plain(pod["name"].as_str().unwrap_or_default());
        if !(skip_database && name.contains("advocate-db")) {
            by_role.entry(name).or_default().push(pod);
        }
    }
    let mut roles = BTreeMap::new();
    for (role, mut list) in by_role {
        list.sort_by_key(|pod| {
            let created = pod["creationTimestamp"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            (created, pod["node"].is_null(), order(pod))
        });
        for (index, pod) in list.iter().enumerate() {
            let role = format!("{role}#{index}");
            roles.insert(
                pod["name"].as_str().unwrap_or_default().to_owned(),
                role.clone(),
            );
            pod_values(pod, &role, names, all);
        }
        all.insert(format!("pods {role}"), list.len().to_string());
    }
    roles
}

/// Ready pods first, among pods of one age.
fn order(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] != true
}

fn pod_values(pod: &Value, role: &str, names: &Names, all: &mut Values) {
    let status = &pod["status"];
    let mut put = |path: &str, value: String| {
        all.insert(format!("pod {role} {path}"), value);
    };
    let text = |value: &Value| names.plain(value.as_str().unwrap_or_default());
    for field in ["phase", "reason", "message", "qosClass"] {
        put(field, text(&status[field]));
    }
    put("node", text(&pod["node"]));
    put(
        "deleting",
        (!pod["deletionTimestamp"].is_null()).to_string(),
    );
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        let value = format!(
            "{} {} {} g{}",
            text(&condition["status"]),
            text(&condition["reason"]),
            text(&condition["message"]),
            condition["observedGeneration"]
        );
        put(&format!("condition {kind}"), value);
    }
    for list in ["initContainerStatuses", "containerStatuses"] {
        for container in status[list].as_array().into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            put(&format!("{name} state"), state(&container["state"], names));
            put(
                &format!("{name} lastState"),
                state(&container["lastState"], names),
            );
            for field in ["ready", "started", "restartCount", "image"] {
                put(&format!("{name} {field}"), container[field].to_string());
            }
        }
    }
}

fn state(state: &Value, names: &Names) -> String {
    let Some((kind, what)) = state.as_object().and_then(|map| map.iter().next()) else {
        return String::new();
    };
    let text = |field: &str| names.plain(what[field].as_str().unwrap_or_default());
    let code = what["exitCode"]
        .as_i64()
        .map(|code| code.to_string())
        .unwrap_or_default();
    let epoch = if what["startedAt"] == "1970-01-01T00:00:00Z" {
        " never started"
    } else {
        ""
    };
    format!(
        "{kind} {} {code} {}{epoch}",
        text("reason"),
        text("message")
    )
}

fn workload(object: &Value, path: &str, names: &Names, all: &mut Values) {
    all.insert(format!("{path} replicas"), object["replicas"].to_string());
    let revision = object["revision"].as_str().unwrap_or_default();
    all.insert(format!("{path} revision"), revision.to_owned());
    let status = &object["status"];
    for field in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "fullyLabeledReplicas",
        "observedGeneration",
    ] {
        let number = status[field].as_i64().unwrap_or(0);
        all.insert(format!("{path} status.{field}"), number.to_string());
    }
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        let text = |field: &str| names.plain(condition[field].as_str().unwrap_or_default());
        let value = format!("{} {} {}", text("status"), text("reason"), text("message"));
        all.insert(format!("{path} condition {kind}"), value);
    }
}
