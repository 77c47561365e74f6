//! The injector `secret-content`: keys of a Secret set, replaced or deleted.
//!
//! Everything goes through `data`: `stringData` can only ever add. Values are never printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cluster::resource;
use crate::inject::InjectError;
use crate::inject::change::{FieldChange, ObjectChange, Plan, reference, without_server_fields};
use crate::inject::field::Step;

/// The manager under which `kubectl edit` writes.
const MANAGER: &str = "kubectl-edit";

/// What a scenario says about a Secret's contents.
pub struct Contents<'a> {
    pub namespace: &'a str,
    pub secret: &'a str,
    /// Key to plain text; an empty text deletes the key.
    pub values: &'a [(String, String)],
    /// The same as a JSON Patch list on `/data/KEY` (base64) or `/stringData/KEY` (plain).
    pub ops: &'a [Value],
}

/// Plans new contents of a Secret.
pub async fn plan(client: &kube::Client, contents: &Contents<'_>) -> Result<Plan, InjectError> {
    let resource = resource::of_kind("Secret")?;
    let live = resource
        .get(client, contents.namespace, contents.secret)
        .await?
        .ok_or_else(|| InjectError::TargetMissing {
            object: format!("Secret {}/{}", contents.namespace, contents.secret),
        })?;
    let object = reference("Secret", &live);
    let mut fields = Vec::new();
    for (key, plain) in contents.values {
        let new = (!plain.is_empty()).then(|| Value::String(STANDARD.encode(plain)));
        fields.push(data_field(&live, key, new));
    }
    for op in contents.ops {
        fields.push(operation(&live, op)?);
    }
    if !fields.iter().any(FieldChange::has_effect) {
        let keys: Vec<String> = fields
            .iter()
            .map(|field| crate::inject::field::dotted(&field.path))
            .collect();
        return Err(InjectError::WithoutEffect {
            object: object.to_string(),
            what: format!("nothing would change in {}", keys.join(", ")),
        });
    }
    fields.retain(FieldChange::has_effect);
    Ok(Plan {
        changes: vec![ObjectChange {
            object,
            manager: MANAGER.to_owned(),
            fields,
            snapshot: without_server_fields(&live),
        }],
        ..Plan::default()
    })
}

fn data_field(live: &Value, key: &str, new: Option<Value>) -> FieldChange {
    let path = vec![Step::Key("data".to_owned()), Step::Key(key.to_owned())];
    FieldChange::of(live, path, new)
}

fn operation(live: &Value, op: &Value) -> Result<FieldChange, InjectError> {
    let word = op["op"].as_str().unwrap_or_default();
    let path = op["path"].as_str().unwrap_or_default();
    let unsupported = |why: &str| InjectError::Unsupported {
        what: format!("the operation {word:?} on {path:?} ({why})"),
    };
    let (plain, key) = match (
        path.strip_prefix("/stringData/"),
        path.strip_prefix("/data/"),
    ) {
        (Some(key), _) => (true, key),
        (_, Some(key)) => (false, key),
        _ => return Err(unsupported("only /data/KEY and /stringData/KEY")),
    };
    if key.is_empty() || key.contains('/') {
        return Err(unsupported("one key is named at a time"));
    }
    let key = key.replace("~1", "/").replace("~0", "~");
    match (word, op["value"].as_str()) {
        ("remove", _) => Ok(data_field(live, &key, None)),
        ("add" | "replace", Some(text)) if plain => {
            Ok(data_field(live, &key, Some(STANDARD.encode(text).into())))
        }
        ("add" | "replace", Some(text)) if STANDARD.decode(text).is_ok() => {
            Ok(data_field(live, &key, Some(text.into())))
        }
        ("add" | "replace", Some(_)) => Err(unsupported("its value is not base64")),
        ("add" | "replace", None) => Err(unsupported("its value is not a text")),
        _ => Err(unsupported("only add, replace and remove")),
    }
}
