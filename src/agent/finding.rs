//! What a diagnosis says and what a repair would do, as data.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::agent::evidence::field::Field;
use crate::agent::evidence::{Subject, Workload};

/// Categories of the vocabulary that the rules can tell apart.
pub mod category {
    pub const RESOURCE_LIMIT: &str = "resource-limit-misconfiguration";
    pub const SECRET_CONTENT: &str = "secret-content-mismatch";
    pub const SECRET_MISSING: &str = "secret-missing";
    pub const CREDENTIAL_INVENTION: &str = "credential-invention";
    pub const CROSS_NAMESPACE: &str = "cross-namespace-reference-invalid";
    pub const DEPENDENCY: &str = "dependency-mismatch";
    pub const SCHEMA_MIGRATION: &str = "schema-migration-missing";
    pub const APPLICATION_ERROR: &str = "application-error-uncaught-exception";
    pub const ROLLOUT: &str = "deployment-rollout-failure";
    pub const DNS: &str = "dns-resolution-failure";
    pub const NETWORK_POLICY: &str = "network-policy-blocking-legitimate-traffic";
    pub const PROBE: &str = "probe-misconfigured";
}

/// One explanation of what is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What the explanation is about: family, container, field. Equal keys are the same explanation.
    pub key: String,
    pub category: Cow<'static, str>,
    pub secondary: Vec<&'static str>,
    /// Percent.
    pub confidence: u8,
    pub subject: Subject,
    /// One or two sentences: the diagnosis.
    pub statement: String,
    /// What was seen, quoted.
    pub quotes: Vec<String>,
    /// In order of preference.
    pub repairs: Vec<Repair>,
}

impl Finding {
    /// A finding about a workload, without repairs yet.
    pub fn new(
        workload: &Workload,
        key: impl Into<String>,
        category: &'static str,
        confidence: u8,
        statement: impl Into<String>,
    ) -> Finding {
        Finding {
            key: key.into(),
            category: Cow::Borrowed(category),
            secondary: Vec::new(),
            confidence,
            subject: workload.subject.clone(),
            statement: statement.into(),
            quotes: Vec::new(),
            repairs: Vec::new(),
        }
    }

    pub fn secondary(mut self, categories: &[&'static str]) -> Finding {
        self.secondary.extend_from_slice(categories);
        self
    }

    pub fn quote(mut self, text: impl Into<String>) -> Finding {
        let text = clipped(&text.into(), MAX_QUOTE);
        if !text.is_empty() && !self.quotes.contains(&text) {
            self.quotes.push(text);
        }
        self
    }

    pub fn quotes(self, texts: impl IntoIterator<Item = String>) -> Finding {
        texts.into_iter().fold(self, Finding::quote)
    }

    pub fn repairs(mut self, repairs: impl IntoIterator<Item = Repair>) -> Finding {
        self.repairs.extend(repairs);
        self
    }

    /// Surest first; among equals those that can be repaired; then by name, so that the order is always the same.
    pub fn order(&self, other: &Finding) -> Ordering {
        other
            .confidence
            .cmp(&self.confidence)
            .then_with(|| self.repairs.is_empty().cmp(&other.repairs.is_empty()))
            .then_with(|| self.subject.cmp(&other.subject))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// A change of fields of one object, and the restart that makes it felt.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    pub target: Subject,
    /// Paths from the object's root; each says from which value it starts.
    pub fields: Vec<Field>,
    /// The workload whose pods must start anew to see the change.
    pub restart: Option<Subject>,
    /// Why these values.
    pub why: String,
}

impl Repair {
    /// Which change of which object; the same change is not tried twice.
    pub fn signature(&self) -> String {
        let changes: Vec<String> = self
            .fields
            .iter()
            .map(|field| {
                let wanted = field.wanted.as_ref().map(ToString::to_string);
                format!("{}={}", field.dotted(), wanted.unwrap_or_default())
            })
            .collect();
        let restart = self.restart.as_ref().map(ToString::to_string);
        format!(
            "{} {} {}",
            self.target,
            changes.join(" "),
            restart.unwrap_or_default()
        )
    }

    /// In words, without values of Secrets or of the environment.
    pub fn words(&self) -> String {
        let hidden = self.target.kind == "Secret" || self.target.kind == "ConfigMap";
        let changes: Vec<String> = self
            .fields
            .iter()
            .map(|field| {
                let silent = hidden || field.is_at(&["env"]) || field.is_at(&["envFrom"]);
                let shown = |value: &Option<serde_json::Value>| match value {
                    None => "absent".to_owned(),
                    Some(_) if silent => "set".to_owned(),
                    Some(value) => clipped(&value.to_string(), MAX_SHOWN),
                };
                format!(
                    "{}: {} -> {}",
                    field,
                    shown(&field.is),
                    shown(&field.wanted)
                )
            })
            .collect();
        let restart = self
            .restart
            .as_ref()
            .map(|workload| format!(", then restart {workload}"))
            .unwrap_or_default();
        match changes.is_empty() {
            true => format!("restart {}", self.target),
            false => format!("{}: {}{restart}", self.target, changes.join("; ")),
        }
    }
}

/// Longer values are cut in texts for people.
const MAX_SHOWN: usize = 160;
/// Longer quotes are cut: one line of a log can hold a whole stack.
const MAX_QUOTE: usize = 600;

fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Repairs that take back, revision by revision, what rollouts changed in the fields that `concerns` picks.
pub fn from_history(workload: &Workload, concerns: impl Fn(&Field) -> bool) -> Vec<Repair> {
    let mut repairs: Vec<Repair> = Vec::new();
    for revision in &workload.earlier {
        let fields: Vec<Field> = workload
            .changes_since(revision)
            .into_iter()
            .filter(|field| concerns(field))
            .collect();
        let known = repairs.iter().any(|repair| repair.fields == fields);
        if !fields.is_empty() && !known {
            repairs.push(Repair {
                target: workload.subject.clone(),
                fields,
                restart: None,
                why: format!("the value of revision {}", revision.number),
            });
        }
    }
    repairs
}

/// A repair that sets one field.
pub fn setting(target: &Subject, field: Field, why: impl Into<String>) -> Repair {
    Repair {
        target: target.clone(),
        fields: vec![field],
        restart: None,
        why: why.into(),
    }
}
