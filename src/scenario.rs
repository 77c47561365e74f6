//! Scenario, vocabulary and rubric files: their types and strict loading.
//!
//! `model` has the types, `load` turns text into them or into every error with its line and column, `library`
//! finds files (compiled in, workspace, path). [`model::Task`] is the only part that an agent may see.

pub mod builtin;
pub mod decode;
pub mod kubernetes_types;
pub mod library;
pub mod load;
pub mod model;
pub mod mutation;
pub mod near;
pub mod problem;
pub mod schema;
pub mod yaml;
