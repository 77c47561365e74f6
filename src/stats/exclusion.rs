//! Runs that did not count: whether the arms lost them unevenly, and what they could have changed.

use crate::stats::Interval;
use crate::stats::lattice::{Lattice, Point};
use crate::stats::proportion::{SAME_PROBABILITY, ln_choose};

/// Excluded and kept of treatment, excluded and kept of control.
pub type Table = [[u64; 2]; 2];

/// Fisher's exact p: tables with the same margins that are no likelier than the observed one. 1 where a margin is 0.
pub fn fisher_two_sided(table: Table) -> f64 {
    fisher_stratified(&[table]).unwrap_or(1.0)
}

/// As [`fisher_two_sided`] over scenarios: of the treatment's excluded runs in all tables together, given the margins of
/// each. Nothing beyond the limits of [`Lattice`].
pub fn fisher_stratified(tables: &[Table]) -> Option<f64> {
    let mut all = Lattice::at(0);
    for table in tables {
        all = all.plus(&hypergeometric(*table)?)?;
    }
    let observed: u64 = tables.iter().map(|table| table[0][0]).sum();
    let observed = i64::try_from(observed).ok()?;
    let weight = |value: i64| {
        let found = all.points().iter().find(|(at, _)| *at == value);
        found.map_or(0.0, |(_, weight)| *weight)
    };
    let limit = weight(observed) * (1.0 + SAME_PROBABILITY);
    let sum: f64 = all
        .points()
        .iter()
        .map(|(_, weight)| *weight)
        .filter(|weight| *weight <= limit)
        .sum();
    Some(sum.clamp(f64::MIN_POSITIVE, 1.0))
}

/// How the upper left cell is distributed, given the margins.
fn hypergeometric([[a, b], [c, d]]: Table) -> Option<Lattice> {
    let row = a.checked_add(b)?;
    let column = a.checked_add(c)?;
    let all = row.checked_add(c)?.checked_add(d)?;
    let low = (row + column).saturating_sub(all);
    let high = row.min(column);
    let ln_weight = |k: u64| {
        ln_choose(row as f64, k as f64) + ln_choose((all - row) as f64, (column - k) as f64)
    };
    // As shares of the observed, which keeps the exponent near 0 where it matters.
    let observed = ln_weight(a);
    let points: Vec<Point> = (low..=high)
        .map(|k| {
            Some((
                i64::try_from(k).ok()?,
                (ln_weight(k) - observed).min(700.0).exp(),
            ))
        })
        .collect::<Option<_>>()?;
    Lattice::new(points)
}

/// One arm with what is missing of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incomplete {
    /// Of the kept runs' scores, in points.
    pub sum: f64,
    pub kept: u64,
    pub excluded: u64,
}

/// Between which differences of means (x - y) the result would lie, were every excluded run as bad or as good as scores
/// in `low..=high` allow. Nothing where an arm planned no run.
pub fn bounds(x: Incomplete, y: Incomplete, low: f64, high: f64) -> Option<Interval> {
    let mean = |arm: Incomplete, each: f64| {
        let n = arm.kept + arm.excluded;
        (n > 0).then(|| (arm.sum + each * arm.excluded as f64) / n as f64)
    };
    Some(Interval {
        low: mean(x, low)? - mean(y, high)?,
        high: mean(x, high)? - mean(y, low)?,
    })
}
