//! What an experiment says, for people and for other programs: one order of sections for every format, and no number
//! that the analysis did not compute.
//!
//! `contents` puts the analysis into sections, tables and figures; [`text`](text()), [`markdown`](markdown()) and
//! [`html`](html()) write those down, and only HTML draws the figures. [`csv`], [`csv_results`] and [`json`] carry the numbers
//! unrounded.

mod contents;
mod plot;
mod separated;
mod words;

use crate::experiment::analysis::model::Analysis;
use crate::report::{html, markdown, text};

/// For a terminal: at most 100 columns, verdict, row and hash first.
pub fn text(analysis: &Analysis) -> String {
    text::write(&contents::document(analysis))
}

/// The answer and the scenarios of the primary comparison, for a terminal.
pub fn summary(analysis: &Analysis) -> String {
    text::write(&contents::summary(analysis))
}

/// The same in Markdown, tables in GitHub's form.
pub fn markdown(analysis: &Analysis) -> String {
    markdown::write(&contents::document(analysis))
}

/// The same with plots, as one file that needs nothing from outside and runs nothing.
pub fn html(analysis: &Analysis) -> String {
    let standing = match analysis.standing.confirmatory {
        true => "Registered experiment",
        false => "Registered experiment, exploratory report",
    };
    html::write(&contents::document(analysis), standing, &|figure| {
        plot::figure(figure, analysis)
    })
}

/// One row per run that counts, in the order in which they were begun.
pub fn csv(analysis: &Analysis) -> String {
    separated::runs(analysis)
}

/// One row per comparison and scenario, and one per pooled estimate.
pub fn csv_results(analysis: &Analysis) -> String {
    separated::results(analysis)
}

/// The analysis itself, unrounded. What is not known is left out: there is no null.
pub fn json(analysis: &Analysis) -> String {
    let mut value = serde_json::to_value(analysis).expect("an analysis has only text keys");
    drop_missing(&mut value);
    let mut text = serde_json::to_string_pretty(&value).expect("a JSON value can be written");
    text.push('\n');
    text
}

fn drop_missing(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_missing);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(drop_missing),
        _ => {}
    }
}
