//! What several records say together, as rows and text. Pure.

pub mod experiment;
pub mod fidelity;
pub mod printable;
