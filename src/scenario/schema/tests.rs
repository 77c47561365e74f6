//! The schema is committed, and agrees with the loader about keys and about every compiled-in file.

use serde_json::Value;

use super::*;
use crate::scenario::builtin;
use crate::scenario::decode::json;
use crate::scenario::load::{INJECTOR_KEYS, SCENARIO_KEYS};
use crate::scenario::problem::Notes;
use crate::scenario::yaml;

fn schema_value() -> Value {
    serde_json::to_value(schema()).unwrap()
}

fn file_as_json(text: &str) -> Value {
    let mut notes = Notes::default();
    let root = yaml::parse(text, &mut notes).unwrap();
    json(&root, "", &mut notes)
}

/// What a value breaks of a schema, as far as the keywords that our schema uses.
fn breaks(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(name) = schema["$ref"].as_str() {
        let target = root
            .pointer(name.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{name}"));
        wrong.extend(breaks(root, target, value, path));
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(choices) = schema[keyword].as_array() else {
            continue;
        };
        if !choices
            .iter()
            .any(|choice| breaks(root, choice, value, path).is_empty())
        {
            wrong.push(format!("{path}: none of the forms fits"));
        }
    }
    let fits_type = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| fits_type(name)) {
        wrong.push(format!("{path}: expected {types:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value)
        || schema["enum"]
            .as_array()
            .is_some_and(|words| !words.contains(value))
    {
        wrong.push(format!("{path}: not one of the words"));
    }
    wrong.extend(breaks_inside(root, schema, value, path));
    wrong
}

fn breaks_inside(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        for (index, item) in items.iter().enumerate() {
            wrong.extend(breaks(root, schema, item, &format!("{path}[{index}]")));
        }
    }
    let Some(object) = value.as_object() else {
        return wrong;
    };
    for key in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !object.contains_key(key) {
            wrong.push(format!("{path}.{key}: missing"));
        }
    }
    for (key, item) in object {
        match schema["properties"].get(key) {
            Some(schema) => wrong.extend(breaks(root, schema, item, &format!("{path}.{key}"))),
            None if schema["additionalProperties"] == false => {
                wrong.push(format!("{path}.{key}: unknown"));
            }
            None => {}
        }
    }
    wrong
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scenario.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == generated,
        "run `UPDATE_SCHEMA=1 cargo test --lib scenario::schema`"
    );
}

#[test]
fn every_compiled_in_scenario_fits_the_schema() {
    let schema = schema_value();
    for (path, text) in builtin::files() {
        if path.starts_with("scenarios/") {
            let wrong = breaks(&schema, &schema, &file_as_json(text), "");
            assert!(wrong.is_empty(), "{path}: {wrong:?}");
        }
    }
}

#[test]
fn a_key_that_the_loader_refuses_is_refused_by_the_schema() {
    let schema = schema_value();
    let (_, text) = builtin::files()
        .into_iter()
        .find(|(path, _)| path.starts_with("scenarios/anchor"))
        .unwrap();
    let good = file_as_json(text);
    for place in [
        "",
        "/injector",
        "/injector/target",
        "/detector",
        "/scorer",
        "/scorer/credits",
        "/ground_truth",
    ] {
        let mut bad = good.clone();
        bad.pointer_mut(place).unwrap()["surprise"] = Value::from(1);
        assert!(!breaks(&schema, &schema, &bad, "").is_empty(), "{place}");
    }
}

#[test]
fn the_schema_and_the_loader_know_the_same_keys() {
    let schema = schema_value();
    let mut keys: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut known: Vec<&str> = SCENARIO_KEYS.to_vec();
    keys.sort_unstable();
    known.sort_unstable();
    assert_eq!(keys, known);

    let forms = schema["$defs"]["Injector"]["oneOf"].as_array().unwrap();
    for (kind, own, target) in INJECTOR_KEYS {
        let form = forms
            .iter()
            .find(|form| form["properties"]["type"]["const"] == kind)
            .unwrap();
        let mut found: Vec<&str> = form["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut expected: Vec<&str> = own.iter().copied().chain(["type", "target"]).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
        let name = form["properties"]["target"]["$ref"].as_str().unwrap();
        let properties = &schema.pointer(name.trim_start_matches('#')).unwrap()["properties"];
        let mut found: Vec<&str> = properties
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut expected: Vec<&str> = target.iter().copied().chain(["ns"]).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
    }
}
