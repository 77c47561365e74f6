//! What an injection changes and what undoes it: objects, fields, old and new values.
//!
//! A [`Plan`] is made before anything is written and is the content of the undo journal. It may hold secrets: it is
//! kept in the workspace's store (mode 0600) until the undo is proven, and is never put into a record.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inject::field::{self, Step};

/// An object as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// Tells the object from a later one of the same name.
    pub uid: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// One field: what was read from the live object just before the change, and what the fault makes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    pub path: Vec<Step>,
    /// Nothing when the field was absent.
    pub old: Option<Value>,
    /// Nothing when the fault removes the field.
    pub new: Option<Value>,
    /// How many of its ancestors the fault makes; they go again when the undo leaves them empty.
    pub made_ancestors: usize,
}

impl FieldChange {
    /// A change of a field of the live object.
    pub fn of(live: &Value, path: Vec<Step>, new: Option<Value>) -> FieldChange {
        FieldChange {
            old: field::value_at(live, &path).cloned(),
            new: new.filter(|value| !value.is_null()),
            made_ancestors: field::missing_ancestors(live, &path),
            path,
        }
    }

    /// Whether the change makes any difference to the API.
    pub fn has_effect(&self) -> bool {
        !field::same(&self.path, self.old.as_ref(), self.new.as_ref())
    }
}

/// All changes of one object; they are written in one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectChange {
    pub object: ObjectRef,
    /// The field manager under which people's own tools would make this change.
    pub manager: String,
    pub fields: Vec<FieldChange>,
    /// The object without what the server sets, as it was before.
    pub snapshot: Value,
}

/// An object that the fault creates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Creation {
    /// Its uid is empty until the server has made it.
    pub object: ObjectRef,
    /// The field manager under which people's own tools would create it.
    pub manager: String,
    /// What is sent; once created, its `spec` is what the server stored.
    pub manifest: Value,
}

/// A pod that the fault evicts: an act that nothing takes back. What owns the pod makes another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    pub pod: ObjectRef,
    /// What makes the pod anew, such as `ReplicaSet shop/web-5d4f`.
    pub owner: String,
}

/// Everything an injection will do: objects are created, then fields changed, then pods evicted, each in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<Creation>,
    pub changes: Vec<ObjectChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<Eviction>,
    /// What a person should know, such as a preview that the server could not give.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Plan {
    /// Every changed field as object and dotted path.
    pub fn fields(&self) -> impl Iterator<Item = (&ObjectRef, String)> {
        self.changes.iter().flat_map(|change| {
            change
                .fields
                .iter()
                .map(|field| (&change.object, field::dotted(&field.path)))
        })
    }
}

/// The object without what the server sets: what may be sent back.
pub fn without_server_fields(live: &Value) -> Value {
    let mut object = live.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
        ] {
            meta.remove(field);
        }
    }
    object
}

/// The reference of a live object.
pub fn reference(kind: &str, live: &Value) -> ObjectRef {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ObjectRef {
        kind: kind.to_owned(),
        namespace: text(&live["metadata"]["namespace"]),
        name: text(&live["metadata"]["name"]),
        uid: text(&live["metadata"]["uid"]),
    }
}

/// A value for people: secrets' contents are never shown.
pub fn shown(object: &ObjectRef, value: Option<&Value>) -> String {
    match value {
        None => "(absent)".to_owned(),
        Some(Value::String(text)) if object.kind == "Secret" => {
            format!("(hidden, {} characters of base64)", text.len())
        }
        Some(_) if object.kind == "Secret" => "(hidden)".to_owned(),
        Some(value) => {
            let text = value.to_string();
            match text.char_indices().nth(SHOWN_CHARACTERS) {
                Some((cut, _)) => format!("{}…", &text[..cut]),
                None => text,
            }
        }
    }
}

/// Longer values are cut for people.
const SHOWN_CHARACTERS: usize = 400;
