//! What a young but not newborn cluster holds: namespaces, one node, the system's services and workloads.
//!
//! Everything is dated back, as objects that were there long before anybody looked. The system's pods are not
//! made here: its Deployments get them like any other, when the clock first runs.

mod access;
mod node;
mod system;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers;
use crate::embedded::kind::Kind;
use crate::embedded::store::key_of;
use crate::embedded::time::Time;
use crate::embedded::world::{Work, World};

/// The only node's name.
pub const NODE: &str = "node-1";

/// Its address, and that of the API server.
pub const NODE_ADDRESS: &str = "10.99.0.2";

/// The address of the cluster's DNS service.
pub const DNS_ADDRESS: &str = "10.43.0.10";

/// How long the cluster has been there: 12 days and some hours.
const AGE: Duration = Duration::from_secs(12 * 86_400 + 5 * 3_600 + 17 * 60);

/// Fills an empty world. To be called once, before anything else happens in it.
pub fn populate(world: &mut World) {
    for (name, later) in [
        ("kube-system", 0),
        ("kube-public", 1),
        ("kube-node-lease", 1),
        ("default", 1),
    ] {
        let namespace = json!({"metadata": {"name": name}});
        place(world, Kind::Namespace, "", namespace, later);
        let account = json!({"metadata": {"name": "default"}});
        place(world, Kind::ServiceAccount, name, account, later + 4);
        let config = controllers::namespace::root_certificate();
        place(world, Kind::ConfigMap, name, config, later + 4);
    }
    node::populate(world);
    access::populate(world);
    system::populate(world);
    world.after(
        Duration::from_secs(3),
        Work::Controller(controllers::Work::Heartbeat),
    );
}

/// Creates an object as of `later` seconds after the cluster's beginning.
fn place(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    object: Value,
    later: u64,
) -> Option<Arc<Value>> {
    let options = WriteOptions::of("kubectl-create");
    let created = write::create(world, kind, namespace, object, &options);
    debug_assert!(created.is_ok(), "{created:?}");
    let created = created.ok()?;
    let (namespace, name) = key_of(&created);
    let when = (world.now() - AGE + Duration::from_secs(later)).seconds_text();
    world.update(kind, &namespace, &name, |object| {
        object["metadata"]["creationTimestamp"] = when.as_str().into();
        for entry in object["metadata"]["managedFields"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            entry["time"] = when.as_str().into();
        }
    });
    world.store.get(kind, &namespace, &name).cloned()
}

/// Makes everything that is in the cluster now look older by `age`, and forgets the events so far.
///
/// For the end of a warm-up: the system's pods then look as if they had been running for long. Times of
/// later changes are not touched. The creation times that [`populate`] dated back already stay.
pub fn season(world: &mut World, age: Duration) {
    let began = world.now() - AGE + Duration::from_secs(3600);
    let kinds = [
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::Pod,
        Kind::EndpointSlice,
        Kind::Endpoints,
    ];
    for kind in kinds {
        let objects: Vec<Arc<Value>> = world.store.all(kind).cloned().collect();
        for object in objects {
            let (namespace, name) = key_of(&object);
            world.update(kind, &namespace, &name, |object| shift(object, began, age));
        }
    }
    let events: Vec<(String, String)> = world.store.all(Kind::Event).map(|e| key_of(e)).collect();
    for (namespace, name) in events {
        // Listed a moment ago.
        let _ = world.store.remove(Kind::Event, &namespace, &name);
    }
}

/// Moves every time in a value that is later than `began` back by `age`.
fn shift(value: &mut Value, began: Time, age: Duration) {
    match value {
        Value::String(text) if text.ends_with('Z') && text.len() >= 20 => {
            if let Some(time) = Time::parse(text).filter(|time| *time > began) {
                *text = (time - age).seconds_text();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| shift(item, began, age)),
        Value::Object(map) => map.values_mut().for_each(|item| shift(item, began, age)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
