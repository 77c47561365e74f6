//! The cells of volumes, claims and storage classes.

use serde_json::{Value, json};

use crate::embedded::api::table::cells::Subject;
use crate::embedded::api::table::labels::{UNSET, list, text, text_or};

/// Where the class of a volume or claim stood before it had a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Marks the class that claims without one get.
const DEFAULT_ANNOTATION: &str = "storageclass.kubernetes.io/is-default-class";

/// Access modes and their short forms, in the order in which they are shown.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

fn modes(given: &Value) -> String {
    let short: Vec<&str> = MODES
        .iter()
        .filter(|(mode, _)| list(given).iter().any(|one| one == mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

fn class_of(object: &Value) -> &str {
    object["metadata"]["annotations"][CLASS_ANNOTATION]
        .as_str()
        .unwrap_or_else(|| text(&object["spec"]["storageClassName"]))
}

fn phase<'a>(subject: &'a Subject) -> &'a str {
    if subject.is_being_deleted() {
        "Terminating"
    } else {
        text(&subject.object["status"]["phase"])
    }
}

pub(super) fn volume(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let claim = match &spec["claimRef"] {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
    };
    vec![
        subject.name(),
        json!(text_or(&spec["capacity"]["storage"], "0")),
        json!(modes(&spec["accessModes"])),
        json!(text(&spec["persistentVolumeReclaimPolicy"])),
        json!(phase(subject)),
        json!(claim),
        json!(class_of(subject.object)),
        json!(spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET)),
        json!(text(&status["reason"])),
        subject.age(),
        json!(spec["volumeMode"].as_str().unwrap_or(UNSET)),
    ]
}

pub(super) fn claim(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let volume = text(&spec["volumeName"]);
    let (capacity, access) = if volume.is_empty() {
        ("", String::new())
    } else {
        (
            text_or(&status["capacity"]["storage"], "0"),
            modes(&status["accessModes"]),
        )
    };
    vec![
        subject.name(),
        json!(phase(subject)),
        json!(volume),
        json!(capacity),
        json!(access),
        json!(class_of(subject.object)),
        json!(spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET)),
        subject.age(),
        json!(spec["volumeMode"].as_str().unwrap_or(UNSET)),
    ]
}

pub(super) fn class(subject: &Subject) -> Vec<Value> {
    let class = subject.object;
    let default = class["metadata"]["annotations"][DEFAULT_ANNOTATION] == "true";
    let name = text(&class["metadata"]["name"]);
    let name = if default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    };
    vec![
        json!(name),
        json!(text(&class["provisioner"])),
        json!(class["reclaimPolicy"].as_str().unwrap_or("Delete")),
        json!(class["volumeBindingMode"].as_str().unwrap_or("Immediate")),
        json!(class["allowVolumeExpansion"] == true),
        subject.age(),
    ]
}
