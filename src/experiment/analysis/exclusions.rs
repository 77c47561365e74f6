//! Whether runs of ours failed unevenly between the arms, and what they could have changed.

use crate::experiment::analysis::compare::{Levels, contests, verdict_of};
use crate::experiment::analysis::data::{CellData, Contest, Counted, Data, Side, decimal};
use crate::experiment::analysis::measure;
use crate::experiment::analysis::measure::{count, interval};
use crate::experiment::analysis::model::{
    ExclusionRow, Exclusions, Fragility, Pooled, ScenarioResult, Verdict,
};
use crate::experiment::analysis::pooled::satterthwaite;
use crate::experiment::analysis::verdict::{Estimate, Question};
use crate::ids::MicroPoints;
use crate::stats::distribution::t_two_sided;
use crate::stats::exclusion::{Incomplete, Table, bounds, fisher_stratified, fisher_two_sided};

/// The best and the worst that a run can be.
const BEST: i64 = MicroPoints::ONE.0 as i64;
const WORST: i64 = 0;

pub(super) fn of(data: &Data<'_>, treatment: &Side, control: &Side) -> Exclusions {
    let mut rows = Vec::new();
    let (mut lost, mut all) = (0u32, 0u32);
    for scenario in &data.plan.scenarios {
        let (Some(x), Some(y)) = (
            data.cell(&scenario.id, treatment),
            data.cell(&scenario.id, control),
        ) else {
            continue;
        };
        let row = row(&scenario.id, x, y);
        lost += row.treatment.0 + row.control.0;
        all += row.treatment.0 + row.treatment.1 + row.control.0 + row.control.1;
        rows.push(row);
    }
    let tables: Vec<Table> = rows.iter().map(table).collect();
    Exclusions {
        share: if all == 0 {
            0.0
        } else {
            f64::from(lost) / f64::from(all)
        },
        cap: data.plan.exclusions.cap.as_f64(),
        p: (lost > 0).then(|| fisher_stratified(&tables)).flatten(),
        rows,
    }
}

fn row(scenario: &crate::ids::ScenarioId, x: &CellData, y: &CellData) -> ExclusionRow {
    let side = |cell: &CellData| (cell.lost(), count(cell.counted.len()));
    let mut row = ExclusionRow {
        scenario: scenario.clone(),
        treatment: side(x),
        control: side(y),
        p: None,
        bounds: None,
    };
    if row.treatment.0 + row.control.0 > 0 {
        row.p = Some(fisher_two_sided(table(&row)));
        row.bounds = bounds(incomplete(x), incomplete(y), 0.0, 1.0).map(interval);
    }
    row
}

fn incomplete(cell: &CellData) -> Incomplete {
    Incomplete {
        sum: cell.totals().iter().map(|total| decimal(*total)).sum(),
        kept: cell.counted.len() as u64,
        excluded: u64::from(cell.lost()),
    }
}

fn table(row: &ExclusionRow) -> Table {
    let side = |(lost, kept): (u32, u32)| [u64::from(lost), u64::from(kept)];
    [side(row.treatment), side(row.control)]
}

/// Marks the verdicts that another outcome of the excluded runs would change: all of the treatment's at their worst and
/// the control's at their best, and the other way round.
pub(super) fn mark_fragile(
    data: &Data<'_>,
    (treatment, control): (&Side, &Side),
    levels: Levels,
    scenarios: &mut [ScenarioResult],
    pooled: &mut Option<Pooled>,
) {
    let extremes = [(WORST, BEST), (BEST, WORST)].map(|(of_treatment, of_control)| {
        let mut filled = contests(data, treatment, control, Counted::total);
        for (contest, scenario) in filled.iter_mut().zip(&data.plan.scenarios) {
            let (x, y) = (
                data.cell(&scenario.id, treatment),
                data.cell(&scenario.id, control),
            );
            fill(&mut contest.treatment, x, of_treatment);
            fill(&mut contest.control, y, of_control);
        }
        filled
    });
    let count = scenarios.len();
    for (index, one) in scenarios.iter_mut().enumerate() {
        let lost = data
            .cell(&one.scenario, treatment)
            .into_iter()
            .chain(data.cell(&one.scenario, control))
            .any(|cell| cell.lost() > 0);
        let spoilt = one.verdict == Verdict::Invalid || one.gated;
        let changes =
            |filled: &Vec<Contest>| verdict_of(&filled[index], count, levels) != one.verdict;
        if lost && !spoilt && extremes.iter().any(changes) {
            one.fragile.push(Fragility::Exclusions);
        }
    }
    let any_lost = data.cells().any(|(cell, of)| {
        let side = Side {
            arm: cell.arm,
            tier: cell.tier,
        };
        of.lost() > 0 && (side == *treatment || side == *control)
    });
    if let Some(pooled) = pooled
        .as_mut()
        .filter(|one| any_lost && one.verdict != Verdict::Invalid)
    {
        let weights: Vec<f64> = pooled.weights.iter().map(|(_, weight)| *weight).collect();
        let changes =
            |filled: &Vec<Contest>| quick_verdict(filled, &weights, levels) != Some(pooled.verdict);
        if extremes.iter().any(changes) {
            pooled.fragile.push(Fragility::Exclusions);
        }
    }
}

fn fill(of: &mut std::collections::BTreeMap<u32, i64>, cell: Option<&CellData>, value: i64) {
    for block in cell.into_iter().flat_map(|cell| cell.excluded.keys()) {
        of.insert(*block, value);
    }
}

/// The pooled verdict with Student's t in the place of the exact test: for many variants of one result.
pub(super) fn quick_verdict(
    contests: &[Contest],
    weights: &[f64],
    levels: Levels,
) -> Option<Verdict> {
    let estimate = quick_estimate(contests, weights, levels)?;
    let p = t_two_sided(estimate.delta / estimate.se, estimate.df);
    let question = Question {
        estimate,
        alpha: levels.pooled,
        intervals: 1,
        p_adjusted: p,
        p_of_tests: vec![p],
        sesoi: levels.sesoi,
    };
    Some(question.answer().verdict)
}

pub(super) fn quick_estimate(
    contests: &[Contest],
    weights: &[f64],
    levels: Levels,
) -> Option<Estimate> {
    let parts: Vec<(f64, Option<Estimate>)> = contests
        .iter()
        .map(|contest| match measure::shape(contest, levels.primary) {
            measure::Shape::Estimated(estimate) => Some((estimate.delta, Some(estimate))),
            measure::Shape::Degenerate => {
                let (x, y) = contest.pairs();
                Some((measure::difference(&x, &y)?, None))
            }
            measure::Shape::Invalid => None,
        })
        .collect::<Option<_>>()?;
    satterthwaite(&parts, weights).1
}
