//! Which axes can show a difference at all, and rates that a mean of points hides.

use std::collections::BTreeSet;

use crate::experiment::analysis::data::{CellData, Counted, Data, Side};
use crate::experiment::analysis::measure::{count, interval};
use crate::experiment::analysis::model::{AxisRow, RateRow};
use crate::experiment::ledger::{AxisLine, DiagnosisMatch, ScoreLine};
use crate::ids::ScenarioId;
use crate::stats::proportion::newcombe;
use crate::stats::sample::Sample;

type Pick = fn(&ScoreLine) -> AxisLine;

const AXES: &[(&str, Pick)] = &[
    ("detected", |score| score.detected),
    ("diagnosed", |score| score.diagnosed),
    ("fixed", |score| score.fixed),
    ("no regressions", |score| score.no_regressions),
];

type Test = fn(&Counted) -> bool;

const RATES: &[(&str, Test)] = &[
    ("time-out", |run| run.timeout),
    ("primary cause named", |run| {
        run.score.diagnosis == DiagnosisMatch::Exact
    }),
];

pub(super) fn axes(data: &Data<'_>, treatment: &Side, control: &Side) -> Vec<AxisRow> {
    each(data, treatment, control, |scenario, x, y| {
        let all: Vec<&Counted> = x.counted.values().chain(y.counted.values()).collect();
        let total = variance(all.iter().map(|run| run.total()));
        AXES.iter()
            .map(|(name, pick)| {
                let earned = |run: &Counted| i64::from(pick(&run.score).earned.0);
                let values: BTreeSet<i64> = all.iter().map(|run| earned(run)).collect();
                let own = variance(all.iter().map(|run| earned(run)));
                AxisRow {
                    scenario: scenario.clone(),
                    axis: (*name).to_owned(),
                    treatment: mean(x.counted.values().map(earned)),
                    control: mean(y.counted.values().map(earned)),
                    distinct_values: count(values.len()),
                    variance_share: match (own, total) {
                        (Some(own), Some(total)) if total > 0.0 => Some(own / total),
                        _ => None,
                    },
                    dead: !all.is_empty() && values.len() == 1,
                }
            })
            .collect()
    })
}

pub(super) fn rates(data: &Data<'_>, treatment: &Side, control: &Side) -> Vec<RateRow> {
    each(data, treatment, control, |scenario, x, y| {
        RATES
            .iter()
            .map(|(what, test)| {
                let of = |cell: &CellData| {
                    let hits = cell.counted.values().filter(|run| test(run)).count();
                    (count(hits), count(cell.counted.len()))
                };
                let (x, y) = (of(x), of(y));
                RateRow {
                    scenario: scenario.clone(),
                    what: (*what).to_owned(),
                    treatment: x,
                    control: y,
                    difference: difference(x, y),
                }
            })
            .collect()
    })
}

fn difference(
    x: (u32, u32),
    y: (u32, u32),
) -> Option<(f64, crate::experiment::analysis::model::Interval)> {
    if x.1 == 0 || y.1 == 0 {
        return None;
    }
    let rate = |(k, n): (u32, u32)| f64::from(k) / f64::from(n);
    let of = newcombe(
        u64::from(x.0),
        u64::from(x.1),
        u64::from(y.0),
        u64::from(y.1),
    );
    Some((rate(x) - rate(y), interval(of?)))
}

fn each<T>(
    data: &Data<'_>,
    treatment: &Side,
    control: &Side,
    rows: impl Fn(&ScenarioId, &CellData, &CellData) -> Vec<T>,
) -> Vec<T> {
    let scenarios = data.plan.scenarios.iter();
    scenarios
        .filter_map(|one| {
            let x = data.cell(&one.id, treatment)?;
            let y = data.cell(&one.id, control)?;
            Some(rows(&one.id, x, y))
        })
        .flatten()
        .collect()
}

fn mean(values: impl Iterator<Item = i64>) -> Option<f64> {
    let sample = Sample::new(values);
    sample.mean()
}

fn variance(values: impl Iterator<Item = i64>) -> Option<f64> {
    let sample = Sample::new(values);
    sample.variance()
}
