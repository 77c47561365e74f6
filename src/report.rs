//! What several records say together, as rows and text. Pure.

pub mod experiment;
pub mod fidelity;
pub mod health;
pub mod pitfalls;
pub mod printable;
pub mod scorecard;
