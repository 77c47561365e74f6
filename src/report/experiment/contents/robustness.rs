//! What could have made the results come out as they did: exclusions, order, the rubric, the precision.

use crate::experiment::analysis::model::{Analysis, Exclusions, Multiverse, Precision};
use crate::report::document::{Block, Section, Table};
use crate::report::experiment::contents::results::heading;
use crate::report::experiment::words;

pub(super) fn sections(analysis: &Analysis) -> Vec<Section> {
    vec![
        exclusions(analysis),
        drift(analysis),
        multiverse(analysis),
        precision(analysis),
    ]
}

fn exclusions(analysis: &Analysis) -> Section {
    let mut blocks = Vec::new();
    for comparison in &analysis.comparisons {
        blocks.extend(heading(analysis, comparison));
        blocks.extend(exclusion_blocks(&comparison.exclusions));
    }
    Section {
        id: "exclusions".to_owned(),
        title: "Exclusions".to_owned(),
        blocks,
    }
}

fn exclusion_blocks(exclusions: &Exclusions) -> Vec<Block> {
    let within = match exclusions.share <= exclusions.cap {
        true => "within",
        false => "ABOVE",
    };
    let unevenly = match exclusions.p {
        Some(p) => format!(
            "Whether the arms lost runs unevenly, over all scenarios (Fisher): p {}.",
            words::p(p)
        ),
        None => "There is nothing to test for whether the arms lost runs unevenly.".to_owned(),
    };
    let text = format!(
        "{} of the runs were excluded, {within} the registered cap of {}. {unevenly}",
        words::percent(exclusions.share),
        words::percent(exclusions.cap),
    );
    let mut table = Table::new(
        "Excluded runs, and what the difference could have been had they counted",
        &[
            "<scenario",
            ">treatment",
            ">control",
            ">p Fisher",
            "<worst-case bounds",
        ],
    );
    for row in &exclusions.rows {
        let of = |(excluded, kept): (u32, u32)| format!("{excluded} of {}", excluded + kept);
        table.row(vec![
            row.scenario.as_str().into(),
            of(row.treatment).into(),
            of(row.control).into(),
            words::maybe(row.p, words::p).into(),
            words::maybe_interval(row.bounds).into(),
        ]);
    }
    vec![Block::Paragraph(text), Block::Table(table)]
}

fn drift(analysis: &Analysis) -> Section {
    let mut table = Table::new(
        "Score against order",
        &[
            "arm",
            ">n",
            ">slope per run",
            ">p",
            ">lag-1",
            ">after treatment",
            ">p",
        ],
    );
    for row in &analysis.drift {
        table.row(vec![
            words::arm(&row.arm, row.tier.as_deref()).into(),
            row.n.to_string().into(),
            words::maybe(row.slope, |slope| words::number(slope, 5)).into(),
            words::maybe(row.slope_p, words::p).into(),
            words::maybe(row.lag1, |lag| words::number(lag, 2)).into(),
            words::maybe(row.after_treatment, words::signed).into(),
            words::maybe(row.after_treatment_p, words::p).into(),
        ]);
    }
    Section {
        id: "drift".to_owned(),
        title: "Drift, order and carry-over".to_owned(),
        blocks: vec![
            Block::Paragraph(
                "Diagnostics: a slope says that scores moved while the experiment ran, lag-1 that a run resembles the \
                 one before, after treatment that a run scores otherwise when a treatment run came before it. These \
                 p are raw and belong to no registered family."
                    .to_owned(),
            ),
            Block::Table(table),
        ],
    }
}

fn multiverse(analysis: &Analysis) -> Section {
    let mut blocks = Vec::new();
    for comparison in &analysis.comparisons {
        let Some(one) = &comparison.multiverse else {
            continue;
        };
        blocks.extend(heading(analysis, comparison));
        blocks.extend(multiverse_blocks(one));
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(
            "Not computed: there is no pooled estimate to vary.".to_owned(),
        ));
    }
    Section {
        id: "multiverse".to_owned(),
        title: "Other rubrics, credits and tests".to_owned(),
        blocks,
    }
}

fn multiverse_blocks(one: &Multiverse) -> Vec<Block> {
    let facts = vec![
        ("Variants", one.variants.to_string()),
        ("Same sign", words::percent(one.same_sign)),
        ("Same verdict", words::percent(one.same_verdict)),
        ("Estimates", words::interval(one.range)),
        ("Worst case", one.worst.clone()),
        (
            "Nearest change of verdict",
            one.nearest_flip
                .clone()
                .unwrap_or_else(|| "none in the grid".to_owned()),
        ),
    ];
    let mut table = Table::new(
        "Credit of a near miss, all else as registered",
        &[">credit", ">estimate", "verdict"],
    );
    for (credit, estimate, verdict) in &one.near_miss {
        table.row(vec![
            words::number(*credit, 3).into(),
            words::signed(*estimate).into(),
            words::verdict_cell(*verdict, false, &[]),
        ]);
    }
    let facts = facts
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value))
        .collect();
    vec![Block::Facts(facts), Block::Table(table)]
}

fn precision(analysis: &Analysis) -> Section {
    let mut blocks = Vec::new();
    for comparison in &analysis.comparisons {
        let Some(one) = &comparison.precision else {
            continue;
        };
        blocks.extend(heading(analysis, comparison));
        blocks.push(Block::Facts(precision_facts(one)));
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(
            "Not computed: there is no pooled estimate.".to_owned(),
        ));
    }
    Section {
        id: "precision".to_owned(),
        title: "Achieved precision".to_owned(),
        blocks,
    }
}

fn precision_facts(one: &Precision) -> Vec<(String, String)> {
    let number = |value| words::number(value, 4);
    [
        (
            "Half-width of the 95 % interval",
            format!(
                "{}, planned {}",
                number(one.half_width),
                number(one.half_width_planned)
            ),
        ),
        (
            "Standard deviation within a cell",
            format!(
                "{}, planned {}",
                number(one.sigma),
                number(one.sigma_planned)
            ),
        ),
        (
            "Smallest true difference found with the registered power",
            number(one.mde),
        ),
        (
            "Differences excluded beyond",
            format!("{} in size", number(one.excluded_beyond)),
        ),
    ]
    .into_iter()
    .map(|(label, value)| (label.to_owned(), value))
    .collect()
}
