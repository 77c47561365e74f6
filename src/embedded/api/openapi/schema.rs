//! Schemas of the served types for `kubectl explain`: fields and their types, without descriptions.
//!
//! They come from the table by which protobuf is read, so both always agree.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::embedded::api::protobuf::{self, FieldType};
use crate::embedded::kind::KindInfo;

/// Schemas by name: those of the given kinds and all that they are made of.
pub(super) fn of(kinds: &[&KindInfo]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for info in kinds {
        let api_version = info.kind.api_version();
        let root = protobuf::type_name(&api_version, info.name);
        add(&root, &mut found);
        if let Some(schema) = found.get_mut(&name(&root)) {
            schema["properties"]["apiVersion"] = json!({ "type": "string" });
            schema["properties"]["kind"] = json!({ "type": "string" });
            schema["x-kubernetes-group-version-kind"] =
                json!([{ "group": info.group, "version": info.version, "kind": info.name }]);
        }
    }
    found
}

fn add(type_name: &str, found: &mut BTreeMap<String, Value>) {
    let name = name(type_name);
    if found.contains_key(&name) {
        return;
    }
    // Held open, in case a type is part of itself.
    found.insert(name.clone(), Value::Null);
    let mut properties = Map::new();
    collect(type_name, &mut properties, found);
    found.insert(name, json!({ "type": "object", "properties": properties }));
}

fn collect(
    type_name: &str,
    properties: &mut Map<String, Value>,
    found: &mut BTreeMap<String, Value>,
) {
    for field in protobuf::fields(type_name) {
        match field.kind {
            FieldType::Message(inner) if field.inline => collect(inner, properties, found),
            kind => {
                properties.insert(field.name.to_owned(), schema(kind, found));
            }
        }
    }
}

fn schema(kind: FieldType, found: &mut BTreeMap<String, Value>) -> Value {
    match kind {
        FieldType::List(item) => {
            json!({ "type": "array", "items": schema(FieldType::of(item), found) })
        }
        FieldType::Map(value) => {
            json!({ "type": "object", "additionalProperties": schema(FieldType::of(value), found) })
        }
        FieldType::Message(type_name) => {
            add(type_name, found);
            let reference = format!("#/components/schemas/{}", name(type_name));
            json!({ "allOf": [{"$ref": reference}] })
        }
        FieldType::Plain(plain) => match plain {
            "number" => json!({ "type": "integer" }),
            "flag" => json!({ "type": "boolean" }),
            "bytes" => json!({ "type": "string", "format": "byte" }),
            "time" | "microtime" => json!({ "type": "string", "format": "date-time" }),
            "intorstring" => json!({ "type": "string", "format": "int-or-string" }),
            "raw" => json!({ "type": "object" }),
            _ => json!({ "type": "string" }),
        },
    }
}

/// The name under which documents hold a type: `io.k8s.api.core.v1.Pod` for `corev1.Pod`.
fn name(type_name: &str) -> String {
    let (package, kind) = type_name.split_once('.').unwrap_or(("", type_name));
    let at = package.rfind('v').unwrap_or(package.len());
    let (group, version) = package.split_at(at);
    match group {
        "meta" => format!("io.k8s.apimachinery.pkg.apis.meta.{version}.{kind}"),
        _ => format!("io.k8s.api.{group}.{version}.{kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::kind::Kind;

    #[test]
    fn a_deployment_is_described_down_to_its_probes() {
        let found = of(&[Kind::Deployment.info()]);
        let root = &found["io.k8s.api.apps.v1.Deployment"];
        assert_eq!(
            root["x-kubernetes-group-version-kind"][0]["kind"],
            "Deployment"
        );
        let probe = &found["io.k8s.api.core.v1.Probe"]["properties"];
        assert_eq!(probe["periodSeconds"]["type"], "integer");
        // Fields of an inline type stand in the type itself.
        assert!(probe["httpGet"]["allOf"][0]["$ref"].is_string());
        for schema in found.values() {
            for field in schema["properties"].as_object().unwrap().values() {
                let reference = field["allOf"][0]["$ref"]
                    .as_str()
                    .or_else(|| field["items"]["allOf"][0]["$ref"].as_str());
                if let Some(reference) = reference {
                    let target = reference.trim_start_matches("#/components/schemas/");
                    assert!(found.contains_key(target), "{reference}");
                }
            }
        }
    }
}
