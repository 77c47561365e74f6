//! Patches of JSON objects: JSON Patch (RFC 6902), merge patch (RFC 7396), strategic merge patch.
//!
//! Pure functions from an object and a patch to the patched object. Server-side apply, which needs to know
//! who owns which fields, stands with the API server's field managers.

use serde_json::Value;

use crate::embedded::kind::Kind;

pub mod json;
pub mod merge;
pub mod schema;
pub mod strategic;

/// A patch, read from a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch does not fit the object: a `test` failed, a path is missing. The real server names neither.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// A directive of a strategic merge patch makes no sense.
    #[error("{0}")]
    Malformed(String),
    /// An element of a keyed list has no key.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey { map: String, key: String },
}

impl Patch {
    /// The patched object.
    ///
    /// # Errors
    /// When the patch does not fit the object or is malformed.
    pub fn apply_to(&self, kind: Kind, object: &Value) -> Result<Value, PatchError> {
        match self {
            Patch::Json(operations) => json::apply(object, operations),
            Patch::Merge(patch) => Ok(merge::apply(object, patch)),
            Patch::Strategic(patch) => strategic::apply(kind, object, patch),
        }
    }
}

/// A value as Go prints it with `%+v`.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let inner: Vec<String> = list.iter().map(go_text).collect();
            format!("[{}]", inner.join(" "))
        }
        Value::Object(map) => {
            let inner: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_text(value)))
                .collect();
            format!("map[{}]", inner.join(" "))
        }
        other => other.to_string(),
    }
}
