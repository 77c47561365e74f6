//! Scenario, vocabulary and rubric files: their types and strict loading.
//!
//! `model` has the types, `load` turns text into them or into every error with its line and column, `library`
//! finds files (compiled in, workspace, path). [`model::Task`] is the only part that an agent may see.

pub mod model;
