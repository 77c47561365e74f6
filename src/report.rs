//! What several records say together, as rows and text. Pure.

pub mod fidelity;
