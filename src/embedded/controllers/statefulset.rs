//! The StatefulSet controller: pods with fixed names, made in order, updated in reverse order.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers::object::{
    deleting, generation, items, name, namespace, number, put_count, replicas, set_status,
};
use crate::embedded::controllers::{Key, forget, pods, retry, revisions};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const COMPONENT: &str = "statefulset-controller";

/// A StatefulSet as read at the start of a round, with its pods by ordinal and its revisions.
struct Round {
    set: Arc<Value>,
    pods: BTreeMap<i64, Arc<Value>>,
    /// Name of the revision that new pods below the partition get.
    current: String,
    /// Name of the revision of the present template.
    update: String,
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(set) = world
        .store
        .get(Kind::StatefulSet, &key.namespace, &key.name)
        .cloned()
    else {
        forget(world, key);
        return;
    };
    if deleting(&set) {
        return;
    }
    let update = revisions::of(world, &set);
    let current = set["status"]["currentRevision"]
        .as_str()
        .map_or_else(|| update.clone(), str::to_owned);
    let mine = pods::claim(world, &set, &set["spec"]["selector"]);
    let mut round = Round {
        pods: by_ordinal(&set, mine),
        set,
        current,
        update,
    };
    let outcome = step(world, &round);
    let mine = pods::claim(world, &round.set, &round.set["spec"]["selector"]);
    round.pods = by_ordinal(&round.set, mine);
    write_status(world, &round);
    if outcome.is_err() {
        retry(world, key);
    } else {
        forget(world, key);
    }
}

fn by_ordinal(set: &Value, pods: Vec<Arc<Value>>) -> BTreeMap<i64, Arc<Value>> {
    let prefix = format!("{}-", name(set));
    pods.into_iter()
        .filter_map(|pod| {
            let ordinal = name(&pod).strip_prefix(&prefix)?.parse().ok()?;
            Some((ordinal, pod))
        })
        .collect()
}

fn ordered(set: &Value) -> bool {
    set["spec"]["podManagementPolicy"] != "Parallel"
}

fn running_and_ready(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running" && pods::ready(pod)
}

/// Creates, deletes or updates; in order, one pod a round.
fn step(world: &mut World, round: &Round) -> Result<(), String> {
    let set = &round.set;
    let start = number(&set["spec"]["ordinals"]["start"]);
    let wanted = start..start + replicas(set);
    let in_order = ordered(set);
    for ordinal in wanted.clone() {
        match round.pods.get(&ordinal) {
            None => {
                create(world, round, ordinal)?;
                if in_order {
                    return Ok(());
                }
            }
            Some(pod) if pods::finished(pod) && !deleting(pod) => {
                remove(world, set, pod);
                return Ok(());
            }
            Some(pod) if in_order && (deleting(pod) || !running_and_ready(pod)) => return Ok(()),
            Some(_) => {}
        }
    }
    for (_, pod) in round.pods.iter().rev().filter(|(o, _)| !wanted.contains(o)) {
        if !deleting(pod) {
            remove(world, set, pod);
        }
        if in_order {
            return Ok(());
        }
    }
    roll(world, round, start);
    Ok(())
}

/// Deletes the last pod of an older revision, when all above it are healthy.
fn roll(world: &mut World, round: &Round, start: i64) {
    let strategy = &round.set["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return;
    }
    let partition = number(&strategy["rollingUpdate"]["partition"]);
    for ordinal in (start + partition..start + replicas(&round.set)).rev() {
        // One that was made a moment ago is not healthy yet.
        let Some(pod) = round.pods.get(&ordinal) else {
            return;
        };
        let old = pod["metadata"]["labels"][revisions::LABEL] != round.update.as_str();
        if old && !deleting(pod) {
            remove(world, &round.set, pod);
            return;
        }
        if deleting(pod) || !running_and_ready(pod) {
            return;
        }
    }
}

fn create(world: &mut World, round: &Round, ordinal: i64) -> Result<(), String> {
    let set = &round.set;
    let pod_name = format!("{}-{ordinal}", name(set));
    let start = number(&set["spec"]["ordinals"]["start"]);
    let partition = number(&set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
    let updated = round.current == round.update || ordinal >= start + partition;
    let (revision, template) = if updated {
        (&round.update, set["spec"]["template"].clone())
    } else {
        let stored = world
            .store
            .get(Kind::ControllerRevision, namespace(set), &round.current);
        let template = stored.map(|revision| revision["data"]["spec"]["template"].clone());
        (
            &round.current,
            template.unwrap_or_else(|| set["spec"]["template"].clone()),
        )
    };
    let mut pod = pods::from_template(set, &template);
    pod["metadata"]["name"] = pod_name.as_str().into();
    let labels = &mut pod["metadata"]["labels"];
    labels["apps.kubernetes.io/pod-index"] = ordinal.to_string().into();
    labels[revisions::LABEL] = revision.as_str().into();
    labels["statefulset.kubernetes.io/pod-name"] = pod_name.as_str().into();
    pod["spec"]["hostname"] = pod_name.as_str().into();
    if let Some(service) = set["spec"]["serviceName"].as_str() {
        pod["spec"]["subdomain"] = service.into();
    }
    claims(world, set, &mut pod, &pod_name);
    let outcome = pods::store_pod(world, pod);
    let set_name = name(set);
    let (warning, reason, message) = match &outcome {
        Ok(_) => (
            false,
            "SuccessfulCreate",
            format!("create Pod {pod_name} in StatefulSet {set_name} successful"),
        ),
        Err(error) => (
            true,
            "FailedCreate",
            format!("create Pod {pod_name} in StatefulSet {set_name} failed error: {error}"),
        ),
    };
    tell(world, set, warning, reason, message);
    outcome.map(|_| ())
}

/// Makes the claims of a pod's volume templates and mounts them.
fn claims(world: &mut World, set: &Value, pod: &mut Value, pod_name: &str) {
    let ns = namespace(set);
    let mut volumes = items(&pod["spec"]["volumes"]).to_vec();
    for template in items(&set["spec"]["volumeClaimTemplates"]) {
        let claim = format!("{}-{pod_name}", name(template));
        volumes.retain(|volume| volume["name"] != template["metadata"]["name"]);
        volumes.push(json!({
            "name": name(template),
            "persistentVolumeClaim": {"claimName": claim},
        }));
        if world
            .store
            .get(Kind::PersistentVolumeClaim, ns, &claim)
            .is_none()
        {
            let mut object = json!({"metadata": {"name": claim}, "spec": template["spec"]});
            object["metadata"]["labels"] = set["spec"]["selector"]["matchLabels"].clone();
            let options = WriteOptions::of(pods::MANAGER);
            // A refused claim shows at the pod, which then waits for it.
            if write::create(world, Kind::PersistentVolumeClaim, ns, object, &options).is_ok() {
                let message = format!(
                    "create Claim {claim} Pod {pod_name} in StatefulSet {} success",
                    name(set)
                );
                tell(world, set, false, "SuccessfulCreate", message);
            }
        }
    }
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = volumes.into();
    }
}

fn remove(world: &mut World, set: &Value, pod: &Value) {
    pods::delete(world, pod);
    let message = format!(
        "delete Pod {} in StatefulSet {} successful",
        name(pod),
        name(set)
    );
    tell(world, set, false, "SuccessfulDelete", message);
}

fn tell(world: &mut World, set: &Value, warning: bool, reason: &str, message: String) {
    events::record(
        world,
        NewEvent {
            about: set,
            field_path: None,
            warning,
            reason,
            message,
            component: COMPONENT,
            host: None,
        },
    );
}

fn write_status(world: &mut World, round: &Round) {
    let now = world.now();
    let set = &round.set;
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let count = |test: &dyn Fn(&Value) -> bool| -> i64 {
        round.pods.values().filter(|pod| test(pod)).count() as i64
    };
    let of = |revision: &str| {
        count(&|pod| !deleting(pod) && pod["metadata"]["labels"][revisions::LABEL] == revision)
    };
    let total = count(&|_| true);
    let ready = count(&|pod| running_and_ready(pod));
    let available = count(&|pod| running_and_ready(pod) && pods::available(pod, min_ready, now));
    let updated = of(&round.update);
    let mut current = (round.current.as_str(), of(&round.current));
    if updated == total && ready == total && total == replicas(set) {
        current = (round.update.as_str(), updated);
    }
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), generation(set).into());
    status.insert("replicas".to_owned(), total.into());
    put_count(&mut status, "readyReplicas", ready);
    put_count(&mut status, "currentReplicas", current.1);
    put_count(&mut status, "updatedReplicas", updated);
    status.insert("currentRevision".to_owned(), current.0.into());
    status.insert("updateRevision".to_owned(), round.update.as_str().into());
    status.insert("collisionCount".to_owned(), 0.into());
    status.insert("availableReplicas".to_owned(), available.into());
    set_status(world, Kind::StatefulSet, set, status.into());
}

#[cfg(test)]
mod tests;
