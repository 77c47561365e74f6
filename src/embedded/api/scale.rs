//! The scale subresource: replicas of a workload as an object of their own.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v1::Scale;
use serde_json::{Value, json};

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::managed::Writer;
use crate::embedded::api::read;
use crate::embedded::api::status::Status;
use crate::embedded::api::typed::reader;
use crate::embedded::api::write::{self, Part, Place, WriteOptions, text};
use crate::embedded::patch::{Patch, merge};
use crate::embedded::world::World;

/// The scale of a workload.
pub fn of(workload: &Value) -> Value {
    let metadata = &workload["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {"replicas": workload["status"]["replicas"].as_i64().unwrap_or(0)},
    });
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        scale["metadata"][field] = metadata[field].clone();
    }
    if let Some(replicas) = workload["spec"]["replicas"].as_i64().filter(|n| *n != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    let selector = selector_text(&workload["spec"]["selector"]);
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

pub fn get(world: &World, place: &Place<'_>) -> Result<Value, Status> {
    read::get(world, place.kind, place.namespace, place.name).map(|workload| of(&workload))
}

/// Sets the replicas to those of a whole scale object.
pub fn update(
    world: &mut World,
    place: &Place<'_>,
    scale: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    let old = read::get(world, place.kind, place.namespace, place.name)?;
    let given = text(&scale["metadata"]["name"]);
    if !given.is_empty() && given != place.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            place.name
        )));
    }
    set_replicas(world, place, &old, scale, options)
}

/// Applies a patch to the scale object.
pub fn patch(
    world: &mut World,
    place: &Place<'_>,
    patch: &Patch,
    options: &WriteOptions,
) -> Result<Value, Status> {
    let old = read::get(world, place.kind, place.namespace, place.name)?;
    let before = of(&old);
    let scale = match patch {
        // No list of a scale has a key, so a strategic merge is a plain one.
        Patch::Strategic(patch) => merge::apply(&before, patch),
        other => other
            .apply_to(place.kind, &before)
            .map_err(|error| Status::bad_patch(error.to_string()))?,
    };
    set_replicas(world, place, &old, &scale, options)
}

fn set_replicas(
    world: &mut World,
    place: &Place<'_>,
    old: &Arc<Value>,
    scale: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    if let Some(mismatch) = reader::read::<Scale>(scale).mismatch {
        return Err(Status::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {}",
            mismatch.json_text()
        )));
    }
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let path = Path::new("spec").child("replicas");
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid(&path, &replicas.into(), why);
        return Err(Status::invalid_scale(place.name, &error));
    }
    let mut object = (**old).clone();
    object["spec"]["replicas"] = replicas.into();
    for field in ["resourceVersion", "uid"] {
        object["metadata"][field] = scale["metadata"][field].clone();
    }
    let mut writer = Writer::update(options, Part::Main, world.now());
    writer.subresource = "scale";
    let stored = write::replace(world, place.kind, old, object, &writer, options.dry_run)?;
    Ok(of(&stored))
}

/// A selector in the form of a query.
fn selector_text(selector: &Value) -> String {
    let mut terms: Vec<String> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    for one in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = text(&one["key"]);
        let values: Vec<&str> = one["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let values = values.join(",");
        terms.push(match text(&one["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}
