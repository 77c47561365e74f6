//! Rates, and intervals of them that hold at 0 of n and n of n. Nothing is said of no runs.

use statrs::function::gamma::ln_gamma;

use crate::stats::Interval;
use crate::stats::distribution::{beta_quantile, normal_quantile};

/// Outcomes whose probabilities differ by less than this share are equally likely; R's binom.test and fisher.test use the
/// same.
pub(super) const SAME_PROBABILITY: f64 = 1e-7;

/// Wilson's score interval of k of n; `level` such as 0.95. Nothing of no runs, or more successes than runs.
pub fn wilson(k: u64, n: u64, level: f64) -> Option<Interval> {
    let z = critical(level);
    checked(k, n)?;
    let (k, n) = (k as f64, n as f64);
    let z2 = z * z;
    let center = (k + z2 / 2.0) / (n + z2);
    let half = z / (n + z2) * (k * (n - k) / n + z2 / 4.0).sqrt();
    // At the ends the formula gives exactly 0 and 1, but for rounding.
    Some(Interval {
        low: if k == 0.0 {
            0.0
        } else {
            (center - half).max(0.0)
        },
        high: if k == n {
            1.0
        } else {
            (center + half).min(1.0)
        },
    })
}

/// Clopper and Pearson's exact interval of k of n.
pub fn clopper_pearson(k: u64, n: u64, level: f64) -> Option<Interval> {
    checked(k, n)?;
    let tail = (1.0 - level) / 2.0;
    let (k, n) = (k as f64, n as f64);
    Some(Interval {
        low: if k == 0.0 {
            0.0
        } else {
            beta_quantile(tail, k, n - k + 1.0)
        },
        high: if k == n {
            1.0
        } else {
            beta_quantile(1.0 - tail, k + 1.0, n - k)
        },
    })
}

/// The 95 % interval of k1/n1 - k2/n2 (Newcombe 1998, method 10: Wilson's two intervals combined).
pub fn newcombe(k1: u64, n1: u64, k2: u64, n2: u64) -> Option<Interval> {
    let (first, second) = (wilson(k1, n1, 0.95)?, wilson(k2, n2, 0.95)?);
    let (p1, p2) = (k1 as f64 / n1 as f64, k2 as f64 / n2 as f64);
    let difference = p1 - p2;
    Some(Interval {
        low: difference - (p1 - first.low).hypot(second.high - p2),
        high: difference + (first.high - p1).hypot(p2 - second.low),
    })
}

/// Exact two-sided p of k of n where each has probability `p`: outcomes no likelier than the observed one.
pub fn binomial_two_sided(k: u64, n: u64, p: f64) -> Option<f64> {
    checked(k, n)?;
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    if p == 0.0 || p == 1.0 {
        let certain = if p == 0.0 { 0 } else { n };
        return Some(if k == certain { 1.0 } else { 0.0 });
    }
    let probability = |k: u64| {
        let (k, n) = (k as f64, n as f64);
        (ln_choose(n, k) + k * p.ln() + (n - k) * (-p).ln_1p()).exp()
    };
    let limit = probability(k) * (1.0 + SAME_PROBABILITY);
    let sum: f64 = (0..=n).map(probability).filter(|p| *p <= limit).sum();
    Some(sum.min(1.0))
}

/// The upper one-sided 95 % bound of a rate of which 0 of n were seen: 1 - 0.05^(1/n).
pub fn rule_of_three(n: u64) -> Option<f64> {
    (n > 0).then(|| 1.0 - 0.05_f64.powf(1.0 / n as f64))
}

pub(super) fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

fn critical(level: f64) -> f64 {
    -normal_quantile((1.0 - level) / 2.0)
}

fn checked(k: u64, n: u64) -> Option<()> {
    (n > 0 && k <= n).then_some(())
}
