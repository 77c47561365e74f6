//! `breakage` measures AI agents that operate Kubernetes: it breaks a cluster in a known way, lets an agent
//! respond, scores the response against the known truth, and remembers the outcome.
//!
//! Modules in reading order. `docs/architecture.md` has the code map and its invariants.

pub mod clock;
pub mod ids;

pub mod record;
pub mod scenario;

pub mod config;
pub mod store;

pub mod embed;
pub mod experience;

pub mod score;

pub mod detect;

pub mod embedded;

pub mod gateway;

pub mod agent;

pub mod cluster;
pub mod inject;
pub mod observe;

pub mod run;

pub mod qualify;

pub mod stats;

pub mod experiment;

pub mod report;

pub mod cli;
