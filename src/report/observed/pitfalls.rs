//! Pitfalls as a document.

use crate::report::document::{Block, Document, Section, Table, Warning};
use crate::report::numbers;
use crate::report::observed::{SIMULATION, footer};
use crate::report::pitfalls::{Group, Pattern, Pitfalls};

pub(super) fn document(found: &Pitfalls) -> Document {
    Document {
        title: "Pitfalls".to_owned(),
        warnings: vec![Warning {
            label: "Observation",
            text: "Counts of what runs with damage have in common. A pattern that runs without damage have as often \
                   explains nothing, and none of this says what caused what."
                .to_owned(),
        }],
        answer: vec![
            (
                "Damage".to_owned(),
                format!(
                    "{} of {} scored runs regressed something or repaired at a cost",
                    found.damaged, found.runs
                )
                .into(),
            ),
            (
                "Left out".to_owned(),
                format!(
                    "{} of experiments whose scores are sealed",
                    numbers::count(u64::from(found.left_out_sealed), "run", "runs")
                )
                .into(),
            ),
        ],
        sections: found.groups.iter().enumerate().map(group).collect(),
        footer: footer(),
    }
}

fn group((at, group): (usize, &Group)) -> Section {
    let mut blocks = Vec::new();
    if group.identity.simulation {
        blocks.push(Block::Paragraph(SIMULATION.to_owned()));
    }
    let mut told = format!(
        "{} of {} runs did damage: {} regressed something, {} repaired at a cost.",
        group.damaged, group.runs, group.regressed, group.repaired_at_a_cost
    );
    if group.damaged_without_write > 0 {
        told.push_str(&format!(
            " In {} of them no request of the agent changed anything.",
            group.damaged_without_write
        ));
    }
    blocks.push(Block::Paragraph(told));
    let undamaged = group.runs - group.damaged;
    blocks.push(Block::Table(patterns(
        "Around the first damaging write (in brackets); in undamaged runs, around the first write",
        &group.around_first_write,
        (group.damaged, undamaged),
    )));
    blocks.push(Block::Table(patterns(
        "Sequences of two and three tools",
        &group.sequences,
        (group.damaged, undamaged),
    )));
    Section {
        id: format!("group-{at}"),
        title: format!("{}: {}", group.category, group.identity.label()),
        blocks,
    }
}

fn patterns(caption: &str, patterns: &[Pattern], (damaged, undamaged): (u32, u32)) -> Table {
    let mut table = Table::new(caption, &["tools", ">damaged", ">undamaged", "examples"]);
    for pattern in patterns {
        let examples: Vec<&str> = pattern.examples.iter().map(|id| id.as_str()).collect();
        table.row(vec![
            pattern.tools.join(" > ").into(),
            format!("{} of {damaged}", pattern.damaged).into(),
            format!("{} of {undamaged}", pattern.undamaged).into(),
            examples.join(", ").into(),
        ]);
    }
    table
}
