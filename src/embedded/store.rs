//! The object store: every API object as JSON, one resource version counter, a log of changes.
//!
//! It knows three things about objects: who they are (kind, namespace, name, uid), that every change gets a
//! new resource version, and when `metadata.generation` grows. It does not validate, default or authorise,
//! and controllers never see each other except through it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::embedded::kind::Kind;

/// Changes kept for watches that start at an older resource version. A watch that asks for more gets 410
/// Expired and lists again, as with the real server's cache; a run of ten minutes makes some thousand changes.
pub const CHANGES_KEPT: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One committed change. `object` is the state after it (for a deletion: the last state, with the resource
/// version of the deletion), `old` the state before it.
#[derive(Clone, Debug)]
pub struct Change {
    pub resource_version: u64,
    pub what: ChangeKind,
    pub kind: Kind,
    pub object: Arc<Value>,
    pub old: Option<Arc<Value>>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("already exists")]
    Exists,
    #[error("not found")]
    NotFound,
}

/// Namespace (empty for cluster-scoped objects) and name.
pub type ObjectKey = (String, String);

#[derive(Debug, Default)]
pub struct Store {
    objects: BTreeMap<Kind, BTreeMap<ObjectKey, Arc<Value>>>,
    resource_version: u64,
    log: VecDeque<Change>,
    /// Changes not yet handed to the controllers.
    fresh: VecDeque<Change>,
}

impl Store {
    /// The resource version of the newest change; what a list answers in its metadata.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects
            .get(&kind)?
            .get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Objects of every kind but Events, which expire by themselves.
    pub fn count(&self) -> usize {
        self.objects
            .iter()
            .filter(|(kind, _)| **kind != Kind::Event)
            .map(|(_, objects)| objects.len())
            .sum()
    }

    /// All objects of a kind, by namespace and name.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Arc<Value>> {
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// The objects of a kind in one namespace, by name.
    pub fn within<'a>(
        &'a self,
        kind: Kind,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(move |map| {
                map.range((namespace.to_owned(), String::new())..)
                    .take_while(move |((ns, _), _)| ns == namespace)
            })
            .map(|(_, object)| object)
    }

    /// Adds an object. Its `metadata.uid` and `creationTimestamp` are the caller's work
    /// (see `World::create`); resource version and generation 1 are set here.
    pub fn insert(&mut self, kind: Kind, mut object: Value) -> Result<Arc<Value>, StoreError> {
        let key = key_of(&object);
        if self
            .objects
            .get(&kind)
            .is_some_and(|m| m.contains_key(&key))
        {
            return Err(StoreError::Exists);
        }
        if kind.has_generation() {
            object["metadata"]["generation"] = 1.into();
        }
        Ok(self.commit(kind, key, object, ChangeKind::Added, None))
    }

    /// Replaces an object. A replacement that changes nothing keeps the resource version and is no change.
    /// The generation grows when the spec differs or deletion begins (for Deployments also when annotations
    /// differ, as there).
    pub fn replace(&mut self, kind: Kind, mut object: Value) -> Result<Arc<Value>, StoreError> {
        let key = key_of(&object);
        let old = self
            .objects
            .get(&kind)
            .and_then(|m| m.get(&key))
            .cloned()
            .ok_or(StoreError::NotFound)?;
        object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        let mut generation = old["metadata"]["generation"].clone();
        // Binding a pod to its node is no change of what was asked for.
        let bound = kind == Kind::Pod
            && old["spec"].get("nodeName").is_none()
            && object["spec"].get("nodeName").is_some();
        let respecified = (object.get("spec") != old.get("spec") && !bound)
            || object.get("endpoints") != old.get("endpoints")
            || (kind == Kind::Deployment && asked_annotations(&object) != asked_annotations(&old))
            || object["metadata"].get("deletionTimestamp").is_some()
                != old["metadata"].get("deletionTimestamp").is_some();
        if let (true, Some(n)) = (respecified, generation.as_i64()) {
            generation = (n + 1).into();
        }
        if !generation.is_null() {
            object["metadata"]["generation"] = generation;
        }
        if object == *old {
            return Ok(old);
        }
        Ok(self.commit(kind, key, object, ChangeKind::Modified, Some(old)))
    }

    /// Removes an object for good (finalizers and grace periods are the caller's work).
    pub fn remove(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, StoreError> {
        let key = (namespace.to_owned(), name.to_owned());
        let old = self
            .objects
            .get_mut(&kind)
            .and_then(|m| m.remove(&key))
            .ok_or(StoreError::NotFound)?;
        self.resource_version += 1;
        let mut last = (*old).clone();
        last["metadata"]["resourceVersion"] = self.resource_version.to_string().into();
        let object = Arc::new(last);
        self.note(Change {
            resource_version: self.resource_version,
            what: ChangeKind::Deleted,
            kind,
            object: object.clone(),
            old: Some(old),
        });
        Ok(object)
    }

    /// The oldest resource version from which all later changes are still kept.
    pub fn oldest_version(&self) -> u64 {
        match self.log.front() {
            Some(change) if self.log.len() == CHANGES_KEPT => change.resource_version - 1,
            _ => 0,
        }
    }

    /// Changes after `resource_version`, oldest first; `None` when some of them are no longer kept.
    pub fn changes_since(&self, resource_version: u64) -> Option<impl Iterator<Item = &Change>> {
        if resource_version < self.oldest_version() {
            return None;
        }
        let from = self
            .log
            .partition_point(|c| c.resource_version <= resource_version);
        Some(self.log.range(from..))
    }

    /// Leaves resource versions out, as if that many changes had happened and been forgotten.
    pub fn skip_versions(&mut self, count: u64) {
        self.resource_version += count;
    }

    /// Takes the next change that the controllers have not seen.
    pub fn next_fresh(&mut self) -> Option<Change> {
        self.fresh.pop_front()
    }

    fn commit(
        &mut self,
        kind: Kind,
        key: ObjectKey,
        mut object: Value,
        what: ChangeKind,
        old: Option<Arc<Value>>,
    ) -> Arc<Value> {
        self.resource_version += 1;
        object["metadata"]["resourceVersion"] = self.resource_version.to_string().into();
        let object = Arc::new(object);
        self.objects
            .entry(kind)
            .or_default()
            .insert(key, object.clone());
        self.note(Change {
            resource_version: self.resource_version,
            what,
            kind,
            object: object.clone(),
            old,
        });
        object
    }

    fn note(&mut self, change: Change) {
        if self.log.len() == CHANGES_KEPT {
            self.log.pop_front();
        }
        self.log.push_back(change.clone());
        self.fresh.push_back(change);
    }
}

/// A Deployment's annotations but its revision, which its controller notes together with the status.
fn asked_annotations(object: &Value) -> Vec<(&String, &Value)> {
    object["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "deployment.kubernetes.io/revision")
        .collect()
}

/// Namespace and name of an object; empty strings where it has none.
pub fn key_of(object: &Value) -> ObjectKey {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
