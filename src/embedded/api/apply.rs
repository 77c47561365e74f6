//! Server-side apply: a configuration is merged in, fields that it no longer states go, and fields that others
//! own with other values are conflicts unless forced.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::api::managed::set::{self, FieldSet, Path, element_name, path_text};
use crate::embedded::api::managed::{Entry, Writer};
use crate::embedded::api::status::Status;
use crate::embedded::api::write::{self, Place, WriteOptions};
use crate::embedded::kind::Kind;
use crate::embedded::patch::schema::{self, Node, Rule};
use crate::embedded::world::World;

/// The outcome of an apply.
pub enum Applied {
    Created(Arc<Value>),
    Changed(Arc<Value>),
}

/// Applies a decoded configuration, creating the object if need be. `options.manager` must not be empty.
pub fn apply(
    world: &mut World,
    place: &Place<'_>,
    mut config: Value,
    options: &WriteOptions,
    force: bool,
) -> Result<Applied, Status> {
    if config["metadata"].get("managedFields").is_some() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if !config["metadata"].is_object() {
        config["metadata"] = json!({});
    }
    config["metadata"]["name"] = place.name.into();
    let fields: FieldSet = set::index(place.kind, &config, false).into_keys().collect();
    let mut writer = Writer::update(options, place.part, world.now());
    writer.applied = Some(fields.clone());
    let Some(live) = world
        .store
        .get(place.kind, place.namespace, place.name)
        .cloned()
    else {
        return write::create_as(world, place, config, &writer, options.dry_run)
            .map(Applied::Created);
    };
    let entries = Entry::all(&live);
    let found = conflicts(place.kind, &live, &config, &entries, &writer);
    if !found.is_empty() && !force {
        return Err(conflict_status(&found));
    }
    let mut merged = merge_map(Node::Object(place.kind), &live, &config);
    let earlier = entries.iter().find(|entry| entry.is_of(&writer));
    if let Some(earlier) = earlier {
        let dropped: Vec<&Path> = earlier.fields.difference(&fields).collect();
        let owned_elsewhere = |path: &Path| {
            entries
                .iter()
                .any(|entry| !entry.is_of(&writer) && entry.fields.contains(path))
        };
        // Deepest first, so that an element goes after its fields.
        for path in dropped.into_iter().rev() {
            if !owned_elsewhere(path) {
                remove(Node::Object(place.kind), &mut merged, path);
            }
        }
    }
    // A resource version in the configuration is a precondition; none means any.
    let version = config["metadata"]["resourceVersion"].clone();
    merged["metadata"]["resourceVersion"] = version;
    write::replace(world, place.kind, &live, merged, &writer, options.dry_run).map(Applied::Changed)
}

/// Fields of the configuration that another manager owns with another value.
fn conflicts(
    kind: Kind,
    live: &Value,
    config: &Value,
    entries: &[Entry],
    writer: &Writer,
) -> Vec<(String, Path)> {
    let wanted = set::index(kind, config, false);
    let stored = set::index(kind, live, false);
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_of(writer)) {
        for (path, value) in &wanted {
            if value.is_some() && entry.fields.contains(path) && stored.get(path) != Some(value) {
                found.push((shown_manager(entry), path.clone()));
            }
        }
    }
    found
}

fn shown_manager(entry: &Entry) -> String {
    let mut shown = format!("\"{}\"", entry.manager);
    if !entry.subresource.is_empty() {
        shown.push_str(&format!(" with subresource \"{}\"", entry.subresource));
    }
    if entry.operation == "Update" {
        shown.push_str(&format!(" using {}", entry.api_version));
    }
    shown
}

fn conflict_status(found: &[(String, Path)]) -> Status {
    let message = match found {
        [(manager, path)] => {
            format!(
                "Apply failed with 1 conflict: conflict with {manager}: {}",
                path_text(path)
            )
        }
        several => {
            let mut by_manager: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (manager, path) in several {
                by_manager.entry(manager).or_default().push(path_text(path));
            }
            let mut lines = Vec::new();
            for (manager, paths) in by_manager {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.into_iter().map(|path| format!("- {path}")));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                several.len(),
                lines.join("\n")
            )
        }
    };
    found.iter().fold(
        Status::apply_conflict(message),
        |status, (manager, path)| {
            let why = format!("conflict with {manager}");
            status.because("FieldManagerConflict", why, &path_text(path))
        },
    )
}

fn merge_map(node: Node, live: &Value, config: &Value) -> Value {
    let mut merged: Map<String, Value> = live.as_object().cloned().unwrap_or_default();
    for (key, wanted) in config.as_object().into_iter().flatten() {
        let before = merged.get(key).cloned().unwrap_or(Value::Null);
        merged.insert(key.clone(), merge_field(node, key, &before, wanted));
    }
    Value::Object(merged)
}

fn merge_field(node: Node, key: &str, before: &Value, wanted: &Value) -> Value {
    let (rule, below) = schema::field(node, key);
    match (before, wanted) {
        (Value::Object(_), Value::Object(map))
            if !map.is_empty() && !schema::is_atomic_map(key) =>
        {
            merge_map(below, before, wanted)
        }
        (Value::Array(old), Value::Array(new)) => {
            let keys = schema::apply_keys(node, key);
            if keys.is_empty() && rule != Rule::Set {
                return wanted.clone();
            }
            let mut merged = old.clone();
            for element in new {
                let name = element_name(keys, element);
                let place = merged
                    .iter()
                    .position(|one| element_name(keys, one) == name);
                match place {
                    Some(at) if !keys.is_empty() => {
                        merged[at] = merge_map(below, &merged[at], element);
                    }
                    Some(_) => {}
                    None => merged.push(element.clone()),
                }
            }
            Value::Array(merged)
        }
        _ => wanted.clone(),
    }
}

/// Removes the field at a path, if it is there.
fn remove(node: Node, value: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    let Some(key) = step.strip_prefix("f:") else {
        return;
    };
    let keys = schema::apply_keys(node, key);
    let below = schema::field(node, key).1;
    let Some(map) = value.as_object_mut() else {
        return;
    };
    match rest.split_first() {
        None => {
            map.remove(key);
        }
        Some((element, deeper)) if !element.starts_with("f:") => {
            let Some(list) = map.get_mut(key).and_then(Value::as_array_mut) else {
                return;
            };
            let place = list
                .iter()
                .position(|one| element_name(keys, one) == *element);
            match place {
                Some(at) if deeper.is_empty() => {
                    list.remove(at);
                }
                Some(at) => remove(below, &mut list[at], deeper),
                None => {}
            }
        }
        Some(_) => {
            if let Some(child) = map.get_mut(key) {
                remove(below, child, rest);
            }
        }
    }
}
