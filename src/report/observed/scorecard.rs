//! The scorecard as a document.

use crate::report::document::{Block, Cell, Document, Section, Table, Tone, Warning};
use crate::report::numbers;
use crate::report::observed::{SIMULATION, footer};
use crate::report::scorecard::{Ends, Group, Observational, Row, Scorecard};

pub(super) fn document(card: &Scorecard) -> Document {
    let runs: u32 = rows(card).map(|row| row.runs).sum();
    let counted: u32 = rows(card).map(|row| row.n).sum();
    Document {
        title: "Scorecard".to_owned(),
        warnings: vec![Warning {
            label: "Observation",
            text: "These runs were not allotted by an experiment: scenarios, agents and what was retrieved came as they \
                   came. Rows describe; they do not compare."
                .to_owned(),
        }],
        answer: vec![
            ("Runs".to_owned(), runs.to_string().into()),
            (
                "Of the agents".to_owned(),
                format!("{counted} (scored or timed out; means and rates are over these)").into(),
            ),
            (
                "Ours".to_owned(),
                format!("{} ended in our own failure and are never the agent's", runs - counted).into(),
            ),
            (
                "Left out".to_owned(),
                format!(
                    "{} of experiments whose scores are sealed",
                    numbers::count(u64::from(card.left_out_sealed), "run", "runs")
                )
                .into(),
            ),
        ],
        sections: card.groups.iter().enumerate().map(group).collect(),
        footer: footer(),
    }
}

fn rows(card: &Scorecard) -> impl Iterator<Item = &Row> {
    card.groups.iter().flat_map(|group| &group.scenarios)
}

fn group((at, group): (usize, &Group)) -> Section {
    let mut blocks = Vec::new();
    if group.identity.simulation {
        blocks.push(Block::Paragraph(SIMULATION.to_owned()));
    }
    blocks.push(Block::Table(scores(
        "By scenario: scores",
        "<scenario",
        &group.scenarios,
    )));
    blocks.push(Block::Table(rates(
        "By scenario: rates",
        "<scenario",
        &group.scenarios,
    )));
    if !group.categories.is_empty() {
        blocks.push(Block::Paragraph(
            "A category mixes its scenarios as often as they were run: its mean moves when the mix does.".to_owned(),
        ));
        blocks.push(Block::Table(scores(
            "By category: scores",
            "<category",
            &group.categories,
        )));
        blocks.push(Block::Table(rates(
            "By category: rates",
            "<category",
            &group.categories,
        )));
    }
    blocks.extend(group.retrieval.iter().flat_map(retrieval));
    Section {
        id: format!("group-{at}"),
        title: group.identity.label(),
        blocks,
    }
}

fn scores(caption: &str, first: &str, rows: &[Row]) -> Table {
    let mut table = Table::new(caption, &[first, ">n", ">mean", ">sd", "levels"]);
    for row in rows {
        let number = |value: Option<f64>| match value {
            Some(value) => numbers::number(value, 4),
            None => "not enough runs".to_owned(),
        };
        table.row(vec![
            row.name.as_str().into(),
            row.n.to_string().into(),
            number(row.mean).into(),
            number(row.sd).into(),
            numbers::levels(&row.levels).into(),
        ]);
    }
    table
}

fn rates(caption: &str, first: &str, rows: &[Row]) -> Table {
    let mut table = Table::new(
        caption,
        &[
            first,
            ">runs",
            ">repaired",
            "<95 %",
            ">of all runs",
            ">timed out",
            "<95 %",
            "our failures",
        ],
    );
    for row in rows {
        let of = |k: u32| format!("{k} of {}", row.n);
        let all = row
            .repaired_of_all
            .map_or(numbers::MISSING.to_owned(), numbers::percent);
        table.row(vec![
            row.name.as_str().into(),
            row.runs.to_string().into(),
            of(row.repaired).into(),
            interval(row.repaired_interval).into(),
            all.into(),
            of(row.timeouts).into(),
            interval(row.timeout_interval).into(),
            failures(row),
        ]);
    }
    table
}

fn interval(ends: Option<Ends>) -> String {
    ends.map_or(numbers::MISSING.to_owned(), |ends| {
        numbers::interval(ends.low, ends.high, |end| numbers::number(end, 2))
    })
}

fn failures(row: &Row) -> Cell {
    if row.framework_errors.is_empty() {
        return numbers::MISSING.into();
    }
    let codes: Vec<String> = row
        .framework_errors
        .iter()
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    Cell::with(codes.join(", "), Tone::Caution)
}

fn retrieval(one: &Observational) -> Vec<Block> {
    let facts = [
        (
            "Served something",
            format!(
                "{} runs, mean {}",
                one.served,
                numbers::number(one.mean_served, 4)
            ),
        ),
        (
            "Served nothing",
            format!(
                "{} runs, mean {}",
                one.not_served,
                numbers::number(one.mean_not_served, 4)
            ),
        ),
        ("Difference", numbers::signed(one.difference)),
        (
            "Of which by scenario",
            format!(
                "{}: the same difference, were every run worth its scenario's mean (hits and misses fall on scenarios \
                 of different difficulty)",
                numbers::signed(one.difficulty_gap)
            ),
        ),
        (
            "The rest",
            format!(
                "{}, from {} of {} scenarios with runs on both sides",
                numbers::signed(one.within_scenarios),
                one.scenarios_on_both_sides,
                one.scenarios
            ),
        ),
    ];
    vec![
        Block::Heading("Retrieval, observed (confounded)".to_owned()),
        Block::Paragraph(
            "Whether a run is served anything depends on its scenario and on what the agent asked, and both also decide \
             how it scores. This is no estimate of what retrieval does; a registered experiment is."
                .to_owned(),
        ),
        Block::Facts(
            facts
                .into_iter()
                .map(|(label, value)| (label.to_owned(), value))
                .collect(),
        ),
        Block::Command("breakage experiment init falsification".to_owned()),
    ]
}
