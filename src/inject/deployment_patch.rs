//! The injector `deployment-patch`: one or more assignments on a Deployment.

use serde_json::Value;

use crate::cluster::resource;
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, Plan, reference, without_server_fields};
use crate::inject::field::{self, Step};
use crate::inject::preview;
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
    let live = resource::of_kind("Deployment")?
        .get(client, namespace, name)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: format!("Deployment {namespace}/{name}"),
        })?;
    preview::previewed(client, &live, assigned(&live, mutation)?).await
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
