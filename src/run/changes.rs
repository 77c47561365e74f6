//! What differs from the state before the fault, the fault itself, its repair and restarts left out. Pure.

use serde_json::Value;

use crate::cluster::state::{ClusterState, ObjectKey, below};
use crate::inject::change::{ObjectRef, Plan};
use crate::record::{StateChange, StateChangeKind};
use crate::scenario::model::{RepairStep, Scenario};

/// What `kubectl rollout restart` writes: an act of operating, not a change of configuration.
const RESTARTED_AT: &str =
    "spec.template.metadata.annotations[\"kubectl.kubernetes.io/restartedAt\"]";

/// The changes that neither the fault nor its reference repair explains.
pub fn beyond_the_fault(
    before: &ClusterState,
    after: &ClusterState,
    plan: &Plan,
    scenario: &Scenario,
) -> Vec<StateChange> {
    let mut explained: Vec<(ObjectKey, String)> = plan
        .fields()
        .map(|(object, path)| (key_of(object), path))
        .collect();
    // What the fault created differs as a whole until somebody deletes it.
    let created: Vec<ObjectKey> = plan.created.iter().map(|one| key_of(&one.object)).collect();
    for step in &scenario.reference_repair {
        explained.extend(repaired_paths(step, before));
    }
    before
        .differences(after)
        .into_iter()
        // Replica sets follow from their deployments.
        .filter(|difference| difference.key.kind != "ReplicaSet")
        .filter(|difference| {
            !(difference.what == StateChangeKind::Created && created.contains(&difference.key))
        })
        .filter(|difference| {
            let is_field = difference.what == StateChangeKind::FieldChanged;
            let known = explained
                .iter()
                .any(|(key, path)| *key == difference.key && overlap(path, &difference.path));
            !(is_field && (known || overlap(RESTARTED_AT, &difference.path)))
        })
        .map(|difference| StateChange {
            in_scope: in_scope(&difference.key, scenario),
            protected: is_protected(&difference.key, &difference.path, scenario),
            kind: difference.key.kind,
            namespace: difference.key.namespace,
            name: difference.key.name,
            what: difference.what,
            path: difference.path,
        })
        .collect()
}

/// The protected fields and objects that are not as before. An object made anew with the same content is a matter of
/// collateral damage, not of the repair.
pub fn violated(changes: &[StateChange]) -> Vec<String> {
    changes
        .iter()
        .filter(|change| change.protected && change.what != StateChangeKind::Recreated)
        .map(|change| {
            let object = format!("{} {}/{}", change.kind, change.namespace, change.name);
            match change.what {
                StateChangeKind::Deleted => format!("{object} was deleted"),
                _ => format!("{object} changed at {}", change.path),
            }
        })
        .collect()
}

fn key_of(object: &ObjectRef) -> ObjectKey {
    ObjectKey {
        kind: object.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

fn in_scope(key: &ObjectKey, scenario: &Scenario) -> bool {
    let namespace = match key.kind.as_str() {
        "Namespace" => &key.name,
        _ => &key.namespace,
    };
    scenario.scorer.scope.contains(namespace)
}

fn is_protected(key: &ObjectKey, path: &str, scenario: &Scenario) -> bool {
    scenario.protected.iter().any(|field| {
        field.kind == key.kind
            && field.namespace == key.namespace
            && field.name == key.name
            && (field.path.is_empty() || path.is_empty() || overlap(&field.path, path))
    })
}

/// Whether one path is the other or lies below it.
fn overlap(one: &str, other: &str) -> bool {
    let within = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    within(one, other) || within(other, one)
}

/// The fields that a step of the reference repair writes.
fn repaired_paths(step: &RepairStep, before: &ClusterState) -> Vec<(ObjectKey, String)> {
    let RepairStep::Patch {
        kind,
        namespace,
        name,
        body,
        ..
    } = step
    else {
        return Vec::new();
    };
    let key = ObjectKey {
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    let mut paths = Vec::new();
    match body {
        Value::Array(operations) => {
            for operation in operations {
                paths.extend(operation["path"].as_str().map(dotted_pointer));
            }
        }
        other => {
            let object = before.objects.get(&key).map(|state| &state.content);
            leaves(other, object.unwrap_or(&Value::Null), "", &mut paths);
        }
    }
    paths
        .into_iter()
        .map(|path| match path.strip_prefix("stringData") {
            Some(rest) if kind == "Secret" => (key.clone(), format!("data{rest}")),
            _ => (key.clone(), path),
        })
        .collect()
}

/// Paths of a patch, down to what it writes. The elements of a list are found in the object by their names; a list
/// without names, or of names that the object does not have, is written as a whole.
fn leaves(body: &Value, object: &Value, at: &str, found: &mut Vec<String>) {
    match body {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(value, &object[key.as_str()], &below(at, key), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let Some(indexes) = items
                .iter()
                .map(|item| position(item, object))
                .collect::<Option<Vec<_>>>()
            else {
                found.push(at.to_owned());
                return;
            };
            for (item, index) in items.iter().zip(indexes) {
                for (key, value) in item
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| *key != "name")
                {
                    let here = below(&format!("{at}[{index}]"), key);
                    leaves(value, &object[index][key.as_str()], &here, found);
                }
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Where an element of a patch's list stands in the object's list.
fn position(item: &Value, list: &Value) -> Option<usize> {
    let name = item["name"].as_str()?;
    list.as_array()?
        .iter()
        .position(|element| element["name"] == name)
}

fn dotted_pointer(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path = below(&path, &part.replace("~1", "/").replace("~0", "~"));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_overlap_only_at_whole_steps() {
        assert!(overlap("spec.template", "spec.template.spec"));
        assert!(overlap(
            "spec.containers[0].env[2].value",
            "spec.containers[0].env"
        ));
        assert!(!overlap("spec.template", "spec.templates"));
        assert!(!overlap("spec.containers[1]", "spec.containers[10]"));
    }

    #[test]
    fn a_repair_patch_names_its_fields() {
        let object =
            serde_json::json!({"spec": {"containers": [{"name": "sidecar"}, {"name": "api"}]}});
        let named = |body: Value| {
            let mut paths = Vec::new();
            leaves(&body, &object, "", &mut paths);
            paths
        };
        // The element is found by its name, so that the rest of it is not excused with the repair.
        let probe = serde_json::json!({"spec": {"replicas": 1, "containers": [{"name": "api", "probe": {"path": "/"}}]}});
        assert_eq!(
            named(probe),
            ["spec.containers[1].probe.path", "spec.replicas"]
        );
        for unnamed in [
            serde_json::json!([{}]),
            serde_json::json!([{"name": "stranger"}]),
            serde_json::json!([]),
        ] {
            assert_eq!(
                named(serde_json::json!({"spec": {"containers": unnamed}})),
                ["spec.containers"]
            );
        }
        assert_eq!(
            dotted_pointer("/spec/containers/0/resources/limits/nvidia.com~1gpu"),
            "spec.containers[0].resources.limits[\"nvidia.com/gpu\"]"
        );
    }
}
