//! Runs in a cluster that outlives our processes: kills, signals, two processes, two workspaces.
//!
//! The cluster is `breakage cluster serve --fast` in a process of its own. What it holds is read by a reader of these
//! tests alone, over HTTP, and never from our store.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "lasting/compare.rs"]
mod compare;
#[path = "lasting/gone.rs"]
mod gone;
#[path = "lasting/held.rs"]
mod held;
#[path = "lasting/kill.rs"]
mod kill;
#[path = "lasting/qualify.rs"]
mod qualify;
#[path = "lasting/reader.rs"]
mod reader;
#[path = "lasting/served.rs"]
mod served;
#[path = "lasting/sharing.rs"]
mod sharing;
#[path = "lasting/signals.rs"]
mod signals;
