//! Restarts of workloads as part of a fault: the annotation that `kubectl rollout restart` sets.
//!
//! A fault in a Secret bites at the next container start. The annotation is recorded like any other change, so that
//! the undo takes it back, which makes the workload start anew with the restored contents.

use crate::cluster::resource;
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, reference, without_server_fields};
use crate::inject::field::Step;
use crate::scenario::model::WorkloadRef;

/// The manager under which `kubectl rollout` writes.
const MANAGER: &str = "kubectl-rollout";

const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Plans a restart at `now` (the cluster's time, RFC 3339 to the second).
pub async fn plan(
    client: &kube::Client,
    namespace: &str,
    workload: &WorkloadRef,
    now: &str,
) -> Result<ObjectChange, InjectError> {
    let resource = resource::of_kind(&workload.kind)?;
    let live = resource
        .get(client, namespace, &workload.name)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: format!("{} {namespace}/{}", workload.kind, workload.name),
        })?;
    let path = ["spec", "template", "metadata", "annotations", RESTARTED_AT]
        .map(|key| Step::Key(key.to_owned()))
        .to_vec();
    Ok(ObjectChange {
        object: reference(&workload.kind, &live),
        manager: MANAGER.to_owned(),
        fields: vec![FieldChange::of(&live, path, Some(now.into()))],
        snapshot: without_server_fields(&live),
    })
}
