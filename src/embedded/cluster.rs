//! The cluster as its users hold it: a handle that keeps the world in step with tokio's clock.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::embedded::api;
use crate::embedded::image::Registry;
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// What a new cluster is made of.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Everything random (uids, name suffixes, jitter) derives from it.
    pub seed: u64,
    /// The cluster's wall-clock time at the moment of creation.
    pub start: Time,
    /// What its image registries hold.
    pub images: Registry,
}

/// A running embedded cluster. Cheap to clone; must be created inside a tokio runtime.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

/// What request handlers and the driver share.
pub struct Shared {
    world: Mutex<World>,
    started: Instant,
    epoch: Time,
    /// Wakes the driver when earlier work was queued, and watches when something changed.
    pub changed: Notify,
}

impl Cluster {
    pub fn new(config: ClusterConfig) -> Cluster {
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(config.seed, config.start, config.images)),
            started: Instant::now(),
            epoch: config.start,
            changed: Notify::new(),
        });
        tokio::spawn(drive(Arc::downgrade(&shared)));
        Cluster { shared }
    }

    /// The router that answers Kubernetes paths; a `tower::Service` for `kube::Client`.
    pub fn router(&self) -> axum::Router {
        api::router(self.shared.clone())
    }

    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.router(), default_namespace)
    }

    /// The cluster's wall-clock time now.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Direct access to the world, for fixtures' back-dating and for tests.
    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        self.shared.with(f)
    }
}

impl Shared {
    pub fn now(&self) -> Time {
        self.epoch + self.started.elapsed()
    }

    /// Brings the world up to now, runs `f` on it, and lets components take note of what it changed.
    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.run_until(self.now());
        let before = (world.store.resource_version(), world.next_due());
        let answer = f(&mut world);
        world.offer_changes();
        if (world.store.resource_version(), world.next_due()) != before {
            self.changed.notify_waiters();
        }
        answer
    }
}

/// Does due work at its time as long as the cluster lives, so that watches see changes as they happen.
async fn drive(shared: std::sync::Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let due = strong.with(|world| world.next_due());
        let started = strong.started;
        let epoch = strong.epoch;
        let changed = strong.clone();
        drop(strong);
        // Registered before sleeping; a change made in between is met by the short upper limit below.
        let woken = changed.changed.notified();
        let wait = due.map_or(std::time::Duration::from_secs(1), |due| due.since(epoch));
        let until = started + wait;
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = woken => {}
        }
    }
}
