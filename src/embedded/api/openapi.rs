//! OpenAPI v3 documents: one per group and version, with what clients ask them for.
//!
//! kubectl reads from them which query parameters a write of a kind takes (`fieldValidation`, `dryRun`, …) before it
//! sends one, and refuses to create or apply without them; `kubectl explain` reads the schemas. No document says that
//! strategic merge patches are taken: kubectl would then compute them by the schemas, which lack the merge keys of
//! lists, instead of by its own types, which are right.

mod schema;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::embedded::kind::{KINDS, KindInfo};

/// Hex digits of a document's digest that make a client fetch it anew when it differs.
const HASH_DIGITS: usize = 32;

/// The answer to a path below `/openapi/v3`; `None` when there is no such document.
pub fn answer(path: &[&str]) -> Option<Value> {
    match path {
        [] => Some(index()),
        ["api", version] => document("", version),
        ["apis", group, version] => document(group, version),
        _ => None,
    }
}

fn index() -> Value {
    let mut paths: BTreeMap<String, Value> = BTreeMap::new();
    for info in KINDS {
        let place = if info.group.is_empty() {
            format!("api/{}", info.version)
        } else {
            format!("apis/{}/{}", info.group, info.version)
        };
        if paths.contains_key(&place) {
            continue;
        }
        let text = document(info.group, info.version)
            .unwrap_or_default()
            .to_string();
        let hash = hex::encode_upper(Sha256::digest(text));
        let url = format!("/openapi/v3/{place}?hash={}", &hash[..HASH_DIGITS]);
        paths.insert(place, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

fn document(group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let kinds: Vec<&KindInfo> = KINDS
        .iter()
        .filter(|info| info.group == group && info.version == version)
        .collect();
    for info in &kinds {
        let (collection, object) = paths_of(info);
        paths.insert(
            collection,
            json!({
                "get": operation(info, "list", &[]),
                "post": operation(info, "post", &["dryRun", "fieldManager", "fieldValidation"]),
            }),
        );
        paths.insert(
            object,
            json!({
                "get": operation(info, "get", &[]),
                "put": operation(info, "put", &["dryRun", "fieldManager", "fieldValidation"]),
                "patch": operation(info, "patch", &["dryRun", "fieldManager", "fieldValidation", "force"]),
                "delete": operation(info, "delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
            }),
        );
    }
    if paths.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.34.4"},
        "paths": paths, "components": {"schemas": schema::of(&kinds)},
    }))
}

/// The paths of a kind's collection and of one of its objects.
fn paths_of(info: &KindInfo) -> (String, String) {
    let root = if info.group.is_empty() {
        format!("/api/{}", info.version)
    } else {
        format!("/apis/{}/{}", info.group, info.version)
    };
    let scope = if info.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let collection = format!("{root}{scope}/{}", info.plural);
    let object = format!("{collection}/{{name}}");
    (collection, object)
}

fn operation(info: &KindInfo, action: &str, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| {
            let kind = match *name {
                "force" => "boolean",
                "gracePeriodSeconds" => "integer",
                _ => "string",
            };
            json!({ "name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true} })
        })
        .collect();
    json!({
        "parameters": parameters, "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": info.group, "version": info.version, "kind": info.name},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_of_the_index_is_there_and_knows_the_parameters_of_patches() {
        let index = answer(&[]).unwrap();
        for (place, entry) in index["paths"].as_object().unwrap() {
            let path: Vec<&str> = place.split('/').collect();
            let document = answer(&path).unwrap();
            assert!(
                entry["serverRelativeURL"]
                    .as_str()
                    .unwrap()
                    .contains("?hash=")
            );
            let patched = document["paths"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(|path| path.get("patch"));
            for patch in patched {
                let names: Vec<&Value> = patch["parameters"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| &one["name"])
                    .collect();
                assert!(names.contains(&&json!("fieldValidation")));
                assert!(names.contains(&&json!("dryRun")));
                assert!(
                    patch.get("requestBody").is_none(),
                    "kubectl would trust it for merges"
                );
            }
        }
        assert!(answer(&["apis", "nope", "v1"]).is_none());
    }
}
