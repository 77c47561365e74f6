//! What a person types to prepare and examine a cluster, against `breakage cluster serve` in a process of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "cluster_commands/consent.rs"]
mod consent;
#[path = "cluster_commands/doctor.rs"]
mod doctor;
#[cfg(unix)]
#[path = "cluster_commands/k3d.rs"]
mod k3d;
#[path = "cluster_commands/prepare.rs"]
mod prepare;
#[path = "cluster_commands/served.rs"]
mod served;
