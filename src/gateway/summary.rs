//! Words for the action log: which fields a write touched. Values are shown only where they are numbers of
//! capacity or timing; nothing of a Secret, a ConfigMap, an environment or an annotation is ever repeated.

use serde_json::Value;

use crate::gateway::request::ApiRequest;
use crate::gateway::tools::pointer_paths;

/// Paths named one by one; more are counted. Enough for any field repair.
const MAX_PATHS: usize = 12;
/// Longer paths and values are cut: a summary is read, not parsed.
const MAX_PIECE_CHARS: usize = 120;

/// Fields whose values say what was done and cannot hold a secret.
const SHOWN_VALUES: &[&str] = &[
    "replicas",
    "image",
    "cpu",
    "memory",
    "port",
    "path",
    "paused",
    "serviceAccountName",
    "targetPort",
    "periodSeconds",
    "timeoutSeconds",
    "failureThreshold",
    "initialDelaySeconds",
    "unschedulable",
];

/// Query parameters that tell what a read was after.
const SHOWN_QUERY: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "container",
    "previous",
    "command",
];

/// One line about a request. `body_bytes` is the size of a body that could not be read as JSON.
pub fn summarise(request: &ApiRequest, body: Option<&Value>, body_bytes: usize) -> String {
    if request.reads() || request.verb == "connect" {
        let shown: Vec<String> = request
            .query
            .iter()
            .filter(|(key, _)| SHOWN_QUERY.contains(&key.as_str()))
            .map(|(key, value)| format!("{key}={}", cut(value)))
            .collect();
        return shown.join(" ");
    }
    let mut words = match body {
        Some(body) if request.verb == "patch" => touched(request, body),
        Some(body) if matches!(request.verb, "create" | "update") => written(request, body),
        Some(_) => String::new(),
        None if body_bytes > 0 => format!("body of {body_bytes} bytes that is not JSON"),
        None => String::new(),
    };
    if request.is_dry_run() {
        words = format!("dry run: {words}");
    }
    words
}

fn touched(request: &ApiRequest, body: &Value) -> String {
    let hidden = holds_data(&request.resource);
    let operations: Vec<String> = match body {
        Value::Array(operations) => operations
            .iter()
            .filter(|op| op["op"] != "test")
            .map(|op| {
                let path = op["path"].as_str().unwrap_or_default();
                let word = op["op"].as_str().unwrap_or_default();
                let dotted = path
                    .trim_start_matches('/')
                    .replace('/', ".")
                    .replace("~1", "/")
                    .replace("~0", "~");
                format!(
                    "{} {}{}",
                    cut(word),
                    cut(&dotted),
                    shown_value(&dotted, op.get("value"), hidden)
                )
            })
            .collect(),
        other => pointer_paths(other)
            .into_iter()
            .map(|path| {
                let dotted = path.join(".");
                let value = value_at(other, &path);
                format!("{}{}", cut(&dotted), shown_value(&dotted, value, hidden))
            })
            .collect(),
    };
    listed(&operations)
}

fn written(request: &ApiRequest, body: &Value) -> String {
    let paths: Vec<String> = pointer_paths(body)
        .into_iter()
        .map(|path| path.join("."))
        .filter(|path| {
            !matches!(path.as_str(), "apiVersion" | "kind") && !path.starts_with("metadata.")
        })
        .map(|path| cut(&path))
        .collect();
    let named = request
        .name
        .is_empty()
        .then(|| body["metadata"]["name"].as_str())
        .flatten();
    match named {
        Some(name) => format!("{}: {}", cut(name), listed(&paths)),
        None => listed(&paths),
    }
}

/// Objects whose fields may be credentials.
fn holds_data(resource: &str) -> bool {
    matches!(resource, "secrets" | "configmaps")
}

fn shown_value(dotted: &str, value: Option<&Value>, hidden: bool) -> String {
    let last = dotted.rsplit('.').next().unwrap_or_default();
    if hidden
        || !SHOWN_VALUES.contains(&last)
        || dotted.contains("annotations")
        || dotted.contains("env")
    {
        return match value {
            Some(Value::Null) => " removed".to_owned(),
            _ => String::new(),
        };
    }
    match value {
        Some(Value::Null) => " removed".to_owned(),
        Some(Value::String(text)) => format!(" = {}", cut(text)),
        Some(Value::Number(number)) => format!(" = {number}"),
        Some(Value::Bool(flag)) => format!(" = {flag}"),
        _ => String::new(),
    }
}

/// Follows a path of `pointer_paths`, in which `list[name]` is the element of that name.
fn value_at<'a>(body: &'a Value, path: &[String]) -> Option<&'a Value> {
    let mut at = body;
    for step in path {
        at = match step.strip_suffix(']').and_then(|s| s.split_once('[')) {
            Some((list, name)) if at.get(step).is_none() => at
                .get(list)?
                .as_array()?
                .iter()
                .find(|item| item["name"] == name)?,
            _ => at.get(step)?,
        };
    }
    Some(at)
}

fn listed(pieces: &[String]) -> String {
    let shown = pieces
        .iter()
        .take(MAX_PATHS)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match pieces.len().saturating_sub(MAX_PATHS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Cut at a limit and free of control characters, so that a hostile name cannot break a table.
fn cut(text: &str) -> String {
    let clean: String = text
        .chars()
        .take(MAX_PIECE_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > MAX_PIECE_CHARS {
        format!("{clean}...")
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    fn words(method: Method, path: &str, body: &Value) -> String {
        summarise(&ApiRequest::parse(&method, path, None), Some(body), 0)
    }

    #[test]
    fn a_secret_is_summarised_by_its_keys_only() {
        let path = "/api/v1/namespaces/a/secrets/s";
        let merge = words(
            Method::PATCH,
            path,
            &json!({"stringData": {"TOKEN": "hunter2"}, "data": {"OLD": null}}),
        );
        assert_eq!(merge, "data.OLD removed, stringData.TOKEN");
        let json_patch = words(
            Method::PATCH,
            path,
            &json!([{"op": "add", "path": "/data/TOKEN", "value": "aHVudGVyMg=="}]),
        );
        assert_eq!(json_patch, "add data.TOKEN");
        let create = words(
            Method::POST,
            "/api/v1/namespaces/a/secrets",
            &json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"image": "aHVudGVyMg=="}}),
        );
        assert_eq!(create, "s: data.image");
    }

    #[test]
    fn capacity_is_shown_and_environment_is_not() {
        let body = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "c", "resources": {"limits": {"memory": "64Mi"}}, "env": [{"name": "image", "value": "hunter2"}]}]}}}});
        let text = words(
            Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/d",
            &body,
        );
        assert!(text.contains("resources.limits.memory = 64Mi"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn long_and_odd_texts_are_cut_and_cleaned() {
        let body = json!({"x".repeat(1000): 1, "a\nb": 2});
        let text = words(Method::PATCH, "/api/v1/nodes/n", &body);
        assert!(text.len() < 300 && !text.contains('\n'), "{text}");
    }

    #[test]
    fn a_read_shows_what_it_asked_for() {
        let request = ApiRequest::parse(
            &Method::GET,
            "/api/v1/namespaces/a/pods/p/log",
            Some("previous=true&tailLines=5"),
        );
        assert_eq!(summarise(&request, None, 0), "previous=true");
    }
}
