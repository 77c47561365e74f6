//! How likely a design finds an effect, how large it must be for one, and how far an estimate that was found misleads.
//!
//! All by the noncentral t with both tails (as R's power.t.test with strict = TRUE).

use statrs::function::gamma::ln_gamma;

use crate::stats::distribution::{
    noncentral_t_cdf, noncentral_t_sf, normal_pdf, normal_quantile, normal_sf, t_critical,
};
use crate::stats::root;

/// Runs per arm beyond which a design is not searched.
const MAX_N: u64 = 10_000_000;
/// Widths into which the spread of an estimated standard deviation is cut.
const QUADRATURE_STEPS: usize = 2_000;
/// How far out that spread is followed, in its own standard deviations.
const QUADRATURE_REACH: f64 = 12.0;

/// P(|T| > t_c), T with this noncentrality.
fn rejects(noncentrality: f64, df: f64, alpha: f64) -> f64 {
    let critical = t_critical(1.0 - alpha, df);
    noncentral_t_sf(critical, df, noncentrality) + noncentral_t_cdf(-critical, df, noncentrality)
}

/// P(T > t_c): the share of `rejects` on the positive side.
pub fn rejects_upward(delta: f64, sd: f64, n1: u64, n2: u64, alpha: f64) -> f64 {
    let (noncentrality, df) = two_sample_design(delta, sd, n1, n2);
    noncentral_t_sf(t_critical(1.0 - alpha, df), df, noncentrality)
}

fn two_sample_design(delta: f64, sd: f64, n1: u64, n2: u64) -> (f64, f64) {
    let (n1, n2) = (n1 as f64, n2 as f64);
    (delta / (sd * (1.0 / n1 + 1.0 / n2).sqrt()), n1 + n2 - 2.0)
}

/// Of a two-sided two-sample test; `delta` and `sd` in the same unit. NaN below two runs in all or without spread.
pub fn power(delta: f64, sd: f64, n1: u64, n2: u64, alpha: f64) -> f64 {
    if n1 == 0 || n2 == 0 || sd.is_nan() || sd <= 0.0 {
        return f64::NAN;
    }
    let (noncentrality, df) = two_sample_design(delta, sd, n1, n2);
    rejects(noncentrality, df, alpha)
}

/// Of the stratified test of the equally weighted average over `strata` scenarios with n runs per arm and scenario.
pub fn stratified_power(delta: f64, sd: f64, n: u64, strata: u64, alpha: f64) -> f64 {
    let (n, strata) = (n as f64, strata as f64);
    let noncentrality = delta / (sd * (2.0 / n).sqrt()) * strata.sqrt();
    rejects(noncentrality, strata * (2.0 * n - 2.0), alpha)
}

/// Standard deviation of the difference of two runs with correlation `rho`.
pub fn paired_sd(sd: f64, rho: f64) -> f64 {
    sd * (2.0 * (1.0 - rho)).sqrt()
}

/// Of the paired t test over `pairs`.
pub fn paired_power(delta: f64, sd: f64, rho: f64, pairs: u64, alpha: f64) -> f64 {
    let n = pairs as f64;
    rejects(delta / paired_sd(sd, rho) * n.sqrt(), n - 1.0, alpha)
}

/// Of the paired test of the equally weighted average over scenarios with `pairs` each.
pub fn paired_stratified_power(
    delta: f64,
    sd: f64,
    rho: f64,
    pairs: u64,
    strata: u64,
    alpha: f64,
) -> f64 {
    let (n, strata) = (pairs as f64, strata as f64);
    let noncentrality = delta / paired_sd(sd, rho) * (n * strata).sqrt();
    rejects(noncentrality, strata * (n - 1.0), alpha)
}

/// The smallest n per arm whose power reaches the target. Nothing where none does.
pub fn n_for(delta: f64, sd: f64, target: f64, alpha: f64) -> Option<u64> {
    smallest(2, target, |n| power(delta, sd, n, n, alpha))
}

/// The smallest n per arm and scenario.
pub fn stratified_n_for(delta: f64, sd: f64, strata: u64, target: f64, alpha: f64) -> Option<u64> {
    smallest(2, target, |n| stratified_power(delta, sd, n, strata, alpha))
}

/// The smallest number of pairs.
pub fn paired_n_for(delta: f64, sd: f64, rho: f64, target: f64, alpha: f64) -> Option<u64> {
    smallest(2, target, |n| paired_power(delta, sd, rho, n, alpha))
}

/// The smallest n from `least` on whose power reaches the target; power must grow with n.
pub fn smallest(least: u64, target: f64, power: impl Fn(u64) -> f64) -> Option<u64> {
    let enough = |n: u64| power(n) >= target;
    let mut high = least;
    while !enough(high) {
        high = high.checked_mul(2).filter(|n| *n <= MAX_N)?;
    }
    let mut low = least;
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// n per arm as a real number, at which the exact power equals the target.
pub fn n_exact(delta: f64, sd: f64, target: f64, alpha: f64) -> Option<f64> {
    let high = n_for(delta, sd, target, alpha)?;
    let at = |n: f64| rejects(delta / (sd * (2.0 / n).sqrt()), 2.0 * n - 2.0, alpha) - target;
    root::between((high as f64 - 1.0).max(1.5), high as f64, at)
}

/// The normal approximation: 2 ((z_a + z_b) sd / delta)^2, not rounded up.
pub fn n_normal(delta: f64, sd: f64, target: f64, alpha: f64) -> f64 {
    let z = normal_quantile(1.0 - alpha / 2.0) + normal_quantile(target);
    2.0 * (z * sd / delta).powi(2)
}

/// As [`n_normal`], with Guenther's correction z_a^2 / 4.
pub fn n_guenther(delta: f64, sd: f64, target: f64, alpha: f64) -> f64 {
    n_normal(delta, sd, target, alpha) + normal_quantile(1.0 - alpha / 2.0).powi(2) / 4.0
}

/// The smallest effect that is found with the target's power. Nothing where the target is not above alpha, or n too small.
pub fn mde(n1: u64, n2: u64, sd: f64, target: f64, alpha: f64) -> Option<f64> {
    least_effect(sd, target, |delta| power(delta, sd, n1, n2, alpha))
}

/// Of the stratified test.
pub fn stratified_mde(n: u64, strata: u64, sd: f64, target: f64, alpha: f64) -> Option<f64> {
    least_effect(sd, target, |delta| {
        stratified_power(delta, sd, n, strata, alpha)
    })
}

/// Of the paired stratified test; one scenario for the plain paired one.
pub fn paired_mde(
    pairs: u64,
    strata: u64,
    sd: f64,
    rho: f64,
    target: f64,
    alpha: f64,
) -> Option<f64> {
    least_effect(sd, target, |delta| {
        paired_stratified_power(delta, sd, rho, pairs, strata, alpha)
    })
}

fn least_effect(sd: f64, target: f64, power: impl Fn(f64) -> f64) -> Option<f64> {
    if !(sd > 0.0 && target < 1.0 && power(0.0) < target) {
        return None;
    }
    root::above(0.0, sd, |delta| power(delta) - target)
}

/// Half of the interval of one mean of n runs.
pub fn half_width_of_mean(sd: f64, n: u64, level: f64) -> f64 {
    let n = n as f64;
    t_critical(level, n - 1.0) * sd / n.sqrt()
}

/// Half of the interval of the difference of two means of n runs.
pub fn half_width_of_difference(sd: f64, n: u64, level: f64) -> f64 {
    let n = n as f64;
    t_critical(level, 2.0 * n - 2.0) * sd * (2.0 / n).sqrt()
}

/// What to plan with where a standard deviation was estimated from `runs`: its upper limit at `level` (one-sided, such as
/// 0.8), sd sqrt(df / chi2). Nothing below two runs.
pub fn upper_sd(sd: f64, runs: u64, level: f64) -> Option<f64> {
    let df = runs.checked_sub(1).filter(|df| *df > 0)? as f64;
    let chi = root::above(0.0, df, |x| {
        crate::stats::distribution::chi_squared_sf(x, df) - level
    })?;
    Some(sd * (df / chi).sqrt())
}

/// Of estimates that reach alpha in a two-sample test with n per arm: the share with the wrong sign, and by what factor
/// they exceed the true effect on average (Gelman and Carlin 2014). Nothing for an effect of 0.
pub fn type_s_m(delta: f64, sd: f64, n: u64, alpha: f64) -> Option<(f64, f64)> {
    if !(delta != 0.0 && delta.is_finite() && sd > 0.0 && n >= 2) {
        return None;
    }
    let (noncentrality, df) = two_sample_design(delta.abs(), sd, n, n);
    let critical = t_critical(1.0 - alpha, df);
    let wrong = noncentral_t_cdf(-critical, df, noncentrality);
    let all = rejects(noncentrality, df, alpha);
    let magnitude = mean_magnitude(noncentrality, df, critical);
    Some((wrong / all, magnitude / all / noncentrality))
}

/// E(|Z + nc|; |Z + nc| > c v) over v, the estimated over the true standard deviation: for a given v both tails of a
/// normal, whose first moments are closed forms.
fn mean_magnitude(noncentrality: f64, df: f64, critical: f64) -> f64 {
    let tails = |bound: f64| {
        let upper =
            normal_pdf(bound - noncentrality) + noncentrality * normal_sf(bound - noncentrality);
        let lower =
            normal_pdf(bound + noncentrality) - noncentrality * normal_sf(bound + noncentrality);
        upper + lower
    };
    // v^2 df is chi-squared.
    let ln_constant = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let density = |v: f64| {
        if v <= 0.0 {
            return 0.0;
        }
        (ln_constant + (df - 1.0) * v.ln() - df * v * v / 2.0).exp()
    };
    let spread = QUADRATURE_REACH / (2.0 * df).sqrt();
    let (low, high) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let width = (high - low) / QUADRATURE_STEPS as f64;
    let sum: f64 = (0..=QUADRATURE_STEPS)
        .map(|at| {
            let v = low + width * at as f64;
            // Simpson's weights.
            let weight = match at {
                0 | QUADRATURE_STEPS => 1.0,
                at if at % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density(v) * tails(critical * v)
        })
        .sum();
    sum * width / 3.0
}
