//! The injector `flagd-flag`: the default variant of one feature flag, in the JSON text that a ConfigMap holds.
//!
//! Only the bytes of that one value change; order, spacing and every other flag stay as they are, and the undo puts the
//! whole text back byte for byte. Flags and variants are known by their text.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::inject::InjectError;
use crate::inject::change::{FieldChange, Plan, reference};
use crate::inject::configmap_patch;
use crate::inject::field::Step;

/// What a scenario says about a flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag<'a> {
    pub namespace: &'a str,
    pub configmap: &'a str,
    /// The key of the ConfigMap whose text is the flags' definition.
    pub config_key: &'a str,
    pub flag: &'a str,
    pub variant: &'a str,
}

/// Why a flag cannot be switched in the text at hand.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    #[error("has no text under the key {key}; its keys are {known}")]
    NoSuchKey { key: String, known: String },
    #[error("holds no valid definition of flags")]
    Invalid(#[source] serde_json::Error),
    #[error("has no flag {flag}; its flags are {known}")]
    NoSuchFlag { flag: String, known: String },
    #[error("has a flag {flag} without the field {field}")]
    NoField { flag: String, field: &'static str },
    #[error("has no variant {variant} of the flag {flag}; its variants are {known}")]
    NoSuchVariant {
        flag: String,
        variant: String,
        known: String,
    },
    #[error("has the flag {flag} in state {state}, in which its variants are not served")]
    NotEnabled { flag: String, state: String },
}

/// A text with one flag switched.
#[derive(Debug, PartialEq, Eq)]
struct Switched {
    text: String,
    /// A rule of the flag may decide before the default does.
    has_rule: bool,
}

/// Plans the switch of a flag.
pub async fn plan(client: &kube::Client, wanted: &Flag<'_>) -> Result<Plan, InjectError> {
    let live = configmap_patch::live(client, wanted.namespace, wanted.configmap).await?;
    let failed = |source| InjectError::Flag {
        object: reference("ConfigMap", &live).to_string(),
        source,
    };
    let text = live["data"][wanted.config_key].as_str().ok_or_else(|| {
        let data = live["data"].as_object().into_iter().flatten();
        failed(FlagError::NoSuchKey {
            key: wanted.config_key.to_owned(),
            known: listed(data.map(|(key, _)| key)),
        })
    })?;
    let switched = switch(text, wanted.flag, wanted.variant).map_err(failed)?;
    let path = ["data", wanted.config_key]
        .map(|key| Step::Key(key.to_owned()))
        .to_vec();
    let field = FieldChange::of(&live, path, Some(Value::String(switched.text)));
    if !field.has_effect() {
        return Err(InjectError::WithoutEffect {
            object: reference("ConfigMap", &live).to_string(),
            what: format!("flag {} is {}", wanted.flag, wanted.variant),
        });
    }
    let mut plan = configmap_patch::planned(client, &live, vec![field]).await?;
    if switched.has_rule {
        plan.warnings.push(format!(
            "flag {} has a targeting rule, which may decide before its default variant does",
            wanted.flag
        ));
    }
    Ok(plan)
}

/// The fields of an object of JSON, each as the text that stands for it.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Sets the default variant of a flag in the definition's text.
fn switch(text: &str, flag: &str, variant: &str) -> Result<Switched, FlagError> {
    // The definition must be valid as a whole, since a reader refuses it as a whole.
    let root: Fields<'_> = serde_json::from_str(text).map_err(FlagError::Invalid)?;
    let no_flag = |known: String| FlagError::NoSuchFlag {
        flag: flag.to_owned(),
        known,
    };
    let flags = fields(
        root.get("flags")
            .ok_or_else(|| no_flag("none".to_owned()))?,
    )?;
    let one = flags
        .get(flag)
        .ok_or_else(|| no_flag(listed(flags.keys())))?;
    let one = fields(one)?;
    let need = |field: &'static str| {
        one.get(field).copied().ok_or_else(|| FlagError::NoField {
            flag: flag.to_owned(),
            field,
        })
    };
    let state: String = read(need("state")?)?;
    if state != "ENABLED" {
        return Err(FlagError::NotEnabled {
            flag: flag.to_owned(),
            state,
        });
    }
    let variants = fields(need("variants")?)?;
    if !variants.contains_key(variant) {
        return Err(FlagError::NoSuchVariant {
            flag: flag.to_owned(),
            variant: variant.to_owned(),
            known: listed(variants.keys()),
        });
    }
    let default = need("defaultVariant")?;
    let has_rule = one
        .get("targeting")
        .is_some_and(|rule| !matches!(rule.get(), "null" | "{}"));
    let is_so = read::<String>(default).is_ok_and(|now| now == variant);
    let text = if is_so {
        text.to_owned()
    } else {
        let mut edited = text.to_owned();
        edited.replace_range(place(text, default), &Value::from(variant).to_string());
        edited
    };
    Ok(Switched { text, has_rule })
}

fn fields<'a>(raw: &'a RawValue) -> Result<Fields<'a>, FlagError> {
    serde_json::from_str(raw.get()).map_err(FlagError::Invalid)
}

fn read<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T, FlagError> {
    serde_json::from_str(raw.get()).map_err(FlagError::Invalid)
}

/// Where in a text a value stands that was borrowed from it.
fn place(text: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + raw.get().len()
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
