//! What several records say together, as rows and text. Pure.

pub mod cases;
mod document;
pub mod experiment;
pub mod fidelity;
pub mod health;
mod html;
mod markdown;
mod markup;
mod numbers;
pub mod observed;
pub mod pitfalls;
pub mod printable;
pub mod published;
pub mod scorecard;
mod text;
