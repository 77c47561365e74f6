//! A treatment against the control: scenario by scenario, pooled, adjusted and judged.

use crate::experiment::analysis::data::{Contest, Counted, Data, Side};
use crate::experiment::analysis::exclusions;
use crate::experiment::analysis::measure::{
    Measured, Shape, arm_summary, measure, of_difference, tost,
};
use crate::experiment::analysis::model::{
    Comparison, Exclusions, Fragility, Multiverse, ScenarioResult, Verdict,
};
use crate::experiment::analysis::multiverse::multiverse;
use crate::experiment::analysis::pooled::{Pool, pool};
use crate::experiment::analysis::precision::precision;
use crate::experiment::analysis::verdict::{Answer, Question};
use crate::experiment::plan::{PlannedScenario, Primary};
use crate::stats::multiplicity::{bh, holm};

/// Levels and margins that all comparisons of a plan share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub pooled: f64,
    pub scenarios: f64,
    pub sesoi: f64,
    pub primary: Primary,
    /// Scenarios may only be claimed after the pooled test.
    pub gate: bool,
}

impl Levels {
    /// `spent` is the level that the plan's looks leave for this analysis.
    pub(super) fn of(data: &Data<'_>, spent: f64) -> Levels {
        let tests = &data.plan.tests;
        let share = if tests.co_primary { spent / 2.0 } else { spent };
        Levels {
            pooled: share,
            scenarios: share,
            sesoi: data.plan.sesoi.as_f64(),
            primary: tests.primary,
            gate: !tests.co_primary,
        }
    }
}

/// The scenarios of a comparison before they are judged.
pub(super) struct Strata<'a> {
    pub scenarios: Vec<&'a PlannedScenario>,
    pub contests: Vec<Contest>,
    pub measured: Vec<Measured>,
}

impl<'a> Strata<'a> {
    pub(super) fn of(
        data: &Data<'a>,
        treatment: &Side,
        control: &Side,
        primary: Primary,
        total: impl Fn(&Counted) -> i64,
    ) -> Strata<'a> {
        let scenarios: Vec<&PlannedScenario> = data.plan.scenarios.iter().collect();
        let contests = contests(data, treatment, control, total);
        let measured = contests.iter().map(|one| measure(one, primary)).collect();
        Strata {
            scenarios,
            contests,
            measured,
        }
    }

    /// Shares in the pooled estimate, which sum to 1.
    pub(super) fn weights(&self) -> Vec<f64> {
        let total: u32 = self.scenarios.iter().map(|one| one.weight).sum();
        let shares = self.scenarios.iter();
        shares
            .map(|one| f64::from(one.weight) / f64::from(total.max(1)))
            .collect()
    }
}

/// The runs of a comparison by scenario, in the order of the plan.
pub(super) fn contests(
    data: &Data<'_>,
    treatment: &Side,
    control: &Side,
    total: impl Fn(&Counted) -> i64,
) -> Vec<Contest> {
    let of = |scenario: &PlannedScenario| {
        let x = data.cell(&scenario.id, treatment)?;
        let y = data.cell(&scenario.id, control)?;
        Some(Contest::scored(x, y, &total))
    };
    let scenarios = data.plan.scenarios.iter();
    scenarios.map(|one| of(one).unwrap_or_default()).collect()
}

/// The comparison that the decision rests on.
pub(super) fn primary(data: &Data<'_>, sides: (&Side, &Side), levels: Levels) -> Comparison {
    let (treatment, control) = sides;
    let strata = Strata::of(data, treatment, control, levels.primary, Counted::total);
    let raw: Vec<f64> = strata
        .measured
        .iter()
        .map(|one| one.p.unwrap_or(1.0))
        .collect();
    let adjusted = holm(&raw);
    let pool = pool(&strata, levels);
    let mut comparison = judged(data, sides, levels, (&strata, pool), &adjusted);
    comparison.primary = true;
    if comparison.exclusions.share <= comparison.exclusions.cap {
        comparison.multiverse = multiverse(data, sides, levels, &comparison);
        comparison.precision = precision(data.plan, &strata, &comparison, levels);
    }
    mark_fragile_rubric(&mut comparison);
    comparison
}

/// Every other comparison: exploratory, p adjusted by Benjamini-Hochberg over all of them together.
pub(super) fn others(data: &Data<'_>, sides: &[(Side, Side)], levels: Levels) -> Vec<Comparison> {
    let all: Vec<Strata<'_>> = sides
        .iter()
        .map(|(x, y)| Strata::of(data, x, y, levels.primary, Counted::total))
        .collect();
    let raw: Vec<f64> = all
        .iter()
        .flat_map(|strata| &strata.measured)
        .map(|one| one.p.unwrap_or(1.0))
        .collect();
    let adjusted = bh(&raw);
    let scenarios = data.plan.scenarios.len().max(1);
    let ungated = Levels {
        gate: false,
        ..levels
    };
    let mut pools: Vec<Pool> = all.iter().map(|strata| pool(strata, ungated)).collect();
    adjust(&mut pools, ungated);
    all.iter()
        .zip(pools)
        .zip(sides)
        .zip(adjusted.chunks(scenarios))
        .map(|(((strata, pool), (x, y)), adjusted)| {
            judged(data, (x, y), ungated, (strata, pool), adjusted)
        })
        .collect()
}

/// Judges pooled effects again by what Benjamini and Hochberg leave of their p.
fn adjust(pools: &mut [Pool], levels: Levels) {
    let raw: Vec<f64> = pools.iter().map(|pool| pool.p().unwrap_or(1.0)).collect();
    for (pool, adjusted) in pools.iter_mut().zip(bh(&raw)) {
        pool.judge(adjusted, levels);
    }
}

fn judged(
    data: &Data<'_>,
    (treatment, control): (&Side, &Side),
    levels: Levels,
    (strata, pool): (&Strata<'_>, Pool),
    adjusted: &[f64],
) -> Comparison {
    let exclusions = exclusions::of(data, treatment, control);
    let spoilt = exclusions.share > exclusions.cap;
    let mut scenarios: Vec<ScenarioResult> = Vec::new();
    for (index, measured) in strata.measured.iter().enumerate() {
        let p_adjusted = measured.p.map(|_| adjusted[index]);
        scenarios.push(scenario_result(strata, index, p_adjusted, levels));
    }
    let (mut pooled, pooled_missing) = match pool {
        Pool::Estimated(pooled, _) => (Some(*pooled), None),
        Pool::Missing(why) => (None, Some(why)),
    };
    if spoilt {
        scenarios
            .iter_mut()
            .for_each(|one| one.verdict = Verdict::Invalid);
        if let Some(pooled) = &mut pooled {
            pooled.verdict = Verdict::Invalid;
        }
    }
    close_gate(
        &mut scenarios,
        pooled.as_ref().map(|pooled| pooled.p),
        levels,
    );
    exclusions::mark_fragile(
        data,
        (treatment, control),
        levels,
        &mut scenarios,
        &mut pooled,
    );
    Comparison {
        treatment: treatment.arm.clone(),
        control: control.arm.clone(),
        tier: treatment.tier.clone(),
        primary: false,
        scenarios,
        pooled,
        pooled_missing,
        exclusions,
        multiverse: None,
        precision: None,
    }
}

/// Where the pooled test comes first and did not find anything, no scenario's benefit may be claimed. Harm may: it is a
/// family of its own, and a veto.
fn close_gate(scenarios: &mut [ScenarioResult], pooled_p: Option<f64>, levels: Levels) {
    if !levels.gate || pooled_p.is_some_and(|p| p <= levels.pooled) {
        return;
    }
    for one in scenarios {
        if one.verdict == Verdict::Benefit {
            one.verdict = Verdict::Inconclusive;
            one.material = false;
            one.gated = true;
        }
    }
}

fn mark_fragile_rubric(comparison: &mut Comparison) {
    /// A verdict that fewer variants keep hangs on the rubric.
    const KEPT: f64 = 0.9;
    let Comparison {
        multiverse: Some(Multiverse { same_verdict, .. }),
        pooled: Some(pooled),
        ..
    } = comparison
    else {
        return;
    };
    if *same_verdict < KEPT {
        pooled.fragile.push(Fragility::Rubric);
    }
}

/// The verdict on a measured scenario.
pub(super) fn answer(
    measured: &Measured,
    p_adjusted: Option<f64>,
    intervals: usize,
    levels: Levels,
) -> Answer {
    let plain = |verdict| Answer {
        verdict,
        material: false,
        fragile: false,
    };
    match (&measured.shape, measured.p, p_adjusted) {
        (Shape::Estimated(estimate), Some(p), Some(p_adjusted)) => Question {
            estimate: *estimate,
            alpha: levels.scenarios,
            intervals,
            p_adjusted,
            p_of_tests: std::iter::once(p)
                .chain(measured.p_beside.iter().copied())
                .collect(),
            sesoi: levels.sesoi,
        }
        .answer(),
        (Shape::Degenerate, ..) => plain(Verdict::Degenerate),
        _ => plain(Verdict::Invalid),
    }
}

fn scenario_result(
    strata: &Strata<'_>,
    index: usize,
    p_adjusted: Option<f64>,
    levels: Levels,
) -> ScenarioResult {
    let (planned, measured) = (strata.scenarios[index], &strata.measured[index]);
    let intervals = strata.scenarios.len();
    let answer = answer(measured, p_adjusted, intervals, levels);
    let estimate = measured.estimate();
    let level = 1.0 - levels.scenarios / intervals as f64;
    ScenarioResult {
        scenario: planned.id.clone(),
        treatment: arm_summary(&measured.x),
        control: arm_summary(&measured.y),
        delta: measured.delta(),
        welch: measured.welch_note(),
        ci95: estimate.map(|one| of_difference(one.interval(0.95))),
        ci_simultaneous: estimate.map(|one| of_difference(one.interval(level))),
        permutation: measured.permutation_note(),
        paired: measured.paired,
        p: measured.p,
        p_adjusted,
        brunner_munzel: measured.munzel_note(),
        hedges_g: measured.hedges(),
        tost: estimate.map(|one| tost(&one, levels.sesoi)),
        bca: measured.bca(),
        rule_of_three: measured.unseen_share(),
        verdict: answer.verdict,
        gated: false,
        material: answer.material,
        fragile: answer
            .fragile
            .then_some(Fragility::Test)
            .into_iter()
            .collect(),
    }
}

/// What the excluded runs could have been is judged with the same rule.
pub(super) fn verdict_of(contest: &Contest, intervals: usize, levels: Levels) -> Verdict {
    let measured = measure(contest, levels.primary);
    answer(&measured, measured.p, intervals, levels).verdict
}

/// An empty account, for comparisons without runs.
impl Default for Exclusions {
    fn default() -> Exclusions {
        Exclusions {
            share: 0.0,
            cap: 1.0,
            rows: Vec::new(),
            p: None,
        }
    }
}
