//! From API objects to the facts that detectors use. Total over any JSON: a wrong type is a named error, an absent
//! count is what the API means by it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::observation::{PodFacts, WorkloadFacts};

/// The numbers of a Deployment or StatefulSet.
pub fn workload(object: &Value) -> Result<WorkloadFacts, String> {
    Ok(WorkloadFacts {
        uid: text(&object["metadata"]["uid"]),
        generation: count(object, "/metadata/generation", 0)?,
        observed_generation: count(object, "/status/observedGeneration", 0)?,
        desired: count(object, "/spec/replicas", 1)?,
        replicas: count(object, "/status/replicas", 0)?,
        ready: count(object, "/status/readyReplicas", 0)?,
        updated: count(object, "/status/updatedReplicas", 0)?,
        available: count(object, "/status/availableReplicas", 0)?,
    })
}

/// A pod, with its ReplicaSet resolved by `deployments` (ReplicaSet name to Deployment name).
pub fn pod(object: &Value, deployments: &BTreeMap<String, String>) -> Result<PodFacts, String> {
    let meta = &object["metadata"];
    let status = &object["status"];
    let owner = controller(object).map(|(kind, name)| match deployments.get(&name) {
        Some(deployment) if kind == "ReplicaSet" => ("Deployment".to_owned(), deployment.clone()),
        _ => (kind, name),
    });
    let mut restarts = 0i64;
    for container in status["containerStatuses"].as_array().into_iter().flatten() {
        restarts = restarts.saturating_add(count(container, "/restartCount", 0)?);
    }
    let ready = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    Ok(PodFacts {
        namespace: text(&meta["namespace"]),
        name: text(&meta["name"]),
        uid: text(&meta["uid"]),
        owner,
        phase: text(&status["phase"]),
        ready,
        restarts,
        terminating: meta.get("deletionTimestamp").is_some_and(|t| !t.is_null()),
    })
}

/// A ReplicaSet's name with its Deployment's, if it has one.
pub fn deployment_of(replica_set: &Value) -> Option<(String, String)> {
    let (kind, name) = controller(replica_set)?;
    (kind == "Deployment").then(|| (text(&replica_set["metadata"]["name"]), name))
}

fn controller(object: &Value) -> Option<(String, String)> {
    object["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|owner| owner["controller"] == true)
        .map(|owner| (text(&owner["kind"]), text(&owner["name"])))
}

fn count(object: &Value, pointer: &str, absent: i64) -> Result<i64, String> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(absent),
        Some(value) => value
            .as_i64()
            .filter(|number| *number >= 0)
            .ok_or_else(|| format!("{pointer} is {value} and no count")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_replicas_are_one_and_absent_counts_are_zero() {
        let facts =
            workload(&json!({"metadata": {"uid": "u", "generation": 2}, "status": {}})).unwrap();
        assert_eq!(
            (facts.desired, facts.ready, facts.observed_generation),
            (1, 0, 0)
        );
        let empty = workload(&json!({})).unwrap();
        assert_eq!(empty.desired, 1);
    }

    #[test]
    fn a_count_of_the_wrong_type_is_a_named_error_and_no_panic() {
        for broken in [json!("3"), json!(-1), json!(1.5), json!([])] {
            let error = workload(&json!({"status": {"readyReplicas": broken}})).unwrap_err();
            assert!(error.starts_with("/status/readyReplicas is"), "{error}");
        }
        assert!(workload(&json!([])).is_ok());
    }

    #[test]
    fn a_pod_belongs_to_the_deployment_behind_its_replica_set() {
        let replica_set = json!({"metadata": {"name": "web-7d", "ownerReferences": [
            {"kind": "Deployment", "name": "web", "controller": true}]}});
        let deployments: BTreeMap<String, String> =
            deployment_of(&replica_set).into_iter().collect();
        let facts = pod(
            &json!({
                "metadata": {"name": "web-7d-x", "namespace": "shop", "uid": "p", "ownerReferences": [
                    {"kind": "ReplicaSet", "name": "web-7d", "controller": true}]},
                "status": {"phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [{"restartCount": 2}, {"restartCount": 1}]},
            }),
            &deployments,
        )
        .unwrap();
        assert_eq!(
            facts.owner,
            Some(("Deployment".to_owned(), "web".to_owned()))
        );
        assert_eq!(
            (facts.restarts, facts.ready, facts.terminating),
            (3, true, false)
        );
    }
}
