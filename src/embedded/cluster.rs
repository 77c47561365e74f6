//! The cluster as its users hold it: a handle that keeps the world in step with tokio's clock.
//!
//! The world is brought up to the present whenever somebody looks at it. Only watches must see changes as they
//! happen, so only while there are watches does a task wake for every piece of due work; without them a
//! cluster costs nothing between requests. Both give the same history, since work is done at its own time.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::embedded::api;
use crate::embedded::bootstrap;
use crate::embedded::image::Registry;
use crate::embedded::kubelet::policy::Denied;
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
    /// What its network does with connections that a NetworkPolicy denies.
    pub denied: Denied,
}

/// A running embedded cluster. Cheap to clone; must be created inside a tokio runtime. It ends with its last
/// handle, router and client.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

/// What request handlers and the driver share.
pub struct Shared {
    world: Mutex<World>,
    started: Instant,
    /// Microseconds of the cluster's time at `started`; moves only when time is skipped.
    epoch: AtomicI64,
    /// The newest resource version.
    versions: watch::Sender<u64>,
    watches: AtomicUsize,
    /// Tells the driver that a watch began or that earlier work was queued.
    wake: Arc<Notify>,
}

/// Keeps the driver awake and knows when the store changes. Dropped with the watch that holds it.
pub struct Subscription {
    shared: Weak<Shared>,
    versions: watch::Receiver<u64>,
}

impl Cluster {
    /// Starts a cluster at the present moment of tokio's clock.
    pub fn new(config: ClusterConfig) -> Cluster {
        let wake = Arc::new(Notify::new());
        let mut world = World::new(config.seed, config.start, config.images);
        world.kubelet.denied = config.denied;
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            started: Instant::now(),
            epoch: AtomicI64::new(config.start.micros()),
            versions: watch::Sender::new(0),
            watches: AtomicUsize::new(0),
            wake: wake.clone(),
        });
        tokio::spawn(drive(Arc::downgrade(&shared), wake));
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

    /// Lets days pass in which nothing happens: everything looks that much older, and old events are forgotten. Not
    /// to be called while anybody watches or remembers a time of this cluster.
    pub fn grow_older(&self, by: Duration) {
        self.shared.with(|world| {
            bootstrap::grow_older(world, by);
            let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
            self.shared.epoch.fetch_add(micros, Ordering::Relaxed);
        });
    }

    /// Direct access to the world, for fixtures' back-dating and for tests.
    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        self.shared.with(f)
    }
}

impl Shared {
    fn epoch(&self) -> Time {
        Time::from_micros(self.epoch.load(Ordering::Relaxed))
    }

    pub fn now(&self) -> Time {
        self.epoch() + self.started.elapsed()
    }

    /// Brings the world up to now, runs `f` on it, and lets components take note of what it changed.
    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.run_until(self.now());
        let due = world.next_due();
        let answer = f(&mut world);
        world.offer_changes();
        let version = world.store.resource_version();
        let sooner = world.next_due() != due;
        drop(world);
        self.versions.send_if_modified(|newest| {
            let grown = *newest != version;
            *newest = version;
            grown
        });
        if sooner && self.watches.load(Ordering::Relaxed) > 0 {
            self.wake.notify_one();
        }
        answer
    }

    /// Follows the store from now on, until the subscription is dropped.
    pub fn subscribe(self: &Arc<Shared>) -> Subscription {
        self.watches.fetch_add(1, Ordering::Relaxed);
        self.wake.notify_one();
        Subscription {
            shared: Arc::downgrade(self),
            versions: self.versions.subscribe(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The driver may be asleep with nothing due; it must see that the cluster is gone.
        self.wake.notify_one();
    }
}

impl Subscription {
    /// The cluster, unless it has ended.
    pub fn cluster(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }

    /// Waits until the store has changed since the last call; false when the cluster has ended.
    pub async fn changed(&mut self) -> bool {
        self.versions.changed().await.is_ok()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.watches.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Does due work at its time while anybody watches; ends with the cluster.
async fn drive(shared: Weak<Shared>, wake: Arc<Notify>) {
    loop {
        let due = {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if shared.watches.load(Ordering::Relaxed) == 0 {
                None
            } else {
                shared
                    .with(|world| world.next_due())
                    .map(|due| shared.started + due.since(shared.epoch()))
            }
        };
        // A wake-up sent since the look above is kept by the notifier, so none is lost.
        match due {
            None => wake.notified().await,
            Some(due) => tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = wake.notified() => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_driver_ends_with_the_cluster() {
        let cluster = Cluster::new(ClusterConfig {
            seed: 1,
            start: Time::from_micros(0),
            images: Registry::default(),
            denied: Denied::default(),
        });
        let wake = Arc::downgrade(&cluster.shared.wake);
        let mut subscription = cluster.shared.subscribe();
        tokio::task::yield_now().await;
        drop(cluster);
        assert!(!subscription.changed().await);
        drop(subscription);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        assert!(wake.upgrade().is_none(), "the driver still runs");
    }
}
