//! What became of every planned run, and whether the arms got what they were meant to get.

use crate::experiment::analysis::model::{Analysis, FlowRow};
use crate::report::document::{Block, Cell, Figure, Section, Table, Tone};
use crate::report::experiment::words;

pub(super) fn flow(analysis: &Analysis) -> Section {
    let mut table = Table::new(
        "Runs by scenario and arm",
        &[
            "<scenario",
            "<arm",
            ">planned",
            ">started",
            ">retried",
            ">excluded",
            ">not run",
            ">timed out",
            ">analysed",
        ],
    );
    for row in &analysis.flow {
        table.row(vec![
            row.scenario.as_str().into(),
            words::arm(&row.arm, row.tier.as_deref()).into(),
            row.planned.to_string().into(),
            row.started.to_string().into(),
            row.retried.to_string().into(),
            excluded(row),
            row.not_run.to_string().into(),
            row.timeouts.to_string().into(),
            row.analysed.to_string().into(),
        ]);
    }
    let total = |count: fn(&FlowRow) -> u32| {
        Cell::from(
            analysis
                .flow
                .iter()
                .map(|row| u64::from(count(row)))
                .sum::<u64>()
                .to_string(),
        )
    };
    table.row(vec![
        "all".into(),
        "".into(),
        total(|row| row.planned),
        total(|row| row.started),
        total(|row| row.retried),
        total(|row| row.excluded.values().sum()),
        total(|row| row.not_run),
        total(|row| row.timeouts),
        total(|row| row.analysed),
    ]);
    let mut blocks = vec![
        Block::Paragraph(
            "Excluded are runs that failed on our side, by code; that is settled before a score is known. A run \
             that timed out is the agent's, is scored by rule, and stays in."
                .to_owned(),
        ),
        Block::Figure(Figure::Flow),
        Block::Table(table),
    ];
    blocks.extend(codes(analysis));
    Section {
        id: "flow".to_owned(),
        title: "What became of every run".to_owned(),
        blocks,
    }
}

fn excluded(row: &FlowRow) -> Cell {
    match row.excluded.values().sum::<u32>() {
        0 => "0".into(),
        sum => Cell::with(sum.to_string(), Tone::Caution),
    }
}

/// The failures of ours that runs were excluded for.
fn codes(analysis: &Analysis) -> Option<Block> {
    let excluded = analysis.flow.iter().filter(|row| !row.excluded.is_empty());
    let lines: Vec<String> = excluded
        .map(|row| {
            let codes: Vec<String> = row
                .excluded
                .iter()
                .map(|(code, count)| format!("{code} {count}"))
                .collect();
            let arm = words::arm(&row.arm, row.tier.as_deref());
            format!("Excluded of {}, {arm}: {}", row.scenario, codes.join(", "))
        })
        .collect();
    (!lines.is_empty()).then_some(Block::List(lines))
}

pub(super) fn manipulation(analysis: &Analysis) -> Section {
    let manipulation = &analysis.manipulation;
    let mut checks = Table::new("Checks", &["check", "required", "observed", "<passed"]);
    for check in &manipulation.checks {
        let tone = if check.passed { Tone::Good } else { Tone::Bad };
        checks.row(vec![
            check.what.as_str().into(),
            check.required.as_str().into(),
            check.observed.as_str().into(),
            Cell::with(words::yes_no(check.passed), tone),
        ]);
    }
    let mut exposure = Table::new(
        "What runs were served",
        &[
            "<scenario",
            "arm",
            ">runs",
            ">served any",
            ">mean served",
            "<distance",
            ">sets",
        ],
    );
    for row in &manipulation.exposure {
        let distance = row.distance.map_or(words::MISSING.to_owned(), |range| {
            format!(
                "{} to {}, mean {}",
                words::number(range.low, 3),
                words::number(range.high, 3),
                words::number(range.mean, 3)
            )
        });
        exposure.row(vec![
            row.scenario.as_str().into(),
            words::arm(&row.arm, row.tier.as_deref()).into(),
            row.runs.to_string().into(),
            row.exposed.to_string().into(),
            words::number(row.mean_served, 2).into(),
            distance.into(),
            row.distinct_sets.to_string().into(),
        ]);
    }
    let verdict = match manipulation.passed {
        true => "Passed: the arms got what they were meant to get.",
        false => {
            "Failed: the arms did not get what they were meant to get, and the analysis stops at this."
        }
    };
    Section {
        id: "manipulation".to_owned(),
        title: "Was the treatment delivered?".to_owned(),
        blocks: vec![
            Block::Paragraph(verdict.to_owned()),
            Block::Table(checks),
            Block::Figure(Figure::Exposure),
            Block::Table(exposure),
        ],
    }
}
