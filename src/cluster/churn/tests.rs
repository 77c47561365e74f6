//! What is left out changes no hash, and what is not, does.

use serde_json::json;

use super::*;
use crate::cluster::state::ClusterState;

/// The hash of a state of one object.
fn hash(kind: &str, object: &Value) -> String {
    let mut state = ClusterState::default();
    state.add(kind, object);
    state.hash()
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    object.pointer_mut(parent).unwrap()[key.as_str()] = value;
    object
}

fn plain() -> Value {
    json!({"metadata": {"name": "one", "namespace": "prod", "annotations": {}, "labels": {}}, "spec": {}})
}

/// Kind, field, what a component writes there, and what a person would; null for nothing of the kind.
fn cases() -> Vec<(&'static str, &'static str, Value, Value)> {
    vec![
        (
            "Service",
            "/spec/clusterIP",
            json!("10.43.0.7"),
            json!("None"),
        ),
        (
            "Service",
            "/spec/healthCheckNodePort",
            json!(30001),
            json!(null),
        ),
        (
            "PersistentVolumeClaim",
            "/spec/volumeName",
            json!("pvc-1"),
            json!(null),
        ),
        ("Pod", "/spec/nodeName", json!("node-1"), json!(null)),
        (
            "Job",
            "/spec/selector",
            json!({"matchLabels": {"controller-uid": "u"}}),
            json!(null),
        ),
        (
            "ServiceAccount",
            "/secrets",
            json!([{"name": "one-token-abcde"}]),
            json!(null),
        ),
        (
            "Deployment",
            "/metadata/annotations/deployment.kubernetes.io~1revision",
            json!("7"),
            json!(null),
        ),
        (
            "Namespace",
            "/metadata/annotations/openshift.io~1sa.scc.uid-range",
            json!("1/2"),
            json!(null),
        ),
        (
            "Node",
            "/spec/taints",
            json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
            json!([{"key": "team", "effect": "NoExecute"}]),
        ),
        (
            "Service",
            "/metadata/finalizers",
            json!(["service.kubernetes.io/load-balancer-cleanup"]),
            json!(["example.org/hold"]),
        ),
        (
            "Deployment",
            "/metadata/annotations/team",
            json!(null),
            json!("a"),
        ),
    ]
}

#[test]
fn what_components_write_does_not_change_the_hash_and_the_same_by_a_person_does() {
    for (kind, pointer, written, set) in cases() {
        let before = hash(kind, &plain());
        if !written.is_null() {
            assert_eq!(
                before,
                hash(kind, &with(plain(), pointer, written)),
                "{kind} {pointer}"
            );
        }
        if !set.is_null() {
            assert_ne!(
                before,
                hash(kind, &with(plain(), pointer, set)),
                "{kind} {pointer}"
            );
        }
    }
    let webhook = |bundle: &str, url: &str| json!({"metadata": {"name": "w"}, "webhooks": [{"name": "a", "clientConfig": {"caBundle": bundle, "url": url}}]});
    let kind = "ValidatingWebhookConfiguration";
    assert_eq!(
        hash(kind, &webhook("a", "u")),
        hash(kind, &webhook("b", "u"))
    );
    assert_ne!(
        hash(kind, &webhook("a", "u")),
        hash(kind, &webhook("a", "v"))
    );
}

#[test]
fn what_controllers_publish_or_generate_is_no_part_of_the_state() {
    let empty = ClusterState::default().hash();
    let root = json!({"metadata": {"name": "kube-root-ca.crt", "namespace": "prod"}, "data": {"ca.crt": "x"}});
    assert_eq!(hash("ConfigMap", &root), empty);
    assert_ne!(hash("Secret", &root), empty);
    let token = |name: &str, data: &str| {
        json!({"metadata": {"name": name, "namespace": "prod",
                            "annotations": {"kubernetes.io/service-account.name": "api"}},
               "type": "kubernetes.io/service-account-token", "data": {"token": data}})
    };
    assert_eq!(hash("Secret", &token("api-token-x7f2k", "a")), empty);
    let made = hash("Secret", &token("long-lived", "a"));
    assert_ne!(made, empty, "a token that somebody asked for counts");
    assert_eq!(made, hash("Secret", &token("long-lived", "b")));
}

#[test]
fn a_reference_of_an_earlier_version_is_read_by_the_present_rules() {
    let mut now = ClusterState::default();
    now.add(
        "Node",
        &json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}}),
    );
    // As it was kept when these still counted.
    let mut kept = now.clone();
    let (key, state) = kept.objects.iter_mut().next().unwrap();
    state.content["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready"}]);
    state.content["metadata"]["annotations"] = json!({});
    let (mut published, state) = (key.clone(), state.clone());
    published.kind = "ConfigMap".to_owned();
    published.namespace = "prod".to_owned();
    published.name = "kube-root-ca.crt".to_owned();
    kept.objects.insert(published, state);
    assert_ne!(kept.hash(), now.hash());
    assert_eq!(kept.as_it_counts_now().hash(), now.hash());
    assert_eq!(now.clone().as_it_counts_now().hash(), now.hash());
}

#[test]
fn a_pod_of_a_person_is_the_same_on_another_node_with_another_token_volume() {
    let pod = |node: &str, volume: &str| {
        json!({"metadata": {"name": "p", "namespace": "prod"}, "spec": {
            "nodeName": node,
            "volumes": [{"name": volume, "projected": {}}, {"name": "data", "emptyDir": {}}],
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": volume, "mountPath": "/t"}]}]}})
    };
    let one = hash("Pod", &pod("a", "kube-api-access-aaaaa"));
    assert_eq!(one, hash("Pod", &pod("b", "kube-api-access-bbbbb")));
    assert_ne!(one, hash("Pod", &pod("a", "mine")));
}

#[test]
fn every_exclusion_stands_in_the_docs_with_its_reason() {
    let page = include_str!("../../../docs/state-hash.md");
    let tables = [ANNOTATIONS, LABELS, FINALIZERS, TAINTS, FIELDS];
    let objects = OBJECTS.iter().map(|(_, left)| left);
    let missing: Vec<String> = tables
        .into_iter()
        .flatten()
        .chain(objects)
        .map(|left| format!("| `{}` | {} |", left.what, left.why))
        .filter(|row| !page.contains(row))
        .collect();
    assert!(
        missing.is_empty(),
        "add to docs/state-hash.md:\n{}",
        missing.join("\n")
    );
}
