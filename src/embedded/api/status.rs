//! Failures as the API server words them: a `Status` object with code, reason, message, details and causes.
//!
//! Every refusal of the API is one of these; nothing here decides when to refuse.

use serde_json::{Map, Value, json};

use crate::embedded::api::field::FieldError;
use crate::embedded::kind::Kind;

/// A refusal. Its `Display` is the message that clients print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    pub code: u16,
    /// Such as `NotFound`; empty where the real server gives none.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The plural resource name, or the kind for validation failures, as there.
    pub kind: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    /// Empty when the cause is about no field.
    pub field: String,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    fn about(mut self, kind: Kind, name: &str) -> Status {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: kind.info().group.to_owned(),
            kind: kind.info().plural.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// Adds a cause; gives the status details if it has none.
    pub fn because(mut self, reason: &str, message: impl Into<String>, field: &str) -> Status {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    pub fn not_found(kind: Kind, name: &str) -> Status {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Status::new(404, "NotFound", message).about(kind, name)
    }

    /// No measurement of a pod or node, or none yet.
    pub fn no_metrics(plural: &str, name: &str) -> Status {
        let message = format!("{plural}.metrics.k8s.io \"{name}\" not found");
        let mut status = Status::new(404, "NotFound", message);
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: "metrics.k8s.io".to_owned(),
            kind: plural.to_owned(),
            ..Details::default()
        }));
        status
    }

    /// No such path: what an unknown group, version or type answers.
    pub fn no_such_path() -> Status {
        let mut status = Status::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        status.details = Some(Box::default());
        status
    }

    /// Nothing that the client accepts can be written.
    pub fn not_acceptable() -> Status {
        Status::not_in_form("only the following media types are accepted: application/json")
    }

    /// An answer that does not exist in the form asked for.
    pub fn not_in_form(message: &str) -> Status {
        Status::new(406, "NotAcceptable", message)
    }

    pub fn exists(kind: Kind, name: &str) -> Status {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Status::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// The resource version that a write builds upon is no longer the newest.
    pub fn modified(kind: Kind, name: &str) -> Status {
        Status::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub fn conflict(kind: Kind, name: &str, why: &str) -> Status {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified()
        );
        Status::new(409, "Conflict", message).about(kind, name)
    }

    /// A delete that is meant for an earlier object of this name.
    pub fn uid_conflict(kind: Kind, name: &str, wanted: &str, real: &str) -> Status {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the UID in the precondition ({wanted}) does not match the UID in record ({real}). The object might have been deleted and then recreated",
            kind.info().name
        );
        Status::new(409, "Conflict", message).about(kind, name)
    }

    /// Conflicting field managers of a server-side apply: one cause per field.
    pub fn apply_conflict(message: String) -> Status {
        Status::new(409, "Conflict", message)
    }

    pub fn forbidden(kind: Kind, name: &str, why: &str) -> Status {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified());
        Status::new(403, "Forbidden", message).about(kind, name)
    }

    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// A body that does not decode into its kind, strictly or at all.
    pub fn undecodable(kind: Kind, why: &str) -> Status {
        let info = kind.info();
        Status::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            info.name, info.version, info.name
        ))
    }

    /// A patch that cannot be applied to the object; the message never names it.
    pub fn bad_patch(message: impl Into<String>) -> Status {
        let mut status = Status::new(422, "Invalid", message);
        status.details = Some(Box::default());
        status
    }

    /// A patch whose outcome does not decode: an unnamed object of no kind, as there.
    pub fn bad_patched(error: &FieldError) -> Status {
        let mut status = Status::bad_patch(format!(" \"\" is invalid: {error}"));
        status.details.get_or_insert_default().causes = vec![error.cause()];
        status
    }

    /// Validation failures, joined as the real server joins them.
    pub fn invalid(kind: Kind, name: &str, errors: &[FieldError]) -> Status {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let all = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", unique(several).join(", ")),
        };
        let info = kind.info();
        let kind_name = if info.group.is_empty() {
            info.name.to_owned()
        } else {
            format!("{}.{}", info.name, info.group)
        };
        let mut status = Status::new(
            422,
            "Invalid",
            format!("{kind_name} \"{name}\" is invalid: {all}"),
        );
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: info.group.to_owned(),
            kind: info.name.to_owned(),
            causes: errors.iter().map(FieldError::cause).collect(),
            retry_after_seconds: None,
        }));
        status
    }

    /// Options of a list or watch that contradict each other.
    pub fn bad_list_options(why: &str) -> Status {
        Status::bad_options("ListOptions", why)
    }

    /// Options of a request that are not valid; `options` is their type.
    pub fn bad_options(options: &str, why: &str) -> Status {
        Status::new(
            422,
            "Invalid",
            format!("{options}.meta.k8s.io \"\" is invalid: {why}"),
        )
    }

    /// A scale that is not valid.
    pub fn invalid_scale(name: &str, error: &FieldError) -> Status {
        let message = format!("Scale.autoscaling \"{name}\" is invalid: {error}");
        let mut status = Status::new(422, "Invalid", message);
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: "autoscaling".to_owned(),
            kind: "Scale".to_owned(),
            causes: vec![error.cause()],
            retry_after_seconds: None,
        }));
        status
    }

    /// An apply that does not say who applies.
    pub fn no_field_manager() -> Status {
        Status::new(
            422,
            "Invalid",
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        )
    }

    /// The resource version or continue token asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u64) -> Status {
        let mut status = Status::new(429, "TooManyRequests", message);
        status.details = Some(Box::new(Details {
            retry_after_seconds: (retry_after_seconds > 0).then_some(retry_after_seconds),
            ..Details::default()
        }));
        status
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Status {
        Status::new(415, "UnsupportedMediaType", message)
    }

    pub fn method_not_allowed() -> Status {
        let mut status = Status::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        status.details = Some(Box::default());
        status
    }

    pub fn too_large(message: impl Into<String>) -> Status {
        Status::new(413, "RequestEntityTooLarge", message)
    }

    /// An error inside the server or in a webhook it called.
    pub fn internal(why: &str) -> Status {
        Status::new(
            500,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .because("", why, "")
    }

    /// A plain error of the server without a reason.
    pub fn unreasoned(message: impl Into<String>) -> Status {
        Status::new(500, "", message)
    }

    /// The JSON that goes over the wire.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut object = Map::new();
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
        ] {
            if !text.is_empty() {
                object.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self.causes.iter().map(Cause::to_value).collect();
            object.insert("causes".to_owned(), causes.into());
        }
        if let Some(seconds) = self.retry_after_seconds {
            object.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        Value::Object(object)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut object = Map::new();
        for (key, text) in [
            ("reason", &self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ] {
            if !text.is_empty() {
                object.insert(key.to_owned(), text.as_str().into());
            }
        }
        Value::Object(object)
    }
}

/// The success answer of a delete, or of an eviction (without details).
pub fn success(about: Option<(Kind, &Value)>) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
    });
    if let Some((kind, object)) = about {
        let info = kind.info();
        status["details"] = json!({
            "name": object["metadata"]["name"], "kind": info.plural, "uid": object["metadata"]["uid"],
        });
        if !info.group.is_empty() {
            status["details"]["group"] = info.group.into();
        }
    }
    status
}

fn unique(texts: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(text) {
            kept.push(text.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::api::field::Path;

    #[test]
    fn several_validation_errors_are_joined_in_brackets_and_repeats_are_dropped() {
        let path = Path::new("spec").child("replicas");
        let error = FieldError::invalid(&path, &json!(-1), "must be greater than or equal to 0");
        let other = FieldError::required(&Path::new("spec").child("selector"), "");
        let status = Status::invalid(Kind::Deployment, "web", &[error.clone(), error, other]);
        assert_eq!(
            status.message,
            "Deployment.apps \"web\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, \
             spec.selector: Required value]"
        );
        assert_eq!(
            status.to_value()["details"]["causes"][0]["reason"],
            "FieldValueInvalid"
        );
    }
}
