//! Reading objects: the handful of fields that every controller asks for, and label selectors.
//!
//! All of it takes missing or mistyped fields for their zero values, as objects in the store were validated.

use serde_json::{Map, Value, json};

use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::World;

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub fn deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

pub fn created(object: &Value) -> Time {
    time(&object["metadata"]["creationTimestamp"]).unwrap_or_default()
}

pub fn time(value: &Value) -> Option<Time> {
    Time::parse(value.as_str()?)
}

/// A whole number, or 0.
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// `spec.replicas`, which defaults to 1.
pub fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// The items of an array, none when it is missing.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The controlling owner reference.
pub fn controller(object: &Value) -> Option<&Value> {
    items(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
}

pub fn controlled_by(object: &Value, owner_uid: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == owner_uid)
}

/// The owner reference that a controller puts on what it makes.
pub fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The condition of a type in `status.conditions`.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == kind)
}

pub fn condition_is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == status)
}

/// Whether a LabelSelector (`matchLabels`, `matchExpressions`) matches labels. An absent selector matches
/// nothing, an empty one everything.
pub fn selects(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    map_selects(&selector["matchLabels"], labels)
        && items(&selector["matchExpressions"])
            .iter()
            .all(|requirement| requirement_holds(requirement, labels))
}

/// Whether all pairs of a plain map stand in labels; an absent map is no restriction.
pub fn map_selects(wanted: &Value, labels: &Value) -> bool {
    wanted.as_object().is_none_or(|wanted| {
        wanted
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// One `{key, operator, values}` of a selector or of a node affinity term.
pub fn requirement_holds(requirement: &Value, labels: &Value) -> bool {
    let value = requirement["key"].as_str().and_then(|key| labels.get(key));
    let values = items(&requirement["values"]);
    let listed = value.is_some_and(|value| values.contains(value));
    let amount = |value: Option<&Value>| value?.as_str()?.parse::<i64>().ok();
    match requirement["operator"].as_str() {
        Some("In") => listed,
        Some("NotIn") => !listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        Some("Gt") => amount(value) > amount(values.first()) && amount(values.first()).is_some(),
        Some("Lt") => amount(value).is_some() && amount(value) < amount(values.first()),
        _ => false,
    }
}

/// Sets or, when it is 0, leaves out a number, as `omitempty` does.
pub fn put_count(map: &mut Map<String, Value>, field: &str, count: i64) {
    if count == 0 {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), count.into());
    }
}

/// A number or a percentage of `total`; percentages round up or down.
pub fn scaled(value: &Value, total: i64, up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(0);
    let product = percent * total;
    if up {
        (product + 99) / 100
    } else {
        product / 100
    }
}

/// Writes `status` when it differs from what is stored.
pub fn set_status(world: &mut World, kind: Kind, object: &Value, status: Value) {
    if object["status"] != status {
        world.update(kind, namespace(object), name(object), |stored| {
            stored["status"] = status;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_by_labels_and_by_expressions() {
        let labels = json!({"app": "web", "tier": "front"});
        assert!(selects(&json!({"matchLabels": {"app": "web"}}), &labels));
        assert!(!selects(&json!({"matchLabels": {"app": "db"}}), &labels));
        assert!(selects(&json!({}), &labels));
        assert!(!selects(&Value::Null, &labels));
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
        assert!(selects(&expression("In", json!(["db", "web"])), &labels));
        assert!(!selects(&expression("NotIn", json!(["web"])), &labels));
        assert!(selects(&expression("Exists", Value::Null), &labels));
        assert!(!selects(&expression("DoesNotExist", Value::Null), &labels));
    }

    #[test]
    fn percentages_round_as_asked() {
        assert_eq!(scaled(&json!("25%"), 3, true), 1);
        assert_eq!(scaled(&json!("25%"), 3, false), 0);
        assert_eq!(scaled(&json!(2), 3, false), 2);
    }
}
