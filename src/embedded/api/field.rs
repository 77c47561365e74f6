//! Validation errors about one field, with the paths and texts of the real server.

use std::fmt;

use serde_json::Value;

use crate::embedded::api::status::Cause;

/// Where a field stands, such as `spec.containers[0].env[2].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    pub fn new(root: &str) -> Path {
        Path(root.to_owned())
    }

    pub fn child(&self, name: &str) -> Path {
        if self.0.is_empty() {
            return Path(name.to_owned());
        }
        Path(format!("{}.{name}", self.0))
    }

    pub fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }

    pub fn key(&self, key: &str) -> Path {
        Path(format!("{}[{key}]", self.0))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The kinds of field errors, each with its own opening words and cause reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Required,
    Invalid,
    Duplicate,
    NotSupported,
    NotFound,
    Forbidden,
    TooLong,
    TooMany,
}

/// One failed validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    path: Path,
    fault: Fault,
    /// The offending value as text, already quoted or as JSON; empty when none is shown.
    value: String,
    detail: String,
}

impl FieldError {
    fn new(path: &Path, fault: Fault, value: String, detail: impl Into<String>) -> FieldError {
        FieldError {
            path: path.clone(),
            fault,
            value,
            detail: detail.into(),
        }
    }

    pub fn required(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Fault::Required, String::new(), detail)
    }

    pub fn invalid(path: &Path, value: &Value, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Fault::Invalid, value.to_string(), detail)
    }

    /// `value` is shown as it is: the real server prints some structs in a form of their own.
    pub fn invalid_text(path: &Path, value: String, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Fault::Invalid, value, detail)
    }

    /// As `not_supported`, with the value shown as it is.
    pub fn not_supported_text(path: &Path, value: String, supported: &[&str]) -> FieldError {
        let mut error = FieldError::not_supported(path, &Value::Null, supported);
        error.value = value;
        error
    }

    pub fn duplicate(path: &Path, value: &Value) -> FieldError {
        FieldError::new(path, Fault::Duplicate, value.to_string(), "")
    }

    /// `supported` is listed in its order, which is the real server's.
    pub fn not_supported(path: &Path, value: &Value, supported: &[&str]) -> FieldError {
        let listed: Vec<String> = supported.iter().map(|one| format!("\"{one}\"")).collect();
        let detail = format!("supported values: {}", listed.join(", "));
        FieldError::new(path, Fault::NotSupported, value.to_string(), detail)
    }

    pub fn not_found(path: &Path, value: &Value) -> FieldError {
        FieldError::new(path, Fault::NotFound, value.to_string(), "")
    }

    pub fn forbidden(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Fault::Forbidden, String::new(), detail)
    }

    /// `max` in bytes.
    pub fn too_long(path: &Path, max: usize) -> FieldError {
        let detail = format!("may not be more than {max} bytes");
        FieldError::new(path, Fault::TooLong, String::new(), detail)
    }

    pub fn too_many(path: &Path, count: usize, max: usize) -> FieldError {
        let detail = format!("must have at most {max} items");
        FieldError::new(path, Fault::TooMany, count.to_string(), detail)
    }

    pub fn cause(&self) -> Cause {
        let reason = match self.fault {
            Fault::Required => "FieldValueRequired",
            Fault::Invalid => "FieldValueInvalid",
            Fault::Duplicate => "FieldValueDuplicate",
            Fault::NotSupported => "FieldValueNotSupported",
            Fault::NotFound => "FieldValueNotFound",
            Fault::Forbidden => "FieldValueForbidden",
            Fault::TooLong => "FieldValueTooLong",
            Fault::TooMany => "FieldValueTooMany",
        };
        Cause {
            reason: reason.to_owned(),
            message: self.body(),
            field: self.path.0.clone(),
        }
    }

    fn body(&self) -> String {
        let opening = match self.fault {
            Fault::Required => "Required value",
            Fault::Invalid => "Invalid value",
            Fault::Duplicate => "Duplicate value",
            Fault::NotSupported => "Unsupported value",
            Fault::NotFound => "Not found",
            Fault::Forbidden => "Forbidden",
            Fault::TooLong => "Too long",
            Fault::TooMany => "Too many",
        };
        let mut body = opening.to_owned();
        for part in [&self.value, &self.detail] {
            if !part.is_empty() {
                body.push_str(": ");
                body.push_str(part);
            }
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.0, self.body())
    }
}
