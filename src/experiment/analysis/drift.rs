//! Whether scores depend on when a run took place, or on what ran before it: signs of state that leaks between runs.

use std::collections::BTreeMap;

use crate::experiment::analysis::data::{Data, Side, decimal};
use crate::experiment::analysis::measure::count;
use crate::experiment::analysis::model::{DriftRow, RunPoint};
use crate::stats::drift::{lag1, slope_on};
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::welch;

/// Every run that counts, in the order in which they were begun.
pub(super) fn points(data: &Data<'_>) -> Vec<RunPoint> {
    let mut points: Vec<RunPoint> = data
        .cells()
        .flat_map(|(cell, of)| {
            of.counted.values().map(move |run| RunPoint {
                order: run.order,
                block: run.block,
                scenario: cell.scenario.clone(),
                arm: cell.arm.clone(),
                tier: cell.tier.clone(),
                total: run.score.total,
                timeout: run.timeout,
            })
        })
        .collect();
    points.sort_by_key(|point| point.order);
    points
}

/// By arm and tier as the plan lists them.
pub(super) fn rows(data: &Data<'_>, points: &[RunPoint]) -> Vec<DriftRow> {
    let residuals = residuals(data, points);
    let mut sides: Vec<Side> = Vec::new();
    for (cell, _) in data.cells() {
        let side = Side {
            arm: cell.arm,
            tier: cell.tier,
        };
        if !sides.contains(&side) {
            sides.push(side);
        }
    }
    sides
        .into_iter()
        .map(|side| row(data, points, &residuals, side))
        .collect()
}

fn row(data: &Data<'_>, points: &[RunPoint], residuals: &[i64], side: Side) -> DriftRow {
    let own = |index: &usize| points[*index].arm == side.arm && points[*index].tier == side.tier;
    let indexes: Vec<usize> = (0..points.len()).filter(own).collect();
    let scores: Vec<f64> = indexes.iter().map(|i| decimal(residuals[*i])).collect();
    let orders: Vec<f64> = indexes.iter().map(|i| points[*i].order as f64).collect();
    let slope = slope_on(&orders, &scores);
    let after = |treatment: bool| {
        let runs = indexes.iter().filter(|i| {
            let before = i.checked_sub(1).map(|before| &points[before]);
            before.is_some_and(|one| (one.arm != data.plan.control) == treatment)
        });
        Sample::new(runs.map(|i| residuals[*i]))
    };
    let (after_treatment, after_control) = (after(true), after(false));
    let compared = match (Summary::of(&after_treatment), Summary::of(&after_control)) {
        (Some(x), Some(y)) => welch(&x, &y).ok(),
        _ => None,
    };
    DriftRow {
        arm: side.arm,
        tier: side.tier,
        n: count(indexes.len()),
        slope: slope.as_ref().map(|one| one.slope),
        slope_p: slope.as_ref().and_then(|one| one.p),
        lag1: lag1(&scores),
        after_treatment: compared.as_ref().map(|one| one.delta),
        after_treatment_p: compared
            .as_ref()
            .map(crate::stats::welch::Welch::p_two_sided),
    }
}

/// Scores less the mean of their cell, so that the order of scenarios does not look like drift. In micro-points, rounded.
fn residuals(data: &Data<'_>, points: &[RunPoint]) -> Vec<i64> {
    let means: BTreeMap<_, i64> = data
        .cells()
        .filter(|(_, of)| !of.counted.is_empty())
        .map(|(cell, of)| {
            let sum: i64 = of.totals().iter().sum();
            let n = of.counted.len() as f64;
            (cell.id(), (sum as f64 / n).round() as i64)
        })
        .collect();
    points
        .iter()
        .map(|point| {
            let cell = crate::experiment::plan::Cell {
                scenario: point.scenario.clone(),
                arm: point.arm.clone(),
                tier: point.tier.clone(),
            };
            i64::from(point.total.0) - means.get(&cell.id()).copied().unwrap_or(0)
        })
        .collect()
}
