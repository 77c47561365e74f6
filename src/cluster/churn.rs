//! What the parts of a cluster write by themselves, and is therefore no part of its state. Every line has its reason.
//!
//! Pure tables and the functions that apply them. A field that a person can set counts unless it stands here:
//! leaving out too little closes clusters over nothing, leaving out too much overlooks what an agent did. The tables are
//! told in `docs/state-hash.md`, which a test compares.

use serde_json::{Map, Value};

/// Something that is left out, and why.
pub struct Left {
    pub what: &'static str,
    pub why: &'static str,
}

const fn left(what: &'static str, why: &'static str) -> Left {
    Left { what, why }
}

/// Annotations that controllers write. One that ends in `/` or `.` stands for all that begin so.
pub const ANNOTATIONS: &[Left] = &[
    left(
        "deployment.kubernetes.io/",
        "the Deployment controller numbers rollouts and notes replica counts; the revision itself is compared apart",
    ),
    left(
        "deprecated.daemonset.template.generation",
        "the DaemonSet controller counts template changes",
    ),
    left(
        "pv.kubernetes.io/bind-completed",
        "the volume binder notes that it is done",
    ),
    left(
        "pv.kubernetes.io/bound-by-controller",
        "the volume binder notes that it chose the volume",
    ),
    left(
        "volume.beta.kubernetes.io/storage-provisioner",
        "the volume controller names who provisions",
    ),
    left(
        "volume.kubernetes.io/storage-provisioner",
        "the volume controller names who provisions",
    ),
    left(
        "volume.kubernetes.io/selected-node",
        "the scheduler names the node that a volume is made for",
    ),
    left(
        "autoscaling.alpha.kubernetes.io/",
        "the autoscaler keeps its conditions and metrics there for old versions of its API",
    ),
    left(
        "control-plane.alpha.kubernetes.io/leader",
        "elections of leaders write it every few seconds",
    ),
    left(
        "endpoints.kubernetes.io/",
        "the endpoints controller notes when something last changed",
    ),
    left(
        "kubernetes.io/service-account.uid",
        "the token controller ties a token to a generated uid",
    ),
    left(
        "batch.kubernetes.io/job-tracking",
        "the Job controller of older versions marks what it tracks",
    ),
    left(
        "cni.projectcalico.org/",
        "the network plugin notes a pod's addresses",
    ),
    left(
        "k8s.v1.cni.cncf.io/network-status",
        "the network plugin notes a pod's addresses",
    ),
    left(
        "openshift.io/sa.scc.",
        "a controller gives every namespace its ranges of user ids",
    ),
    left(
        "field.cattle.io/",
        "Rancher notes projects and endpoints on what it finds",
    ),
    left(
        "lifecycle.cattle.io/",
        "Rancher notes which of its controllers have seen an object",
    ),
    left(
        "cattle.io/status",
        "Rancher notes its progress in a namespace",
    ),
];

/// Labels that controllers write.
pub const LABELS: &[Left] = &[
    left(
        "controller-uid",
        "a Job's pods are found by a generated uid",
    ),
    left(
        "batch.kubernetes.io/controller-uid",
        "a Job's pods are found by a generated uid",
    ),
];

/// Finalizers that come and go with what an object is used for.
pub const FINALIZERS: &[Left] = &[
    left(
        "service.kubernetes.io/load-balancer-cleanup",
        "a cloud's controller puts it on a Service once it has made a balancer",
    ),
    left(
        "foregroundDeletion",
        "the deletion itself, which is noted as such",
    ),
];

/// Taints that tell a node's condition. One that a person sets counts, and so does a cordon.
pub const TAINTS: &[Left] = &[
    left(
        "node.kubernetes.io/",
        "the node controller writes a node's conditions as taints; a cordon stands in spec.unschedulable too",
    ),
    left(
        "node.cloudprovider.kubernetes.io/",
        "a cloud's controller marks nodes that it has not set up yet",
    ),
];

/// Objects that controllers put into every namespace and put back when they are taken away, by kind and name.
pub const OBJECTS: &[(&str, Left)] = &[
    (
        "ConfigMap",
        left(
            "kube-root-ca.crt",
            "the certificate publisher writes it into every namespace, some moments after the namespace is made",
        ),
    ),
    (
        "ConfigMap",
        left(
            "openshift-service-ca.crt",
            "OpenShift's certificate publisher does the same",
        ),
    ),
    (
        "ConfigMap",
        left(
            "istio-ca-root-cert",
            "a service mesh's certificate publisher does the same",
        ),
    ),
];

/// Fields of a kind that are assigned or follow from the rest.
pub const FIELDS: &[Left] = &[
    left(
        "status",
        "what is, not what should be; whether workloads are at rest is read from it",
    ),
    left(
        "metadata: uid, resourceVersion, generation, creationTimestamp, managedFields, ownerReferences, selfLink",
        "the server's own book-keeping; a recreated object is told by its uid, outside the hash",
    ),
    left(
        "Service: spec.clusterIP, spec.clusterIPs",
        "assigned, unless it is `None`, which is a choice",
    ),
    left(
        "Service: spec.ports[].nodePort, spec.healthCheckNodePort",
        "assigned",
    ),
    left(
        "PersistentVolumeClaim: spec.volumeName",
        "assigned when it is bound",
    ),
    left(
        "ServiceAccount: secrets",
        "the token controller of versions before 1.24 adds a generated name",
    ),
    left(
        "Secret of type kubernetes.io/service-account-token: data",
        "the token controller signs it anew for every uid",
    ),
    left(
        "Secret of that type named after its account with five letters behind",
        "versions before 1.24 make one for every account",
    ),
    left(
        "Pod: spec.nodeName, kube-api-access volumes and their mounts",
        "where it was put, and a generated name",
    ),
    left(
        "Job: spec.selector, unless manualSelector",
        "a generated uid",
    ),
    left(
        "webhooks[].clientConfig.caBundle",
        "certificate controllers rotate it",
    ),
    left(
        "Node: annotations, spec.taints of the table below",
        "the node's agents write there at any time",
    ),
    left(
        "spec.replicas above 0 of what a HorizontalPodAutoscaler scales",
        "the autoscaler writes it; 0 is a person's, for it stops the autoscaler",
    ),
    left(
        "ReplicaSet without replicas",
        "old revisions stay; the length of the history is compared by the revision",
    ),
    left(
        "Pod and Job with a controller",
        "they follow from it and it remakes them",
    ),
];

fn listed(table: &[Left], name: &str) -> bool {
    table
        .iter()
        .any(|left| match left.what.strip_suffix(['/', '.']) {
            Some(_) => name.starts_with(left.what),
            None => name == left.what,
        })
}

/// Whether controllers put an object there, whoever takes it away.
pub fn is_published(kind: &str, name: &str) -> bool {
    OBJECTS
        .iter()
        .any(|(of, left)| *of == kind && left.what == name)
}

/// Whether a Secret is a token that the server made unasked, as versions before 1.24 did.
pub fn is_generated_token(object: &Value) -> bool {
    let meta = &object["metadata"];
    let account = meta["annotations"]["kubernetes.io/service-account.name"].as_str();
    let name = meta["name"].as_str().unwrap_or_default();
    let generated = account.and_then(|account| name.strip_prefix(account)?.strip_prefix("-token-"));
    is_token(object) && generated.is_some_and(|letters| letters.len() == 5)
}

fn is_token(object: &Value) -> bool {
    object["type"] == "kubernetes.io/service-account-token"
}

/// An object without what the cluster's parts write on it. Status and book-keeping are the caller's to leave out.
pub fn without(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| kind != "Node" && !listed(ANNOTATIONS, key));
    }
    drop_labels(&mut object["metadata"]);
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|one| !one.as_str().is_some_and(|name| listed(FINALIZERS, name)));
    }
    if is_token(&object) {
        drop_fields(&mut object, &["data"]);
    }
    match kind {
        "ServiceAccount" => drop_fields(&mut object, &["secrets"]),
        "Service" => service(&mut object["spec"]),
        "PersistentVolumeClaim" => drop_fields(&mut object["spec"], &["volumeName"]),
        "Node" => node(&mut object["spec"]),
        "Pod" => pod(&mut object["spec"]),
        "Job" => job(&mut object["spec"]),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                drop_fields(&mut webhook["clientConfig"], &["caBundle"]);
            }
        }
        _ => {}
    }
    object
}

fn drop_fields(value: &mut Value, fields: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !fields.contains(&key.as_str()));
    }
}

fn drop_labels(meta: &mut Value) {
    if let Some(labels) = meta.get_mut("labels").and_then(Value::as_object_mut) {
        labels.retain(|key, _| !listed(LABELS, key));
    }
}

fn service(spec: &mut Value) {
    // `None` is a choice, an address is an assignment.
    if spec["clusterIP"] != "None" {
        drop_fields(spec, &["clusterIP", "clusterIPs"]);
    }
    drop_fields(spec, &["healthCheckNodePort"]);
    if let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) {
        for port in ports {
            drop_fields(port, &["nodePort"]);
        }
    }
}

fn node(spec: &mut Value) {
    let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) else {
        return;
    };
    taints.retain(|taint| !taint["key"].as_str().is_some_and(|key| listed(TAINTS, key)));
    if taints.is_empty() {
        drop_fields(spec, &["taints"]);
    }
}

fn pod(spec: &mut Value) {
    drop_fields(spec, &["nodeName"]);
    let generated = |volume: &Value| {
        let name = volume["name"].as_str().unwrap_or_default();
        name.starts_with("kube-api-access-")
    };
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| !generated(volume));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(mounts) = container
                .get_mut("volumeMounts")
                .and_then(Value::as_array_mut)
            {
                mounts.retain(|mount| !generated(mount));
            }
        }
    }
}

fn job(spec: &mut Value) {
    if spec["manualSelector"] != true {
        drop_fields(spec, &["selector"]);
    }
    if let Some(meta) = spec.get_mut("template").and_then(|t| t.get_mut("metadata")) {
        drop_labels(meta);
    }
}

/// What stands for a number of replicas that an autoscaler writes.
pub fn scaled(content: &mut Value) {
    let Some(spec) = content.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("replicas").and_then(Value::as_i64) != Some(0) {
        spec.insert(
            "replicas".to_owned(),
            Value::from("as its autoscaler wants"),
        );
    }
}

/// Whether a map, list or scalar says nothing.
pub fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Object(map) => Map::is_empty(map),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

#[cfg(test)]
mod tests;
