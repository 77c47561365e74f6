//! Signs of paired differences flipped: which run of a pair was the treatment could have been the other way round.

use crate::stats::lattice::{Lattice, Point, binomial_weights, gcd};
use crate::stats::permutation::arrangements::Arrangements;
use crate::stats::permutation::{DEFAULT_SEED, Permutation, Shares, draws, exact};
use crate::stats::sample::{MICRO, Sample};

/// As [`sign_flip_seeded`], with the default seed.
pub fn sign_flip(differences: &[i64]) -> Permutation {
    sign_flip_seeded(differences, DEFAULT_SEED)
}

/// The mean of differences (treatment minus control, micro-points) over all 2^n signs. Of no pair there is one
/// arrangement, and p is 1.
pub fn sign_flip_seeded(differences: &[i64], seed: u64) -> Permutation {
    sign_flip_stratified_seeded(&[(differences, 1)], seed)
}

/// As [`sign_flip_stratified_seeded`], with the default seed.
pub fn sign_flip_stratified(strata: &[(&[i64], u64)]) -> Permutation {
    sign_flip_stratified_seeded(strata, DEFAULT_SEED)
}

/// The weighted mean of scenarios' mean differences; each scenario with its pairs' differences and its weight.
pub fn sign_flip_stratified_seeded(strata: &[(&[i64], u64)], seed: u64) -> Permutation {
    let Some(shares) = convolved(strata) else {
        return draws::signs(strata, seed);
    };
    let pairs = strata
        .iter()
        .map(|(differences, _)| differences.len())
        .sum();
    let arrangements = Arrangements::one().signs(pairs).to_string();
    Permutation::exact(weighted(strata), shares, arrangements)
}

/// In points.
pub(super) fn weighted(strata: &[(&[i64], u64)]) -> f64 {
    let total: f64 = strata.iter().map(|(_, weight)| *weight as f64).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let sum: f64 = strata
        .iter()
        .filter(|(differences, _)| !differences.is_empty())
        .map(|(differences, weight)| {
            let sum: i128 = differences.iter().map(|d| i128::from(*d)).sum();
            *weight as f64 * sum as f64 / (differences.len() as f64 * MICRO)
        })
        .sum();
    sum / total
}

/// Pairs of one scenario with differences of the same size.
struct Size {
    /// What one of them contributes with a positive sign, over the common denominator.
    value: i128,
    count: u32,
    positive: u32,
}

/// Pairs of the same size are one part: it counts how many of them have a positive sign.
fn convolved(strata: &[(&[i64], u64)]) -> Option<Shares> {
    let strata: Vec<_> = strata.iter().filter(|(d, _)| !d.is_empty()).collect();
    let mut denominator: i128 = 1;
    for (differences, _) in &strata {
        let n = differences.len() as i128;
        denominator = (denominator / gcd(denominator, n)).checked_mul(n)?;
    }
    let mut sizes = Vec::new();
    for (differences, weight) in &strata {
        let factor = i128::from(*weight).checked_mul(denominator / differences.len() as i128)?;
        sizes.extend(sizes_of(differences, factor)?);
    }
    let mut observed: i128 = 0;
    for size in &sizes {
        let surplus = 2 * i128::from(size.positive) - i128::from(size.count);
        observed = observed.checked_add(size.value.checked_mul(surplus)?)?;
    }
    // A sign that flips moves the sum by twice the difference.
    let step = sizes
        .iter()
        .try_fold(0, |all, size| Some(gcd(all, size.value.checked_mul(2)?)))?
        .max(1);
    let parts = sizes
        .iter()
        .map(|size| {
            let points: Vec<Point> = binomial_weights(size.count, 1.0)
                .into_iter()
                .enumerate()
                .map(|(positive, weight)| (positive as i64 - i64::from(size.positive), weight))
                .collect();
            Lattice::new(points)?.scaled(i64::try_from(size.value * 2 / step).ok()?, 0)
        })
        .collect::<Option<Vec<_>>>()?;
    exact(parts, observed, step)
}

/// Differences of 0 stay 0 under either sign and are left out.
fn sizes_of(differences: &[i64], factor: i128) -> Option<Vec<Size>> {
    let mut absolute = Vec::new();
    for difference in differences.iter().filter(|d| **d != 0) {
        absolute.push(difference.checked_abs()?);
    }
    Sample::new(absolute)
        .levels()
        .into_iter()
        .map(|(size, count)| {
            Some(Size {
                value: factor.checked_mul(i128::from(size))?,
                count,
                positive: differences.iter().filter(|d| **d == size).count() as u32,
            })
        })
        .filter(|size| size.as_ref().is_none_or(|size| size.value != 0))
        .collect()
}
