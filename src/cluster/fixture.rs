//! Fixtures: what a healthy cluster holds in the namespaces that a scenario needs, as manifests.
//!
//! Compiled in from `fixtures/`. A fixture names no scenario, no fault and not this program: an agent can read all
//! of it. Nothing here talks to a cluster; `reset` applies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cluster::ClusterError;
use crate::cluster::image::REFERENCE;
use crate::cluster::resource;
use crate::ids::FixtureId;

/// Where fixtures stand below a workspace.
const FOLDER: &str = "fixtures";

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
    (
        "published",
        "the shape of the published benchmark's service: a shell script without a database",
        &[include_str!("../../fixtures/published.json")],
    ),
    (
        "advocate-config",
        "the same, with the place of the database and other settings in a ConfigMap",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api-config.json"),
            BILLING,
        ],
    ),
    (
        "advocate-quota",
        "three replicas under a quota that was tightened below what they use",
        &[
            COMMON,
            include_str!("../../fixtures/advocate-api-quota.json"),
            BILLING,
        ],
    ),
];

/// Manifests in the order in which they can be applied, of one or more fixtures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixture {
    /// The names joined by `+`.
    pub name: String,
    pub objects: Vec<Value>,
    /// The namespaces it creates, and thereby owns.
    pub namespaces: BTreeSet<String>,
    /// SHA-256 of the manifests, hex.
    pub sha256: String,
}

/// Every compiled-in fixture's id and what it is for.
pub fn known() -> impl Iterator<Item = (FixtureId, &'static str)> {
    FIXTURES
        .iter()
        .map(|(id, purpose, _)| (FixtureId::new(*id), *purpose))
}

/// The compiled-in fixtures and those of a workspace, which replace them by id or add to them.
#[derive(Clone, Debug, Default)]
pub struct Fixtures {
    own: BTreeMap<FixtureId, String>,
    /// What takes the place of the services' image, where nodes get it under another name.
    image: Option<String>,
}

impl Fixture {
    /// The images that its containers run from.
    pub fn images(&self) -> BTreeSet<String> {
        let mut images = BTreeSet::new();
        for object in &self.objects {
            let spec = match object["kind"].as_str() {
                Some("Pod") => &object["spec"],
                Some("CronJob") => &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
                _ => &object["spec"]["template"]["spec"],
            };
            for list in ["initContainers", "containers"] {
                let containers = spec[list].as_array().into_iter().flatten();
                images
                    .extend(containers.filter_map(|one| one["image"].as_str().map(str::to_owned)));
            }
        }
        images
    }
}

impl Fixtures {
    /// Those compiled in and nothing else.
    pub fn compiled_in() -> Fixtures {
        Fixtures::default()
    }

    /// Reads `fixtures/<id>.json` below a workspace. A file that says the same as the compiled-in one is no override.
    ///
    /// # Errors
    /// An unreadable file, or one that is not a list of manifests of known kinds.
    pub fn open(workspace: &Path) -> Result<Fixtures, ClusterError> {
        let mut fixtures = Fixtures::default();
        let Ok(folder) = std::fs::read_dir(workspace.join(FOLDER)) else {
            return Ok(fixtures);
        };
        for path in folder.flatten().map(|entry| entry.path()) {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let (Some(stem), Some("json")) = (stem, path.extension().and_then(|e| e.to_str()))
            else {
                continue;
            };
            let text =
                std::fs::read_to_string(&path).map_err(|source| ClusterError::Unreadable {
                    path: path.clone(),
                    source,
                })?;
            let id = FixtureId::new(stem);
            let objects = parsed(&text, &path.display().to_string())?;
            if fixtures
                .objects(&id)
                .is_ok_and(|built_in| built_in == objects)
            {
                continue;
            }
            fixtures.own.insert(id, text);
        }
        Ok(fixtures)
    }

    /// The same with another reference for the services' image.
    #[must_use]
    pub fn with_image(mut self, image: Option<String>) -> Fixtures {
        self.image = image;
        self
    }

    /// A manifest, or a patch of one, with the reference that nodes get the services' image under. Only a text that is
    /// the built-in reference as a whole is replaced, so that a fault's other image stays.
    pub fn image_in(&self, mut value: Value) -> Value {
        if let Some(image) = &self.image {
            replace_texts(&mut value, REFERENCE, image);
        }
        value
    }

    /// Every namespace that a fixture makes.
    ///
    /// # Errors
    /// A fixture of the workspace that cannot be read.
    pub fn namespaces(&self) -> Result<BTreeSet<String>, ClusterError> {
        let ids = known().map(|(id, _)| id).chain(self.own.keys().cloned());
        let mut names = BTreeSet::new();
        for id in ids {
            names.extend(self.load(&[id])?.namespaces);
        }
        Ok(names)
    }

    /// Ids that the workspace replaces or adds.
    pub fn overrides(&self) -> impl Iterator<Item = &FixtureId> {
        self.own.keys()
    }

    /// The union of the named fixtures; an object that several of them hold is taken from the first.
    pub fn load(&self, ids: &[FixtureId]) -> Result<Fixture, ClusterError> {
        let name = ids
            .iter()
            .map(FixtureId::as_str)
            .collect::<Vec<_>>()
            .join("+");
        let mut objects: Vec<Value> = Vec::new();
        let mut seen = BTreeSet::new();
        for id in ids {
            for object in self.objects(id)? {
                if seen.insert(identity(&object)) {
                    objects.push(self.image_in(object));
                }
            }
        }
        let namespaces = objects
            .iter()
            .filter(|object| object["kind"] == "Namespace")
            .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        let sha256 = hex::encode(Sha256::digest(Value::from(objects.clone()).to_string()));
        Ok(Fixture {
            name,
            objects,
            namespaces,
            sha256,
        })
    }

    fn objects(&self, id: &FixtureId) -> Result<Vec<Value>, ClusterError> {
        if let Some(text) = self.own.get(id) {
            return parsed(text, &format!("{FOLDER}/{id}.json"));
        }
        let mut objects = Vec::new();
        for text in self.lists_of(id)? {
            objects.extend(parsed(text, id.as_str())?);
        }
        Ok(objects)
    }

    fn lists_of(&self, id: &FixtureId) -> Result<&'static [&'static str], ClusterError> {
        FIXTURES
            .iter()
            .find(|(name, ..)| *name == id.as_str())
            .map(|(.., lists)| *lists)
            .ok_or_else(|| ClusterError::UnknownFixture {
                name: id.to_string(),
                known: FIXTURES
                    .iter()
                    .map(|(name, ..)| *name)
                    .chain(self.own.keys().map(FixtureId::as_str))
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}

/// A compiled-in fixture as one list of manifests, to be edited in a workspace; with its path there.
pub fn written_out(id: &FixtureId) -> Result<(String, String), ClusterError> {
    let items = Fixtures::compiled_in().objects(id)?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    Ok((format!("{FOLDER}/{id}.json"), format!("{list:#}\n")))
}

/// The manifests of a list; every one of a kind that reset and state hash know.
fn parsed(text: &str, name: &str) -> Result<Vec<Value>, ClusterError> {
    let mut list: Value = serde_json::from_str(text).map_err(|source| ClusterError::Fixture {
        name: name.to_owned(),
        source,
    })?;
    let items = match &mut list {
        // As a bare array, as a `List` as kubectl prints one, or one manifest alone.
        Value::Array(items) => std::mem::take(items),
        Value::Object(fields) => match fields.remove("items") {
            Some(Value::Array(items)) => items,
            _ => vec![list],
        },
        _ => vec![list],
    };
    for object in &items {
        resource::of_kind(object["kind"].as_str().unwrap_or_default())?;
    }
    Ok(items)
}

fn replace_texts(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => *text = new.to_owned(),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|one| replace_texts(one, old, new)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|one| replace_texts(one, old, new)),
        _ => {}
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
            let fixture = Fixtures::compiled_in()
                .load(std::slice::from_ref(&id))
                .unwrap();
            assert!(fixture.namespaces.contains("prod-advocate"), "{id}");
            // The published one has no neighbours, as published.
            let alone = id.as_str() == "published";
            assert_eq!(!fixture.namespaces.contains("prod-billing"), alone, "{id}");
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
            for text in Fixtures::compiled_in().lists_of(&id).unwrap() {
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
        let one = Fixtures::compiled_in()
            .load(&[FixtureId::new("advocate")])
            .unwrap();
        let two = Fixtures::compiled_in()
            .load(&[FixtureId::new("advocate"), FixtureId::new("advocate-trio")])
            .unwrap();
        assert_eq!(one.objects, two.objects);
    }

    #[test]
    fn an_unknown_fixture_is_refused_with_the_names_that_exist() {
        let error = Fixtures::compiled_in()
            .load(&[FixtureId::new("nowhere")])
            .unwrap_err();
        assert!(error.to_string().contains("advocate-trio"), "{error}");
    }

    #[test]
    fn a_fixture_written_out_is_an_override_only_once_it_is_edited() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join(FOLDER)).unwrap();
        let id = FixtureId::new("advocate");
        let (path, text) = written_out(&id).unwrap();
        std::fs::write(workspace.path().join(&path), &text).unwrap();
        let same = Fixtures::open(workspace.path()).unwrap();
        assert_eq!(same.overrides().count(), 0);
        let edited = text.replace("ghcr.io/acme/services:2.4.1", "ghcr.io/acme/services:2.5.0");
        std::fs::write(workspace.path().join(&path), edited).unwrap();
        let other = Fixtures::open(workspace.path()).unwrap();
        assert_eq!(other.overrides().collect::<Vec<_>>(), [&id]);
        let ids = [id];
        assert_ne!(
            other.load(&ids).unwrap().objects,
            same.load(&ids).unwrap().objects
        );
    }

    #[test]
    fn another_image_takes_the_place_of_the_built_in_reference_and_of_nothing_else() {
        let other = "registry.lab:5000/acme/services:2.4.1".to_owned();
        let fixtures = Fixtures::compiled_in().with_image(Some(other.clone()));
        let patch = json!({"containers": [
            {"image": REFERENCE}, {"image": format!("{REFERENCE}-debug")}, {"env": [REFERENCE]},
        ]});
        assert_eq!(
            fixtures.image_in(patch.clone()),
            json!({"containers": [
                {"image": other}, {"image": format!("{REFERENCE}-debug")}, {"env": [other]},
            ]})
        );
        assert_eq!(Fixtures::compiled_in().image_in(patch.clone()), patch);
        let id = [FixtureId::new("advocate")];
        let loaded = fixtures.load(&id).unwrap();
        assert!(!loaded.images().contains(REFERENCE));
    }

    #[test]
    fn a_fixture_may_be_an_array_a_list_or_one_manifest_and_anything_else_is_refused() {
        let one = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}"#;
        let list = format!(r#"{{"kind": "List", "items": [{one}]}}"#);
        for text in [one.to_owned(), format!("[{one}]"), list] {
            assert_eq!(parsed(&text, "own").unwrap().len(), 1, "{text}");
        }
        for text in ["7", "\"x\"", "null", "[7]", "{}"] {
            assert!(parsed(text, "own").is_err(), "{text}");
        }
    }

    #[test]
    fn a_fixture_that_is_no_json_is_refused_with_its_path() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join(FOLDER)).unwrap();
        std::fs::write(workspace.path().join("fixtures/own.json"), "{").unwrap();
        let error = Fixtures::open(workspace.path()).unwrap_err();
        assert!(error.to_string().contains("own.json"), "{error}");
    }
}
