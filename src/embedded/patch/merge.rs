//! JSON merge patch (RFC 7396): nulls delete, maps merge, everything else replaces.

use serde_json::{Map, Value};

/// The object with the patch merged into it.
pub fn apply(object: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut merged: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            merged.remove(key);
        } else {
            let before = merged.get(key).unwrap_or(&Value::Null);
            let after = apply(before, change);
            merged.insert(key.clone(), after);
        }
    }
    Value::Object(merged)
}

/// The merge patch that turns `from` into `to`. It cannot express a null inside `to`.
pub fn between(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(key.clone(), between(before, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_replaced_whole_and_null_deletes() {
        let object = json!({"list": [{"name": "a"}, {"name": "b"}], "gone": 1, "map": {"x": 1}});
        let patch =
            json!({"list": [{"name": "a", "image": "i"}], "gone": null, "map": {"y": {"z": null}}});
        assert_eq!(
            apply(&object, &patch),
            json!({"list": [{"name": "a", "image": "i"}], "map": {"x": 1, "y": {}}})
        );
    }

    /// JSON trees without nulls.
    pub(crate) fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_between_two_objects_turns_one_into_the_other(
            a in prop::collection::btree_map("[a-d]", tree(), 0..4),
            b in prop::collection::btree_map("[a-d]", tree(), 0..4),
        ) {
            let a = Value::Object(a.into_iter().collect());
            let b = Value::Object(b.into_iter().collect());
            let patch = between(&a, &b);
            prop_assert_eq!(&apply(&a, &patch), &b);
            prop_assert_eq!(apply(&apply(&a, &patch), &patch), b);
        }
    }
}
