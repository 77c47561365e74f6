//! Fixtures: what a healthy cluster holds in the namespaces that a scenario needs, as manifests.
//!
//! Compiled in from `fixtures/`. A fixture names no scenario, no fault and not this program: an agent can read all
//! of it. Nothing here talks to a cluster; `reset` applies.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cluster::ClusterError;
use crate::cluster::resource;
use crate::ids::FixtureId;

const COMMON: &str = include_str!("../../fixtures/advocate-common.json");
/// Healthy neighbours, so that collateral damage can be seen.
const BILLING: &str = include_str!("../../fixtures/billing.json");

/// Id, what it is for, and the manifest lists that make it up.
const FIXTURES: &[(&str, &str, &[&str])] = &[
    (
        "advocate",
        "one service with its database; its secrets come by envFrom",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api.json"),
            BILLING,
        ],
    ),
    (
        "advocate-explicit-env",
        "the same, with every variable as an entry of env",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api-explicit-env.json"),
            BILLING,
        ],
    ),
    (
        "advocate-trio",
        "the same, with three replicas",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api-trio.json"),
            BILLING,
        ],
    ),
    (
        "advocate-slow-start",
        "the same, with a start-up of 25 s and a liveness probe that waits for it",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api-slow-start.json"),
            BILLING,
        ],
    ),
];

/// Manifests in the order in which they can be applied, of one or more fixtures.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixture {
    /// The names joined by `+`.
    pub name: String,
    pub objects: Vec<Value>,
    /// The namespaces it creates, and thereby owns.
    pub namespaces: BTreeSet<String>,
    /// SHA-256 of the manifests, hex.
    pub sha256: String,
}

/// Every fixture's id and what it is for.
pub fn known() -> impl Iterator<Item = (FixtureId, &'static str)> {
    FIXTURES
        .iter()
        .map(|(id, purpose, _)| (FixtureId::new(*id), *purpose))
}

/// The union of the named fixtures; an object that several of them hold is taken from the first.
pub fn load(ids: &[FixtureId]) -> Result<Fixture, ClusterError> {
    let name = ids
        .iter()
        .map(FixtureId::as_str)
        .collect::<Vec<_>>()
        .join("+");
    let mut objects: Vec<Value> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut hash = Sha256::new();
    for id in ids {
        for text in lists_of(id)? {
            hash.update(text.as_bytes());
            for object in items(text, &name)? {
                resource::of_kind(object["kind"].as_str().unwrap_or_default())?;
                if seen.insert(identity(&object)) {
                    objects.push(object);
                }
            }
        }
    }
    let namespaces = objects
        .iter()
        .filter(|object| object["kind"] == "Namespace")
        .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    Ok(Fixture {
        name,
        objects,
        namespaces,
        sha256: hex::encode(hash.finalize()),
    })
}

fn lists_of(id: &FixtureId) -> Result<&'static [&'static str], ClusterError> {
    FIXTURES
        .iter()
        .find(|(name, ..)| *name == id.as_str())
        .map(|(.., lists)| *lists)
        .ok_or_else(|| ClusterError::UnknownFixture {
            name: id.to_string(),
            known: FIXTURES
                .iter()
                .map(|(name, ..)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn items(text: &str, name: &str) -> Result<Vec<Value>, ClusterError> {
    let mut list: Value = serde_json::from_str(text).map_err(|source| ClusterError::Fixture {
        name: name.to_owned(),
        source,
    })?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(vec![list]),
    }
}

fn identity(object: &Value) -> (String, String, String) {
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        part(&object["kind"]),
        part(&object["metadata"]["namespace"]),
        part(&object["metadata"]["name"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fixture_loads_and_owns_its_namespaces() {
        for (id, _) in known() {
            let fixture = load(std::slice::from_ref(&id)).unwrap();
            assert!(fixture.namespaces.contains("prod-advocate"), "{id}");
            assert!(fixture.namespaces.contains("prod-billing"), "{id}");
            for object in &fixture.objects {
                if object["kind"] != "Namespace" {
                    let namespace = object["metadata"]["namespace"].as_str().unwrap();
                    assert!(fixture.namespaces.contains(namespace), "{id}");
                }
            }
        }
    }

    #[test]
    fn no_fixture_gives_the_game_away() {
        for (id, _) in known() {
            for text in lists_of(&id).unwrap() {
                let text = text.to_lowercase();
                for word in [
                    "breakage", "fault", "chaos", "inject", "bench", "fixture", "test",
                ] {
                    assert!(!text.contains(word), "{id} says {word}");
                }
            }
        }
    }

    #[test]
    fn a_fixture_that_is_named_twice_is_applied_once() {
        let one = load(&[FixtureId::new("advocate")]).unwrap();
        let two = load(&[FixtureId::new("advocate"), FixtureId::new("advocate-trio")]).unwrap();
        assert_eq!(one.objects, two.objects);
    }

    #[test]
    fn an_unknown_fixture_is_refused_with_the_names_that_exist() {
        let error = load(&[FixtureId::new("nowhere")]).unwrap_err();
        assert!(error.to_string().contains("advocate-trio"), "{error}");
    }
}
