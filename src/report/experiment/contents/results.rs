//! The results: per scenario first, then pooled, then the contrast over tiers, then axes and rates.

use crate::experiment::analysis::model::{
    Analysis, ArmSummary, Comparison, Pooled, ScenarioResult, TierContrast,
};
use crate::report::document::{Block, Cell, Figure, Section, Table, Tone};
use crate::report::experiment::words;

pub(super) fn sections(analysis: &Analysis) -> Vec<Section> {
    let mut sections = vec![scenarios(analysis), pooled(analysis)];
    sections.extend(analysis.tiers.as_ref().map(tiers));
    sections.push(axes(analysis));
    sections
}

/// What a comparison is called; nothing needs a name where there is only one.
pub(super) fn heading(analysis: &Analysis, comparison: &Comparison) -> Option<Block> {
    let standing = match comparison.primary {
        true => "",
        false => " (exploratory: not a registered test of the matrix)",
    };
    let alone = analysis.comparisons.len() == 1 && comparison.primary;
    let name = format!(
        "{} against {}{standing}",
        treatment(comparison),
        comparison.control
    );
    (!alone).then_some(Block::Heading(name))
}

fn treatment(comparison: &Comparison) -> String {
    words::arm(&comparison.treatment, comparison.tier.as_deref())
}

fn scenarios(analysis: &Analysis) -> Section {
    let note = &analysis.registration;
    let mut blocks = vec![Block::Paragraph(format!(
        "Differences are treatment minus control, on the scale 0 to 1. The verdict goes by the simultaneous interval \
         (Bonferroni over the scenarios) and the p of the registered test adjusted by Holm; the smallest effect of \
         interest is {}.",
        words::number(note.sesoi, 3)
    ))];
    if !analysis.runs.is_empty() {
        blocks.push(Block::Figure(Figure::Order));
    }
    for (index, comparison) in analysis.comparisons.iter().enumerate() {
        blocks.extend(heading(analysis, comparison));
        blocks.push(Block::Figure(Figure::Forest(index)));
        blocks.push(Block::Table(verdicts(comparison)));
        if comparison.scenarios.iter().any(|one| one.gated) {
            blocks.push(Block::Paragraph(
                "Gated: the scenario's own test found a benefit, but the pooled test comes first and did not, so that \
                 no benefit may be claimed of the scenario."
                    .to_owned(),
            ));
        }
        blocks.push(Block::Figure(Figure::Levels(index)));
        blocks.push(Block::Table(scores(comparison)));
        blocks.push(Block::Table(tests(comparison)));
        blocks.push(Block::Table(effects(comparison)));
        blocks.push(Block::Table(equivalence(comparison)));
        blocks.extend(paired(comparison));
        blocks.extend(unvaried(comparison));
    }
    Section {
        id: "scenarios".to_owned(),
        title: "Results by scenario".to_owned(),
        blocks,
    }
}

fn verdicts(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Difference and verdict",
        &[
            "<scenario",
            ">difference",
            "<95 %",
            "<simultaneous",
            ">p Holm",
            "verdict",
        ],
    );
    for one in &comparison.scenarios {
        table.row(vec![
            one.scenario.as_str().into(),
            words::maybe(one.delta, words::signed).into(),
            words::maybe_interval(one.ci95).into(),
            words::maybe_interval(one.ci_simultaneous).into(),
            words::maybe(one.p_adjusted, words::p).into(),
            words::scenario_cell(one),
        ]);
    }
    table
}

fn scores(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Scores: how often each level was reached",
        &["<scenario", "arm", ">n", ">mean", ">sd", "levels"],
    );
    for one in &comparison.scenarios {
        let arms = [
            (treatment(comparison), &one.treatment),
            (comparison.control.to_string(), &one.control),
        ];
        for (name, summary) in arms {
            table.row(summary_row(one, name, summary));
        }
    }
    table
}

fn summary_row(one: &ScenarioResult, name: String, summary: &ArmSummary) -> Vec<Cell> {
    let number = |value| words::maybe(value, |value| words::number(value, 4));
    vec![
        one.scenario.as_str().into(),
        name.into(),
        summary.n.to_string().into(),
        number(summary.mean).into(),
        number(summary.sd).into(),
        words::levels(summary).into(),
    ]
}

fn tests(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Tests, two-sided",
        &[
            "<scenario",
            ">t",
            ">df",
            ">p Welch",
            ">p perm.",
            ">mid-p",
            "method",
            ">p raw",
            ">p Holm",
        ],
    );
    for one in &comparison.scenarios {
        let welch = one.welch.as_ref();
        let permutation = one.permutation.as_ref();
        table.row(vec![
            one.scenario.as_str().into(),
            words::maybe(welch.map(|w| w.t), |t| words::number(t, 3)).into(),
            words::maybe(welch.map(|w| w.df), |df| words::number(df, 1)).into(),
            words::maybe(welch.map(|w| w.p), words::p).into(),
            words::maybe(permutation.map(|one| one.p), words::p).into(),
            words::maybe(permutation.and_then(|one| one.mid_p), words::p).into(),
            permutation
                .map_or(words::MISSING, |one| one.method.as_str())
                .into(),
            words::maybe(one.p, words::p).into(),
            words::maybe(one.p_adjusted, words::p).into(),
        ]);
    }
    table
}

fn effects(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Effect sizes",
        &[
            "<scenario",
            "<P(X>Y)+P(X=Y)/2",
            ">p BM",
            "<Hedges' g with 95 %",
        ],
    );
    for one in &comparison.scenarios {
        let bm = one.brunner_munzel.as_ref();
        let p_hat = bm.map_or(words::MISSING.to_owned(), |bm| match bm.ci95 {
            Some(ci) => format!(
                "{} {}",
                words::number(bm.p_hat, 3),
                words::bare_interval(ci, 3)
            ),
            None => words::number(bm.p_hat, 3),
        });
        let g = one.hedges_g.map_or(words::MISSING.to_owned(), |(g, ci)| {
            format!("{} {}", words::signed(g), words::interval(ci))
        });
        table.row(vec![
            one.scenario.as_str().into(),
            p_hat.into(),
            words::maybe(bm.and_then(|bm| bm.p), words::p).into(),
            g.into(),
        ]);
    }
    table
}

fn equivalence(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Equivalence (two one-sided tests) and sensitivity",
        &["<scenario", ">p TOST", "<90 %", "<BCa 95 %"],
    );
    for one in &comparison.scenarios {
        table.row(vec![
            one.scenario.as_str().into(),
            words::maybe(one.tost.map(|tost| tost.p), words::p).into(),
            words::maybe_interval(one.tost.map(|tost| tost.ci90)).into(),
            words::maybe_interval(one.bca).into(),
        ]);
    }
    table
}

fn paired(comparison: &Comparison) -> Option<Block> {
    let mut table = Table::new(
        "Pairs that shared a world",
        &[
            "<scenario",
            ">pairs",
            ">left out",
            ">mean diff.",
            "<95 %",
            ">t",
            ">p t",
            ">p sign flip",
            ">rho",
        ],
    );
    for one in &comparison.scenarios {
        let Some(pair) = &one.paired else { continue };
        table.row(vec![
            one.scenario.as_str().into(),
            pair.pairs.to_string().into(),
            pair.unpaired.to_string().into(),
            words::signed(pair.mean).into(),
            words::maybe_interval(pair.ci95).into(),
            words::maybe(pair.t, |t| words::number(t, 3)).into(),
            words::maybe(pair.p_t, words::p).into(),
            words::p(pair.p_sign_flip).into(),
            words::maybe(pair.rho, |rho| words::number(rho, 2)).into(),
        ]);
    }
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// Where nothing varied there is a bound instead of an interval.
fn unvaried(comparison: &Comparison) -> Option<Block> {
    let lines: Vec<String> = comparison
        .scenarios
        .iter()
        .filter_map(|one| {
            let bound = one.rule_of_three?;
            Some(format!(
                "{}: every run of an arm had the same score. Up to {} of its runs could deviate without one having \
                 been seen (one-sided 95 %).",
                one.scenario,
                words::percent(bound)
            ))
        })
        .collect();
    (!lines.is_empty()).then_some(Block::List(lines))
}

fn pooled(analysis: &Analysis) -> Section {
    let mut blocks = Vec::new();
    for comparison in &analysis.comparisons {
        blocks.extend(heading(analysis, comparison));
        match &comparison.pooled {
            Some(pooled) => blocks.extend(pooled_blocks(pooled)),
            None => blocks.push(Block::Paragraph(format!(
                "There is no pooled estimate: {}.",
                comparison
                    .pooled_missing
                    .as_deref()
                    .unwrap_or("not enough runs")
            ))),
        }
    }
    Section {
        id: "pooled".to_owned(),
        title: "Average over the scenarios".to_owned(),
        blocks,
    }
}

fn pooled_blocks(pooled: &Pooled) -> Vec<Block> {
    let mut blocks = Vec::new();
    if pooled.unlike_effects {
        let p = pooled.cochran_q.map(|one| one.p);
        blocks.push(Block::Paragraph(format!(
            "Average of unlike effects: Cochran's Q has p < 0.10 ({}), so that this is an average of effects that may \
             not be one. Read the scenarios, not this number.",
            words::maybe(p, words::p)
        )));
    }
    blocks.push(Block::Facts(
        pooled_facts(pooled)
            .into_iter()
            .map(|(label, value)| (label.to_owned(), value))
            .collect(),
    ));
    blocks
}

fn pooled_facts(pooled: &Pooled) -> Vec<(&'static str, String)> {
    let weights: Vec<String> = pooled
        .weights
        .iter()
        .map(|(scenario, weight)| format!("{scenario} {}", words::number(*weight, 3)))
        .collect();
    let verdict = words::verdict_cell(pooled.verdict, pooled.material, &pooled.fragile);
    let mut facts = vec![
        (
            "Estimand",
            "sum over the registered scenarios of weight times (mean of treatment - mean of control), every counted run in"
                .to_owned(),
        ),
        ("Weights", weights.join(", ")),
        (
            "Estimate",
            format!(
                "{}, standard error {}",
                words::signed(pooled.estimate),
                words::number(pooled.se, 4)
            ),
        ),
        ("95 % interval", words::maybe_interval(pooled.ci95)),
        (
            "p",
            format!("{} ({})", words::p(pooled.p), pooled.method),
        ),
        (
            "Welch's form",
            format!(
                "t {}, df {}, p {}",
                words::maybe(pooled.t, |t| words::number(t, 3)),
                words::maybe(pooled.df, |df| words::number(df, 1)),
                words::maybe(pooled.p_t, words::p)
            ),
        ),
    ];
    if let Some(tost) = pooled.tost {
        facts.push((
            "Equivalence",
            format!(
                "p {} (two one-sided tests), 90 % interval {}",
                words::p(tost.p),
                words::interval(tost.ci90)
            ),
        ));
    }
    if let Some(one) = pooled.cochran_q {
        facts.push((
            "Heterogeneity",
            format!(
                "Q {} on {} df, p {}, I2 {}",
                words::number(one.q, 2),
                one.df,
                words::p(one.p),
                words::percent(one.i2)
            ),
        ));
    }
    facts.push(("Verdict", verdict.text));
    facts
}

fn tiers(contrast: &TierContrast) -> Section {
    let codes: Vec<String> = contrast
        .codes
        .iter()
        .map(|(tier, code)| format!("{tier}: {code:+}"))
        .collect();
    let mut table = Table::new(
        "Mean total by tier, averaged over the scenarios",
        &["<group", ">mean", ">standard error", ">above control"],
    );
    for (tier, mean, se) in &contrast.treatment {
        table.row(vec![
            format!("treatment, tier {tier}").into(),
            words::number(*mean, 4).into(),
            words::number(*se, 4).into(),
            words::signed(mean - contrast.control.0).into(),
        ]);
    }
    table.row(vec![
        "control (shared by all tiers)".into(),
        words::number(contrast.control.0, 4).into(),
        words::number(contrast.control.1, 4).into(),
        words::MISSING.into(),
    ]);
    Section {
        id: "tiers".to_owned(),
        title: "Dose: the treatment over the tiers".to_owned(),
        blocks: vec![
            Block::Paragraph(format!(
                "One contrast over the ordered tiers ({}): {}, standard error {}, t {}, df {}, p {} (exploratory, not adjusted for \
                 the other tests). The control has no tier and is the same in every difference.",
                codes.join(", "),
                words::signed(contrast.estimate),
                words::number(contrast.se, 4),
                words::maybe(contrast.t, |t| words::number(t, 3)),
                words::maybe(contrast.df, |df| words::number(df, 1)),
                words::maybe(contrast.p, words::p)
            )),
            Block::Figure(Figure::Dose),
            Block::Table(table),
        ],
    }
}

fn axes(analysis: &Analysis) -> Section {
    Section {
        id: "axes".to_owned(),
        title: "Axes and rates".to_owned(),
        blocks: vec![
            Block::Paragraph(
                "An axis that is constant over both arms is DEAD: it cannot show a difference, whatever the \
                 treatment does."
                    .to_owned(),
            ),
            Block::Table(axis_table(analysis)),
            Block::Table(rate_table(analysis)),
        ],
    }
}

fn axis_table(analysis: &Analysis) -> Table {
    let mut axes = Table::new(
        "Axes of the score, primary comparison",
        &[
            "<scenario",
            "<axis",
            ">treatment",
            ">control",
            ">difference",
            ">values",
            ">variance share",
            "<state",
        ],
    );
    for row in &analysis.axes {
        let number = |value| words::maybe(value, |value| words::number(value, 3));
        let difference = match (row.treatment, row.control) {
            (Some(x), Some(y)) => words::signed(x - y),
            _ => words::MISSING.to_owned(),
        };
        axes.row(vec![
            row.scenario.as_str().into(),
            row.axis.as_str().into(),
            number(row.treatment).into(),
            number(row.control).into(),
            difference.into(),
            row.distinct_values.to_string().into(),
            words::maybe(row.variance_share, words::percent).into(),
            if row.dead {
                Cell::with("DEAD", Tone::Caution)
            } else {
                "live".into()
            },
        ]);
    }
    axes
}

fn rate_table(analysis: &Analysis) -> Table {
    let mut rates = Table::new(
        "Rates",
        &[
            "<scenario",
            "what",
            ">treatment",
            ">control",
            ">difference",
            "<95 % (Newcombe)",
        ],
    );
    for row in &analysis.rates {
        let of = |(k, n): (u32, u32)| format!("{k} of {n}");
        rates.row(vec![
            row.scenario.as_str().into(),
            row.what.as_str().into(),
            of(row.treatment).into(),
            of(row.control).into(),
            words::maybe(row.difference.map(|(d, _)| d), words::signed).into(),
            words::maybe_interval(row.difference.map(|(_, ci)| ci)).into(),
        ]);
    }
    rates
}
