//! Registered experiments: a plan is written down and locked, its runs are allocated, carried out and chained in a
//! ledger, and the analysis reads nothing but registration and ledger.
//!
//! In reading order: [`plan`] is what a person writes, [`registration`] what is locked, [`allocation`] which run comes
//! when, [`ledger`] what happened, [`analysis`] what it says. `docs/experiments.md` has the file formats.

pub mod adopt;
pub mod allocation;
pub mod amend;
pub mod analysis;
pub mod arms;
pub mod bundle;
pub mod calibrate;
pub mod canonical;
pub mod dead_axes;
pub mod execute;
pub mod inputs;
pub mod ledger;
pub mod load;
pub mod lock;
pub mod locked;
pub mod matrix;
pub mod plan;
pub mod power;
pub mod registration;
pub mod schema;
pub mod seal;
pub mod status;
pub mod templates;
pub mod trial;
pub mod verify;
