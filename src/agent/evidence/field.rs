//! Fields of objects: how two templates differ, and how a difference becomes a JSON Patch with preconditions.
//! Lists whose elements have names are compared element by element, every other list as a whole.

use std::fmt;

use serde_json::{Value, json};

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Key(String),
    /// The element of a list that has this `name`.
    Named(String),
}

/// A field as it is and as it was (or shall be). `None` means absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub path: Vec<Step>,
    pub is: Option<Value>,
    pub wanted: Option<Value>,
}

/// The annotation that a restart leaves in a template; no change of behaviour.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

impl Field {
    /// A field by its dotted keys, from one value to another.
    pub fn set(path: &[&str], is: Option<Value>, wanted: Option<Value>) -> Field {
        Field {
            path: path
                .iter()
                .map(|key| Step::Key((*key).to_owned()))
                .collect(),
            is,
            wanted,
        }
    }

    /// `spec.containers[api].image`.
    pub fn dotted(&self) -> String {
        dotted(&self.path)
    }

    /// Whether the path holds these keys one after another, names of elements passed over.
    pub fn is_at(&self, keys: &[&str]) -> bool {
        let own: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Named(_) => None,
            })
            .collect();
        own.windows(keys.len()).any(|window| window == keys)
    }

    /// Whether it lies in the container of this name.
    pub fn in_container(&self, name: &str) -> bool {
        self.path.windows(2).any(|pair| {
            matches!(&pair[0], Step::Key(list) if list == "containers" || list == "initContainers")
                && pair[1] == Step::Named(name.to_owned())
        })
    }

    pub(crate) fn is_restart_stamp(&self) -> bool {
        self.path
            .iter()
            .any(|step| *step == Step::Key(RESTARTED_AT.to_owned()))
            || self.only_stamps()
    }

    /// An annotations map that holds nothing but the stamp, against none at all.
    fn only_stamps(&self) -> bool {
        let stamps = |value: &Option<Value>| match value {
            None => true,
            Some(Value::Object(map)) => map.keys().all(|key| key == RESTARTED_AT),
            _ => false,
        };
        self.path.last() == Some(&Step::Key("annotations".to_owned()))
            && stamps(&self.is)
            && stamps(&self.wanted)
    }

    /// The same field seen from further up.
    pub fn under(mut self, keys: &[&str]) -> Field {
        let prefix = keys.iter().map(|key| Step::Key((*key).to_owned()));
        self.path.splice(0..0, prefix);
        self
    }

    /// The way back.
    pub fn reversed(&self) -> Field {
        Field {
            path: self.path.clone(),
            is: self.wanted.clone(),
            wanted: self.is.clone(),
        }
    }

    /// Whether the object still has the value from which the change starts.
    pub fn starts_from(&self, object: &Value) -> bool {
        let found = lookup(object, &self.path);
        match (&self.is, found) {
            (None, None) => true,
            // An empty map or list and an absent one are the same to the API.
            (None, Some(value)) => is_empty(value),
            (Some(expected), Some(value)) => expected == value,
            (Some(expected), None) => is_empty(expected),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.dotted())
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

pub fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Named(name) => text.push_str(&format!("[{name}]")),
        }
    }
    text
}

/// The value at a path.
pub fn lookup<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, step| match step {
        Step::Key(key) => at.get(key),
        Step::Named(name) => at.as_array()?.iter().find(|item| item["name"] == *name),
    })
}

/// What `current` would have to change to become `earlier`.
pub fn difference(current: &Value, earlier: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    compare(current, earlier, &mut Vec::new(), &mut found);
    found
}

/// Deeper nesting than a pod template has; below it values are compared whole.
const MAX_DEPTH: usize = 32;

fn compare(current: &Value, earlier: &Value, at: &mut Vec<Step>, found: &mut Vec<Field>) {
    if current == earlier {
        return;
    }
    match (current, earlier) {
        (Value::Object(is), Value::Object(was)) if at.len() < MAX_DEPTH => {
            let mut keys: Vec<&String> = is.keys().chain(was.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                // Written by the Deployment's controller, different in every ReplicaSet.
                if key == "pod-template-hash" || key == "creationTimestamp" {
                    continue;
                }
                at.push(Step::Key(key.clone()));
                sides(is.get(key), was.get(key), at, found);
                at.pop();
            }
        }
        (Value::Array(is), Value::Array(was))
            if at.len() < MAX_DEPTH && all_named(is) && all_named(was) =>
        {
            let mut names: Vec<&str> = was.iter().chain(is).filter_map(name_of).collect();
            let mut seen = Vec::new();
            names.retain(|name| {
                let first = !seen.contains(name);
                seen.push(*name);
                first
            });
            for name in names {
                let by_name = |list: &'_ [Value]| list.iter().position(|i| i["name"] == name);
                at.push(Step::Named(name.to_owned()));
                sides(
                    by_name(is).map(|index| &is[index]),
                    by_name(was).map(|index| &was[index]),
                    at,
                    found,
                );
                at.pop();
            }
        }
        _ => found.push(Field {
            path: at.clone(),
            is: Some(current.clone()),
            wanted: Some(earlier.clone()),
        }),
    }
}

fn sides(is: Option<&Value>, was: Option<&Value>, at: &mut Vec<Step>, found: &mut Vec<Field>) {
    match (is, was) {
        (Some(is), Some(was)) => compare(is, was, at, found),
        (is, was) => {
            let absent = is.is_none_or(is_empty) && was.is_none_or(is_empty);
            if !absent {
                found.push(Field {
                    path: at.clone(),
                    is: is.cloned(),
                    wanted: was.cloned(),
                });
            }
        }
    }
}

fn name_of(item: &Value) -> Option<&str> {
    item["name"].as_str()
}

fn all_named(items: &[Value]) -> bool {
    items.iter().all(|item| name_of(item).is_some())
}

/// A JSON Patch that makes these changes on `object` and is refused when a value has moved meanwhile. `None` when
/// a change does not start from what the object holds.
pub fn json_patch(object: &Value, fields: &[Field]) -> Option<Vec<Value>> {
    let mut operations = Vec::new();
    let mut removals: Vec<(String, Vec<Value>)> = Vec::new();
    for field in fields {
        if !field.starts_from(object) {
            return None;
        }
        let present = lookup(object, &field.path);
        let pointer = pointer(object, &field.path)?;
        match (present, &field.wanted) {
            (Some(value), Some(wanted)) => {
                operations.push(json!({"op": "test", "path": pointer, "value": value}));
                operations.push(json!({"op": "replace", "path": pointer, "value": wanted}));
            }
            (Some(value), None) => removals.push((
                pointer.clone(),
                vec![
                    json!({"op": "test", "path": pointer, "value": value}),
                    json!({"op": "remove", "path": pointer}),
                ],
            )),
            (None, Some(wanted)) => {
                operations.push(json!({"op": "add", "path": pointer, "value": wanted}));
            }
            (None, None) => {}
        }
    }
    // Later elements first, so that no removal moves another's index.
    removals.reverse();
    operations.extend(removals.into_iter().flat_map(|(_, ops)| ops));
    Some(operations)
}

/// The JSON pointer of a path; an absent last element of a list becomes `-`.
fn pointer(object: &Value, path: &[Step]) -> Option<String> {
    let mut text = String::new();
    let mut at = Some(object);
    for (index, step) in path.iter().enumerate() {
        let last = index + 1 == path.len();
        match step {
            Step::Key(key) => {
                text.push('/');
                text.push_str(&key.replace('~', "~0").replace('/', "~1"));
                at = at.and_then(|value| value.get(key));
            }
            Step::Named(name) => {
                let items = at?.as_array()?;
                match items.iter().position(|item| item["name"] == *name) {
                    Some(position) => {
                        text.push_str(&format!("/{position}"));
                        at = items.get(position);
                    }
                    None if last => text.push_str("/-"),
                    None => return None,
                }
            }
        }
        // Only the last step may be missing: an `add` needs its parent.
        if at.is_none() && !last {
            return None;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(containers: Value) -> Value {
        json!({"metadata": {"labels": {"app": "a", "pod-template-hash": "x"}}, "spec": {"containers": containers}})
    }

    #[test]
    fn templates_are_compared_by_field_and_by_name() {
        let now = template(
            json!([{"name": "c", "image": "i:2", "resources": {"limits": {"cpu": "10m", "memory": "1Gi"}},
            "env": [{"name": "A", "value": "1"}]}]),
        );
        let then = template(
            json!([{"name": "c", "image": "i:1", "resources": {"limits": {"memory": "1Gi"}},
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]),
        );
        let found: Vec<String> = difference(&now, &then).iter().map(Field::dotted).collect();
        assert_eq!(
            found,
            [
                "spec.containers[c].env[B]",
                "spec.containers[c].image",
                "spec.containers[c].resources.limits.cpu"
            ]
        );
    }

    #[test]
    fn hashes_and_restart_stamps_are_no_difference() {
        let mut now = template(json!([]));
        now["metadata"]["annotations"] = json!({RESTARTED_AT: "2026-01-01T00:00:00Z"});
        let mut then = template(json!([]));
        then["metadata"]["labels"]["pod-template-hash"] = json!("y");
        let found = difference(&now, &then);
        assert!(found.iter().all(Field::is_restart_stamp), "{found:?}");
    }

    #[test]
    fn a_patch_tests_what_it_replaces_and_removes_from_the_end() {
        let now =
            json!({"spec": {"env": [{"name": "A"}, {"name": "X"}, {"name": "Y"}], "image": "b"}});
        let then = json!({"spec": {"env": [{"name": "A"}], "image": "a", "more/less": 1}});
        let operations = json_patch(&now, &difference(&now, &then)).unwrap();
        let words: Vec<String> = operations
            .iter()
            .map(|op| {
                format!(
                    "{} {}",
                    op["op"].as_str().unwrap(),
                    op["path"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(
            words,
            [
                "test /spec/image",
                "replace /spec/image",
                "add /spec/more~1less",
                "test /spec/env/2",
                "remove /spec/env/2",
                "test /spec/env/1",
                "remove /spec/env/1",
            ]
        );
    }

    #[test]
    fn an_absent_list_is_added_whole_and_an_absent_element_at_the_end() {
        let was = json!({"env": [{"name": "A"}]});
        let whole = json_patch(&json!({}), &difference(&json!({}), &was)).unwrap();
        assert_eq!(
            whole,
            [json!({"op": "add", "path": "/env", "value": [{"name": "A"}]})]
        );
        let empty = json!({"env": []});
        let element = json_patch(&empty, &difference(&empty, &was)).unwrap();
        assert_eq!(
            element,
            [json!({"op": "add", "path": "/env/-", "value": {"name": "A"}})]
        );
    }

    #[test]
    fn a_moved_value_makes_no_patch() {
        let field = Field::set(&["spec", "replicas"], Some(json!(0)), Some(json!(3)));
        assert!(json_patch(&json!({"spec": {"replicas": 2}}), &[field]).is_none());
    }
}
