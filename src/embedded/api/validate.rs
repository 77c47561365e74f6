//! Validation of objects, with the paths and texts of the real server.

use serde_json::Value;

use crate::embedded::api::field::FieldError;
use crate::embedded::api::write::Part;
use crate::embedded::kind::Kind;

/// What is wrong with an object that is to be created.
pub fn new_object(_kind: Kind, _object: &Value) -> Vec<FieldError> {
    Vec::new()
}

/// What is wrong with an object that is to take the place of `old`.
pub fn changed_object(_kind: Kind, _old: &Value, _object: &Value, _part: Part) -> Vec<FieldError> {
    Vec::new()
}
