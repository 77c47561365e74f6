//! Admission: namespaces that do not exist or are going away, service accounts, quotas, webhooks.
//!
//! Mutating admission sees an object before it has a generated name (its texts show the prefix), validating
//! admission afterwards: as in the real server.

use serde_json::Value;

use crate::embedded::api::status::Status;
use crate::embedded::api::write::{Part, text};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// Before a new object is named and validated.
pub fn mutate_new(world: &mut World, kind: Kind, object: &mut Value) -> Result<(), Status> {
    check_namespace(world, kind, object)
}

/// After a new object is validated.
pub fn validate_new(_world: &mut World, _kind: Kind, _object: &Value) -> Result<(), Status> {
    Ok(())
}

/// Before a change is stored.
pub fn check_update(
    _world: &mut World,
    _kind: Kind,
    _old: &Value,
    _object: &Value,
    _part: Part,
) -> Result<(), Status> {
    Ok(())
}

/// The name that admission's texts show: the prefix while there is no name yet.
pub fn shown_name(object: &Value) -> &str {
    let metadata = &object["metadata"];
    match (text(&metadata["name"]), text(&metadata["generateName"])) {
        ("", "") => "Unknown",
        ("", prefix) => prefix,
        (name, _) => name,
    }
}

fn check_namespace(world: &World, kind: Kind, object: &Value) -> Result<(), Status> {
    if !kind.info().namespaced {
        return Ok(());
    }
    let namespace = text(&object["metadata"]["namespace"]);
    let Some(home) = world.store.get(Kind::Namespace, "", namespace) else {
        return Err(Status::not_found(Kind::Namespace, namespace));
    };
    if home["metadata"]["deletionTimestamp"].is_string() {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = format!("namespace {namespace} is being terminated");
        return Err(Status::forbidden(kind, shown_name(object), &why).because(
            "NamespaceTerminating",
            cause,
            "metadata.namespace",
        ));
    }
    Ok(())
}
