//! Defaults: the values that the real server fills in and that show in every object read back.

use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// Fills in what a type's defaulting function fills in, for new and for changed objects.
pub fn apply(_kind: Kind, _object: &mut Value) {}

/// What only creation fills in: allocated addresses, the first status.
pub fn fill_new(_world: &mut World, kind: Kind, object: &mut Value) {
    if kind == Kind::Namespace {
        object["spec"]["finalizers"] = serde_json::json!(["kubernetes"]);
        object["status"]["phase"] = "Active".into();
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
}

/// Keeps allocated values that a change leaves out.
pub fn keep_allocated(_kind: Kind, _old: &Value, _object: &mut Value) {}
