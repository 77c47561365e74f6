//! Discovery: which groups, versions and resources are served, in the legacy and the aggregated form.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::embedded::api::metrics;
use crate::embedded::api::review::{REVIEWS, Review};
use crate::embedded::kind::{KINDS, Kind, KindInfo};

/// What the `Accept` header of a client that wants the aggregated form names.
const AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The content type of the aggregated form.
pub const AGGREGATED_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Whether an `Accept` header prefers the aggregated form.
pub fn wants_aggregated(accept: &str) -> bool {
    accept.contains(AGGREGATED)
}

/// The answer of a discovery path; `None` when there is no such path.
pub fn answer(parts: &[&str], aggregated: bool) -> Option<Value> {
    match parts {
        ["api"] if aggregated => Some(aggregated_list(true)),
        ["apis"] if aggregated => Some(aggregated_list(false)),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.10:6443"}],
        })),
        ["apis"] => Some(json!({
            "kind": "APIGroupList", "apiVersion": "v1",
            "groups": groups().iter().map(|(name, version)| group(name, version)).collect::<Vec<_>>(),
        })),
        ["api", version] => resources("", version),
        ["apis", name] => {
            let found = groups().into_iter().find(|(group, _)| group == name)?;
            let mut answer = group(found.0, found.1);
            answer["kind"] = "APIGroup".into();
            answer["apiVersion"] = "v1".into();
            Some(answer)
        }
        ["apis", name, version] => resources(name, version),
        ["version"] => Some(version()),
        _ => None,
    }
}

/// Named groups and their version, in the order of the table.
fn groups() -> Vec<(&'static str, &'static str)> {
    let mut list: Vec<(&str, &str)> = Vec::new();
    for info in KINDS {
        let pair = (info.group, info.version);
        if !info.group.is_empty() && !list.contains(&pair) {
            list.push(pair);
        }
    }
    for review in REVIEWS {
        if !list.contains(&(review.group, review.version)) {
            list.push((review.group, review.version));
        }
    }
    list.push((metrics::GROUP, metrics::VERSION));
    list
}

fn group(name: &str, version: &str) -> Value {
    let entry = json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    json!({ "name": name, "versions": [entry], "preferredVersion": entry })
}

/// A subresource: its name, group, version and kind, and its verbs.
type Subresource = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

fn subresources(info: &KindInfo) -> Vec<Subresource> {
    let mut list: Vec<Subresource> = Vec::new();
    if info.kind == Kind::Pod {
        list.push(("eviction", "policy", "v1", "Eviction", &["create"]));
        list.push(("log", "", "v1", "Pod", &["get"]));
    }
    let change: &[&str] = &["get", "patch", "update"];
    if info.kind.has_scale() {
        list.push(("scale", "autoscaling", "v1", "Scale", change));
    }
    if info.kind.has_status() {
        list.push(("status", info.group, info.version, info.name, change));
    }
    list
}

fn resources(group: &str, version: &str) -> Option<Value> {
    let mut list: BTreeMap<String, Value> = BTreeMap::new();
    for info in KINDS
        .iter()
        .filter(|info| info.group == group && info.version == version)
    {
        let mut entry = json!({
            "name": info.plural, "singularName": info.singular, "namespaced": info.namespaced,
            "kind": info.name, "verbs": VERBS,
        });
        if !info.short.is_empty() {
            entry["shortNames"] = json!(info.short);
        }
        if info.in_all {
            entry["categories"] = json!(["all"]);
        }
        list.insert(info.plural.to_owned(), entry);
        for (sub, sub_group, sub_version, kind, verbs) in subresources(info) {
            let name = format!("{}/{sub}", info.plural);
            let mut entry = json!({
                "name": name, "singularName": "", "namespaced": info.namespaced, "kind": kind, "verbs": verbs,
            });
            // Named only where they differ from the list's own, as there.
            if sub_group != info.group {
                entry["group"] = sub_group.into();
                entry["version"] = sub_version.into();
            }
            list.insert(name, entry);
        }
    }
    for review in REVIEWS
        .iter()
        .filter(|review| review.group == group && review.version == version)
    {
        let entry = json!({
            "name": review.plural, "singularName": review.singular, "namespaced": review.namespaced,
            "kind": review.kind, "verbs": ["create"],
        });
        list.insert(review.plural.to_owned(), entry);
    }
    if (group, version) == (metrics::GROUP, metrics::VERSION) {
        for (plural, kind, namespaced) in metrics::RESOURCES {
            let entry = json!({
                "name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"],
            });
            list.insert(plural.to_owned(), entry);
        }
    }
    if list.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": list.into_values().collect::<Vec<_>>(),
    }))
}

fn aggregated_list(core: bool) -> Value {
    let named: Vec<(&str, &str)> = if core { vec![("", "v1")] } else { groups() };
    let items: Vec<Value> = named
        .into_iter()
        .map(|(group, version)| {
            let mut resources: Vec<Value> = KINDS
                .iter()
                .filter(|info| info.group == group)
                .map(aggregated_resource)
                .collect();
            let reviews = REVIEWS.iter().filter(|review| review.group == group);
            resources.extend(reviews.map(aggregated_review));
            if group == metrics::GROUP {
                resources.extend(metrics::RESOURCES.iter().map(aggregated_metrics));
            }
            let metadata = if core {
                json!({ "creationTimestamp": null })
            } else {
                json!({ "name": group, "creationTimestamp": null })
            };
            json!({
                "metadata": metadata,
                "versions": [{"version": version, "resources": resources, "freshness": "Current"}],
            })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_metrics((plural, kind, namespaced): &(&str, &str, bool)) -> Value {
    json!({
        "resource": plural,
        "responseKind": {"group": metrics::GROUP, "version": metrics::VERSION, "kind": kind},
        "scope": if *namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": "", "verbs": ["get", "list"],
    })
}

fn aggregated_review(review: &Review) -> Value {
    json!({
        "resource": review.plural,
        "responseKind": {"group": review.group, "version": review.version, "kind": review.kind},
        "scope": if review.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": review.singular, "verbs": ["create"],
    })
}

fn aggregated_resource(info: &KindInfo) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let mut entry = json!({
        "resource": info.plural, "responseKind": kind(info.group, info.version, info.name),
        "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": info.singular, "verbs": VERBS,
    });
    if !info.short.is_empty() {
        entry["shortNames"] = json!(info.short);
    }
    if info.in_all {
        entry["categories"] = json!(["all"]);
    }
    let below: Vec<Value> = subresources(info)
        .into_iter()
        .map(|(sub, sub_group, sub_version, sub_kind, verbs)| {
            json!({ "subresource": sub, "responseKind": kind(sub_group, sub_version, sub_kind), "verbs": verbs })
        })
        .collect();
    if !below.is_empty() {
        entry["subresources"] = below.into();
    }
    entry
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "emulationMajor": "1", "emulationMinor": "34",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "33",
        "gitVersion": "v1.34.4", "gitCommit": "a8f2c1d60b7e4935f1c6d8e0b2a79f43c5d1e608", "gitTreeState": "clean",
        "buildDate": "2026-02-10T12:48:53Z", "goVersion": "go1.24.12", "compiler": "gc", "platform": "linux/amd64",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eviction_subresource_is_listed_as_drain_looks_for_it() {
        let list = answer(&["api", "v1"], false).unwrap();
        let eviction = list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "pods/eviction")
            .unwrap();
        assert_eq!(eviction["kind"], "Eviction");
        assert_eq!(eviction["group"], "policy");
        assert_eq!(eviction["version"], "v1");
    }

    #[test]
    fn unknown_groups_have_no_answer() {
        assert!(answer(&["apis", "nope"], false).is_none());
        assert!(answer(&["apis", "apps", "v2"], false).is_none());
        assert!(answer(&["apis", "apps", "v1"], false).is_some());
    }
}
