//! Revisions: finding the ReplicaSet of a template, numbering it, making it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers::deployment::{
    DESIRED, HISTORY, MAX, REVISION, Rollout, has_deadline, status, tell,
};
use crate::embedded::controllers::object::{
    annotation, condition, controlled_by, name, namespace, number, owner_reference, uid,
};
use crate::embedded::controllers::{Controller, enqueue, pods, rollout};
use crate::embedded::kind::Kind;
use crate::embedded::world::{SAFE_LETTERS, World};

const HASH_LABEL: &str = "pod-template-hash";

/// Annotations of a Deployment that its ReplicaSets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// Whether two pod templates are the same but for the label that tells ReplicaSets apart.
pub(super) fn same_template(of_set: &Value, of_deployment: &Value) -> bool {
    without_hash(of_set) == without_hash(of_deployment)
}

fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(meta) = template["metadata"].as_object_mut() {
        meta.remove("creationTimestamp");
        if let Some(labels) = meta.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(HASH_LABEL);
        }
    }
    template
}

/// A ReplicaSet's revision, 0 when it has none.
pub(super) fn number_of(rs: &Value) -> i64 {
    annotation(rs, REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// Gives the current ReplicaSet, if there is one, the highest revision and the Deployment's annotations.
pub(super) fn sync(world: &mut World, rollout: &mut Rollout) {
    let Some(new) = rollout.new.clone() else {
        return;
    };
    let revision = 1 + rollout
        .old
        .iter()
        .map(|rs| number_of(rs))
        .max()
        .unwrap_or(0);
    let annotations = annotations_for(&rollout.deployment, &new, revision);
    let min_ready = rollout.deployment["spec"]["minReadySeconds"].clone();
    world.update(Kind::ReplicaSet, namespace(&new), name(&new), |rs| {
        rs["metadata"]["annotations"] = annotations.into();
        if number(&rs["spec"]["minReadySeconds"]) != number(&min_ready) {
            rs["spec"]["minReadySeconds"] = min_ready;
        }
    });
    rollout.refresh(world);
    let revision = rollout.new.as_deref().map_or(revision, number_of);
    number_deployment(world, rollout, revision);
    if has_deadline(&rollout.deployment) && condition(&rollout.deployment, "Progressing").is_none()
    {
        let message = format!("Found new replica set \"{}\"", name(&new));
        status::set_condition(
            world,
            rollout,
            "Progressing",
            "True",
            "FoundNewReplicaSet",
            &message,
        );
    }
}

/// As `sync`, and makes the ReplicaSet when there is none.
pub(in crate::embedded::controllers) fn sync_or_create(world: &mut World, rollout: &mut Rollout) {
    if rollout.new.is_some() {
        sync(world, rollout);
    } else {
        create(world, rollout);
    }
}

fn annotations_for(deployment: &Value, rs: &Value, revision: i64) -> Map<String, Value> {
    let mut annotations = rs["metadata"]["annotations"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (key, value) in deployment["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if !NOT_COPIED.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let before = annotation(rs, REVISION).unwrap_or_default().to_owned();
    if before.parse::<i64>().unwrap_or(0) < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string().into());
        if !before.is_empty() {
            let history = match annotation(rs, HISTORY) {
                Some(earlier) if !earlier.is_empty() => format!("{earlier},{before}"),
                _ => before,
            };
            annotations.insert(HISTORY.to_owned(), history.into());
        }
    }
    annotations
}

fn number_deployment(world: &mut World, rollout: &mut Rollout, revision: i64) {
    let revision = revision.to_string();
    if annotation(&rollout.deployment, REVISION) == Some(revision.as_str()) {
        return;
    }
    let deployment = rollout.deployment.clone();
    world.update(
        Kind::Deployment,
        namespace(&deployment),
        name(&deployment),
        |d| {
            d["metadata"]["annotations"][REVISION] = revision.into();
        },
    );
    rollout.refresh(world);
}

fn create(world: &mut World, rollout: &mut Rollout) {
    let deployment = rollout.deployment.clone();
    let template = &deployment["spec"]["template"];
    let collisions = number(&deployment["status"]["collisionCount"]);
    let hash = template_hash(template, collisions);
    let rs_name = format!("{}-{hash}", name(&deployment));
    let revision = 1 + rollout
        .old
        .iter()
        .map(|rs| number_of(rs))
        .max()
        .unwrap_or(0);
    let mut labeled = without_hash(template);
    labeled["metadata"]["labels"][HASH_LABEL] = hash.as_str().into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH_LABEL] = hash.as_str().into();
    let mut annotations = annotations_for(&deployment, &json!({}), revision);
    let size = rollout::new_size(rollout, 0);
    rollout::note_sizes(rollout, &mut annotations);
    let mut rs = json!({
        "metadata": {
            "name": rs_name,
            "namespace": namespace(&deployment),
            "labels": labeled["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [owner_reference(&deployment)],
        },
        "spec": {"replicas": size, "selector": selector, "template": labeled},
    });
    let min_ready = number(&deployment["spec"]["minReadySeconds"]);
    if min_ready > 0 {
        rs["spec"]["minReadySeconds"] = min_ready.into();
    }
    let ns = namespace(&deployment);
    let options = WriteOptions::of(pods::MANAGER);
    let created = match write::create(world, Kind::ReplicaSet, ns, rs, &options) {
        Ok(created) => created,
        Err(status) if status.reason == "AlreadyExists" => {
            collided(world, rollout, &rs_name, collisions);
            return;
        }
        Err(_) => return,
    };
    rollout.new = Some(created);
    if size > 0 {
        let message = format!("Scaled up replica set {rs_name} from 0 to {size}");
        tell(world, &deployment, "ScalingReplicaSet", message);
    }
    number_deployment(world, rollout, revision);
    if has_deadline(&rollout.deployment) {
        let message = format!("Created new replica set \"{rs_name}\"");
        status::set_condition(
            world,
            rollout,
            "Progressing",
            "True",
            "NewReplicaSetCreated",
            &message,
        );
    }
}

/// The name is taken by another template with the same hash: count it, the next round hashes anew.
fn collided(world: &mut World, rollout: &mut Rollout, taken: &str, collisions: i64) {
    let deployment = rollout.deployment.clone();
    let ns = namespace(&deployment);
    let mine = world
        .store
        .get(Kind::ReplicaSet, ns, taken)
        .is_some_and(|rs| {
            controlled_by(rs, uid(&deployment))
                && same_template(&rs["spec"]["template"], &deployment["spec"]["template"])
        });
    if mine {
        return;
    }
    world.update(Kind::Deployment, ns, name(&deployment), |d| {
        d["status"]["collisionCount"] = (collisions + 1).into();
    });
    rollout.refresh(world);
    enqueue(world, Controller::Deployment, ns, name(&deployment));
}

/// A short hash of a template; equal templates have equal hashes, whatever the order of their fields.
fn template_hash(template: &Value, collisions: i64) -> String {
    let mut text = sorted(&without_hash(template)).to_string();
    if collisions > 0 {
        text.push_str(&collisions.to_string());
    }
    safe_hash(text.as_bytes())
}

/// A 32-bit FNV-1a hash, its decimal digits put into letters that make no words.
pub(in crate::embedded::controllers) fn safe_hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    hash.to_string()
        .bytes()
        .map(|digit| char::from(SAFE_LETTERS[usize::from(digit) % SAFE_LETTERS.len()]))
        .collect()
}

/// The same value with all maps in key order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect::<Map<String, Value>>()
                .into()
        }
        Value::Array(list) => list.iter().map(sorted).collect::<Vec<Value>>().into(),
        other => other.clone(),
    }
}

/// The pods of a Deployment's ReplicaSets other than the current one that are not finished.
pub(in crate::embedded::controllers) fn old_pods_left(world: &World, rollout: &Rollout) -> bool {
    let old: Vec<&str> = rollout.old.iter().map(|rs: &Arc<Value>| uid(rs)).collect();
    world
        .store
        .within(Kind::Pod, namespace(&rollout.deployment))
        .any(|pod| !pods::finished(pod) && old.iter().any(|uid| controlled_by(pod, uid)))
}
