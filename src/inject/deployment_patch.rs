//! The injector `deployment-patch`: one or more assignments on a Deployment.
//!
//! The server previews the change first, so that its own defaulting (a second spelling of a service account, filled-in
//! probe fields) is known to the undo, and a refusal comes before anything is journaled.

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, JsonPatch};
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, Plan, reference, without_server_fields};
use crate::inject::field::{self, Step};
use crate::inject::write;
use crate::scenario::model::{Assignment, Mutation};

/// The manager under which `kubectl edit` writes.
const MANAGER: &str = "kubectl-edit";

/// Plans the mutation of a Deployment.
pub async fn plan(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    mutation: &Mutation,
) -> Result<Plan, InjectError> {
    let resource = resource::of_kind("Deployment")?;
    let live = resource
        .get(client, namespace, name)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: format!("Deployment {namespace}/{name}"),
        })?;
    let mut change = assigned(&live, mutation)?;
    let mut plan = Plan::default();
    let edit = write::edit(&live, &change);
    let preview = resource
        .patch(
            client,
            namespace,
            name,
            &JsonPatch {
                operations: &edit.operations,
                manager: &change.manager,
                dry_run: true,
            },
        )
        .await;
    match preview {
        Ok(preview) => {
            refuse_unknown(&change, &preview)?;
            take_from_preview(&mut change, &live, &preview);
        }
        // The answer to the real request would be the same: invalid, or forbidden by quota or policy.
        Err(ClusterError::Api {
            code: code @ (403 | 422),
            message,
            ..
        }) => {
            return Err(InjectError::Refused {
                object: change.object.to_string(),
                code,
                message,
            });
        }
        Err(ClusterError::Api { message, .. }) => plan
            .warnings
            .push(format!("the server could not preview the fault: {message}")),
        Err(error) => return Err(error.into()),
    }
    if !change.fields.iter().any(FieldChange::has_effect) {
        return Err(without_effect(&change));
    }
    plan.changes.push(change);
    Ok(plan)
}

/// The change as the scenario states it.
fn assigned(live: &Value, mutation: &Mutation) -> Result<ObjectChange, InjectError> {
    let object = reference("Deployment", live);
    let mut fields = Vec::new();
    for assignment in &mutation.assignments {
        let path =
            field::resolve(live, &assignment.path).map_err(|source| InjectError::NoSuchPlace {
                object: object.to_string(),
                source,
            })?;
        if let Some(rival) = rival_source(live, &path, assignment) {
            fields.push(FieldChange::of(live, rival, None));
        }
        fields.push(FieldChange::of(live, path, Some(assignment.value.clone())));
    }
    Ok(ObjectChange {
        object,
        manager: MANAGER.to_owned(),
        fields,
        snapshot: without_server_fields(live),
    })
}

/// An env entry takes its value from one place. Setting `value` over `valueFrom`, or the other way round, removes the
/// one that was there, in the same request; the API refuses an entry with both.
fn rival_source(live: &Value, path: &[Step], assignment: &Assignment) -> Option<Vec<Step>> {
    if assignment.value.is_null() {
        return None;
    }
    let at = path
        .iter()
        .position(|step| *step == Step::Key("env".to_owned()))?;
    let entry = path.get(..at + 2)?;
    let rival = match path.get(at + 2)? {
        Step::Key(key) if key == "value" => "valueFrom",
        Step::Key(key) if key == "valueFrom" => "value",
        _ => return None,
    };
    let mut rival_path = entry.to_vec();
    rival_path.push(Step::Key(rival.to_owned()));
    field::value_at(live, &rival_path)?;
    Some(rival_path)
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
                crate::inject::change::shown(&change.object, field.old.as_ref())
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    InjectError::WithoutEffect {
        object: change.object.to_string(),
        what,
    }
}
