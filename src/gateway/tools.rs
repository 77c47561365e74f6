//! The one table of tools: which request is which tool, at which tier, and how far it can be taken back.
//!
//! Reading and dry runs change nothing (tier 1, 0). Patching a field can be undone from a snapshot of the object
//! (tier 2, 0.3). What runs inside a container leaves traces that no snapshot holds (tier 2, 0.7). Creating,
//! replacing whole objects and applying manifests can overwrite what was never looked at; deleting and evicting
//! destroy state (tier 3, 1). A patch that takes finalizers away is a deletion in disguise. Whatever the
//! table does not know counts as the worst.

use http::HeaderMap;
use serde_json::Value;

use crate::gateway::request::ApiRequest;
use crate::ids::MicroPoints;

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: &'static str,
    /// 1 read-only, 2 reversible mutation, 3 needs approval.
    pub tier: u8,
    pub reversibility: MicroPoints,
}

const READ_ONLY: MicroPoints = MicroPoints(0);
const RESTORABLE: MicroPoints = MicroPoints(300_000);
const WITH_EFFORT: MicroPoints = MicroPoints(700_000);
const NOT_REVERSIBLE: MicroPoints = MicroPoints(1_000_000);

const fn tool(name: &'static str, tier: u8, reversibility: MicroPoints) -> Tool {
    Tool {
        name,
        tier,
        reversibility,
    }
}

pub const GET: Tool = tool("kubectl_get", 1, READ_ONLY);
pub const DESCRIBE: Tool = tool("kubectl_describe", 1, READ_ONLY);
pub const LOGS: Tool = tool("kubectl_logs", 1, READ_ONLY);
pub const TOP: Tool = tool("kubectl_top", 1, READ_ONLY);
pub const SCALE: Tool = tool("kubectl_scale", 2, RESTORABLE);
pub const ROLLOUT_RESTART: Tool = tool("kubectl_rollout_restart", 2, RESTORABLE);
pub const ROLLOUT_UNDO: Tool = tool("kubectl_rollout_undo", 2, RESTORABLE);
pub const PATCH: Tool = tool("kubectl_patch", 2, RESTORABLE);
pub const SET: Tool = tool("kubectl_set", 2, RESTORABLE);
pub const PATCH_FINALIZERS: Tool = tool("kubectl_patch", 3, NOT_REVERSIBLE);
pub const EXEC: Tool = tool("kubectl_exec", 2, WITH_EFFORT);
pub const APPLY: Tool = tool("kubectl_apply", 3, NOT_REVERSIBLE);
pub const DELETE: Tool = tool("kubectl_delete", 3, NOT_REVERSIBLE);

/// The annotation that `kubectl rollout restart` writes.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Groups whose POST asks a question and stores nothing (who am I, may I).
const REVIEW_GROUPS: &[&str] = &["authorization.k8s.io", "authentication.k8s.io"];

/// The field manager of `kubectl apply` without `--server-side`, which sends ordinary patches.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// Classifies a request. `body` is absent when there is none or it could not be read as JSON.
pub fn classify(request: &ApiRequest, headers: &HeaderMap, body: Option<&Value>) -> Tool {
    let tool = by_verb(request, headers, body);
    if request.is_dry_run() {
        return Tool {
            tier: 1,
            reversibility: READ_ONLY,
            ..tool
        };
    }
    tool
}

fn by_verb(request: &ApiRequest, headers: &HeaderMap, body: Option<&Value>) -> Tool {
    match request.verb {
        "log" => LOGS,
        "get" | "list" | "watch" | "head" => read_tool(request),
        "connect" => EXEC,
        "create" if REVIEW_GROUPS.contains(&request.group.as_str()) => GET,
        "update" | "patch" if request.subresource == "scale" => SCALE,
        "patch" if request.subresource == "ephemeralcontainers" => EXEC,
        "patch" => patch_tool(request, headers, body),
        "create" | "update" => APPLY,
        "delete" | "deletecollection" | "evict" => DELETE,
        _ => DELETE,
    }
}

fn read_tool(request: &ApiRequest) -> Tool {
    if request.group == "metrics.k8s.io" {
        return TOP;
    }
    // Only `describe` and its like ask for the events of one object.
    let events_of_one = request.resource == "events"
        && request
            .query("fieldSelector")
            .is_some_and(|s| s.contains("involvedObject.name"));
    if events_of_one { DESCRIBE } else { GET }
}

fn patch_tool(request: &ApiRequest, headers: &HeaderMap, body: Option<&Value>) -> Tool {
    let content_type = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let manager = request.query("fieldManager").unwrap_or_default();
    if content_type.starts_with("application/apply-patch") || manager == CLIENT_SIDE_APPLY {
        return APPLY;
    }
    let Some(body) = body else {
        // What cannot be read cannot be called harmless.
        return APPLY;
    };
    let paths = pointer_paths(body);
    let only =
        |wanted: &[&str]| !paths.is_empty() && paths.iter().all(|path| is_one_of(path, wanted));
    if paths
        .iter()
        .any(|path| path.starts_with(&["metadata".to_owned(), "finalizers".to_owned()]))
    {
        PATCH_FINALIZERS
    } else if only(&["spec.replicas"]) {
        SCALE
    } else if is_restart(&paths) {
        ROLLOUT_RESTART
    } else if body.is_array() && replaces_template(body) {
        ROLLOUT_UNDO
    } else if manager == "kubectl-set" {
        SET
    } else {
        PATCH
    }
}

fn is_one_of(path: &[String], wanted: &[&str]) -> bool {
    let dotted = path.join(".");
    wanted.contains(&dotted.as_str())
}

fn is_restart(paths: &[Vec<String>]) -> bool {
    let expected = ["spec", "template", "metadata", "annotations", RESTARTED_AT];
    paths.len() == 1 && paths[0].iter().map(String::as_str).eq(expected)
}

/// `kubectl rollout undo` replaces the whole template by a JSON patch (and annotations beside it).
fn replaces_template(body: &Value) -> bool {
    let Some(operations) = body.as_array() else {
        return false;
    };
    operations.iter().any(|op| {
        op["op"] == "replace" && op["path"] == "/spec/template" && op["value"].is_object()
    })
}

/// The paths that a patch touches, as lists of keys: the leaves of a merge or strategic patch, the pointers of a
/// JSON patch (with `test` left out, for it writes nothing). Elements of lists with a `name` are shown by it.
pub fn pointer_paths(body: &Value) -> Vec<Vec<String>> {
    match body {
        Value::Array(operations) => operations
            .iter()
            .filter(|op| op["op"] != "test")
            .filter_map(|op| op["path"].as_str())
            .map(|path| {
                path.split('/')
                    .skip(1)
                    .map(|key| key.replace("~1", "/").replace("~0", "~"))
                    .collect()
            })
            .collect(),
        other => {
            let mut paths = Vec::new();
            leaves(other, &mut Vec::new(), &mut paths);
            paths
        }
    }
}

/// Deeper nesting than any Kubernetes object has; what lies below is shown as one leaf.
const MAX_DEPTH: usize = 40;

fn leaves(value: &Value, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(map) if !map.is_empty() && at.len() < MAX_DEPTH => {
            for (key, inner) in map {
                at.push(key.clone());
                leaves(inner, at, found);
                at.pop();
            }
        }
        Value::Array(items)
            if at.len() < MAX_DEPTH
                && !items.is_empty()
                && items.iter().all(|item| item["name"].is_string()) =>
        {
            let list = at.pop().unwrap_or_default();
            // Directives order or shrink a list; they name no element of their own.
            for item in items {
                at.push(format!(
                    "{list}[{}]",
                    item["name"].as_str().unwrap_or_default()
                ));
                let mut inner = item.clone();
                if let Some(map) = inner.as_object_mut()
                    && map.len() > 1
                {
                    map.remove("name");
                }
                leaves(&inner, at, found);
                at.pop();
            }
            at.push(list);
        }
        _ if at
            .last()
            .is_some_and(|key| key.starts_with("$setElementOrder")) => {}
        _ => found.push(at.clone()),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};
    use serde_json::json;

    use super::*;

    fn tool_of(method: Method, uri: &str, content_type: &'static str, body: &Value) -> Tool {
        let (path, query) = match uri.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (uri, None),
        };
        let mut headers = HeaderMap::new();
        headers.insert(
            http::header::CONTENT_TYPE,
            HeaderValue::from_static(content_type),
        );
        classify(
            &ApiRequest::parse(&method, path, query),
            &headers,
            Some(body),
        )
    }

    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/a/deployments/d";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    const JSON_PATCH: &str = "application/json-patch+json";

    #[test]
    fn reads_are_tier_one_and_told_apart() {
        let table = [
            ("/api/v1/namespaces/a/pods", GET),
            ("/api/v1/namespaces/a/pods/p/log?previous=true", LOGS),
            ("/api/v1/namespaces/a/events", GET),
            (
                "/api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Dp",
                DESCRIBE,
            ),
            ("/apis/metrics.k8s.io/v1beta1/namespaces/a/pods", TOP),
            ("/version", GET),
        ];
        for (uri, expected) in table {
            assert_eq!(
                tool_of(Method::GET, uri, "", &Value::Null),
                expected,
                "{uri}"
            );
        }
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert_eq!(tool_of(Method::POST, review, "", &json!({})), GET);
    }

    fn image() -> Value {
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    }

    #[test]
    fn merge_patches_of_a_deployment_are_told_apart_by_what_they_touch() {
        let stamp = json!({RESTARTED_AT: "2026-01-01T00:00:00Z"});
        let restart = json!({"spec": {"template": {"metadata": {"annotations": stamp}}}});
        let mut restart_and_more = restart.clone();
        restart_and_more["spec"]["template"]["spec"] = json!({"serviceAccountName": "b"});
        let table = [
            ("", restart, ROLLOUT_RESTART),
            ("", restart_and_more, PATCH),
            ("", json!({"spec": {"replicas": 3}}), SCALE),
            ("/scale", json!({"spec": {"replicas": 3}}), SCALE),
            ("", image(), PATCH),
            ("?fieldManager=kubectl-set", image(), SET),
            ("?fieldManager=kubectl-client-side-apply", image(), APPLY),
            (
                "",
                json!({"metadata": {"finalizers": null}}),
                PATCH_FINALIZERS,
            ),
        ];
        for (suffix, body, expected) in table {
            let uri = format!("{DEPLOYMENT}{suffix}");
            let tool = tool_of(Method::PATCH, &uri, STRATEGIC, &body);
            assert_eq!(tool, expected, "{uri} {body}");
        }
        let applied = tool_of(
            Method::PATCH,
            DEPLOYMENT,
            "application/apply-patch+yaml",
            &image(),
        );
        assert_eq!(applied, APPLY);
    }

    #[test]
    fn json_patches_of_a_deployment_are_told_apart_by_what_they_touch() {
        let undo = json!([{"op": "replace", "path": "/spec/template", "value": {"spec": {}}},
            {"op": "replace", "path": "/metadata/annotations", "value": {}}]);
        let replicas = json!([{"op": "test", "path": "/spec/replicas", "value": 0},
            {"op": "replace", "path": "/spec/replicas", "value": 1}]);
        let field = json!([{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]);
        let finalizers = json!([{"op": "remove", "path": "/metadata/finalizers/0"}]);
        let table = [
            (undo, ROLLOUT_UNDO),
            (replicas, SCALE),
            (field, PATCH),
            (finalizers, PATCH_FINALIZERS),
        ];
        for (body, expected) in table {
            let tool = tool_of(Method::PATCH, DEPLOYMENT, JSON_PATCH, &body);
            assert_eq!(tool, expected, "{body}");
        }
    }

    #[test]
    fn writes_that_replace_or_destroy_need_approval() {
        let body = json!({});
        let table = [
            (Method::POST, "/api/v1/namespaces/a/secrets", APPLY),
            (Method::PUT, DEPLOYMENT, APPLY),
            (Method::DELETE, DEPLOYMENT, DELETE),
            (Method::DELETE, "/api/v1/namespaces/a/pods", DELETE),
            (Method::POST, "/api/v1/namespaces/a/pods/p/eviction", DELETE),
            (
                Method::POST,
                "/api/v1/namespaces/a/pods/p/exec?command=sh",
                EXEC,
            ),
            (Method::OPTIONS, DEPLOYMENT, DELETE),
        ];
        for (method, uri, expected) in table {
            assert_eq!(
                tool_of(method, uri, "application/json", &body),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn a_dry_run_keeps_its_name_and_costs_nothing() {
        let dry = tool_of(
            Method::DELETE,
            &format!("{DEPLOYMENT}?dryRun=All"),
            "",
            &Value::Null,
        );
        assert_eq!(
            (dry.name, dry.tier, dry.reversibility),
            ("kubectl_delete", 1, READ_ONLY)
        );
    }

    #[test]
    fn an_unreadable_patch_counts_as_an_apply() {
        let request = ApiRequest::parse(&Method::PATCH, DEPLOYMENT, None);
        assert_eq!(classify(&request, &HeaderMap::new(), None), APPLY);
    }
}
