//! The published cells under other rubrics: the reconstructed scores taken apart into axes and put together again.

use serde_json::Value;

use crate::report::published::check::Checks;
use crate::report::published::{Cell, Published};
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::welch;

/// Axes in the order detected, diagnosed, fixed, no regressions; weights and credits in millionths.
const WEIGHTS: [i64; 4] = [200_000, 300_000, 300_000, 200_000];
const NEAR_MISS: i64 = 350_000;
const RIGHT_PRIMARY: i64 = 700_000;
const RIGHT_SECONDARY: i64 = 100_000;
const FULL: i64 = 1_000_000;
const AXES: [&str; 4] = ["detected", "diagnosed", "fixed", "no_regressions"];

/// The credits that a level of the published rubric stands for, with this credit of a near miss. Nothing for a level that
/// no reconstructed run has.
fn credits(level: i64, near_miss: i64) -> Option<[i64; 4]> {
    let acted = |diagnosed: i64| Some([FULL, diagnosed, FULL, FULL]);
    match level {
        // Timed out with the symptom gone: fixed, but neither noticed nor explained.
        500_000 => Some([0, 0, FULL, FULL]),
        700_000 => acted(0),
        730_000 => acted(RIGHT_SECONDARY),
        805_000 => acted(near_miss),
        835_000 => acted(near_miss + RIGHT_SECONDARY),
        910_000 => acted(RIGHT_PRIMARY),
        940_000 => acted(RIGHT_PRIMARY + RIGHT_SECONDARY),
        _ => None,
    }
}

fn rescored(arm: &Sample, weights: [i64; 4], near_miss: i64) -> Option<Sample> {
    let totals = arm.values().iter().map(|level| {
        let credits = credits(*level, near_miss)?;
        let total: i64 = credits.iter().zip(weights).map(|(c, w)| c * w).sum();
        Some(total / FULL)
    });
    Some(Sample::new(totals.collect::<Option<Vec<i64>>>()?))
}

/// A near-miss credit or a set of weights, as the data spells them.
fn rubric_of(row: &Value) -> Option<([i64; 4], i64)> {
    let millionths = |value: &Value| Some((value.as_f64()? * FULL as f64).round() as i64);
    if let Some(near_miss) = millionths(&row["near_miss"]) {
        return Some((WEIGHTS, near_miss));
    }
    let mut weights = [0; 4];
    for (weight, axis) in weights.iter_mut().zip(AXES) {
        *weight = millionths(&row["weights"][axis])?;
    }
    Some((weights, NEAR_MISS))
}

/// The difference of a cell under another rubric, with t and p where it has one.
fn under(cell: &Cell, (weights, near_miss): ([i64; 4], i64)) -> Option<(f64, Option<(f64, f64)>)> {
    let (x, y) = cell.samples();
    let x = Summary::of(&rescored(&x, weights, near_miss)?)?;
    let y = Summary::of(&rescored(&y, weights, near_miss)?)?;
    let found = welch(&x, &y).ok();
    Some((
        x.mean - y.mean,
        found.map(|found| (found.t, found.p_two_sided())),
    ))
}

pub(super) fn check(checks: &mut Checks, published: &Published) {
    let golden = published.rest["rubric_sensitivity"].as_object();
    for (id, rows) in golden.into_iter().flatten() {
        for (at, row) in rows.as_array().into_iter().flatten().enumerate() {
            let place = format!("rubric_sensitivity/{id}/{at}");
            let found = published
                .cell(id)
                .zip(rubric_of(row))
                .and_then(|(cell, rubric)| under(cell, rubric));
            let Some((delta, tested)) = found else {
                checks.fact(&place, false);
                continue;
            };
            // The data rounds a difference of 0 to the noise of its own sums.
            checks.within(
                &format!("{place}/delta"),
                &row["delta"],
                delta,
                1e-9 + delta.abs() * 6e-6,
            );
            match tested {
                Some((t, p)) => {
                    checks.within(&format!("{place}/t"), &row["t"], t, 1e-6);
                    checks.number(&format!("{place}/p"), &row["p"], p);
                }
                None => checks.fact(&format!("{place}/has no t"), row["t"].is_null()),
            }
        }
    }
}
