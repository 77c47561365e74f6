//! A place in an object: resolving paths against the live object, reading, comparing, and building guarded patches.
//!
//! Pure over JSON. Elements of lists are remembered with their name, so that a list that somebody reordered is a
//! changed position and never a wrong target.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::inject::amount;
use crate::scenario::model::PathStep;

/// One step of a resolved path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Key(String),
    /// Position at the time of resolving; found again by `name` where the element has one.
    Element {
        index: usize,
        name: Option<String>,
    },
}

/// A path that does not lead anywhere in an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("{at} has no element named {name}; there are {known}")]
    NoSuchName {
        at: String,
        name: String,
        known: String,
    },
    #[error("{at} has {length} elements, there is no [{index}]")]
    NoSuchIndex {
        at: String,
        index: usize,
        length: usize,
    },
    #[error("{at} is not a list")]
    NotAList { at: String },
    #[error("{at} holds a plain value and has no fields")]
    NotAnObject { at: String },
}

/// Resolves a scenario's path against the live object. Keys may be absent (they will be made), list elements not.
pub fn resolve(object: &Value, path: &[PathStep]) -> Result<Vec<Step>, PathError> {
    let mut resolved = Vec::new();
    let mut here = Some(object);
    for step in path {
        let (next, step) = match (step, here) {
            (PathStep::Index(index), Some(Value::Array(items))) => {
                let Some(item) = items.get(*index) else {
                    return Err(PathError::NoSuchIndex {
                        at: dotted(&resolved),
                        index: *index,
                        length: items.len(),
                    });
                };
                (Some(item), element(*index, item))
            }
            (PathStep::Named(name) | PathStep::Key(name), Some(Value::Array(items))) => {
                let index = position(items, name).ok_or_else(|| PathError::NoSuchName {
                    at: dotted(&resolved),
                    name: name.clone(),
                    known: names(items),
                })?;
                (items.get(index), element(index, &items[index]))
            }
            (PathStep::Key(key), Some(Value::Object(map))) => {
                (map.get(key), Step::Key(key.clone()))
            }
            (PathStep::Key(key), None | Some(Value::Null)) => (None, Step::Key(key.clone())),
            (PathStep::Key(_), Some(_)) => {
                return Err(PathError::NotAnObject {
                    at: dotted(&resolved),
                });
            }
            (PathStep::Index(_) | PathStep::Named(_), _) => {
                return Err(PathError::NotAList {
                    at: dotted(&resolved),
                });
            }
        };
        resolved.push(step);
        here = next;
    }
    Ok(resolved)
}

/// Finds a resolved path again in an object that may have changed since. Elements with a name are found by it.
pub fn relocate(object: &Value, path: &[Step]) -> Result<Vec<Step>, PathError> {
    let again: Vec<PathStep> = path
        .iter()
        .map(|step| match step {
            Step::Key(key) => PathStep::Key(key.clone()),
            Step::Element {
                name: Some(name), ..
            } => PathStep::Named(name.clone()),
            Step::Element { index, name: None } => PathStep::Index(*index),
        })
        .collect();
    resolve(object, &again)
}

/// The value at a resolved path.
pub fn value_at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter()
        .try_fold(object, |here, step| match step {
            Step::Key(key) => here.get(key),
            Step::Element { index, .. } => here.get(index),
        })
        .filter(|value| !value.is_null())
}

/// How many of the path's ancestors do not exist yet and would be made with it.
pub fn missing_ancestors(object: &Value, path: &[Step]) -> usize {
    (1..path.len())
        .filter(|length| value_at(object, &path[..*length]).is_none())
        .count()
}

/// The path as a scenario file would spell it.
pub fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key)
                if key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$')) =>
            {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Step::Key(key) => text.push_str(&format!("[{}]", Value::from(key.as_str()))),
            Step::Element { index, .. } => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Whether two values at a path mean the same to the API: empty and absent are equal, quantities compare as amounts.
pub fn same(path: &[Step], one: Option<&Value>, other: Option<&Value>) -> bool {
    let (one, other) = (non_empty(one), non_empty(other));
    let (Some(one), Some(other)) = (one, other) else {
        return one.is_none() && other.is_none();
    };
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().all(|key| {
                let mut deeper = path.to_vec();
                deeper.push(Step::Key(key.clone()));
                same(&deeper, a.get(key), b.get(key))
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(path, Some(x), Some(y)))
        }
        _ if one == other => true,
        _ => {
            is_amount(path)
                && match (amount_of(one), amount_of(other)) {
                    (Some(a), Some(b)) => a == b,
                    _ => false,
                }
        }
    }
}

/// Whether everything that was written still stands, apart from what the server or others added inside it.
pub fn holds(path: &[Step], written: Option<&Value>, live: Option<&Value>) -> bool {
    match (non_empty(written), non_empty(live)) {
        (Some(Value::Object(written)), Some(Value::Object(live))) => {
            written.iter().all(|(key, value)| {
                let mut deeper = path.to_vec();
                deeper.push(Step::Key(key.clone()));
                holds(&deeper, Some(value), live.get(key))
            })
        }
        (written, live) => same(path, written, live),
    }
}

fn non_empty(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}

/// Fields whose values are quantities.
fn is_amount(path: &[Step]) -> bool {
    const AMOUNTS: &[&str] = &[
        "limits",
        "requests",
        "hard",
        "sizeLimit",
        "capacity",
        "overhead",
    ];
    path.iter()
        .any(|step| matches!(step, Step::Key(key) if AMOUNTS.contains(&key.as_str())))
}

fn amount_of(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => amount::parse(text),
        Value::Number(number) => amount::parse(&number.to_string()),
        _ => None,
    }
}

/// A JSON Patch under construction, with a working copy that it has been applied to.
pub struct Edit {
    work: Value,
    pub operations: Vec<Value>,
}

impl Edit {
    /// Starts from the live object; the patch fails if the object is by then another one.
    pub fn of(live: &Value) -> Edit {
        let mut operations = Vec::new();
        if let Some(uid) = live["metadata"]["uid"].as_str() {
            operations.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
        }
        Edit {
            work: live.clone(),
            operations,
        }
    }

    /// Sets the value at a path, or removes it for nothing. Up to `made_ancestors` ancestors that are left empty by
    /// a removal go too. Every operation is guarded by a test of what is there now.
    pub fn put(&mut self, path: &[Step], value: Option<&Value>, made_ancestors: usize) {
        self.guard_names(path);
        match value {
            Some(value) => self.set(path, value),
            None => self.remove(path, made_ancestors),
        }
    }

    fn guard_names(&mut self, path: &[Step]) {
        for (at, step) in path.iter().enumerate() {
            if let Step::Element {
                name: Some(name), ..
            } = step
            {
                let guard = json!({
                    "op": "test", "path": format!("{}/name", pointer(&path[..=at])), "value": name,
                });
                if !self.operations.contains(&guard) {
                    self.operations.push(guard);
                }
            }
        }
    }

    fn set(&mut self, path: &[Step], value: &Value) {
        let present = (1..=path.len())
            .take_while(|length| value_at(&self.work, &path[..*length]).is_some())
            .count();
        if present == path.len() {
            self.test(path);
            self.push("replace", path, Some(value));
        } else {
            // The first absent ancestor is added with everything below it.
            let mut subtree = value.clone();
            for step in path[present + 1..].iter().rev() {
                if let Step::Key(key) = step {
                    let mut map = Map::new();
                    map.insert(key.clone(), subtree);
                    subtree = Value::Object(map);
                }
            }
            self.push("add", &path[..=present], Some(&subtree));
        }
        store(&mut self.work, path, value.clone());
    }

    fn remove(&mut self, path: &[Step], made_ancestors: usize) {
        if value_at(&self.work, path).is_none() {
            return;
        }
        let mut length = path.len();
        for _ in 0..made_ancestors {
            let parent = value_at(&self.work, &path[..length - 1]);
            let alone = parent.is_some_and(|p| p.as_object().is_some_and(|map| map.len() == 1));
            if length < 2 || !alone {
                break;
            }
            length -= 1;
        }
        self.test(&path[..length]);
        self.push("remove", &path[..length], None);
        take_out(&mut self.work, &path[..length]);
    }

    fn test(&mut self, path: &[Step]) {
        if let Some(now) = value_at(&self.work, path).cloned() {
            self.push("test", path, Some(&now));
        }
    }

    fn push(&mut self, op: &str, path: &[Step], value: Option<&Value>) {
        let mut operation = json!({"op": op, "path": pointer(path)});
        if let Some(value) = value {
            operation["value"] = value.clone();
        }
        self.operations.push(operation);
    }

    /// What the object becomes by the patch, before the server's own defaulting.
    pub fn result(&self) -> &Value {
        &self.work
    }
}

/// Writes a value at a path whose list elements exist; absent keys are made.
fn store(object: &mut Value, path: &[Step], value: Value) {
    let mut here = object;
    for step in path {
        here = match step {
            Step::Key(key) => {
                if !here.is_object() {
                    *here = Value::Object(Map::new());
                }
                &mut here[key.as_str()]
            }
            Step::Element { index, .. } => match here.get_mut(*index) {
                Some(element) => element,
                None => return,
            },
        };
    }
    *here = value;
}

fn take_out(object: &mut Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let parent = parents.iter().try_fold(object, |here, step| match step {
        Step::Key(key) => here.get_mut(key),
        Step::Element { index, .. } => here.get_mut(*index),
    });
    match (parent, last) {
        (Some(Value::Object(map)), Step::Key(key)) => {
            map.remove(key);
        }
        (Some(Value::Array(items)), Step::Element { index, .. }) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}

/// A path as a JSON Pointer: `~` becomes `~0` first, then `/` becomes `~1`.
pub fn pointer(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        text.push('/');
        match step {
            Step::Key(key) => text.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::Element { index, .. } => text.push_str(&index.to_string()),
        }
    }
    text
}

fn element(index: usize, item: &Value) -> Step {
    Step::Element {
        index,
        name: item["name"].as_str().map(str::to_owned),
    }
}

fn position(items: &[Value], name: &str) -> Option<usize> {
    items.iter().position(|item| item["name"] == name)
}

fn names(items: &[Value]) -> String {
    let names: Vec<&str> = items
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
