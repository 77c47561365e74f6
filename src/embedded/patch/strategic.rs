//! Strategic merge patch: a merge patch that knows which lists have keys, with its directives.
//!
//! `$patch: replace|delete|merge`, `$setElementOrder/F`, `$deleteFromPrimitiveList/F`, `$retainKeys`; the
//! order of merged lists is the real server's, which puts new elements before those that only it knows.

use serde_json::{Map, Value};

use crate::embedded::kind::Kind;
use crate::embedded::patch::schema::{self, Node, Rule};
use crate::embedded::patch::{PatchError, go_text};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// The object with the patch merged into it.
pub fn apply(kind: Kind, object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let empty = Map::new();
    let original = object.as_object().unwrap_or(&empty).clone();
    let Some(patch) = patch.as_object() else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    let merged = merge_map(original, patch.clone(), Node::Object(kind))?;
    Ok(Value::Object(merged))
}

fn merge_map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    node: Node,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => return Ok(plain_map(patch)),
            Some("delete") => return Ok(Map::new()),
            Some("merge") => {}
            _ => {
                return Err(PatchError::Malformed(format!(
                    "Unknown directive type: {directive}"
                )));
            }
        }
    }
    retain_keys(&mut original, &mut patch)?;
    delete_from_sets(&mut original, &mut patch)?;
    apply_orders(&mut original, &mut patch, node)?;
    for (key, change) in patch {
        merge_field(&mut original, &key, change, node)?;
    }
    Ok(original)
}

fn merge_field(
    original: &mut Map<String, Value>,
    key: &str,
    change: Value,
    node: Node,
) -> Result<(), PatchError> {
    if change.is_null() {
        original.remove(key);
        return Ok(());
    }
    let (rule, below) = schema::field(node, key);
    let merged = match (original.remove(key), change) {
        (Some(Value::Object(old)), Value::Object(new)) if rule != Rule::Replaced => {
            Value::Object(merge_map(old, new, below)?)
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            Value::Array(merge_list(old, new, rule, below)?)
        }
        (_, new) => plain(new),
    };
    original.insert(key.to_owned(), merged);
    Ok(())
}

/// `$retainKeys`: keys of the original that it does not name are dropped.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(kept) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Some(kept) = kept.as_array() else {
        return Err(PatchError::Malformed(
            "invalid patch format of retainKeys".to_owned(),
        ));
    };
    let named = |key: &str| kept.iter().any(|one| one == key);
    if patch
        .iter()
        .any(|(key, value)| !value.is_null() && !key.starts_with('$') && !named(key))
    {
        return Err(PatchError::Malformed(
            "invalid patch format of retainKeys".to_owned(),
        ));
    }
    original.retain(|key, _| named(key));
    Ok(())
}

fn delete_from_sets(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    for (field, gone) in take_directives(patch, DELETE_FROM) {
        let Value::Array(gone) = gone else {
            return Err(PatchError::Malformed(
                "invalid patch format of primitive list".to_owned(),
            ));
        };
        if let Some(list) = original.get_mut(&field).and_then(Value::as_array_mut) {
            list.retain(|one| !gone.contains(one));
        }
    }
    Ok(())
}

/// `$setElementOrder`: merges the field at once and puts it into the order asked for; elements that only the
/// original has keep their place relative to their neighbours.
fn apply_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    node: Node,
) -> Result<(), PatchError> {
    for (field, order) in take_directives(patch, SET_ORDER) {
        let Value::Array(order) = order else {
            return Err(PatchError::Malformed(
                "invalid patch format of setElementOrder list".to_owned(),
            ));
        };
        let (rule, below) = schema::field(node, &field);
        let identity = Identity::of(rule);
        let old = take_list(original, &field);
        let new = take_list(patch, &field);
        let merged = match (&old, new) {
            (Some(old), Some(new)) => merge_list(old.clone(), new, rule, below)?,
            (Some(old), None) => old.clone(),
            (None, Some(new)) => plain_list(new),
            (None, None) => continue,
        };
        let ordered = in_order(merged, &order, &old.unwrap_or_default(), identity);
        original.insert(field, Value::Array(ordered));
    }
    Ok(())
}

fn take_list(map: &mut Map<String, Value>, field: &str) -> Option<Vec<Value>> {
    if !map.get(field)?.is_array() {
        return None;
    }
    match map.remove(field) {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    }
}

/// Takes the directives with this prefix out of a patch; answers field names and values.
fn take_directives(patch: &mut Map<String, Value>, prefix: &str) -> Vec<(String, Value)> {
    let keys: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(prefix))
        .cloned()
        .collect();
    keys.into_iter()
        .filter_map(|key| {
            let value = patch.remove(&key)?;
            Some((key[prefix.len()..].to_owned(), value))
        })
        .collect()
}

/// What makes two elements of a list the same.
#[derive(Clone, Copy)]
enum Identity {
    Key(&'static str),
    Whole,
}

impl Identity {
    fn of(rule: Rule) -> Identity {
        match rule {
            Rule::Keyed(key) | Rule::KeyedRetain(key) => Identity::Key(key),
            Rule::Default | Rule::Set | Rule::Replaced => Identity::Whole,
        }
    }

    fn find(self, list: &[Value], element: &Value) -> Option<usize> {
        list.iter().position(|one| match self {
            Identity::Key(key) => one.get(key).is_some() && one.get(key) == element.get(key),
            Identity::Whole => one == element,
        })
    }
}

fn merge_list(
    old: Vec<Value>,
    new: Vec<Value>,
    rule: Rule,
    below: Node,
) -> Result<Vec<Value>, PatchError> {
    match rule {
        Rule::Default | Rule::Replaced => Ok(plain_list(new)),
        Rule::Set => {
            let mut merged = old.clone();
            for one in &new {
                if !merged.contains(one) {
                    merged.push(one.clone());
                }
            }
            Ok(in_order(merged, &new, &old, Identity::Whole))
        }
        Rule::Keyed(key) | Rule::KeyedRetain(key) => merge_keyed(old, new, key, below),
    }
}

fn merge_keyed(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &'static str,
    below: Node,
) -> Result<Vec<Value>, PatchError> {
    let identity = Identity::Key(key);
    let mut replaced = false;
    let mut changes: Vec<Value> = Vec::new();
    for element in new {
        match element.get(DIRECTIVE).and_then(Value::as_str) {
            Some("delete") => {
                require_key(&element, key)?;
                old.retain(|one| one.get(key) != element.get(key));
            }
            Some("replace") => {
                replaced = true;
                // With other fields beside the directive the element itself belongs to the new list.
                if element.as_object().is_some_and(|map| map.len() > 1) {
                    changes.push(plain(element));
                }
            }
            Some("merge") | None => {
                require_key(&element, key)?;
                changes.push(element);
            }
            Some(other) => {
                return Err(PatchError::Malformed(format!(
                    "Unknown directive type: {other}"
                )));
            }
        }
    }
    if replaced {
        return Ok(plain_list(changes));
    }
    let mut merged = old.clone();
    for element in &changes {
        match identity.find(&merged, element) {
            Some(at) => {
                let (Value::Object(before), Value::Object(change)) =
                    (merged[at].take(), element.clone())
                else {
                    continue;
                };
                merged[at] = Value::Object(merge_map(before, change, below)?);
            }
            None => merged.push(plain(element.clone())),
        }
    }
    Ok(in_order(merged, &changes, &old, identity))
}

fn require_key(element: &Value, key: &str) -> Result<(), PatchError> {
    if element.get(key).is_some() {
        return Ok(());
    }
    Err(PatchError::NoMergeKey {
        map: go_text(element),
        key: key.to_owned(),
    })
}

/// Sorts a merged list: elements that `wanted` names in its order, the others in the order of `server`; of
/// two neighbours the one only the server knows goes first only if the server had both, in that order.
fn in_order(
    merged: Vec<Value>,
    wanted: &[Value],
    server: &[Value],
    identity: Identity,
) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|element| identity.find(wanted, element).is_some());
    named.sort_by_key(|element| identity.find(wanted, element));
    others.sort_by_key(|element| identity.find(server, element).unwrap_or(usize::MAX));
    let mut sorted = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    loop {
        let other_first = match (named.peek(), others.peek()) {
            (Some(named), Some(other)) => {
                let places = (identity.find(server, other), identity.find(server, named));
                matches!(places, (Some(other), Some(named)) if other < named)
            }
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return sorted,
        };
        sorted.extend(if other_first {
            others.next()
        } else {
            named.next()
        });
    }
}

/// A value that takes a place of its own: directives and nulls leave it.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(plain_map(map)),
        Value::Array(list) => Value::Array(plain_list(list)),
        other => other,
    }
}

fn plain_map(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter()
        .filter(|(key, value)| !value.is_null() && !is_directive(key))
        .map(|(key, value)| (key, plain(value)))
        .collect()
}

fn plain_list(list: Vec<Value>) -> Vec<Value> {
    list.into_iter()
        .filter(|element| {
            element.get(DIRECTIVE).is_none_or(|_| {
                element.as_object().is_some_and(|map| map.len() > 1)
                    && element[DIRECTIVE] != "delete"
            })
        })
        .map(plain)
        .collect()
}

fn is_directive(key: &str) -> bool {
    key == DIRECTIVE
        || key == RETAIN_KEYS
        || key.starts_with(SET_ORDER)
        || key.starts_with(DELETE_FROM)
}

#[cfg(test)]
mod tests;
