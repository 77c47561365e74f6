//! The injectors on the embedded cluster: what they plan, what becomes of it, and what the undo leaves.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "injectors/configmap.rs"]
mod configmap;
#[path = "injectors/evict.rs"]
mod evict;
#[path = "injectors/flag.rs"]
mod flag;
#[path = "injectors/policy.rs"]
mod policy;
#[path = "injectors/stage.rs"]
mod stage;
