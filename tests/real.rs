//! A real Kubernetes: the image, preparation, whole runs, kills. docs/real-tier.md says how it comes up.
//!
//! `tests/real/cluster with cargo test --test real` starts a cluster, runs these against it and takes it down. Without a
//! cluster every test here says in one line that it did nothing; with `BREAKAGE_REQUIRE_REAL=1` that is a failure. What
//! the cluster holds is read by a client of these tests alone.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "real/experiment.rs"]
mod experiment;
#[path = "lasting/held.rs"]
mod held;
#[path = "real/kills.rs"]
mod kills;
#[path = "real/preparation.rs"]
mod preparation;
#[path = "real/scenarios.rs"]
mod scenarios;
#[path = "real/terminal.rs"]
mod terminal;
#[path = "real/tier.rs"]
mod tier;
#[path = "real/whole.rs"]
mod whole;
