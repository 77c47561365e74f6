//! Locked experiments carried out: the same ledger from any number of threads and after any crash, seals, damage found.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "experiment_run/bench.rs"]
mod bench;
#[path = "experiment_run/bundle.rs"]
mod bundle;
#[path = "experiment_run/carried_out.rs"]
mod carried_out;
#[path = "experiment_run/damage.rs"]
mod damage;
#[path = "experiment_run/lasting.rs"]
mod lasting;
#[path = "experiment_run/typed.rs"]
mod typed;
