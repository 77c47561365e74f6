//! A planned change shown to the server before anything is journaled.
//!
//! Its own defaulting (a second spelling of a service account, filled-in probe fields) becomes known to the undo, fields
//! that it drops are found out, and its refusal comes before anything is written.

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, JsonPatch};
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, Plan, shown, without_server_fields};
use crate::inject::field::{self, Step};
use crate::inject::write;

/// Codes of a preview whose real request would get the same answer: invalid, or forbidden by quota or policy.
const FINAL: [u16; 2] = [403, 422];

/// The plan of one object's change, as the server would store it. A server that cannot preview is a warning.
pub async fn previewed(
    client: &kube::Client,
    live: &Value,
    mut change: ObjectChange,
) -> Result<Plan, InjectError> {
    let object = &change.object;
    let resource = resource::of_kind(&object.kind)?;
    let mut plan = Plan::default();
    let edit = write::edit(live, &change);
    let patch = JsonPatch {
        operations: &edit.operations,
        manager: &change.manager,
        dry_run: true,
    };
    let preview = resource
        .patch(client, &object.namespace, &object.name, &patch)
        .await;
    match preview {
        Ok(preview) => {
            refuse_unknown(&change, &preview)?;
            take_from_preview(&mut change, live, &preview);
        }
        Err(error) => plan
            .warnings
            .push(judged(&change.object.to_string(), error)?),
    }
    if !change.fields.iter().any(FieldChange::has_effect) {
        return Err(without_effect(&change));
    }
    plan.changes.push(change);
    Ok(plan)
}

/// A failed preview: the refusal that the real request would meet too, or the warning that there was none.
pub fn judged(object: &str, error: ClusterError) -> Result<String, InjectError> {
    match error {
        ClusterError::Api { code, message, .. } if FINAL.contains(&code) => {
            Err(InjectError::Refused {
                object: object.to_owned(),
                code,
                message,
            })
        }
        ClusterError::Api { message, .. } => {
            Ok(format!("the server could not preview the fault: {message}"))
        }
        error => Err(error.into()),
    }
}

/// A value that was not empty and is nowhere in the server's answer was written to a field that its type does not have.
fn refuse_unknown(change: &ObjectChange, preview: &Value) -> Result<(), InjectError> {
    let dropped = change.fields.iter().find(|field| {
        let written = field.new.as_ref().is_some_and(|new| !is_empty(new));
        written && field::value_at(preview, &field.path).is_none()
    });
    dropped.map_or(Ok(()), |field| {
        Err(InjectError::UnknownField {
            object: change.object.to_string(),
            field: field::dotted(&field.path),
        })
    })
}

/// Values that a server may leave out of what it stores.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

/// Takes over what the server makes of the change: the stored values, and further fields that change with it.
fn take_from_preview(change: &mut ObjectChange, live: &Value, preview: &Value) {
    for field in &mut change.fields {
        field.new = field::value_at(preview, &field.path).cloned();
    }
    let (before, after) = (without_server_fields(live), without_server_fields(preview));
    let mut differing = Vec::new();
    differing_fields(&before, &after, &mut Vec::new(), &mut differing);
    for path in differing {
        let covered = change
            .fields
            .iter()
            .any(|field| path.starts_with(&field.path) || field.path.starts_with(&path));
        if !covered {
            let new = field::value_at(preview, &path).cloned();
            change.fields.push(FieldChange::of(live, path, new));
        }
    }
}

fn differing_fields(before: &Value, after: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                at.push(Step::Key(key.clone()));
                differing_fields(&before[key.as_str()], &after[key.as_str()], at, found);
                at.pop();
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (old, new)) in a.iter().zip(b).enumerate() {
                let name = old["name"].as_str().map(str::to_owned);
                at.push(Step::Element { index, name });
                differing_fields(old, new, at, found);
                at.pop();
            }
        }
        _ if before == after => {}
        _ => found.push(at.clone()),
    }
}

fn without_effect(change: &ObjectChange) -> InjectError {
    let what = change
        .fields
        .iter()
        .map(|field| {
            format!(
                "{} is {}",
                field::dotted(&field.path),
                shown(&change.object, field.old.as_ref())
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    InjectError::WithoutEffect {
        object: change.object.to_string(),
        what,
    }
}
