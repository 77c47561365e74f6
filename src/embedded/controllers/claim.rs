//! PersistentVolumeClaims: binding to volumes, the default provisioner, and what a claim says while it waits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::bootstrap::NODE;
use crate::embedded::controllers::object::{annotation, deleting, items, name, namespace, uid};
use crate::embedded::controllers::{Key, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;
use crate::embedded::world::World;

const COMPONENT: &str = "persistentvolume-controller";

/// How often all claims are looked at again; each look repeats the event of a claim that waits.
const RESYNC: Duration = Duration::from_secs(15);

/// How long the provisioner takes for a volume.
const PROVISIONING: Duration = Duration::from_secs(3);

/// The provisioner that runs in this cluster.
const PROVISIONER: &str = "rancher.io/local-path";

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let (ns, claim_name) = (key.namespace.as_str(), key.name.as_str());
    let stored = world.store.get(Kind::PersistentVolumeClaim, ns, claim_name);
    let Some(claim) = stored.cloned() else {
        return;
    };
    if claim["status"]["phase"] == "Bound" || deleting(&claim) {
        return;
    }
    if let Some(volume) = fitting_volume(world, &claim) {
        bind(world, &claim, &volume);
        return;
    }
    let class = claim["spec"]["storageClassName"]
        .as_str()
        .unwrap_or_default();
    if class.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        tell(world, &claim, false, "FailedBinding", message);
    } else if let Some(class) = world.store.get(Kind::StorageClass, "", class).cloned() {
        provision(world, key, &claim, &class);
    } else {
        let message = format!("storageclass.storage.k8s.io \"{class}\" not found");
        tell(world, &claim, true, "ProvisioningFailed", &message);
    }
    if claim["status"]["phase"] != "Pending" {
        world.update(Kind::PersistentVolumeClaim, ns, claim_name, |claim| {
            claim["status"]["phase"] = "Pending".into();
        });
    }
    let due = world.now() + RESYNC;
    wake_at(world, key, due);
}

/// Whether a class is the one that claims without a class get.
pub fn is_default(class: &Value) -> bool {
    annotation(class, DEFAULT_CLASS) == Some("true")
}

/// The smallest free volume that the claim can have.
fn fitting_volume(world: &World, claim: &Value) -> Option<Arc<Value>> {
    let amount = |value: &Value| Quantity::from_json(value).ok();
    let wanted = amount(&claim["spec"]["resources"]["requests"]["storage"])?;
    let class = |object: &Value| {
        object["spec"]["storageClassName"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    world
        .store
        .all(Kind::PersistentVolume)
        .filter(|volume| {
            let reference = &volume["spec"]["claimRef"];
            let meant =
                reference["name"] == name(claim) && reference["namespace"] == namespace(claim);
            let free = reference.is_null() && volume["status"]["phase"] != "Released";
            let named = claim["spec"]["volumeName"]
                .as_str()
                .is_none_or(|n| n == name(volume));
            (meant || free)
                && named
                && class(volume) == class(claim)
                && amount(&volume["spec"]["capacity"]["storage"]).is_some_and(|size| size >= wanted)
                && items(&claim["spec"]["accessModes"])
                    .iter()
                    .all(|mode| items(&volume["spec"]["accessModes"]).contains(mode))
        })
        .min_by_key(|volume| amount(&volume["spec"]["capacity"]["storage"]))
        .cloned()
}

fn bind(world: &mut World, claim: &Value, volume: &Value) {
    world.update(Kind::PersistentVolume, "", name(volume), |volume| {
        volume["spec"]["claimRef"] = json!({
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace(claim),
            "name": name(claim),
            "uid": uid(claim),
        });
        volume["status"]["phase"] = "Bound".into();
    });
    world.update(
        Kind::PersistentVolumeClaim,
        namespace(claim),
        name(claim),
        |claim| {
            claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
            claim["spec"]["volumeName"] = name(volume).into();
            claim["status"] = json!({
                "phase": "Bound",
                "accessModes": volume["spec"]["accessModes"],
                "capacity": volume["spec"]["capacity"],
            });
        },
    );
}

/// Waits for a pod if the class says so, then for the provisioner, if it is the one that runs here.
fn provision(world: &mut World, key: &Key, claim: &Value, class: &Value) {
    let late = class["volumeBindingMode"] == "WaitForFirstConsumer";
    if late && !wanted_by_pod(world, claim) {
        let message = "waiting for first consumer to be created before binding";
        tell(world, claim, false, "WaitForFirstConsumer", message);
        return;
    }
    let provisioner = class["provisioner"].as_str().unwrap_or_default();
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
         system administrator. If volume creation is delayed, please verify that the provisioner is running and \
         correctly registered."
    );
    if provisioner != PROVISIONER {
        tell(world, claim, false, "ExternalProvisioning", &message);
        return;
    }
    if annotation(claim, SELECTED_NODE).is_none() {
        tell(world, claim, false, "ExternalProvisioning", &message);
        world.update(
            Kind::PersistentVolumeClaim,
            namespace(claim),
            name(claim),
            |claim| {
                let annotations = &mut claim["metadata"]["annotations"];
                annotations[SELECTED_NODE] = NODE.into();
                annotations["volume.kubernetes.io/storage-provisioner"] = PROVISIONER.into();
            },
        );
        let due = world.now() + PROVISIONING;
        wake_at(world, key, due);
        return;
    }
    let volume = volume_for(claim, class);
    // The name holds the claim's uid, so it is free.
    if let Ok(volume) = world.create(Kind::PersistentVolume, volume) {
        bind(world, claim, &volume);
    }
}

fn wanted_by_pod(world: &World, claim: &Value) -> bool {
    world.store.within(Kind::Pod, namespace(claim)).any(|pod| {
        items(&pod["spec"]["volumes"])
            .iter()
            .any(|volume| volume["persistentVolumeClaim"]["claimName"] == name(claim))
    })
}

fn volume_for(claim: &Value, class: &Value) -> Value {
    let volume = format!("pvc-{}", uid(claim));
    let directory = format!("{volume}_{}_{}", namespace(claim), name(claim));
    json!({
        "metadata": {
            "name": volume,
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
            "finalizers": ["kubernetes.io/pv-protection"],
        },
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "hostPath": {
                "path": format!("/opt/local-path-provisioner/{directory}"),
                "type": "DirectoryOrCreate",
            },
            "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
            "storageClassName": name(class),
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Available"},
    })
}

fn tell(world: &mut World, claim: &Value, warning: bool, reason: &str, message: &str) {
    events::record(
        world,
        NewEvent {
            about: claim,
            field_path: None,
            warning,
            reason,
            message: message.to_owned(),
            component: COMPONENT,
            host: None,
        },
    );
}

#[cfg(test)]
mod tests;
