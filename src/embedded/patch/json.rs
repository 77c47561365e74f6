//! JSON Patch (RFC 6902), all or nothing.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::embedded::patch::PatchError;

/// Applies every operation in turn to a copy of the object.
pub fn apply(object: &Value, patch: &Patch) -> Result<Value, PatchError> {
    let mut patched = object.clone();
    for operation in &patch.0 {
        // The real server counts an absent value as equal to null.
        if let PatchOperation::Test(test) = operation
            && test.value.is_null()
            && patched.pointer(test.path.as_str()).is_none()
        {
            continue;
        }
        json_patch::patch(&mut patched, std::slice::from_ref(operation))
            .map_err(|_| PatchError::Rejected)?;
    }
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(object: &Value, patch: Value) -> Result<Value, PatchError> {
        apply(object, &serde_json::from_value(patch).unwrap())
    }

    #[test]
    fn keys_with_slashes_and_tildes_are_escaped() {
        let object = json!({"metadata": {"annotations": {"other": "1"}}, "data": {}});
        let patch = json!([
            {"op": "add", "path": "/metadata/annotations/example.com~1role", "value": "db"},
            {"op": "add", "path": "/data/a~0b", "value": "x"},
            {"op": "add", "path": "/data/a~01b", "value": "y"},
        ]);
        assert_eq!(
            patched(&object, patch).unwrap(),
            json!({
                "metadata": {"annotations": {"other": "1", "example.com/role": "db"}},
                "data": {"a~b": "x", "a~1b": "y"},
            })
        );
        let unescaped =
            json!([{"op": "add", "path": "/metadata/annotations/example.com/role", "value": "db"}]);
        assert_eq!(patched(&object, unescaped), Err(PatchError::Rejected));
        let absent = json!([{"op": "remove", "path": "/metadata/annotations/none"}]);
        assert_eq!(patched(&object, absent), Err(PatchError::Rejected));
    }

    #[test]
    fn a_failed_test_changes_nothing_and_null_equals_absent() {
        let object = json!({"a": 1});
        let failing = json!([
            {"op": "replace", "path": "/a", "value": 2},
            {"op": "test", "path": "/a", "value": 1},
        ]);
        assert_eq!(patched(&object, failing), Err(PatchError::Rejected));
        let passing = json!([
            {"op": "test", "path": "/b", "value": null},
            {"op": "add", "path": "/b", "value": 2},
        ]);
        assert_eq!(patched(&object, passing).unwrap(), json!({"a": 1, "b": 2}));
    }
}
