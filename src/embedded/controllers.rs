//! Controllers: each watches kinds of objects and makes the world match their specs.
//!
//! A change queues the keys of the objects it concerns, a few milliseconds later each key is worked on once,
//! however many changes came in between. A controller reads the store, writes what differs, and may ask to be
//! called again at a time. Controllers know each other only through the store.

mod autoscaler;
#[cfg(test)]
mod bench;
pub mod claim;
mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod endpoints;
mod garbage;
mod job;
pub mod namespace;
pub mod nodes;
pub mod object;
pub mod pods;
pub mod quota;
pub mod replicaset;
mod revisions;
mod rollout;
pub mod statefulset;
mod taints;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::embedded::events;
use crate::embedded::store::Change;
use crate::embedded::time::Time;
use crate::embedded::world::{Work as WorldWork, World};

/// The first wait after a failed attempt; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// The longest wait between attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(1000);

/// Which controller a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Autoscaler,
    Claim,
    Endpoints,
    Disruption,
    Quota,
    Namespace,
    Garbage,
    Node,
    Taint,
}

/// One object of one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub controller: Controller,
    pub namespace: String,
    pub name: String,
}

/// Due work of the controllers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A queued key's turn.
    Reconcile(Key),
    /// A key that asked to be called at a time.
    Wake(Key),
    ExpireEvents,
    /// The nodes' kubelets report that they live.
    Heartbeat,
}

/// Queues and memories of the controllers.
#[derive(Debug, Default)]
pub struct State {
    /// Keys with a `Reconcile` under way.
    queued: BTreeSet<Key>,
    /// The earliest `Wake` under way of each key.
    wakes: BTreeMap<Key, Time>,
    /// Failed attempts in a row.
    failures: BTreeMap<Key, u32>,
    /// Sizes that autoscalers recommended lately.
    recommendations: BTreeMap<Key, Vec<(Time, i64)>>,
    /// Pods that their node drives away, and since when.
    tainted: BTreeMap<Key, Time>,
    /// Nodes whose kubelet does not report.
    silent: BTreeSet<String>,
    /// Nodes whose kubelet has noticed that they are cordoned.
    cordoned: BTreeSet<String>,
}

pub fn on_change(world: &mut World, change: &Change) {
    triggers::on_change(world, change);
    garbage::on_change(world, change);
}

pub fn work(world: &mut World, work: Work) {
    match work {
        Work::Reconcile(key) => {
            world.controllers.queued.remove(&key);
            reconcile(world, &key);
        }
        Work::Wake(key) => {
            if world.controllers.wakes.get(&key) == Some(&world.now()) {
                world.controllers.wakes.remove(&key);
            }
            reconcile(world, &key);
        }
        Work::ExpireEvents => events::expire(world),
        Work::Heartbeat => nodes::heartbeat(world),
    }
}

fn reconcile(world: &mut World, key: &Key) {
    match key.controller {
        Controller::Deployment => deployment::reconcile(world, key),
        Controller::ReplicaSet => replicaset::reconcile(world, key),
        Controller::StatefulSet => statefulset::reconcile(world, key),
        Controller::DaemonSet => daemonset::reconcile(world, key),
        Controller::Job => job::reconcile(world, key),
        Controller::Autoscaler => autoscaler::reconcile(world, key),
        Controller::Claim => claim::reconcile(world, key),
        Controller::Endpoints => endpoints::reconcile(world, key),
        Controller::Disruption => disruption::reconcile(world, key),
        Controller::Quota => quota::reconcile(world, key),
        Controller::Namespace => namespace::reconcile(world, key),
        Controller::Garbage => garbage::reconcile(world, key),
        Controller::Node => nodes::reconcile(world, key),
        Controller::Taint => taints::reconcile(world, key),
    }
}

/// Queues a key; several calls before its turn are one.
fn enqueue(world: &mut World, controller: Controller, namespace: &str, name: &str) {
    let key = Key {
        controller,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    if world.controllers.queued.insert(key.clone()) {
        let delay = world.jitter(2, 6);
        world.after(delay, WorldWork::Controller(Work::Reconcile(key)));
    }
}

/// Has a key worked on at a time, unless it will be earlier.
fn wake_at(world: &mut World, key: &Key, when: Time) {
    let when = when.max(world.now());
    if world
        .controllers
        .wakes
        .get(key)
        .is_some_and(|earlier| *earlier <= when && *earlier > world.now())
    {
        return;
    }
    world.controllers.wakes.insert(key.clone(), when);
    world.at(when, WorldWork::Controller(Work::Wake(key.clone())));
}

/// Has a failed key tried again, later with every failure.
fn retry(world: &mut World, key: &Key) {
    let failures = world.controllers.failures.entry(key.clone()).or_insert(0);
    let delay = FIRST_RETRY * 2u32.saturating_pow(*failures);
    *failures += 1;
    let when = world.now() + delay.min(LONGEST_RETRY);
    world.at(when, WorldWork::Controller(Work::Wake(key.clone())));
}

/// Forgets the failures of a key that succeeded.
fn forget(world: &mut World, key: &Key) {
    world.controllers.failures.remove(key);
}
