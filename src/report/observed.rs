//! Scorecard, pitfalls and health as people read them.

mod health;
mod pitfalls;
mod scorecard;

use crate::report::document::Document;
use crate::report::health::Health;
use crate::report::pitfalls::Pitfalls;
use crate::report::scorecard::Scorecard;
use crate::report::{html, markdown, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// At most 100 columns.
    Text,
    Markdown,
    /// One file that needs nothing from outside.
    Html,
}

pub fn scorecard(card: &Scorecard, format: Format) -> String {
    write(&scorecard::document(card), format)
}

pub fn pitfalls(found: &Pitfalls) -> String {
    write(&pitfalls::document(found), Format::Text)
}

pub fn health(health: &Health) -> String {
    write(&health::document(health), Format::Text)
}

fn write(document: &Document, format: Format) -> String {
    match format {
        Format::Text => text::write(document),
        Format::Markdown => markdown::write(document),
        Format::Html => html::write(document, "Observation, not experiment", &|_| None),
    }
}

/// Said where a group's agent only plays one.
const SIMULATION: &str = "The agent is a simulation: what it earns tests the instrument and is no evidence about real \
                          agents.";

/// Who made the pages: this build.
fn footer() -> String {
    format!("breakage {}", env!("CARGO_PKG_VERSION"))
}
