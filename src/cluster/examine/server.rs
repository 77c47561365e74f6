//! What the API server says of itself: its version, its time, its limits, its webhooks, its metrics.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::examine::{Finding, Grade};
use crate::cluster::fixture::Fixture;
use crate::cluster::resource;
use crate::cluster::trouble;

/// The minor release of Kubernetes 1 whose behaviour was recorded, and that the tests run against.
const PROVEN_MINOR: u32 = 34;
/// Since then everything that is asked for is served under the versions that are used: CronJobs, budgets, autoscalers.
const OLDEST_MINOR: u32 = 25;
/// Releases that far from the proven one say things in the same words, as far as their changelogs tell.
const NEAR_MINORS: u32 = 3;

pub fn version(text: &str) -> Finding {
    const CHECK: &str = "version";
    let mut parts = text.trim_start_matches('v').split('.');
    let major: Option<u32> = parts.next().and_then(|part| part.parse().ok());
    let minor: Option<u32> = parts.next().and_then(|part| {
        let digits = part.trim_end_matches('+');
        digits.parse().ok()
    });
    let (Some(1), Some(minor)) = (major, minor) else {
        let found = format!("{text} is no version of Kubernetes 1");
        return Finding::new(CHECK, Grade::Unknown, found);
    };
    if minor < OLDEST_MINOR {
        let found = format!("{text} is older than 1.{OLDEST_MINOR}: it lacks APIs that runs use");
        return Finding::new(CHECK, Grade::Problem, found).todo("take a newer cluster");
    }
    if minor == PROVEN_MINOR {
        return Finding::new(
            CHECK,
            Grade::Good,
            format!("{text}, the release that is proven"),
        );
    }
    let found = format!(
        "{text}; proven is 1.{PROVEN_MINOR}: events and reasons that agents read may be worded otherwise"
    );
    if minor.abs_diff(PROVEN_MINOR) <= NEAR_MINORS {
        return Finding::new(CHECK, Grade::Note, found);
    }
    Finding::new(CHECK, Grade::Warning, found)
        .todo("breakage scenario qualify --all --context NAME shows which scenarios hold there")
}

/// How long the server may take to tell its time.
const LIMIT: Duration = Duration::from_secs(15);

/// The server's clock and the nodes' against this machine's.
pub async fn clock(client: &kube::Client, now: Option<Timestamp>) -> Finding {
    const CHECK: &str = "clock";
    let Some(now) = now else {
        let found = "the cluster has a time of its own, which runs follow";
        return Finding::new(CHECK, Grade::Good, found);
    };
    let (server, lease) = (date(client).await, newest_lease(client).await);
    for (whose, time) in [("server", server), ("nodes", lease)] {
        if let Some(skew) = time.and_then(|time| trouble::skew(now, time)) {
            let skew = match whose {
                "nodes" => skew.replacen("server's clock", "newest sign of life of a node", 1),
                _ => skew,
            };
            return Finding::new(CHECK, Grade::Warning, skew)
                .todo("set the clock that is wrong: certificates and tokens are valid for a time");
        }
    }
    if server.is_none() && lease.is_none() {
        return Finding::new(
            CHECK,
            Grade::Unknown,
            "neither the server nor a node tells its time",
        );
    }
    let slack = trouble::CLOCK_SLACK_S;
    Finding::new(
        CHECK,
        Grade::Good,
        format!("within {slack} s of this machine's"),
    )
}

async fn date(client: &kube::Client) -> Option<Timestamp> {
    let request = http::Request::get("/version")
        .body(kube::client::Body::empty())
        .ok()?;
    let answer = tokio::time::timeout(LIMIT, client.send(request)).await;
    let answer = answer.ok()?.ok()?;
    let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(date.timestamp())
}

async fn newest_lease(client: &kube::Client) -> Option<Timestamp> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let list = get(client, path).await.ok()?;
    let leases = list["items"].as_array()?.iter();
    leases
        .filter_map(|lease| lease["spec"]["renewTime"].as_str()?.parse().ok())
        .max()
}

async fn get(client: &kube::Client, path: &str) -> Result<Value, kube::Error> {
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Quotas and limits in namespaces of fixtures that no fixture put there.
pub async fn limits(
    client: &kube::Client,
    fixture: &Fixture,
    namespaces: &BTreeSet<String>,
) -> Finding {
    const CHECK: &str = "limits";
    let mut found = Vec::new();
    for kind in ["ResourceQuota", "LimitRange"] {
        let listed = match resource::of_kind(kind) {
            Ok(kind) => kind.list(client, "").await,
            Err(error) => Err(error),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return Finding::not_told(CHECK, &error),
        };
        for object in listed {
            let meta = &object["metadata"];
            let namespace = meta["namespace"].as_str().unwrap_or_default();
            let of_fixture = fixture.objects.iter().any(|own| {
                own["kind"] == kind
                    && own["metadata"]["name"] == meta["name"]
                    && own["metadata"]["namespace"] == meta["namespace"]
            });
            if namespaces.contains(namespace) && !of_fixture {
                let name = meta["name"].as_str().unwrap_or_default();
                found.push(format!("{kind} {namespace}/{name}"));
            }
        }
    }
    if found.is_empty() {
        return Finding::new(CHECK, Grade::Good, "no quota or limit stands in the way");
    }
    let found = format!("not of the fixture: {}", found.join(", "));
    Finding::new(CHECK, Grade::Warning, found).todo(
        "whatever puts them into new namespaces must leave these out, or runs are reset against it",
    )
}

/// Webhooks that see the objects of fixtures: they may change or refuse them.
pub async fn webhooks(client: &kube::Client, namespaces: &BTreeSet<String>) -> Finding {
    const CHECK: &str = "webhooks";
    let mut seeing = Vec::new();
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        let listed = match resource::of_kind(kind) {
            Ok(kind) => kind.list(client, "").await,
            Err(error) => Err(error),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return Finding::not_told(CHECK, &error),
        };
        for configuration in &listed {
            let hooks = configuration["webhooks"].as_array().into_iter().flatten();
            for hook in hooks.filter(|hook| sees_fixtures(hook, namespaces)) {
                let name = hook["name"].as_str().unwrap_or_default();
                let fails = hook["failurePolicy"] != "Ignore";
                let how = if fails {
                    "refuses when it is down"
                } else {
                    "ignored when it is down"
                };
                seeing.push(format!("{name} ({how})"));
            }
        }
    }
    if seeing.is_empty() {
        return Finding::new(CHECK, Grade::Good, "none sees the objects of fixtures");
    }
    let found = format!("these see what runs write: {}", seeing.join(", "));
    Finding::new(CHECK, Grade::Note, found)
        .todo("a webhook that changes pods, or refuses patches, makes runs not count: exclude the namespaces of fixtures")
}

/// Resources that runs write.
const WRITTEN: &[&str] = &[
    "*",
    "*/*",
    "pods",
    "deployments",
    "statefulsets",
    "secrets",
    "configmaps",
    "services",
    "networkpolicies",
];

fn sees_fixtures(hook: &Value, namespaces: &BTreeSet<String>) -> bool {
    let rules = hook["rules"].as_array().into_iter().flatten();
    let mut resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
    let written = resources.any(|one| one.as_str().is_some_and(|one| WRITTEN.contains(&one)));
    written && selects_one(&hook["namespaceSelector"], namespaces)
}

/// Whether a selector takes a namespace that has no labels but its own name, as new ones of ours are.
fn selects_one(selector: &Value, namespaces: &BTreeSet<String>) -> bool {
    const NAME: &str = "kubernetes.io/metadata.name";
    namespaces.iter().any(|namespace| {
        let value = |key: &str| (key == NAME).then_some(namespace.as_str());
        let labels = selector["matchLabels"].as_object();
        let labelled = labels
            .into_iter()
            .flatten()
            .all(|(key, wanted)| value(key).is_some_and(|value| wanted == value));
        let expressions = selector["matchExpressions"].as_array();
        labelled
            && expressions.into_iter().flatten().all(|expression| {
                let value = value(expression["key"].as_str().unwrap_or_default());
                let listed = expression["values"].as_array();
                let listed = listed.is_some_and(|all| all.iter().any(|v| v.as_str() == value));
                match expression["operator"].as_str() {
                    Some("In") => listed,
                    Some("NotIn") => value.is_none() || !listed,
                    Some("Exists") => value.is_some(),
                    Some("DoesNotExist") => value.is_none(),
                    _ => true,
                }
            })
    })
}

/// Whether the use of CPU and memory is measured.
pub async fn metrics(client: &kube::Client) -> Finding {
    const CHECK: &str = "metrics";
    let none = |found: String| {
        Finding::new(CHECK, Grade::Note, found).todo(
            "install metrics-server if agents should be able to look at use (kubectl top); no verdict depends on it",
        )
    };
    match get(client, "/apis/metrics.k8s.io/v1beta1/nodes").await {
        Ok(list) => match list["items"].as_array().map_or(0, Vec::len) {
            0 => none("the metrics API answers and knows no node".to_owned()),
            1 => Finding::new(CHECK, Grade::Good, "measured for 1 node"),
            many => Finding::new(CHECK, Grade::Good, format!("measured for {many} nodes")),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => {
            none("there is no metrics API".to_owned())
        }
        Err(kube::Error::Api(status)) if status.code == 503 => {
            none("the metrics API is registered and does not answer".to_owned())
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            none("the metrics API may not be read".to_owned())
        }
        Err(error) => {
            let error = ClusterError::Unreachable {
                request: "GET /apis/metrics.k8s.io/v1beta1/nodes".to_owned(),
                source: Box::new(error),
            };
            Finding::not_told(CHECK, &error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_judged_by_their_distance_from_the_proven_one() {
        let grade = |text: &str| version(text).grade;
        assert_eq!(grade("v1.34.4"), Grade::Good);
        assert_eq!(grade("v1.34.1+k3s1"), Grade::Good);
        assert_eq!(grade("v1.32.9-gke.100"), Grade::Note);
        assert_eq!(grade("v1.29+"), Grade::Warning);
        assert_eq!(grade("v1.24.17"), Grade::Problem);
        assert_eq!(grade("weekly"), Grade::Unknown);
    }

    #[test]
    fn a_webhook_that_leaves_our_namespaces_out_does_not_see_them() {
        let ours: BTreeSet<String> = ["prod-a".to_owned()].into();
        let hook = |selector: Value, resource: &str| {
            let hook = json!({"rules": [{"resources": [resource]}], "namespaceSelector": selector});
            sees_fixtures(&hook, &ours)
        };
        assert!(hook(json!({}), "pods"));
        assert!(hook(json!(null), "*"));
        assert!(!hook(json!({}), "certificates"));
        assert!(!hook(
            json!({"matchLabels": {"istio-injection": "enabled"}}),
            "pods"
        ));
        let by_name = |operator: &str| {
            json!({"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": operator, "values": ["prod-a"]},
            ]})
        };
        assert!(hook(by_name("In"), "pods"));
        assert!(!hook(by_name("NotIn"), "pods"));
        let labelled = json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
        assert!(hook(labelled, "pods"));
    }
}
