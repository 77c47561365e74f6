//! What Kubernetes wants at well-known places of an object: texts, whole numbers, booleans, amounts.
//!
//! Checked when a file is loaded, so that a wrong type is a line of `validate` and not a refusal in the middle
//! of a run. Places that are not known here are left to the API server.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::scenario::model::PathStep;
use crate::scenario::yaml::excerpt;

/// A value of the wrong type: where below the checked value, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistyped {
    pub path: Vec<PathStep>,
    pub message: String,
}

/// Mappings whose values are texts.
const TEXT_MAPS: [&str; 7] = [
    "data",
    "stringData",
    "binaryData",
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
];
const TEXTS: [&str; 9] = [
    "image",
    "imagePullPolicy",
    "serviceAccountName",
    "path",
    "name",
    "key",
    "mountPath",
    "restartPolicy",
    "priorityClassName",
];
const TEXT_LISTS: [&str; 3] = ["command", "args", "finalizers"];
const WHOLE_NUMBERS: [&str; 14] = [
    "replicas",
    "defaultMode",
    "containerPort",
    "hostPort",
    "nodePort",
    "revisionHistoryLimit",
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "backoffLimit",
    "completions",
    "parallelism",
    "successThreshold",
    "failureThreshold",
];
const BOOLEANS: [&str; 12] = [
    "paused",
    "hostNetwork",
    "hostPID",
    "readOnly",
    "readOnlyRootFilesystem",
    "runAsNonRoot",
    "privileged",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "immutable",
    "optional",
    "suspend",
];
const AMOUNT_MAPS: [&str; 3] = ["limits", "requests", "hard"];

/// Checks a value that stands at `above` in an object of this kind. Nulls pass: they delete.
pub fn check(kind: &str, above: &[PathStep], value: &Value) -> Vec<Mistyped> {
    let mut checker = Checker {
        kind,
        path: above.to_vec(),
        above: above.len(),
        found: Vec::new(),
    };
    checker.walk(value);
    checker.found
}

struct Checker<'a> {
    kind: &'a str,
    path: Vec<PathStep>,
    above: usize,
    found: Vec<Mistyped>,
}

impl Checker<'_> {
    fn walk(&mut self, value: &Value) {
        self.here(value);
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(PathStep::Index(index), item);
                }
            }
            Value::Object(object) => {
                for (key, item) in object {
                    self.below(PathStep::Key(key.clone()), item);
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, step: PathStep, value: &Value) {
        self.path.push(step);
        self.walk(value);
        self.path.pop();
    }

    fn key_at(&self, from_end: usize) -> Option<&str> {
        let index = self.path.len().checked_sub(from_end)?;
        match self.path.get(index) {
            Some(PathStep::Key(key)) => Some(key),
            _ => None,
        }
    }

    fn here(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        let key = self.key_at(1).map(str::to_owned);
        let parent = self.key_at(2).map(str::to_owned);
        let in_map = |maps: &[&str]| {
            parent
                .as_deref()
                .is_some_and(|parent| maps.contains(&parent))
                && key.is_some()
        };
        let is = |keys: &[&str]| key.as_deref().is_some_and(|key| keys.contains(&key));
        let in_list = parent
            .as_deref()
            .is_some_and(|parent| TEXT_LISTS.contains(&parent))
            && key.is_none();
        let env_value = is(&["value"]) && self.key_at(3) == Some("env");
        if in_map(&AMOUNT_MAPS) {
            self.amount(value);
        } else if in_map(&TEXT_MAPS) {
            self.text(value);
            self.base64(value, parent.as_deref());
        } else if env_value || in_list || is(&TEXTS) {
            self.text(value);
        } else if is(&WHOLE_NUMBERS) || key.as_deref().is_some_and(|key| key.ends_with("Seconds")) {
            if !(value.is_i64() || value.is_u64()) {
                self.note(format!("expected a whole number, found {}", what(value)));
            }
        } else if is(&BOOLEANS) && !value.is_boolean() {
            self.note(format!("expected true or false, found {}", what(value)));
        }
    }

    fn text(&mut self, value: &Value) {
        let message = match value {
            Value::String(_) => return,
            Value::Number(_) | Value::Bool(_) => format!(
                "Kubernetes wants text here, found {}; put it in quotes: \"{value}\"",
                what(value)
            ),
            _ => format!("Kubernetes wants text here, found {}", what(value)),
        };
        self.note(message);
    }

    /// The bytes of a Secret's `data`. The value itself is never printed.
    fn base64(&mut self, value: &Value, parent: Option<&str>) {
        let encoded =
            parent == Some("binaryData") || (parent == Some("data") && self.kind == "Secret");
        let broken = value
            .as_str()
            .is_some_and(|text| BASE64_STANDARD.decode(text).is_err());
        if encoded && broken {
            self.note("is not base64; plain text belongs under stringData".to_owned());
        }
    }

    fn amount(&mut self, value: &Value) {
        match value {
            Value::Number(_) => {}
            Value::String(text) if is_amount(text) => {}
            Value::String(text) => self.note(format!(
                "`{}` is not an amount that Kubernetes reads, expected one like 250m, 0.5 or 64Mi",
                excerpt(text)
            )),
            _ => self.note(format!(
                "expected an amount like 250m or 64Mi, found {}",
                what(value)
            )),
        }
    }

    fn note(&mut self, message: String) {
        self.found.push(Mistyped {
            path: self.path[self.above..].to_vec(),
            message,
        });
    }
}

/// Whether a text has the form of a Kubernetes quantity. Only the form: no arithmetic.
pub fn is_amount(text: &str) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let has_digit = number.chars().any(|c| c.is_ascii_digit());
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|power| {
        let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    });
    has_digit && number.matches('.').count() <= 1 && (SUFFIXES.contains(&suffix) || exponent)
}

fn what(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text \"{}\"", excerpt(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(kind: &str, value: Value) -> Vec<String> {
        check(kind, &[], &value)
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn amounts_are_judged_by_their_form() {
        for text in [
            "1000",
            "0.1",
            "0.5Gi",
            ".5",
            "1e3",
            "1E3",
            "1.",
            "+1",
            "32M",
            "0.1m",
            "128974848000m",
            "5E",
        ] {
            assert!(is_amount(text), "{text}");
        }
        for text in [
            "1K", "1ki", "1 Gi", "1m5", "96MB", "", ".", "Mi", "1..5", "1e", "--1", "1e1.5",
        ] {
            assert!(!is_amount(text), "{text}");
        }
    }

    #[test]
    fn string_maps_want_strings_and_say_how_to_write_them() {
        let found = messages(
            "ConfigMap",
            json!({"data": {"retries": 4, "tls": true, "ok": "x", "gone": null}}),
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("put it in quotes: \"4\""));
        assert_eq!(
            messages(
                "Deployment",
                json!({"spec": {"env": [{"name": "A", "value": 5}]}})
            )
            .len(),
            1
        );
        assert_eq!(
            messages("Deployment", json!({"args": ["serve", 5]})).len(),
            1
        );
    }

    #[test]
    fn data_of_a_secret_is_base64_and_is_not_printed() {
        let found = messages("Secret", json!({"data": {"pass": "not base64!"}}));
        assert_eq!(found.len(), 1);
        assert!(!found[0].contains("not base64!"));
        assert!(messages("ConfigMap", json!({"data": {"pass": "not base64!"}})).is_empty());
        assert!(messages("Secret", json!({"stringData": {"pass": "not base64!"}})).is_empty());
    }

    #[test]
    fn whole_numbers_and_booleans_are_not_texts() {
        assert_eq!(messages("Deployment", json!({"replicas": "2"})).len(), 1);
        assert_eq!(
            messages("Deployment", json!({"periodSeconds": 1.5})).len(),
            1
        );
        assert_eq!(messages("Deployment", json!({"paused": "true"})).len(), 1);
        assert!(
            messages(
                "Deployment",
                json!({"replicas": 2, "paused": true, "port": "http"})
            )
            .is_empty()
        );
    }
}
