//! Decoding of request bodies and patch results into their types: unknown fields, wrong types.
//!
//! The typed structs are used as a schema only. What is stored is the JSON that came in, without the fields
//! that its type does not know.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::status::Status;
use crate::embedded::api::typed::reader::Findings;
use crate::embedded::kind::Kind;
use crate::embedded::patch::{Patch, go_text};

pub mod reader;

/// What becomes of fields that a type does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and each gives a warning.
    #[default]
    Warn,
    /// They are refused.
    Strict,
}

impl FieldValidation {
    /// From the query parameter `fieldValidation`.
    pub fn parse(text: Option<&str>) -> Result<FieldValidation, Status> {
        match text {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(Status::bad_request(format!(
                "fieldValidation: Unsupported value: \"{other}\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }
}

/// Decodes a request body; drops unknown fields and answers a warning for each where those are wanted.
pub fn decode_body(
    kind: Kind,
    object: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    check_type(kind, object)?;
    let findings = read(kind, object);
    if let Some(mismatch) = &findings.mismatch {
        return Err(Status::undecodable(kind, &mismatch.json_text()));
    }
    settle(object, &findings, validation, |strict| {
        Status::undecodable(kind, strict)
    })
}

/// Decodes the outcome of a patch, with the texts that patches get.
pub fn decode_patched(
    kind: Kind,
    object: &mut Value,
    patch: &Patch,
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    let shown = match patch {
        Patch::Strategic(patch) => go_text(patch),
        Patch::Json(_) | Patch::Merge(_) => object.to_string(),
    };
    let refuse = |why: &str| {
        let error = FieldError::invalid(&Path::new("patch"), &Value::from(shown.as_str()), why);
        Status::bad_patched(&error)
    };
    let findings = read(kind, object);
    if let Some(mismatch) = &findings.mismatch {
        let text = match patch {
            Patch::Strategic(_) => mismatch.converter_text(),
            Patch::Json(_) | Patch::Merge(_) => mismatch.json_text(),
        };
        return Err(refuse(&text));
    }
    settle(object, &findings, validation, refuse)
}

fn settle(
    object: &mut Value,
    findings: &Findings,
    validation: FieldValidation,
    refuse: impl Fn(&str) -> Status,
) -> Result<Vec<String>, Status> {
    let texts: Vec<String> = findings
        .unknown
        .iter()
        .map(|at| format!("unknown field \"{}\"", reader::path_text(at)))
        .collect();
    if validation == FieldValidation::Strict && !texts.is_empty() {
        return Err(refuse(&format!(
            "strict decoding error: {}",
            texts.join(", ")
        )));
    }
    for at in &findings.unknown {
        reader::remove(object, at);
    }
    Ok(if validation == FieldValidation::Warn {
        texts
    } else {
        Vec::new()
    })
}

/// A body may leave kind and version out, but must not name others.
fn check_type(kind: Kind, object: &Value) -> Result<(), Status> {
    if let Some(version) = object["apiVersion"].as_str()
        && version != kind.api_version()
    {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if let Some(name) = object["kind"].as_str()
        && name != kind.info().name
    {
        let info = kind.info();
        return Err(Status::bad_request(format!(
            "{name} in version \"{}\" cannot be handled as a {}: no kind \"{name}\" is registered for the internal version of group \"{}\"",
            info.version, info.name, info.group
        )));
    }
    Ok(())
}

fn read(kind: Kind, object: &Value) -> Findings {
    match kind {
        Kind::Namespace => reader::read::<core::Namespace>(object),
        Kind::Node => reader::read::<core::Node>(object),
        Kind::Pod => reader::read::<core::Pod>(object),
        Kind::Service => reader::read::<core::Service>(object),
        Kind::Endpoints => reader::read::<core::Endpoints>(object),
        Kind::ConfigMap => reader::read::<core::ConfigMap>(object),
        Kind::Secret => reader::read::<core::Secret>(object),
        Kind::ServiceAccount => reader::read::<core::ServiceAccount>(object),
        Kind::Event => reader::read::<core::Event>(object),
        Kind::ResourceQuota => reader::read::<core::ResourceQuota>(object),
        Kind::LimitRange => reader::read::<core::LimitRange>(object),
        Kind::PersistentVolumeClaim => reader::read::<core::PersistentVolumeClaim>(object),
        Kind::PersistentVolume => reader::read::<core::PersistentVolume>(object),
        Kind::Deployment => reader::read::<Deployment>(object),
        Kind::ReplicaSet => reader::read::<ReplicaSet>(object),
        Kind::StatefulSet => reader::read::<StatefulSet>(object),
        Kind::DaemonSet => reader::read::<DaemonSet>(object),
        Kind::ControllerRevision => reader::read::<ControllerRevision>(object),
        Kind::Job => reader::read::<Job>(object),
        Kind::CronJob => reader::read::<CronJob>(object),
        Kind::EndpointSlice => reader::read::<EndpointSlice>(object),
        Kind::NetworkPolicy => reader::read::<NetworkPolicy>(object),
        Kind::Ingress => reader::read::<Ingress>(object),
        Kind::IngressClass => reader::read::<IngressClass>(object),
        Kind::PodDisruptionBudget => reader::read::<PodDisruptionBudget>(object),
        Kind::HorizontalPodAutoscaler => reader::read::<HorizontalPodAutoscaler>(object),
        Kind::Lease => reader::read::<Lease>(object),
        Kind::StorageClass => reader::read::<StorageClass>(object),
        Kind::PriorityClass => reader::read::<PriorityClass>(object),
        Kind::Role => reader::read::<Role>(object),
        Kind::RoleBinding => reader::read::<RoleBinding>(object),
        Kind::ClusterRole => reader::read::<ClusterRole>(object),
        Kind::ClusterRoleBinding => reader::read::<ClusterRoleBinding>(object),
        Kind::ValidatingWebhookConfiguration => {
            reader::read::<ValidatingWebhookConfiguration>(object)
        }
        Kind::MutatingWebhookConfiguration => reader::read::<MutatingWebhookConfiguration>(object),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn strict(kind: Kind, object: Value) -> String {
        let mut object = object;
        decode_body(kind, &mut object, FieldValidation::Strict)
            .unwrap_err()
            .message
    }

    #[test]
    fn unknown_fields_are_named_by_path_as_recorded() {
        let deployment = json!({"spec": {"replcas": 1, "template": {"spec": {"containers": [{"name": "c", "comand": []}]}}}});
        assert_eq!(
            strict(Kind::Deployment, deployment.clone()),
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \
             \"spec.replcas\", unknown field \"spec.template.spec.containers[0].comand\""
        );
        let mut object = deployment;
        let warnings = decode_body(Kind::Deployment, &mut object, FieldValidation::Warn).unwrap();
        assert_eq!(warnings[0], "unknown field \"spec.replcas\"");
        assert_eq!(
            object,
            json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}})
        );
    }

    #[test]
    fn wrong_types_are_refused_with_the_texts_of_the_real_decoder() {
        let prefix = "Deployment in version \"v1\" cannot be handled as a Deployment: ";
        for (object, text) in [
            (
                json!({"spec": {"replicas": "three"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": {}}}}}),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"image": 5}]}}}}),
                "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
            ),
            (
                json!({"metadata": {"labels": {"a": true}}}),
                "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"spec": "x"}),
                "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"memory": "96MB"}}}]}}}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"memory": "1K"}}}]}}}}),
                "unable to parse quantity's suffix",
            ),
        ] {
            assert_eq!(strict(Kind::Deployment, object), format!("{prefix}{text}"));
        }
    }

    #[test]
    fn secret_data_must_be_base64_and_the_value_is_not_shown() {
        for (data, at) in [
            ("abc", 0),
            ("YWJjZA", 4),
            ("pass word", 4),
            ("YQ=a", 3),
            ("YQ==x", 4),
        ] {
            assert_eq!(
                strict(Kind::Secret, json!({"data": {"k": data}})),
                format!(
                    "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {at}"
                ),
                "{data}"
            );
        }
    }

    #[test]
    fn patches_have_texts_of_their_own() {
        let patch = Patch::Strategic(json!({"spec": {"replicas": "abc"}}));
        let mut object = json!({"spec": {"replicas": "abc"}});
        let status = decode_patched(Kind::Deployment, &mut object, &patch, FieldValidation::Warn)
            .unwrap_err();
        assert_eq!(
            status.message,
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:abc]]\": unrecognized type: int32"
        );
        let patch = Patch::Merge(json!({"spec": {"replicas": "abc"}}));
        let status = decode_patched(Kind::Deployment, &mut object, &patch, FieldValidation::Warn)
            .unwrap_err();
        assert_eq!(
            status.message,
            " \"\" is invalid: patch: Invalid value: \"{\\\"spec\\\":{\\\"replicas\\\":\\\"abc\\\"}}\": json: cannot unmarshal \
             string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
    }

    #[test]
    fn nulls_and_numbers_for_quantities_are_fine() {
        let mut object = json!({"metadata": {"creationTimestamp": null}, "spec": {"replicas": null, "template": {"spec": {
            "containers": [{"name": null, "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}}}});
        decode_body(Kind::Deployment, &mut object, FieldValidation::Strict).unwrap();
    }
}
