//! Validation of metadata: names, labels, annotations.

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::validate::{Errors, name};
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;

/// Limit of all annotations of an object together, keys and values, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

pub fn new_metadata(kind: Kind, metadata: &Value, errors: &mut Errors) {
    let path = Path::new("metadata");
    let given = text(&metadata["name"]);
    let prefix = text(&metadata["generateName"]);
    if !prefix.is_empty() {
        // A trailing dash is fine: letters follow it.
        let stem = prefix.strip_suffix('-').unwrap_or(prefix);
        push_all(
            &path.child("generateName"),
            &metadata["generateName"],
            grammar(kind, stem),
            errors,
        );
    }
    if given.is_empty() {
        errors.push(FieldError::required(
            &path.child("name"),
            "name or generateName is required",
        ));
    } else {
        push_all(
            &path.child("name"),
            &metadata["name"],
            grammar(kind, given),
            errors,
        );
    }
    changed_metadata(metadata, errors);
}

pub fn changed_metadata(metadata: &Value, errors: &mut Errors) {
    let path = Path::new("metadata");
    labels(&path.child("labels"), &metadata["labels"], errors);
    annotations(&path.child("annotations"), &metadata["annotations"], errors);
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let at = path.child("finalizers");
        let wrong = name::qualified(text(finalizer));
        push_all(&at, finalizer, wrong, errors);
    }
    let list = path.child("finalizers");
    for (at, finalizer) in super::elements(&list, &metadata["finalizers"]) {
        let given = text(finalizer);
        let standard = ["orphan", "foregroundDeletion", "kubernetes"];
        if !given.contains('/') && !standard.contains(&given) {
            errors.push(FieldError::invalid(
                &at,
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

/// A map of labels.
pub fn labels(path: &Path, map: &Value, errors: &mut Errors) {
    for (key, value) in map.as_object().into_iter().flatten() {
        push_all(
            path,
            &Value::from(key.as_str()),
            name::qualified(key),
            errors,
        );
        push_all(path, value, name::label_value(text(value)), errors);
    }
}

/// A map of annotations; their keys are checked in lower case, as there.
pub fn annotations(path: &Path, map: &Value, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in map.as_object().into_iter().flatten() {
        let wrong = name::qualified(&key.to_lowercase());
        push_all(path, &Value::from(key.as_str()), wrong, errors);
        size += key.len() + text(value).len();
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
}

/// A `LabelSelector`.
pub fn selector(path: &Path, selector: &Value, errors: &mut Errors) {
    labels(&path.child("matchLabels"), &selector["matchLabels"], errors);
    let list = path.child("matchExpressions");
    for (at, expression) in super::elements(&list, &selector["matchExpressions"]) {
        let values = expression["values"].as_array().map_or(0, Vec::len);
        match text(&expression["operator"]) {
            "In" | "NotIn" if values == 0 => errors.push(FieldError::required(
                &at.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values > 0 => errors.push(FieldError::forbidden(
                &at.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(FieldError::invalid(
                &at.child("operator"),
                &expression["operator"],
                "not a valid selector operator",
            )),
        }
        let wrong = name::qualified(text(&expression["key"]));
        push_all(&at.child("key"), &expression["key"], wrong, errors);
    }
}

fn grammar(kind: Kind, given: &str) -> Vec<String> {
    match kind {
        Kind::Namespace => name::label(given),
        Kind::Service => name::label_1035(given),
        Kind::Role | Kind::RoleBinding | Kind::ClusterRole | Kind::ClusterRoleBinding => {
            name::path_segment(given)
        }
        _ => name::subdomain(given),
    }
}

/// One error for each text about a value.
pub fn push_all(path: &Path, value: &Value, wrong: Vec<String>, errors: &mut Errors) {
    errors.extend(
        wrong
            .into_iter()
            .map(|why| FieldError::invalid(path, value, why)),
    );
}
