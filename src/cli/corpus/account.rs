//! One postmortem for a person, wrapped to the width of tables.

use crate::cli::corpus::{outcome_name, source_name};
use crate::cli::output::Output;
use crate::cli::printable;
use crate::experience::entry::Entry;
use crate::ids::CategoryId;

/// The whole account.
pub(super) fn of(entry: &Entry) -> String {
    let account = &entry.postmortem;
    let mut text = format!("{}\n{}\n", entry.id, wrapped(facts(entry)));
    for (heading, running) in [
        ("Diagnosis", &account.final_diagnosis),
        ("Fix", &account.fix_applied),
    ] {
        if !running.is_empty() {
            // A tab would be wider on the screen than the table reckons.
            let running = printable::block(running).replace('\t', "    ");
            let section = wrapped(vec![(String::new(), running)]);
            text.push_str(&format!("\n{heading}\n{section}\n"));
        }
    }
    let actions = account.actions_taken.iter().map(|action| {
        let reverted = match (&action.reverted, &action.revert_reason_mechanical) {
            (true, Some(reason)) => format!(" [reverted: {reason}]"),
            (true, None) => " [reverted]".to_owned(),
            (false, _) => String::new(),
        };
        format!("{}  {}{reverted}", action.tool, action.input_summary)
    });
    for (heading, lines) in [
        ("Actions", actions.collect::<Vec<String>>()),
        ("What did not work", account.what_did_not_work.clone()),
        ("Side effects", account.side_effects_observed.clone()),
    ] {
        if !lines.is_empty() {
            let items = lines
                .iter()
                .map(|line| ("-".to_owned(), printable::line(line)));
            let section = wrapped(items.collect());
            text.push_str(&format!("\n{heading}\n{section}\n"));
        }
    }
    text
}

/// What is known beside the account, one label a line; what is not known has no line.
fn facts(entry: &Entry) -> Vec<(String, String)> {
    let account = &entry.postmortem;
    let secondaries: Vec<&str> = account
        .secondary_categories
        .iter()
        .map(CategoryId::as_str)
        .collect();
    let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
    let when = |is: bool, words: &str| text(is.then_some(words));
    [
        ("outcome", outcome_name(entry.outcome).to_owned()),
        ("source", source_name(entry.source).to_owned()),
        ("recorded", entry.recorded_at.clone()),
        ("category", account.primary_category.to_string()),
        ("secondary", secondaries.join(", ")),
        ("confidence", account.confidence.to_string()),
        (
            "mechanism",
            text(entry.mechanism.as_ref().map(|id| id.as_str())),
        ),
        (
            "scenario",
            text(entry.scenario_id.as_ref().map(|id| id.as_str())),
        ),
        ("run", text(entry.run_id.as_ref().map(|id| id.as_str()))),
        (
            "quarantine",
            when(entry.quarantined, "kept, but not served"),
        ),
        ("review", when(entry.review, "a person should look at it")),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(label, value)| (label.to_owned(), printable::line(&value)))
    .collect()
}

/// Rows of a mark and a text that wraps beside it.
pub(super) fn wrapped(rows: Vec<(String, String)>) -> String {
    let mut table = Output::table(&[]);
    for (mark, text) in rows {
        table.add_row([mark, text]);
    }
    Output::keep_whole(&mut table, &[0]);
    table.to_string()
}
