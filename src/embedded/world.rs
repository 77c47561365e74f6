//! The whole cluster as one value: objects, clock, due work, randomness.
//!
//! A discrete-event simulation. Nothing in here waits or spawns: `run_until` takes the earliest piece of due
//! work, sets the clock to it and does it, until none is left before the given moment. Changes that a piece of
//! work commits to the store are offered to every component, which answers by queueing work of its own, a few
//! milliseconds later. The same seed and the same requests at the same times give the same bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;

use crate::embedded::controllers;
use crate::embedded::events;
use crate::embedded::kind::Kind;
use crate::embedded::kubelet;
use crate::embedded::scheduler;
use crate::embedded::store::{Store, StoreError};
use crate::embedded::time::Time;

/// Letters of generated names and hashes: no vowels, no look-alikes, so that no words come out.
pub const SAFE_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A piece of due work. Each component defines its own; the world only keeps them in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    Controller(controllers::Work),
    Scheduler(scheduler::Work),
    Kubelet(kubelet::Work),
}

/// See the module documentation.
pub struct World {
    now: Time,
    pub store: Store,
    queue: BinaryHeap<Reverse<(Time, u64, Work)>>,
    queued: u64,
    rng: ChaCha8Rng,
    pub controllers: controllers::State,
    pub scheduler: scheduler::State,
    pub kubelet: kubelet::State,
    pub events: events::State,
}

impl World {
    /// An empty cluster at `start`; `images` is what its registries hold.
    pub fn new(seed: u64, start: Time, images: crate::embedded::image::Registry) -> World {
        World {
            now: start,
            store: Store::default(),
            queue: BinaryHeap::new(),
            queued: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            controllers: controllers::State::default(),
            scheduler: scheduler::State::default(),
            kubelet: kubelet::State::new(images, seed),
            events: events::State::default(),
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Queues work at `now + delay`. Work due at the same moment is done in the order of queueing.
    pub fn after(&mut self, delay: Duration, work: Work) {
        self.at(self.now + delay, work);
    }

    pub fn at(&mut self, when: Time, work: Work) {
        self.queued += 1;
        self.queue
            .push(Reverse((when.max(self.now), self.queued, work)));
    }

    /// Sets the clock back before anything has happened, so that a past can be made.
    pub fn rewind(&mut self, by: Duration) {
        debug_assert!(
            self.queue.is_empty(),
            "only a clock that has not run is set back"
        );
        self.now = self.now - by;
    }

    /// Lets time pass in which nothing happens: the clock jumps, and all due work waits that much longer.
    pub fn skip(&mut self, by: Duration) {
        self.now = self.now + by;
        self.queue = std::mem::take(&mut self.queue)
            .into_iter()
            .map(|Reverse((when, order, work))| Reverse((when + by, order, work)))
            .collect();
    }

    /// When the next piece of work is due.
    pub fn next_due(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((when, ..))| *when)
    }

    /// Does all work due up to and including `until`, then sets the clock to it.
    pub fn run_until(&mut self, until: Time) {
        self.offer_changes();
        while let Some(Reverse((when, ..))) = self.queue.peek() {
            if *when > until {
                break;
            }
            if let Some(Reverse((when, _, work))) = self.queue.pop() {
                self.now = self.now.max(when);
                match work {
                    Work::Controller(work) => controllers::work(self, work),
                    Work::Scheduler(work) => scheduler::work(self, work),
                    Work::Kubelet(work) => kubelet::work(self, work),
                }
                self.offer_changes();
            }
        }
        self.now = self.now.max(until);
    }

    /// Hands every change not yet seen to every component. Components only queue work here.
    pub fn offer_changes(&mut self) {
        while let Some(change) = self.store.next_fresh() {
            controllers::on_change(self, &change);
            scheduler::on_change(self, &change);
            kubelet::on_change(self, &change);
        }
    }

    /// Stores a new object with kind, apiVersion, uid and creation time filled in. For components; requests
    /// go through `api`, which validates, defaults and admits first.
    pub fn create(&mut self, kind: Kind, mut object: Value) -> Result<Arc<Value>, StoreError> {
        object["kind"] = kind.info().name.into();
        object["apiVersion"] = kind.api_version().into();
        object["metadata"]["uid"] = self.uid().into();
        object["metadata"]["creationTimestamp"] = self.now.seconds_text().into();
        self.store.insert(kind, object)
    }

    /// Changes an object in place by a function; false when it is not there.
    pub fn update(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> bool {
        let Some(old) = self.store.get(kind, namespace, name) else {
            return false;
        };
        let mut object = (**old).clone();
        change(&mut object);
        self.store.replace(kind, object).is_ok()
    }

    /// A random version-4 uid.
    pub fn uid(&mut self) -> String {
        let mut bytes = [0u8; 16];
        self.rng.fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = hex::encode(bytes);
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// A random name suffix of `len` letters, as `generateName` makes it.
    pub fn suffix(&mut self, len: usize) -> String {
        (0..len)
            .map(|_| char::from(SAFE_LETTERS[self.below(SAFE_LETTERS.len() as u64) as usize]))
            .collect()
    }

    /// A number in `0..bound`; `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the modulo is below 2^-40 for the small bounds used here.
        self.rng.next_u64() % bound
    }

    /// `len` random bytes as lower-case hex, for container and image ids.
    pub fn hex_id(&mut self, len: usize) -> String {
        let mut bytes = vec![0u8; len.div_ceil(2)];
        self.rng.fill_bytes(&mut bytes);
        let mut text = hex::encode(bytes);
        text.truncate(len);
        text
    }

    /// A delay of `base_ms` plus up to `spread_ms`, drawn from the seed.
    pub fn jitter(&mut self, base_ms: u64, spread_ms: u64) -> Duration {
        let extra = if spread_ms == 0 {
            0
        } else {
            self.below(spread_ms * 1000)
        };
        Duration::from_micros(base_ms * 1000 + extra)
    }
}
