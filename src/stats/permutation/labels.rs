//! Labels of treatment and control permuted: in one scenario, or within each of several.

use crate::stats::lattice::{
    Lattice, Part, Point, Tails, binomial_weights, gcd, merge, tails_of_two,
};
use crate::stats::permutation::arrangements::Arrangements;
use crate::stats::permutation::{
    DEFAULT_SEED, Permutation, Shares, Threshold, draws, exact, studentised,
};
use crate::stats::sample::Sample;

/// Different sums of a part of the levels: a second at most to get there.
const MAX_STATES: usize = 1_000_000;
/// Products of weights on the way to them.
const MAX_PRODUCTS: usize = 100_000_000;

/// One scenario. `weight` is its share in the estimate, over the sum of all.
#[derive(Clone, Copy, Debug)]
pub struct Stratum<'a> {
    pub x: &'a Sample,
    pub y: &'a Sample,
    pub weight: u64,
}

/// As [`two_sample_seeded`], with the default seed.
pub fn two_sample(x: &Sample, y: &Sample) -> Permutation {
    two_sample_seeded(x, y, DEFAULT_SEED)
}

/// The difference of means, x as treatment, over all C(N, n) assignments of labels. Of an empty arm there is one
/// assignment, and p is 1. `seed` counts only beyond the limit of states.
pub fn two_sample_seeded(x: &Sample, y: &Sample, seed: u64) -> Permutation {
    let statistic = difference(x, y);
    let Some(shares) = enumerated(x, y) else {
        return draws::two_sample(x, y, seed);
    };
    let arrangements = Arrangements::one().choose(x.n() + y.n(), x.n());
    let mut found = Permutation::exact(statistic, shares, arrangements.to_string());
    found.studentised = Some(if x.n() == y.n() {
        // At equal sizes Welch's t grows with the difference alone: the pooled sum of squares is fixed.
        found.p_two_sided
    } else {
        studentised::exact(x, y).unwrap_or_else(|| draws::studentised(x, y, seed))
    });
    found
}

/// As [`stratified_seeded`], with the default seed.
pub fn stratified(strata: &[Stratum]) -> Permutation {
    stratified_seeded(strata, DEFAULT_SEED)
}

/// The weighted mean of the scenarios' differences of means, with labels permuted within scenarios only. Every arm must
/// have a run. `seed` counts only beyond the limit of states.
pub fn stratified_seeded(strata: &[Stratum], seed: u64) -> Permutation {
    match convolved(strata) {
        Some(shares) => {
            let arrangements = strata.iter().fold(Arrangements::one(), |sum, stratum| {
                sum.choose(stratum.x.n() + stratum.y.n(), stratum.x.n())
            });
            Permutation::exact(weighted(strata), shares, arrangements.to_string())
        }
        None => draws::stratified(strata, seed),
    }
}

/// In points.
pub(super) fn difference(x: &Sample, y: &Sample) -> f64 {
    match x.mean().zip(y.mean()) {
        Some((x, y)) => x - y,
        None => 0.0,
    }
}

pub(super) fn weighted(strata: &[Stratum]) -> f64 {
    let total: f64 = strata.iter().map(|stratum| stratum.weight as f64).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let sum: f64 = strata
        .iter()
        .map(|stratum| stratum.weight as f64 * difference(stratum.x, stratum.y))
        .sum();
    sum / total
}

/// Both arms' scores together, as whole steps above the lowest.
pub(super) struct Pool {
    /// Steps above the lowest score, and how many runs have it.
    pub(super) levels: Vec<(i64, u32)>,
    /// Micro-points in one step.
    pub(super) step: i128,
    /// The lowest score, in micro-points.
    low: i128,
    pub(super) nx: usize,
    pub(super) ny: usize,
    /// Sum of the treatment's steps.
    pub(super) sum_x: i64,
    /// Sum of all steps.
    pub(super) sum: i64,
}

impl Pool {
    /// Nothing where an i64 does not hold the sums.
    pub(super) fn new(x: &Sample, y: &Sample) -> Option<Pool> {
        let all = Sample::new(x.values().iter().chain(y.values()).copied());
        let levels = all.levels();
        let low = i128::from(levels.first().map_or(0, |(level, _)| *level));
        let step = levels
            .iter()
            .fold(0, |step, (level, _)| gcd(step, i128::from(*level) - low))
            .max(1);
        let steps =
            |sample: &Sample| i64::try_from((sample.sum() - low * sample.n() as i128) / step).ok();
        let levels = levels
            .into_iter()
            .map(|(level, count)| {
                Some((i64::try_from((i128::from(level) - low) / step).ok()?, count))
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Pool {
            levels,
            step,
            low,
            nx: x.n(),
            ny: y.n(),
            sum_x: steps(x)?,
            sum: steps(&all)?,
        })
    }

    pub(super) fn n(&self) -> usize {
        self.nx + self.ny
    }

    /// n_x n_y times the difference of means, in steps.
    pub(super) fn scaled_difference(&self) -> Option<i128> {
        let all = self.n() as i128 * i128::from(self.sum_x);
        all.checked_sub(i128::from(self.sum).checked_mul(self.nx as i128)?)
    }

    /// Sum of the squared steps of one of the arms.
    pub(super) fn squares(&self, arm: &Sample) -> Option<i128> {
        arm.values().iter().try_fold(0_i128, |sum, score| {
            let steps = (i128::from(*score) - self.low) / self.step;
            sum.checked_add(steps.checked_mul(steps)?)
        })
    }

    fn odds(&self) -> f64 {
        self.nx as f64 / self.ny as f64
    }
}

/// Weights of the ways to take c runs that sum to a value: by c, then by value.
type Rows = Vec<Vec<Point>>;

/// One more level in all rows up to `most` runs.
fn with_level(rows: &Rows, (value, count): (i64, u32), odds: f64, most: usize) -> Option<Rows> {
    let states: usize = rows.iter().map(Vec::len).sum();
    if states > MAX_STATES || states.checked_mul(count as usize + 1)? > MAX_PRODUCTS {
        return None;
    }
    let weights = binomial_weights(count, odds);
    let reach = (rows.len() - 1 + count as usize).min(most);
    (0..=reach)
        .map(|taken| row(rows, value, &weights, taken))
        .collect()
}

fn row(rows: &Rows, value: i64, weights: &[f64], taken: usize) -> Option<Vec<Point>> {
    let parts: Vec<Part> = weights
        .iter()
        .enumerate()
        .take(taken + 1)
        .filter_map(|(of_level, weight)| {
            let before = rows.get(taken - of_level)?;
            Some((value * of_level as i64, *weight, before.as_slice()))
        })
        .collect();
    merge(&parts)
}

fn rows_of(levels: &[(i64, u32)], odds: f64, most: usize) -> Option<Rows> {
    let none_taken: Rows = vec![vec![(0, 1.0)]];
    levels.iter().try_fold(none_taken, |rows, level| {
        with_level(&rows, *level, odds, most)
    })
}

/// All assignments of labels: multisets of levels, each with the number of ways to draw it. Half of the levels on either
/// side, and the two halves meet: what takes c runs from the one takes n - c from the other.
fn enumerated(x: &Sample, y: &Sample) -> Option<Shares> {
    let pool = Pool::new(x, y)?;
    let threshold = Threshold::new(pool.scaled_difference()?, pool.n() as i128)?;
    if pool.nx == 0 || pool.ny == 0 {
        return Some(Shares {
            two_sided: 1.0,
            greater: 1.0,
            mid: 0.5,
        });
    }
    let mut levels = pool.levels.clone();
    levels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut size_a, mut size_b) = (1.0, 1.0);
    for level in levels {
        let ways = f64::from(level.1) + 1.0;
        if size_a <= size_b {
            a.push(level);
            size_a *= ways;
        } else {
            b.push(level);
            size_b *= ways;
        }
    }
    let (a, b) = (
        rows_of(&a, pool.odds(), pool.nx)?,
        rows_of(&b, pool.odds(), pool.nx)?,
    );
    let low = pool.sum_x.checked_add(threshold.low)?;
    let high = pool.sum_x.checked_add(threshold.high)?;
    let mut all = 0.0;
    let mut sum = Tails::default();
    for (taken, of_a) in a.iter().enumerate() {
        let Some(of_b) = b.get(pool.nx - taken) else {
            continue;
        };
        let weight = |row: &[Point]| row.iter().map(|(_, weight)| weight).sum::<f64>();
        all += weight(of_a) * weight(of_b);
        sum.add(tails_of_two(of_a, of_b, low, high));
    }
    Some(threshold.p(sum.over(all)))
}

/// How the treatment's sum is distributed, in steps from the observed one.
fn null(pool: &Pool) -> Option<Lattice> {
    let mut levels = pool.levels.clone();
    // The largest last: of it only the rows that complete the treatment arm are formed.
    levels.sort_by_key(|(_, count)| *count);
    let (value, count) = levels.pop()?;
    let rows = rows_of(&levels, pool.odds(), pool.nx)?;
    let points = row(&rows, value, &binomial_weights(count, pool.odds()), pool.nx)?;
    Lattice::new(points)?.scaled(1, pool.sum_x.checked_neg()?)
}

/// The exact distribution of every scenario, convolved.
fn convolved(strata: &[Stratum]) -> Option<Shares> {
    let pools = strata
        .iter()
        .map(|stratum| Pool::new(stratum.x, stratum.y))
        .collect::<Option<Vec<_>>>()?;
    if pools.iter().any(|pool| pool.nx == 0 || pool.ny == 0) {
        return None;
    }
    // Differences of means have n_x n_y below the line; brought to one denominator they are whole numbers.
    let mut denominator: i128 = 1;
    for pool in &pools {
        let product = pool.nx as i128 * pool.ny as i128;
        denominator = (denominator / gcd(denominator, product)).checked_mul(product)?;
    }
    let mut observed: i128 = 0;
    let mut steps = Vec::new();
    for (stratum, pool) in strata.iter().zip(&pools) {
        let factor = i128::from(stratum.weight)
            .checked_mul(denominator / (pool.nx as i128 * pool.ny as i128))?
            .checked_mul(pool.step)?;
        observed = observed.checked_add(factor.checked_mul(pool.scaled_difference()?)?)?;
        steps.push(factor.checked_mul(pool.n() as i128)?);
    }
    let step = steps.iter().fold(0, |all, step| gcd(all, *step)).max(1);
    let parts = pools
        .iter()
        .zip(&steps)
        .map(|(pool, own)| null(pool)?.scaled(i64::try_from(own / step).ok()?, 0))
        .collect::<Option<Vec<_>>>()?;
    exact(parts, observed, step)
}
