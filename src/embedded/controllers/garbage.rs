//! Garbage collection by owner references: what becomes of objects whose owner is deleted.

use std::sync::Arc;

use serde_json::Value;

use crate::embedded::api::delete::{self, DeleteOptions, Propagation};
use crate::embedded::api::write;
use crate::embedded::controllers::object::{deleting, items, name, namespace, uid};
use crate::embedded::controllers::{Controller, Key, enqueue};
use crate::embedded::kind::{KINDS, Kind};
use crate::embedded::store::{Change, ChangeKind};
use crate::embedded::world::World;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Queues what a change means for owners and dependents. A key's name is `Kind/name/uid` of the owner.
pub(super) fn on_change(world: &mut World, change: &Change) {
    let object = &change.object;
    let gone = change.what == ChangeKind::Deleted;
    let held = deleting(object) && (has(object, FOREGROUND) || has(object, ORPHAN));
    if (gone && may_own(change.kind)) || held {
        let key = format!(
            "{}/{}/{}",
            change.kind.info().name,
            name(object),
            uid(object)
        );
        enqueue(world, Controller::Garbage, namespace(object), &key);
    }
    if !gone {
        return;
    }
    for owner in items(&object["metadata"]["ownerReferences"]) {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let waiting = Kind::by_name(text("kind"))
            .and_then(|kind| world.store.get(kind, namespace(object), text("name")))
            .is_some_and(|owner| has(owner, FOREGROUND));
        if waiting {
            let key = format!("{}/{}/{}", text("kind"), text("name"), text("uid"));
            enqueue(world, Controller::Garbage, namespace(object), &key);
        }
    }
}

/// Kinds that nothing is ever owned by are not worth a search.
fn may_own(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Event
            | Kind::EndpointSlice
            | Kind::Endpoints
            | Kind::Lease
            | Kind::ControllerRevision
    )
}

fn has(object: &Value, finalizer: &str) -> bool {
    items(&object["metadata"]["finalizers"])
        .iter()
        .any(|one| one == finalizer)
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let mut parts = key.name.splitn(3, '/');
    let (Some(kind), Some(owner), Some(owner_uid)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let Some(kind) = Kind::by_name(kind) else {
        return;
    };
    let stored = world
        .store
        .get(kind, &key.namespace, owner)
        .filter(|stored| uid(stored) == owner_uid)
        .cloned();
    match stored {
        None => collect(world, &key.namespace, owner_uid),
        Some(stored) if has(&stored, ORPHAN) => {
            for (kind, dependent) in dependents(world, &key.namespace, owner_uid) {
                disown(world, kind, &dependent, owner_uid);
            }
            drop_finalizer(world, kind, &stored, ORPHAN);
        }
        Some(stored) if has(&stored, FOREGROUND) => foreground(world, kind, &stored),
        Some(_) => {}
    }
}

/// Objects that name an owner, in its namespace or, for cluster-scoped owners, anywhere.
fn dependents(world: &World, ns: &str, owner_uid: &str) -> Vec<(Kind, Arc<Value>)> {
    let owned = |object: &&Arc<Value>| {
        items(&object["metadata"]["ownerReferences"])
            .iter()
            .any(|owner| owner["uid"] == owner_uid)
    };
    let mut found = Vec::new();
    for info in KINDS.iter().filter(|info| info.kind != Kind::Event) {
        let objects: Vec<&Arc<Value>> = if ns.is_empty() {
            world.store.all(info.kind).filter(owned).collect()
        } else if info.namespaced {
            world.store.within(info.kind, ns).filter(owned).collect()
        } else {
            Vec::new()
        };
        found.extend(
            objects
                .into_iter()
                .map(|object| (info.kind, object.clone())),
        );
    }
    found
}

/// The owner is gone: its dependents go too, unless another owner is left.
fn collect(world: &mut World, ns: &str, owner_uid: &str) {
    for (kind, dependent) in dependents(world, ns, owner_uid) {
        let others = items(&dependent["metadata"]["ownerReferences"])
            .iter()
            .any(|owner| owner["uid"] != owner_uid && alive(world, &dependent, owner));
        if others {
            disown(world, kind, &dependent, owner_uid);
        } else if !deleting(&dependent) {
            remove(world, kind, &dependent, Propagation::Background);
        }
    }
}

fn alive(world: &World, dependent: &Value, owner: &Value) -> bool {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    Kind::by_name(text("kind")).is_some_and(|kind| {
        let ns = if kind.info().namespaced {
            namespace(dependent)
        } else {
            ""
        };
        world
            .store
            .get(kind, ns, text("name"))
            .is_some_and(|stored| uid(stored) == text("uid"))
    })
}

/// The owner waits until the dependents that block it are gone.
fn foreground(world: &mut World, kind: Kind, owner: &Value) {
    let owned = dependents(world, namespace(owner), uid(owner));
    for (kind, dependent) in &owned {
        if !deleting(dependent) {
            let further = !dependents(world, namespace(dependent), uid(dependent)).is_empty();
            let propagation = if further {
                Propagation::Foreground
            } else {
                Propagation::Background
            };
            remove(world, *kind, dependent, propagation);
        }
    }
    let blocked = dependents(world, namespace(owner), uid(owner))
        .iter()
        .any(|(_, dependent)| {
            items(&dependent["metadata"]["ownerReferences"])
                .iter()
                .any(|o| o["uid"] == uid(owner) && o["blockOwnerDeletion"] == true)
        });
    if !blocked {
        drop_finalizer(world, kind, owner, FOREGROUND);
    }
}

fn remove(world: &mut World, kind: Kind, object: &Value, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(uid(object).to_owned()),
        ..DeleteOptions::default()
    };
    // It may have gone by itself, which is as good.
    let _ = delete::delete(world, kind, namespace(object), name(object), &options);
}

fn disown(world: &mut World, kind: Kind, dependent: &Value, owner_uid: &str) {
    world.update(kind, namespace(dependent), name(dependent), |stored| {
        let mut owners = items(&stored["metadata"]["ownerReferences"]).to_vec();
        owners.retain(|owner| owner["uid"] != owner_uid);
        if let Some(meta) = stored["metadata"].as_object_mut() {
            if owners.is_empty() {
                meta.remove("ownerReferences");
            } else {
                meta.insert("ownerReferences".to_owned(), owners.into());
            }
        }
    });
}

fn drop_finalizer(world: &mut World, kind: Kind, object: &Value, finalizer: &str) {
    let (ns, name) = (namespace(object), name(object));
    world.update(kind, ns, name, |stored| {
        let mut left = items(&stored["metadata"]["finalizers"]).to_vec();
        left.retain(|one| one != finalizer);
        if let Some(meta) = stored["metadata"].as_object_mut() {
            if left.is_empty() {
                meta.remove("finalizers");
            } else {
                meta.insert("finalizers".to_owned(), left.into());
            }
        }
    });
    let stored = world.store.get(kind, ns, name);
    if stored.is_some_and(|stored| write::released(kind, stored)) {
        // It was there a line ago.
        let _ = world.store.remove(kind, ns, name);
    }
}

#[cfg(test)]
mod tests;
