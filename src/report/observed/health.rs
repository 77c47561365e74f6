//! The instrument's health as a document.

use crate::report::document::{Block, Cell, Document, Section, Table, Tone};
use crate::report::health::{Audit, Determinism, Disagreement, Health, Period};
use crate::report::numbers;
use crate::report::observed::footer;

/// Longer questions are cut in tables.
const SHOWN_QUESTION: usize = 60;

pub(super) fn document(health: &Health) -> Document {
    let share = match health.runs {
        0 => numbers::MISSING.to_owned(),
        runs => numbers::percent(f64::from(health.framework_errors) / f64::from(runs)),
    };
    let (determinism, audit) = (&health.determinism, &health.audit);
    let agree = |different: u32, what: String| match different {
        0 => Cell::with(what, Tone::Good),
        _ => Cell::with(what, Tone::Bad),
    };
    Document {
        title: "Health of the instrument".to_owned(),
        warnings: Vec::new(),
        answer: vec![
            (
                "Our failures".to_owned(),
                format!(
                    "{} of {} runs ({share})",
                    health.framework_errors, health.runs
                )
                .into(),
            ),
            (
                "Determinism".to_owned(),
                agree(
                    determinism.different_count,
                    format!(
                        "{} of {} repeated questions had different answers",
                        determinism.different_count, determinism.repeated
                    ),
                ),
            ),
            (
                "Recall".to_owned(),
                agree(
                    audit.different_count,
                    format!(
                        "{} of {} recomputed questions had different answers",
                        audit.different_count, audit.recomputed
                    ),
                ),
            ),
        ],
        sections: vec![failures(&health.periods), same(determinism), recall(audit)],
        footer: footer(),
    }
}

fn failures(periods: &[Period]) -> Section {
    let mut table = Table::new(
        "Runs and our failures by day, version and kind of cluster",
        &["<day", "<version", "<cluster", ">runs", ">failed", "codes"],
    );
    for period in periods {
        let failed: u32 = period.framework_errors.values().sum();
        let codes: Vec<String> = period
            .framework_errors
            .iter()
            .map(|(code, count)| format!("{code} {count}"))
            .collect();
        table.row(vec![
            period.day.as_str().into(),
            period.breakage_version.as_str().into(),
            period.cluster_kind.as_str().into(),
            period.runs.to_string().into(),
            failed.to_string().into(),
            codes.join(", ").into(),
        ]);
    }
    Section {
        id: "failures".to_owned(),
        title: "Our failures over time".to_owned(),
        blocks: vec![
            Block::Paragraph(
                "Days are those of the cluster's clock, which on an embedded cluster is virtual: there only the \
                 version tells time."
                    .to_owned(),
            ),
            Block::Table(table),
        ],
    }
}

fn same(one: &Determinism) -> Section {
    let mut blocks = vec![Block::Paragraph(format!(
        "{} retrievals asked {} different questions, {} of them more than once; {} could not be done. Questions are \
         equal when text, embedder, policy and corpus are; of the corpus a record tells the size, and the registration \
         where an experiment froze it.",
        one.retrievals, one.questions, one.repeated, one.failed
    ))];
    blocks.extend(disagreements(
        "Different answers to one question",
        &one.different,
    ));
    Section {
        id: "determinism".to_owned(),
        title: "Same question, same answer".to_owned(),
        blocks,
    }
}

fn recall(one: &Audit) -> Section {
    let recall = match one.recall {
        Some(recall) => format!(
            "{} of what was served then is found again",
            numbers::percent(recall)
        ),
        None => "nothing had been served in them".to_owned(),
    };
    let mut blocks = vec![Block::Paragraph(format!(
        "{} recorded questions were recomputed by an exact scan of today's corpus: {} gave the same answer, {recall}. {} \
         could not be compared, because the corpus or the embedder is not what it was.",
        one.recomputed, one.equal, one.not_comparable
    ))];
    blocks.extend(disagreements("Served then, and found now", &one.different));
    Section {
        id: "recall".to_owned(),
        title: "Recall".to_owned(),
        blocks,
    }
}

fn disagreements(caption: &str, all: &[Disagreement]) -> Option<Block> {
    let mut table = Table::new(caption, &["question", "runs", "answers"]);
    for one in all {
        let runs: Vec<&str> = one.run_ids.iter().map(|id| id.as_str()).collect();
        let answers: Vec<String> = one
            .answers
            .iter()
            .map(|answer| match answer.is_empty() {
                true => "nothing".to_owned(),
                false => answer
                    .iter()
                    .map(|(id, distance)| format!("{id} {}", numbers::number(*distance, 4)))
                    .collect::<Vec<_>>()
                    .join(", "),
            })
            .collect();
        let question: String = one.query.chars().take(SHOWN_QUESTION).collect();
        table.row(vec![
            question.into(),
            runs.join(", ").into(),
            answers.join(" | ").into(),
        ]);
    }
    (!table.rows.is_empty()).then_some(Block::Table(table))
}
