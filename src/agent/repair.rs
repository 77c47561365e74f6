//! Carries repairs out: one JSON Patch with preconditions, then a restart where pods must start anew. Never
//! creates, replaces or deletes an object, and never leaves the task's namespaces.

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::agent::evidence::Subject;
use crate::agent::evidence::field::{Field, RESTARTED_AT, json_patch};
use crate::agent::evidence::reading::restart_stamp;
use crate::agent::finding::Repair;

/// A conflict or a moved value is met by reading again, this often.
const ATTEMPTS: usize = 3;

/// Why a repair was not made.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    #[error("{0} is outside the namespaces of the task")]
    OutOfBounds(Subject),
    #[error("{0} no longer has the values that the repair starts from")]
    Moved(Subject),
    #[error("{0} is of a kind that this agent does not change")]
    UnknownKind(Subject),
    #[error("the change of {subject} was refused")]
    Refused {
        subject: Subject,
        #[source]
        source: Box<kube::Error>,
    },
}

/// Makes the repair. `time` is the cluster's own time, for the stamp of a restart.
pub async fn apply(
    client: &Client,
    namespaces: &[String],
    repair: &Repair,
    time: &str,
) -> Result<(), RepairError> {
    for subject in [Some(&repair.target), repair.restart.as_ref()]
        .into_iter()
        .flatten()
    {
        if !namespaces.contains(&subject.namespace) {
            return Err(RepairError::OutOfBounds(subject.clone()));
        }
    }
    if !repair.fields.is_empty() {
        change(client, &repair.target, &repair.fields).await?;
    }
    if let Some(workload) = &repair.restart {
        restart(client, workload, time).await?;
    }
    Ok(())
}

/// Takes the repair's fields back, where they still hold what it wrote.
pub async fn revert(
    client: &Client,
    namespaces: &[String],
    repair: &Repair,
    time: &str,
) -> Result<(), RepairError> {
    let back = Repair {
        fields: repair.fields.iter().map(Field::reversed).collect(),
        ..repair.clone()
    };
    apply(client, namespaces, &back, time).await
}

async fn change(client: &Client, target: &Subject, fields: &[Field]) -> Result<(), RepairError> {
    let uri = uri(target)?;
    let mut last = RepairError::Moved(target.clone());
    for _ in 0..ATTEMPTS {
        let object: Value = send(client, target, Request::get(&uri), None).await?;
        let Some(operations) = json_patch(&object, fields) else {
            return Err(RepairError::Moved(target.clone()));
        };
        let request =
            Request::patch(&uri).header(http::header::CONTENT_TYPE, "application/json-patch+json");
        match send(client, target, request, Some(Value::Array(operations))).await {
            Ok(_) => return Ok(()),
            Err(error) if is_race(&error) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

async fn restart(client: &Client, workload: &Subject, time: &str) -> Result<(), RepairError> {
    let uri = uri(workload)?;
    let object: Value = send(client, workload, Request::get(&uri), None).await?;
    // The same stamp twice would be no change and so no restart.
    let stamp = match restart_stamp(&object) {
        Some(old) if old == time => format!("{}.5Z", time.trim_end_matches('Z')),
        _ => time.to_owned(),
    };
    let body = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: stamp}}}}});
    let request = Request::patch(&uri).header(
        http::header::CONTENT_TYPE,
        "application/strategic-merge-patch+json",
    );
    send(client, workload, request, Some(body)).await?;
    Ok(())
}

async fn send(
    client: &Client,
    subject: &Subject,
    request: http::request::Builder,
    body: Option<Value>,
) -> Result<Value, RepairError> {
    let refused = |source| RepairError::Refused {
        subject: subject.clone(),
        source: Box::new(source),
    };
    let bytes = body
        .map(|body| body.to_string().into_bytes())
        .unwrap_or_default();
    let request = request
        .body(bytes)
        .map_err(|e| refused(kube::Error::HttpError(e)))?;
    client.request(request).await.map_err(refused)
}

/// Somebody else wrote in between; reading again may help.
fn is_race(error: &RepairError) -> bool {
    matches!(error, RepairError::Refused { source, .. }
        if matches!(source.as_ref(), kube::Error::Api(status) if status.code == 409))
}

fn uri(subject: &Subject) -> Result<String, RepairError> {
    let (prefix, plural) = match subject.kind {
        "Deployment" => ("/apis/apps/v1", "deployments"),
        "StatefulSet" => ("/apis/apps/v1", "statefulsets"),
        "DaemonSet" => ("/apis/apps/v1", "daemonsets"),
        "Service" => ("/api/v1", "services"),
        "Secret" => ("/api/v1", "secrets"),
        "ConfigMap" => ("/api/v1", "configmaps"),
        "ResourceQuota" => ("/api/v1", "resourcequotas"),
        "NetworkPolicy" => ("/apis/networking.k8s.io/v1", "networkpolicies"),
        _ => return Err(RepairError::UnknownKind(subject.clone())),
    };
    Ok(format!(
        "{prefix}/namespaces/{}/{plural}/{}",
        subject.namespace, subject.name
    ))
}
