//! What enters the state hash, and what does not.

use serde_json::json;

use super::*;

fn deployment() -> Value {
    json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "5", "generation": 1,
            "creationTimestamp": "2026-03-02T09:41:07Z", "managedFields": [{"manager": "kubectl"}],
            "labels": {"app": "web"},
            "annotations": {"deployment.kubernetes.io/revision": "1", "team": "shop"},
        },
        "spec": {
            "replicas": 1, "paused": false, "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1},
    })
}

fn hash_of(objects: &[(&str, Value)]) -> String {
    let mut state = ClusterState::default();
    for (kind, object) in objects {
        state.add(kind, object);
    }
    state.hash()
}

fn changed(path: &str, value: Value) -> Value {
    let mut object = deployment();
    *object.pointer_mut(path).unwrap() = value;
    object
}

#[test]
fn what_the_cluster_assigns_does_not_enter_the_hash() {
    let reference = hash_of(&[("Deployment", deployment())]);
    for (path, value) in [
        ("/metadata/uid", json!("u2")),
        ("/metadata/resourceVersion", json!("9")),
        ("/metadata/creationTimestamp", json!("2026-03-03T00:00:00Z")),
        ("/metadata/managedFields", json!([])),
        (
            "/metadata/annotations/deployment.kubernetes.io~1revision",
            json!("4"),
        ),
    ] {
        let hash = hash_of(&[("Deployment", changed(path, value))]);
        assert_eq!(hash, reference, "{path}");
    }
    let mut later = changed("/metadata/generation", json!(3));
    later["status"]["observedGeneration"] = json!(3);
    assert_eq!(hash_of(&[("Deployment", later)]), reference);
}

#[test]
fn every_field_that_a_person_sets_enters_the_hash() {
    let reference = hash_of(&[("Deployment", deployment())]);
    for (path, value) in [
        ("/metadata/labels/app", json!("other")),
        ("/metadata/annotations/team", json!("other")),
        ("/spec/paused", json!(true)),
        ("/spec/selector/matchLabels/app", json!("other")),
        ("/spec/template/spec/containers/0/image", json!("web:2")),
        ("/spec/template/spec/containers/0/name", json!("other")),
        ("/spec/template/spec/containers", json!([])),
    ] {
        let hash = hash_of(&[("Deployment", changed(path, value))]);
        assert_ne!(hash, reference, "{path}");
    }
    let mut scaled = changed("/spec/replicas", json!(2));
    for field in ["replicas", "updatedReplicas", "readyReplicas"] {
        scaled["status"][field] = json!(2);
    }
    assert_ne!(hash_of(&[("Deployment", scaled)]), reference);
}

#[test]
fn a_workload_that_is_not_at_rest_gives_another_hash_and_says_why() {
    let reference = hash_of(&[("Deployment", deployment())]);
    for field in [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
    ] {
        let moving = changed(&format!("/status/{field}"), json!(0));
        let mut state = ClusterState::default();
        state.add("Deployment", &moving);
        assert_ne!(state.hash(), reference, "{field}");
        assert_eq!(state.unsettled().len(), 1, "{field}");
    }
}

#[test]
fn secrets_enter_as_digests_and_every_byte_counts() {
    let secret = |value: &str| json!({"metadata": {"name": "s", "namespace": "shop"}, "data": {"KEY": value}, "type": "Opaque"});
    let one = hash_of(&[("Secret", secret("c2VjcmV0"))]);
    assert_ne!(one, hash_of(&[("Secret", secret("c2VjcmV1"))]));
    let mut state = ClusterState::default();
    state.add("Secret", &secret("c2VjcmV0"));
    assert!(!format!("{state:?}").contains("c2VjcmV0"));
}

#[test]
fn pods_of_controllers_empty_replica_sets_and_system_namespaces_do_not_count() {
    let owner = json!([{"kind": "ReplicaSet", "name": "web-1", "controller": true}]);
    let empty = hash_of(&[]);
    let ignored = [
        (
            "Pod",
            json!({"metadata": {"name": "p", "namespace": "shop", "ownerReferences": owner}}),
        ),
        (
            "ReplicaSet",
            json!({"metadata": {"name": "web-1", "namespace": "shop"}, "spec": {"replicas": 0}}),
        ),
        (
            "ConfigMap",
            json!({"metadata": {"name": "coredns", "namespace": "kube-system"}}),
        ),
        ("Namespace", json!({"metadata": {"name": "kube-system"}})),
    ];
    for (kind, object) in ignored {
        assert_eq!(hash_of(&[(kind, object)]), empty, "{kind}");
    }
    let bare = json!({"metadata": {"name": "debug", "namespace": "shop"}, "spec": {}});
    assert_ne!(hash_of(&[("Pod", bare)]), empty);
}

#[test]
fn assigned_addresses_of_services_do_not_count_but_headless_does() {
    let service = |ip: &str| {
        json!({"metadata": {"name": "web", "namespace": "shop"},
               "spec": {"clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80, "nodePort": 30001}]}})
    };
    let reference = hash_of(&[("Service", service("10.43.0.7"))]);
    assert_eq!(hash_of(&[("Service", service("10.43.0.8"))]), reference);
    assert_ne!(hash_of(&[("Service", service("None"))]), reference);
}

#[test]
fn an_object_being_deleted_or_held_by_a_finalizer_is_not_the_same() {
    let reference = hash_of(&[("Deployment", deployment())]);
    let mut deleting = deployment();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-03-02T09:41:07Z");
    assert_ne!(hash_of(&[("Deployment", deleting)]), reference);
    let mut held = deployment();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    assert_ne!(hash_of(&[("Deployment", held)]), reference);
}

#[test]
fn differences_name_the_object_and_the_deepest_path() {
    let mut before = ClusterState::default();
    before.add("Deployment", &deployment());
    before.add(
        "ConfigMap",
        &json!({"metadata": {"name": "gone", "namespace": "shop"}}),
    );
    let mut after = ClusterState::default();
    after.add(
        "Deployment",
        &changed("/spec/template/spec/containers/0/image", json!("web:2")),
    );
    after.add(
        "ConfigMap",
        &json!({"metadata": {"name": "new", "namespace": "shop"}}),
    );
    let told: Vec<String> = before
        .differences(&after)
        .iter()
        .map(|d| format!("{} {:?} {}", d.key, d.what, d.path))
        .collect();
    assert_eq!(
        told,
        [
            "ConfigMap shop/gone Deleted ",
            "ConfigMap shop/new Created ",
            "Deployment shop/web FieldChanged spec.template.spec.containers[0].image",
        ]
    );
}
