//! What a young but not newborn cluster holds: namespaces, one node, the system's services and workloads.
//!
//! The system's pods are not made here: its Deployments get them like any other.

mod access;
mod images;
mod node;
mod system;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::api::write::{self, WriteOptions};
use crate::embedded::controllers;
use crate::embedded::events;
use crate::embedded::kind::Kind;
use crate::embedded::store::key_of;
use crate::embedded::world::{Work, World};

/// The only node's name.
pub const NODE: &str = "node-1";

/// Its address, and that of the API server.
pub const NODE_ADDRESS: &str = "10.99.0.2";

/// The address of the cluster's DNS service.
pub const DNS_ADDRESS: &str = "10.43.0.10";

/// How long the cluster has been there: 12 days and some hours.
const AGE: Duration = Duration::from_secs(12 * 86_400 + 5 * 3_600 + 17 * 60);

/// How long the system's workloads get to start.
const WARM_UP: Duration = Duration::from_secs(180);

/// Changes that a cluster of this age has seen; two thirds are renewals of the node's lease.
const CHANGES: u64 = 158_400;

/// Fills an empty world whose clock has not run yet. Afterwards its clock shows the same time as before.
///
/// The cluster is made in the past, its workloads start through the ordinary controllers and kubelet, and then
/// the days until now are skipped: ages, restart counts and addresses come out as in a cluster that was left
/// alone. The images of the system's workloads are put on the node, too.
pub fn populate(world: &mut World) {
    world.rewind(AGE + WARM_UP);
    for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        place(
            world,
            Kind::Namespace,
            "",
            json!({"metadata": {"name": name}}),
        );
        let account = json!({"metadata": {"name": "default"}});
        place(world, Kind::ServiceAccount, name, account);
        place(
            world,
            Kind::ConfigMap,
            name,
            controllers::namespace::root_certificate(),
        );
    }
    images::add(world);
    node::populate(world);
    access::populate(world);
    system::populate(world);
    world.after(
        Duration::from_secs(3),
        Work::Controller(controllers::Work::Heartbeat),
    );
    world.run_until(world.now() + WARM_UP);
    world.store.skip_versions(CHANGES);
    grow_older(world, AGE);
}

/// Skips a time in which nothing happens but the nodes' heartbeats.
pub fn grow_older(world: &mut World, by: Duration) {
    world.skip(by);
    forget_events(world);
    controllers::nodes::beat_all(world);
    world.offer_changes();
}

/// Events of the beginning are long over.
fn forget_events(world: &mut World) {
    let events: Vec<(String, String)> = world.store.all(Kind::Event).map(|e| key_of(e)).collect();
    for (namespace, name) in events {
        // Listed a moment ago.
        let _ = world.store.remove(Kind::Event, &namespace, &name);
    }
    world.events = events::State::default();
}

fn place(world: &mut World, kind: Kind, namespace: &str, object: Value) -> Option<Arc<Value>> {
    let options = WriteOptions::of("kubectl-create");
    let created = write::create(world, kind, namespace, object, &options);
    debug_assert!(created.is_ok(), "{created:?}");
    created.ok()
}

#[cfg(test)]
mod tests;
