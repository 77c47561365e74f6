//! Sets of fields: built from objects, compared, and spelled as `fieldsV1` or as paths for people.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::embedded::kind::Kind;
use crate::embedded::patch::schema::{self, Node, Rule};

/// A path of `fieldsV1` elements: `f:spec`, `k:{"name":"api"}`, `v:"x"`.
pub type Path = Vec<String>;

/// A set of owned fields.
pub type FieldSet = BTreeSet<Path>;

/// Metadata that belongs to the server and is owned by nobody.
const UNOWNED_METADATA: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Maps and lists that are always there in the real types, so that creating them is no change of its own.
const ALWAYS_THERE: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "strategy",
    "updateStrategy",
    "containers",
    "jobTemplate",
];

/// The fields of an object and their values; maps and list elements are there with no value of their own.
pub type Index<'a> = BTreeMap<Path, Option<&'a Value>>;

/// Indexes an object. With `interior`, maps and lists that are optional count as fields themselves, as they do
/// for updates; an applied configuration owns only what it states.
pub fn index(kind: Kind, object: &Value, interior: bool) -> Index<'_> {
    let mut index = Index::new();
    let mut path = Path::new();
    walk_map(Node::Object(kind), object, &mut path, interior, &mut index);
    index.retain(|path, _| is_owned(path));
    index
}

fn is_owned(path: &[String]) -> bool {
    match path {
        [top] => !matches!(top.as_str(), "f:apiVersion" | "f:kind" | "f:metadata"),
        [top, field, ..] if top == "f:metadata" => {
            !UNOWNED_METADATA.contains(&field.trim_start_matches("f:"))
        }
        _ => true,
    }
}

fn walk_map<'a>(
    node: Node,
    map: &'a Value,
    path: &mut Path,
    interior: bool,
    index: &mut Index<'a>,
) {
    for (key, value) in map.as_object().into_iter().flatten() {
        path.push(format!("f:{key}"));
        walk_field(node, key, value, path, interior, index);
        path.pop();
    }
}

fn walk_field<'a>(
    node: Node,
    key: &str,
    value: &'a Value,
    path: &mut Path,
    interior: bool,
    index: &mut Index<'a>,
) {
    let (rule, below) = schema::field(node, key);
    let own = interior && !ALWAYS_THERE.contains(&key);
    match value {
        Value::Object(map) if !map.is_empty() && !schema::is_atomic_map(key) => {
            if own {
                index.insert(path.clone(), None);
            }
            walk_map(below, value, path, interior, index);
        }
        Value::Array(list) => {
            let keys = schema::apply_keys(node, key);
            if keys.is_empty() && rule != Rule::Set {
                index.insert(path.clone(), Some(value));
                return;
            }
            if own {
                index.insert(path.clone(), None);
            }
            for element in list {
                path.push(element_name(keys, element));
                if keys.is_empty() {
                    index.insert(path.clone(), Some(element));
                } else {
                    index.insert(path.clone(), None);
                    walk_map(below, element, path, interior, index);
                }
                path.pop();
            }
        }
        _ => {
            index.insert(path.clone(), Some(value));
        }
    }
}

/// How `fieldsV1` names an element of a keyed list or, without keys, of a set.
pub fn element_name(keys: &[&str], element: &Value) -> String {
    if keys.is_empty() {
        return format!("v:{element}");
    }
    let named: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let value = match element.get(*key) {
                Some(value) => value.clone(),
                None if *key == "protocol" => "TCP".into(),
                None => Value::Null,
            };
            ((*key).to_owned(), value)
        })
        .collect();
    format!("k:{}", Value::Object(named))
}

/// Spells a set as `fieldsV1`.
pub fn to_fields(set: &FieldSet) -> Value {
    let mut root = Map::new();
    for path in set {
        insert(&mut root, path);
    }
    let mut fields = Value::Object(root);
    strip_lone_marks(&mut fields);
    fields
}

/// Marks a path's last node with a dot, which goes again where nothing stands beside it.
fn insert(map: &mut Map<String, Value>, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        map.insert(".".to_owned(), Value::Object(Map::new()));
        return;
    };
    let below = map
        .entry(step.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(below) = below.as_object_mut() {
        insert(below, rest);
    }
}

fn strip_lone_marks(fields: &mut Value) {
    let Some(map) = fields.as_object_mut() else {
        return;
    };
    if map.len() == 1 {
        map.remove(".");
    }
    for (key, below) in map.iter_mut() {
        if key != "." {
            strip_lone_marks(below);
        }
    }
}

/// Reads `fieldsV1`.
pub fn from_fields(fields: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    collect(fields, &mut Path::new(), &mut set);
    set
}

fn collect(fields: &Value, path: &mut Path, set: &mut FieldSet) {
    let Some(map) = fields.as_object() else {
        return;
    };
    if !path.is_empty() && (map.is_empty() || map.contains_key(".")) {
        set.insert(path.clone());
    }
    for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
        path.push(key.clone());
        collect(below, path, set);
        path.pop();
    }
}

/// A path as conflicts show it: `.spec.template.spec.containers[name="api"].image`.
pub fn path_text(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        match step.split_at(2) {
            ("f:", name) => {
                text.push('.');
                text.push_str(name);
            }
            ("k:", keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                text.push_str(&format!("[{}]", pairs.join(",")));
            }
            (_, value) => text.push_str(&format!("[={value}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_an_update_are_spelled_as_the_real_server_spells_them() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                "template": {"spec": {"containers": [
                    {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "args": ["x"], "resources": {}}]}},
            },
        });
        let set: FieldSet = index(Kind::Deployment, &object, true).into_keys().collect();
        let fields = to_fields(&set);
        assert_eq!(
            fields,
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:replicas": {}, "f:selector": {},
                    "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                    "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                        ".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:resources": {},
                        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                    }}}},
                },
            })
        );
        assert_eq!(from_fields(&fields), set);
    }

    #[test]
    fn paths_are_shown_with_their_keys() {
        let path: Path = ["f:spec", "f:containers", "k:{\"name\":\"api\"}", "f:image"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(path_text(&path), ".spec.containers[name=\"api\"].image");
    }
}
