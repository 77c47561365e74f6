//! Labels, selectors and lists of names as table cells spell them.

use std::collections::BTreeMap;

use serde_json::Value;

/// What stands where nothing is set.
pub(super) const NONE: &str = "<none>";
/// What stands where an optional field is absent.
pub(super) const UNSET: &str = "<unset>";

/// A label map: `a=1,b=2`.
pub(super) fn labels(map: &Value) -> String {
    let pairs: Vec<String> = sorted(map)
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    or_none(pairs.join(","))
}

/// A label selector, or `<none>` for one that is absent or empty.
pub(super) fn selector_or_none(selector: &Value) -> String {
    or_none(selector_text(selector))
}

/// A label selector; its requirements in the order of their keys.
pub(super) fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = sorted(&selector["matchLabels"])
        .into_iter()
        .map(|(key, value)| (key.to_owned(), format!("{key}={value}")))
        .collect();
    for one in list(&selector["matchExpressions"]) {
        let key = text(&one["key"]);
        let mut values: Vec<&str> = list(&one["values"]).iter().map(text).collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(&one["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

/// Names and images of containers, each joined by commas.
pub(super) fn containers(pod_spec: &Value) -> [Value; 2] {
    let joined = |field: &str| -> Value {
        let parts: Vec<&str> = list(&pod_spec["containers"])
            .iter()
            .map(|container| text(&container[field]))
            .collect();
        parts.join(",").into()
    };
    [joined("name"), joined("image")]
}

pub(super) fn or_none(text: String) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// A text field; empty when absent.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text field, or what stands for its absence.
pub(super) fn text_or<'a>(value: &'a Value, absent: &'a str) -> &'a str {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .unwrap_or(absent)
}

/// A count; 0 when absent, as the real server's types have it.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A number or a text, such as `2` or `25%`; nothing when absent.
pub(super) fn number_or_text(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// A list field; empty when absent.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// How many entries a map field has.
pub(super) fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

/// The first `max` of the parts, and how many more there are.
pub(super) fn first_of(parts: &[String], max: usize, separator: &str) -> String {
    let shown = parts[..parts.len().min(max)].join(separator);
    match parts.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn sorted(map: &Value) -> BTreeMap<&str, &str> {
    map.as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), text(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_spelled_in_the_order_of_their_keys() {
        let selector = json!({
            "matchLabels": {"tier": "web", "app": "shop"},
            "matchExpressions": [
                {"key": "env", "operator": "In", "values": ["prod", "dev"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "zone", "operator": "NotIn", "values": ["a"]},
                {"key": "new", "operator": "Exists"},
            ],
        });
        assert_eq!(
            selector_text(&selector),
            "app=shop,env in (dev,prod),new,!old,tier=web,zone notin (a)"
        );
        assert_eq!(selector_or_none(&json!({})), "<none>");
        assert_eq!(labels(&json!({"b": "2", "a": "1"})), "a=1,b=2");
        assert_eq!(labels(&Value::Null), "<none>");
    }
}
