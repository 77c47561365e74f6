//! The one spelling in which objects are stored: what a round trip through the real server's types leaves.
//!
//! Nulls go, empty lists and maps go where the real types omit them, and so do empty strings of optional
//! fields. Quantities get their canonical spelling. It never changes what an object means.

use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::quantity::Quantity;

/// Maps that are omitted when empty. Other empty objects (`emptyDir: {}`, `resources: {}`) mean something.
const EMPTY_MAPS_OMITTED: &[&str] = &[
    "annotations",
    "labels",
    "data",
    "stringData",
    "binaryData",
    "nodeSelector",
    "matchLabels",
    "limits",
    "requests",
    "hard",
    "parameters",
    "ownerReferences",
];

/// Strings that are omitted when empty.
const EMPTY_TEXTS_OMITTED: &[&str] = &[
    "namespace",
    "generateName",
    "resourceVersion",
    "uid",
    "selfLink",
    "value",
    "serviceAccountName",
    "serviceAccount",
    "nodeName",
    "hostname",
    "subdomain",
    "image",
    "subPath",
    "prefix",
    "imagePullPolicy",
    "protocol",
    "storageClassName",
    "priorityClassName",
];

/// Maps whose keys are data, not fields: nothing below them is tidied.
const FREE_MAPS: &[&str] = &[
    "annotations",
    "labels",
    "data",
    "stringData",
    "binaryData",
    "nodeSelector",
    "matchLabels",
];

/// Maps from resource names to quantities.
const QUANTITY_MAPS: &[&str] = &[
    "limits",
    "requests",
    "hard",
    "used",
    "capacity",
    "allocatable",
    "default",
    "defaultRequest",
    "max",
    "min",
    "overhead",
];

/// Single quantities.
const QUANTITIES: &[&str] = &["sizeLimit", "divisor", "averageValue"];

/// Brings an object into its stored spelling.
pub fn tidy(_kind: Kind, object: &mut Value) {
    tidy_value(object);
    let creation = &mut object["metadata"];
    if creation.is_null() {
        *creation = Value::Object(serde_json::Map::new());
    }
}

fn tidy_value(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, child| {
                if FREE_MAPS.contains(&key.as_str()) && child.is_object() {
                    if let Some(free) = child.as_object_mut() {
                        free.retain(|_, entry| !entry.is_null());
                    }
                } else if QUANTITY_MAPS.contains(&key.as_str()) && child.is_object() {
                    if let Some(amounts) = child.as_object_mut() {
                        amounts.retain(|_, amount| !amount.is_null());
                        amounts.values_mut().for_each(spell_quantity);
                    }
                } else if QUANTITIES.contains(&key.as_str()) {
                    spell_quantity(child);
                } else {
                    tidy_value(child);
                }
                kept(key, child)
            });
        }
        Value::Array(list) => list.iter_mut().for_each(tidy_value),
        _ => {}
    }
}

/// Spells a quantity canonically; leaves anything else alone.
fn spell_quantity(amount: &mut Value) {
    if let (true, Ok(quantity)) = (
        amount.is_string() || amount.is_number(),
        Quantity::from_json(amount),
    ) {
        *amount = quantity.to_string().into();
    }
}

fn kept(key: &str, child: &Value) -> bool {
    match child {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty() || !EMPTY_MAPS_OMITTED.contains(&key),
        Value::String(text) => !text.is_empty() || !EMPTY_TEXTS_OMITTED.contains(&key),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_and_empty_lists_go_but_meaningful_empty_objects_stay() {
        let mut pod = json!({
            "metadata": {"name": "a", "creationTimestamp": null, "labels": {}, "annotations": {"x": ""}},
            "spec": {
                "containers": [{"name": "c", "env": [], "resources": {"limits": {}}, "args": null},
                    {"name": "d", "resources": {"limits": {"cpu": 0.1, "memory": "1024Ki"}}},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        });
        tidy(Kind::Pod, &mut pod);
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "a", "annotations": {"x": ""}},
                "spec": {
                    "containers": [
                        {"name": "c", "resources": {}},
                        {"name": "d", "resources": {"limits": {"cpu": "100m", "memory": "1Mi"}}},
                    ],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                },
            })
        );
    }
}
