//! The injector `configmap-patch`: one or more assignments on a ConfigMap.
//!
//! Its texts are written as they are given and the undo lives in our journal, never in an annotation, so that an object
//! near the size limit can be changed and restored. One that would grow beyond the limit is refused before it is sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cluster::resource;
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, Plan, reference, without_server_fields};
use crate::inject::field;
use crate::inject::preview;
use crate::inject::write;
use crate::scenario::model::Mutation;

/// The manager under which `kubectl edit` writes.
const MANAGER: &str = "kubectl-edit";

/// What the API server allows all values of a ConfigMap to hold together, in bytes.
pub const MAX_DATA: usize = 1024 * 1024;

/// Plans the mutation of a ConfigMap.
pub async fn plan(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    mutation: &Mutation,
) -> Result<Plan, InjectError> {
    let live = live(client, namespace, name).await?;
    let object = reference("ConfigMap", &live);
    let mut fields = Vec::new();
    for assignment in &mutation.assignments {
        let path =
            field::resolve(&live, &assignment.path).map_err(|source| InjectError::NoSuchPlace {
                object: object.to_string(),
                source,
            })?;
        fields.push(FieldChange::of(&live, path, Some(assignment.value.clone())));
    }
    planned(client, &live, fields).await
}

/// The ConfigMap as it is now.
pub async fn live(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> Result<Value, InjectError> {
    resource::of_kind("ConfigMap")?
        .get(client, namespace, name)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: format!("ConfigMap {namespace}/{name}"),
        })
}

/// The plan that changes fields of a ConfigMap.
pub async fn planned(
    client: &kube::Client,
    live: &Value,
    fields: Vec<FieldChange>,
) -> Result<Plan, InjectError> {
    let change = ObjectChange {
        object: reference("ConfigMap", live),
        manager: MANAGER.to_owned(),
        fields,
        snapshot: without_server_fields(live),
    };
    let (before, after) = (size(live), size(write::edit(live, &change).result()));
    if after > MAX_DATA {
        return Err(InjectError::TooLarge {
            object: change.object.to_string(),
            before,
            after,
            limit: MAX_DATA,
        });
    }
    preview::previewed(client, live, change).await
}

/// The bytes of all values, as the API server counts them.
fn size(object: &Value) -> usize {
    let values = |field: &str| object[field].as_object().into_iter().flatten();
    let texts = values("data").filter_map(|(_, value)| value.as_str().map(str::len));
    let binaries = values("binaryData").filter_map(|(_, value)| {
        let text = value.as_str()?;
        Some(
            STANDARD
                .decode(text)
                .map_or(text.len(), |bytes| bytes.len()),
        )
    });
    texts.chain(binaries).sum()
}
