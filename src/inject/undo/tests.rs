//! One object judged field by field.

use serde_json::json;

use super::*;
use crate::inject::change::{FieldChange, reference, without_server_fields};
use crate::inject::field::Step;

fn live() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "app", "image": "app:1", "resources": {"limits": {"memory": "256Mi"}}},
        ]}}},
    })
}

fn image() -> Vec<Step> {
    let mut path: Vec<Step> = ["spec", "template", "spec", "containers"]
        .map(|key| Step::Key(key.to_owned()))
        .to_vec();
    path.push(Step::Element {
        index: 0,
        name: Some("app".to_owned()),
    });
    path.push(Step::Key("image".to_owned()));
    path
}

fn fault() -> ObjectChange {
    ObjectChange {
        object: reference("Deployment", &live()),
        manager: "kubectl-edit".to_owned(),
        fields: vec![FieldChange::of(&live(), image(), Some(json!("app:404")))],
        snapshot: without_server_fields(&live()),
    }
}

fn with_image(image: &str) -> Value {
    let mut object = live();
    object["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    object
}

#[test]
fn a_field_with_the_faulty_value_is_set_back_to_what_was_read() {
    let verdict = judge(&with_image("app:404"), &fault());
    assert_eq!(verdict.restored.len(), 1);
    assert_eq!(verdict.edit.unwrap().result(), &live());
}

#[test]
fn a_field_that_is_as_before_is_left_alone_so_a_second_undo_does_nothing() {
    let verdict = judge(&live(), &fault());
    assert!(verdict.edit.is_none());
    assert_eq!(verdict.original.len(), 1);
}

#[test]
fn a_field_that_someone_else_changed_is_kept_and_told() {
    let verdict = judge(&with_image("app:2"), &fault());
    assert!(verdict.edit.is_none());
    assert!(verdict.kept[0].ends_with("containers[0].image: changed by someone else"));
}

#[test]
fn other_fields_of_the_object_stay_as_others_made_them() {
    let mut object = with_image("app:404");
    object["metadata"]["labels"]["theirs"] = json!("yes");
    object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] =
        json!("512Mi");
    let verdict = judge(&object, &fault());
    let mut expected = live();
    expected["metadata"]["labels"]["theirs"] = json!("yes");
    expected["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] =
        json!("512Mi");
    assert_eq!(verdict.edit.unwrap().result(), &expected);
}

#[test]
fn a_recreated_object_only_loses_its_faulty_fields() {
    let mut object = with_image("app:404");
    object["metadata"]["uid"] = json!("u2");
    object["spec"]["replicas"] = json!(5);
    let verdict = judge(&object, &fault());
    assert_eq!(
        verdict.kept,
        ["Deployment shop/web was recreated by someone else"]
    );
    let edit = verdict.edit.unwrap();
    assert_eq!(edit.result()["spec"]["replicas"], 5);
    assert_eq!(
        edit.result()["spec"]["template"]["spec"]["containers"][0]["image"],
        "app:1"
    );
    let mut repaired = live();
    repaired["metadata"]["uid"] = json!("u2");
    assert!(judge(&repaired, &fault()).edit.is_none());
}

#[test]
fn a_container_that_is_gone_is_told_and_not_made_again() {
    let mut object = live();
    object["spec"]["template"]["spec"]["containers"][0]["name"] = json!("renamed");
    let verdict = judge(&object, &fault());
    assert!(verdict.edit.is_none());
    assert!(verdict.kept[0].ends_with("what held it is gone"));
}
