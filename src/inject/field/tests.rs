//! Paths, comparisons and guarded patches.

use super::*;

fn key(text: &str) -> PathStep {
    PathStep::Key(text.to_owned())
}

fn pod_spec() -> Value {
    json!({
        "metadata": {"uid": "u", "annotations": {"example.com/role": "web", "other": "x"}},
        "spec": {"containers": [
            {"name": "sidecar", "image": "proxy:1"},
            {"name": "app", "image": "app:1", "env": [{"name": "DB_PASS", "valueFrom": {"secretKeyRef": {}}}]},
        ]},
    })
}

#[test]
fn containers_are_found_by_name_and_by_index() {
    let object = pod_spec();
    for step in [
        PathStep::Named("app".to_owned()),
        key("app"),
        PathStep::Index(1),
    ] {
        let path = resolve(
            &object,
            &[key("spec"), key("containers"), step, key("image")],
        )
        .unwrap();
        assert_eq!(value_at(&object, &path), Some(&json!("app:1")));
        assert_eq!(pointer(&path), "/spec/containers/1/image");
    }
}

#[test]
fn an_unknown_name_lists_the_names_that_exist() {
    let path = [
        key("spec"),
        key("containers"),
        PathStep::Named("ap".to_owned()),
    ];
    let error = resolve(&pod_spec(), &path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.containers has no element named ap; there are sidecar, app"
    );
}

#[test]
fn an_index_beyond_the_list_and_a_field_of_a_plain_value_are_refused() {
    let object = pod_spec();
    let beyond = [key("spec"), key("containers"), PathStep::Index(2)];
    assert!(matches!(
        resolve(&object, &beyond),
        Err(PathError::NoSuchIndex { length: 2, .. })
    ));
    let below = [key("metadata"), key("uid"), key("x")];
    assert!(matches!(
        resolve(&object, &below),
        Err(PathError::NotAnObject { .. })
    ));
    let into = [key("metadata"), PathStep::Index(0)];
    assert!(matches!(
        resolve(&object, &into),
        Err(PathError::NotAList { .. })
    ));
}

#[test]
fn slashes_and_tildes_are_escaped_and_neighbours_survive() {
    let object = pod_spec();
    let path = resolve(
        &object,
        &[key("metadata"), key("annotations"), key("example.com/role")],
    )
    .unwrap();
    assert_eq!(pointer(&path), "/metadata/annotations/example.com~1role");
    assert_eq!(pointer(&[Step::Key("a~1b".to_owned())]), "/a~01b");
    let mut edit = Edit::of(&object);
    edit.put(&path, None, 0);
    assert_eq!(
        edit.result()["metadata"]["annotations"],
        json!({"other": "x"})
    );
    assert_eq!(dotted(&path), "metadata.annotations[\"example.com/role\"]");
}

#[test]
fn ancestors_that_are_absent_are_made_and_go_again_when_left_empty() {
    let object = json!({"metadata": {"uid": "u"}, "spec": {}});
    let path = resolve(&object, &[key("metadata"), key("annotations"), key("a/b")]).unwrap();
    let made = missing_ancestors(&object, &path);
    assert_eq!(made, 1);
    let mut add = Edit::of(&object);
    add.put(&path, Some(&json!("x")), made);
    assert_eq!(
        add.operations.last().unwrap(),
        &json!({"op": "add", "path": "/metadata/annotations", "value": {"a/b": "x"}})
    );
    let changed = add.result().clone();
    let mut back = Edit::of(&changed);
    back.put(&path, None, made);
    assert_eq!(back.result(), &object);
    let mut shared = changed;
    shared["metadata"]["annotations"]["theirs"] = json!("y");
    let mut back = Edit::of(&shared);
    back.put(&path, None, made);
    assert_eq!(
        back.result()["metadata"]["annotations"],
        json!({"theirs": "y"})
    );
}

#[test]
fn every_write_is_guarded_by_uid_element_name_and_old_value() {
    let object = pod_spec();
    let path = resolve(
        &object,
        &[key("spec"), key("containers"), key("app"), key("image")],
    )
    .unwrap();
    let mut edit = Edit::of(&object);
    edit.put(&path, Some(&json!("app:2")), 0);
    assert_eq!(
        edit.operations,
        [
            json!({"op": "test", "path": "/metadata/uid", "value": "u"}),
            json!({"op": "test", "path": "/spec/containers/1/name", "value": "app"}),
            json!({"op": "test", "path": "/spec/containers/1/image", "value": "app:1"}),
            json!({"op": "replace", "path": "/spec/containers/1/image", "value": "app:2"}),
        ]
    );
}

#[test]
fn a_reordered_list_is_found_again_by_name() {
    let object = pod_spec();
    let path = resolve(
        &object,
        &[key("spec"), key("containers"), key("app"), key("image")],
    )
    .unwrap();
    let mut reordered = object;
    reordered["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .reverse();
    let again = relocate(&reordered, &path).unwrap();
    assert_eq!(pointer(&again), "/spec/containers/0/image");
    reordered["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    assert!(relocate(&reordered, &path).is_err());
}

#[test]
fn amounts_are_compared_as_amounts_and_texts_as_texts() {
    let limits = resolve(&json!({}), &[key("limits"), key("memory")]).unwrap();
    assert!(same(&limits, Some(&json!("0.5Gi")), Some(&json!("512Mi"))));
    assert!(same(&limits, Some(&json!("1k")), Some(&json!(1000))));
    assert!(!same(&limits, Some(&json!("32M")), Some(&json!("32Mi"))));
    let env = resolve(&json!({}), &[key("env"), key("value")]).unwrap();
    assert!(!same(&env, Some(&json!("1k")), Some(&json!("1000"))));
    assert!(same(&env, None, Some(&json!([]))));
}

#[test]
fn what_was_written_still_holds_when_the_server_fills_in_defaults() {
    let path = resolve(&json!({}), &[key("readinessProbe")]).unwrap();
    let written = json!({"httpGet": {"path": "/x", "port": 80}});
    let live =
        json!({"httpGet": {"path": "/x", "port": 80, "scheme": "HTTP"}, "periodSeconds": 10});
    assert!(holds(&path, Some(&written), Some(&live)));
    let repaired = json!({"httpGet": {"path": "/healthz", "port": 80, "scheme": "HTTP"}});
    assert!(!holds(&path, Some(&written), Some(&repaired)));
    assert!(!holds(&path, Some(&written), None));
}
