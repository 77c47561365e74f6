//! Roles, priorities and storage classes that every cluster has.

use serde_json::{Value, json};

use crate::embedded::bootstrap::place;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const EVERYTHING: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const READING: [&str; 3] = ["get", "list", "watch"];

pub(super) fn populate(world: &mut World) {
    roles(world);
    bindings(world);
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if \
             necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        let class = json!({
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        place(world, Kind::PriorityClass, "", class);
    }
    let class = json!({
        "metadata": {
            "name": "local-path",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "rancher.io/local-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    place(world, Kind::StorageClass, "", class);
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn role(world: &mut World, name: &str, rules: Value) {
    let role = json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": rules,
    });
    place(world, Kind::ClusterRole, "", role);
}

fn roles(world: &mut World) {
    let workloads = [
        "daemonsets",
        "deployments",
        "deployments/scale",
        "replicasets",
        "statefulsets",
    ];
    let core = [
        "configmaps",
        "endpoints",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "serviceaccounts",
        "services",
    ];
    let all = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    role(world, "cluster-admin", all);
    for name in ["admin", "edit"] {
        let rules = json!([
            rule(&[""], &core, &EVERYTHING),
            rule(
                &[""],
                &["secrets", "pods/exec", "pods/portforward"],
                &EVERYTHING
            ),
            rule(&["apps"], &workloads, &EVERYTHING),
            rule(&["batch"], &["cronjobs", "jobs"], &EVERYTHING),
        ]);
        role(world, name, rules);
    }
    let rules = json!([
        rule(&[""], &core, &READING),
        rule(&["", "events.k8s.io"], &["events"], &READING),
        rule(&["apps"], &workloads, &READING),
        rule(&["batch"], &["cronjobs", "jobs"], &READING),
    ]);
    role(world, "view", rules);
    component_roles(world);
}

fn component_roles(world: &mut World) {
    let dns = json!([
        rule(
            &[""],
            &["endpoints", "services", "pods", "namespaces"],
            &["list", "watch"]
        ),
        rule(
            &["discovery.k8s.io"],
            &["endpointslices"],
            &["list", "watch"]
        ),
    ]);
    role(world, "system:coredns", dns);
    let metrics = json!([
        rule(&[""], &["nodes/metrics"], &["get"]),
        rule(&[""], &["pods", "nodes"], &READING),
    ]);
    role(world, "system:metrics-server", metrics);
    let storage = json!([
        rule(
            &[""],
            &[
                "nodes",
                "persistentvolumeclaims",
                "configmaps",
                "pods",
                "pods/log"
            ],
            &READING
        ),
        rule(&[""], &["persistentvolumes"], &EVERYTHING),
        rule(&["storage.k8s.io"], &["storageclasses"], &READING),
    ]);
    role(world, "local-path-provisioner-role", storage);
}

fn bindings(world: &mut World) {
    let account =
        |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"});
    let masters = json!({
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:masters",
    });
    for (name, role, subject) in [
        ("cluster-admin", "cluster-admin", masters),
        ("system:coredns", "system:coredns", account("coredns")),
        (
            "system:metrics-server",
            "system:metrics-server",
            account("metrics-server"),
        ),
        (
            "local-path-provisioner-bind",
            "local-path-provisioner-role",
            account("local-path-provisioner-service-account"),
        ),
    ] {
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        });
        place(world, Kind::ClusterRoleBinding, "", binding);
    }
}
