//! Strategic merge against what the real server makes of the same patches.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn deployment() -> Value {
    json!({"spec": {"template": {"spec": {"containers": [
        {"name": "sidecar", "image": "s:1"},
        {"name": "app", "image": "a:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
         "ports": [{"containerPort": 80, "name": "http"}], "args": ["x", "y"]},
    ], "volumes": [{"name": "v", "emptyDir": {}}]}}}})
}

fn patched(patch: Value) -> Value {
    apply(Kind::Deployment, &deployment(), &patch).unwrap()
}

fn container_patch(container: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

#[test]
fn containers_and_env_merge_by_name() {
    let result = patched(container_patch(
        json!({"name": "app", "image": "a:2", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}),
    ));
    let containers = &result["spec"]["template"]["spec"]["containers"];
    assert_eq!(names(containers), ["sidecar", "app"]);
    assert_eq!(containers[1]["image"], "a:2");
    assert_eq!(containers[1]["ports"][0]["containerPort"], 80);
    assert_eq!(names(&containers[1]["env"]), ["A", "B", "C"]);
}

#[test]
fn an_unknown_container_name_adds_a_container_in_front() {
    let result = patched(container_patch(json!({"name": "ap", "image": "a:2"})));
    let containers = &result["spec"]["template"]["spec"]["containers"];
    assert_eq!(names(containers), ["ap", "sidecar", "app"]);
}

#[test]
fn a_literal_over_a_reference_keeps_both_unless_the_reference_is_nulled() {
    let object = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "app", "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}}}});
    let both = container_patch(json!({"name": "app", "env": [{"name": "P", "value": "wrong"}]}));
    let result = apply(Kind::Deployment, &object, &both).unwrap();
    let entry = &result["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert!(entry["valueFrom"].is_object() && entry["value"] == "wrong");
    let nulled = container_patch(
        json!({"name": "app", "env": [{"name": "P", "value": "wrong", "valueFrom": null}]}),
    );
    let result = apply(Kind::Deployment, &object, &nulled).unwrap();
    let entry = &result["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!(*entry, json!({"name": "P", "value": "wrong"}));
}

#[test]
fn every_directive_works() {
    let env = |patch: Value| {
        let result = patched(container_patch(patch));
        result["spec"]["template"]["spec"]["containers"][1]["env"].clone()
    };
    let delete = env(json!({"name": "app", "env": [{"name": "A", "$patch": "delete"}]}));
    assert_eq!(delete, json!([{"name": "B", "value": "2"}]));
    let replace =
        env(json!({"name": "app", "env": [{"$patch": "replace"}, {"name": "Z", "value": "9"}]}));
    assert_eq!(replace, json!([{"name": "Z", "value": "9"}]));
    let order = env(json!({
        "name": "app", "$setElementOrder/env": [{"name": "B"}, {"name": "N"}, {"name": "A"}],
        "env": [{"name": "N", "value": "0"}],
    }));
    assert_eq!(names(&order), ["B", "N", "A"]);

    let result = patched(json!({"spec": {"template": {"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}}}));
    assert_eq!(
        result["spec"]["template"]["spec"]["volumes"],
        json!([{"name": "v", "hostPath": {"path": "/x"}}])
    );

    let object = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch =
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}});
    let result = apply(Kind::ConfigMap, &object, &patch).unwrap();
    assert_eq!(result["metadata"]["finalizers"], json!(["d", "a", "c"]));

    let whole = patched(json!({"spec": {"$patch": "replace", "replicas": 2}}));
    assert_eq!(whole, json!({"spec": {"replicas": 2}}));
    let emptied = patched(json!({"spec": {"template": {"$patch": "delete"}}}));
    assert_eq!(emptied, json!({"spec": {"template": {}}}));
}

#[test]
fn strategy_changes_type_with_retained_keys() {
    let object =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let result = apply(Kind::Deployment, &object, &patch).unwrap();
    assert_eq!(result["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn atomic_lists_are_replaced_whole() {
    let result = patched(container_patch(json!({"name": "app", "args": ["z"]})));
    assert_eq!(
        result["spec"]["template"]["spec"]["containers"][1]["args"],
        json!(["z"])
    );
}

#[test]
fn a_new_service_port_comes_first_as_recorded() {
    let service = json!({"spec": {"ports": [{"port": 80, "name": "http"}]}});
    let patch = json!({"spec": {"ports": [{"port": 443, "name": "https"}]}});
    let result = apply(Kind::Service, &service, &patch).unwrap();
    assert_eq!(names(&result["spec"]["ports"]), ["https", "http"]);
}

#[test]
fn an_element_without_its_key_is_refused() {
    let error = apply(
        Kind::Deployment,
        &deployment(),
        &container_patch(json!({"image": "x"})),
    )
    .unwrap_err();
    assert!(matches!(error, PatchError::NoMergeKey { .. }));
}

fn env_list() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_map("[a-f]", "[x-z]", 0..5).prop_flat_map(|map| {
        let list: Vec<Value> = map
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        Just(list).prop_shuffle()
    })
}

proptest! {
    /// What kubectl's edit and set commands build: changed elements, deletions and the whole order.
    #[test]
    fn a_patch_of_changes_deletions_and_order_turns_one_list_into_the_other(a in env_list(), b in env_list()) {
        let container = |env: &[Value]| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}});
        let mut env: Vec<Value> = b.iter().filter(|one| !a.contains(one)).cloned().collect();
        for gone in a.iter().filter(|one| !b.iter().any(|other| other["name"] == one["name"])) {
            env.push(json!({"name": gone["name"], "$patch": "delete"}));
        }
        let order: Vec<Value> = b.iter().map(|one| json!({"name": one["name"]})).collect();
        let patch = container_patch(json!({"name": "c", "env": env, "$setElementOrder/env": order}));
        let result = apply(Kind::Deployment, &container(&a), &patch).unwrap();
        let merged = result["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        prop_assert_eq!(merged, Value::Array(b));
    }

    /// Merging never loses or doubles an element.
    #[test]
    fn merging_by_key_keeps_every_element_once(a in env_list(), b in env_list()) {
        let object = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": a}]}}}});
        let result = apply(Kind::Deployment, &object, &container_patch(json!({"name": "c", "env": b}))).unwrap();
        let merged: Vec<String> = names(&result["spec"]["template"]["spec"]["containers"][0]["env"])
            .into_iter().map(str::to_owned).collect();
        let mut wanted: Vec<String> = a.iter().chain(&b).map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        wanted.sort();
        wanted.dedup();
        let mut sorted = merged;
        sorted.sort();
        prop_assert_eq!(sorted, wanted);
        let again = apply(Kind::Deployment, &result, &container_patch(json!({"name": "c", "env": b}))).unwrap();
        prop_assert_eq!(again, result);
    }
}
