//! The namespace life cycle: what every namespace gets, and how one goes away with everything in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::api::delete::{self, DeleteOptions};
use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers::object::{deleting, items, name, time};
use crate::embedded::controllers::{Key, pods, wake_at};
use crate::embedded::kind::{KINDS, Kind};
use crate::embedded::world::World;

/// How long the contents of a deleted namespace are left alone, so that requests under way can end.
const DELETION_DELAY: Duration = Duration::from_secs(5);

const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// The finalizer that holds a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

/// The certificate of the cluster's authority. Its key was thrown away: nothing here speaks TLS.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUR/Pvgo6dymZKEAVOsYyy5Vq6Sn4wCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAeFw0yNjExMzAyMzA4MzRaFw0zNjExMjcy
MzA4MzRaMBUxEzARBgNVBAMMCmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR21J3PjKfszxVk5+um0xazCh2u87FSVdJDWYo7S/ZGP2i0M1YQ9ZBm
EfE5Mk4COh23A00GX84gikbqfPd+CL+jo1MwUTAdBgNVHQ4EFgQU28AhGutXRTu8
k7pD6eJ+IERAXSEwHwYDVR0jBBgwFoAU28AhGutXRTu8k7pD6eJ+IERAXSEwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA1WiZ9eD9YkyiqM0pB36c
zLL2owPfPggHH00iZlstzRcCIFTt2y6rIPW5ZhuFtiepzxCm6sh8HO48Hk478hq9
+wek
-----END CERTIFICATE-----
";

/// The ConfigMap with the cluster's root certificate that every namespace holds.
pub(in crate::embedded) fn root_certificate() -> Value {
    json!({
        "metadata": {
            "name": ROOT_CERTIFICATE,
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver \
                 when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other \
                 usage is guaranteed across distributions of Kubernetes clusters.",
            },
        },
        "data": {"ca.crt": CERTIFICATE},
    })
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(namespace) = world.store.get(Kind::Namespace, "", &key.name).cloned() else {
        return;
    };
    if deleting(&namespace) {
        let began = time(&namespace["metadata"]["deletionTimestamp"]).unwrap_or_default();
        let due = began + DELETION_DELAY;
        if due > world.now() {
            wake_at(world, key, due);
        } else {
            terminate(world, &namespace);
        }
        return;
    }
    let options = WriteOptions::of(pods::MANAGER);
    for (kind, wanted) in [
        (
            Kind::ServiceAccount,
            json!({"metadata": {"name": "default"}}),
        ),
        (Kind::ConfigMap, root_certificate()),
    ] {
        if world.store.get(kind, &key.name, name(&wanted)).is_none() {
            // Refused only when the namespace is going away, and then it is not wanted.
            let _ = write::create(world, kind, &key.name, wanted, &options);
        }
    }
}

/// Deletes what is left; when nothing is, lets the namespace go.
fn terminate(world: &mut World, namespace: &Value) {
    let ns = name(namespace);
    let mut left: Vec<(Kind, Arc<Value>)> = Vec::new();
    for info in KINDS.iter().filter(|info| info.namespaced) {
        left.extend(
            world
                .store
                .within(info.kind, ns)
                .map(|o| (info.kind, o.clone())),
        );
    }
    for (kind, object) in &left {
        if !deleting(object) {
            let _ = delete::delete(world, *kind, ns, name(object), &DeleteOptions::default());
        }
    }
    left.retain(|(kind, object)| world.store.get(*kind, ns, name(object)).is_some());
    if left.is_empty() {
        release(world, namespace);
        return;
    }
    let conditions = conditions(world, namespace, &left);
    world.update(Kind::Namespace, "", ns, |stored| {
        stored["status"] = json!({"phase": "Terminating", "conditions": conditions});
    });
}

fn release(world: &mut World, namespace: &Value) {
    let ns = name(namespace);
    world.update(Kind::Namespace, "", ns, |stored| {
        let kept: Vec<Value> = items(&stored["spec"]["finalizers"])
            .iter()
            .filter(|finalizer| **finalizer != FINALIZER)
            .cloned()
            .collect();
        stored["spec"]["finalizers"] = kept.into();
    });
    let free = world
        .store
        .get(Kind::Namespace, "", ns)
        .is_some_and(|stored| {
            items(&stored["spec"]["finalizers"]).is_empty()
                && items(&stored["metadata"]["finalizers"]).is_empty()
        });
    if free {
        // It was there a line ago.
        let _ = world.store.remove(Kind::Namespace, "", ns);
    }
}

/// The three conditions that tell of failures, of which there are none here.
const FINE: [(&str, &str, &str); 3] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
];

/// What a namespace that is going away says about what still holds it.
fn conditions(world: &World, namespace: &Value, left: &[(Kind, Arc<Value>)]) -> Vec<Value> {
    let remaining = describe(left, |count, kind| {
        let info = kind.info();
        format!(
            "{}.{} has {count} resource instances",
            info.plural, info.group
        )
    });
    let mut conditions: Vec<Value> = FINE
        .iter()
        .map(|(kind, reason, message)| condition(world, namespace, kind, "False", reason, message))
        .collect();
    let message = format!("Some resources are remaining: {}", remaining.join(", "));
    let (kind, reason) = ("NamespaceContentRemaining", "SomeResourcesRemain");
    conditions.push(condition(world, namespace, kind, "True", reason, &message));
    let held = finalizers(left);
    let kind = "NamespaceFinalizersRemaining";
    conditions.push(if held.is_empty() {
        let message = "All content-preserving finalizers finished";
        condition(
            world,
            namespace,
            kind,
            "False",
            "ContentHasNoFinalizers",
            message,
        )
    } else {
        let message = format!(
            "Some content in the namespace has finalizers remaining: {}",
            held.join(", ")
        );
        condition(
            world,
            namespace,
            kind,
            "True",
            "SomeFinalizersRemain",
            &message,
        )
    });
    conditions
}

fn condition(
    world: &World,
    namespace: &Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> Value {
    let before = items(&namespace["status"]["conditions"])
        .iter()
        .find(|c| c["type"] == kind && c["status"] == status)
        .map(|c| c["lastTransitionTime"].clone());
    json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": before.unwrap_or_else(|| world.now().seconds_text().into()),
        "reason": reason,
        "message": message,
    })
}

/// The finalizers of what is left, with the number of objects that each holds.
fn finalizers(left: &[(Kind, Arc<Value>)]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finalizer in left
        .iter()
        .flat_map(|(_, object)| items(&object["metadata"]["finalizers"]))
    {
        *counts
            .entry(finalizer.as_str().unwrap_or_default())
            .or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect()
}

fn describe(left: &[(Kind, Arc<Value>)], text: impl Fn(usize, Kind) -> String) -> Vec<String> {
    let mut texts: Vec<String> = KINDS
        .iter()
        .filter_map(|info| {
            let count = left.iter().filter(|(kind, _)| *kind == info.kind).count();
            (count > 0).then(|| text(count, info.kind))
        })
        .collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests;
