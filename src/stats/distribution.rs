//! Distributions: the normal, Student's t with and without centre, chi-squared, F and beta.
//!
//! Tails come from survival functions, never from 1 - cdf, which is 0 below 1e-16.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::beta::beta_reg;
use statrs::function::erf::{erf_inv, erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;

use crate::stats::root;

/// Terms of the noncentral t that are below this share of the sum are left out.
const SERIES_PRECISION: f64 = 1e-17;
/// Terms on either side of the largest; a sum that may be long ends far below.
const SERIES_MAX_TERMS: usize = 2_000;
/// From here on t is taken as nearly normal: the difference is below 1e-9, and the incomplete beta loses digits.
const NORMAL_FROM_DF: f64 = 1e6;
/// From here on the noncentral t is integrated instead of summed: the sum would have thousands of terms.
const INTEGRAL_FROM_NONCENTRALITY: f64 = 60.0;
/// Widths into which that integral is cut, and how far out it goes in standard deviations.
const INTEGRAL_STEPS: usize = 4_000;
const INTEGRAL_REACH: f64 = 14.0;

/// P(Z > z).
pub fn normal_sf(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// P(Z <= z).
pub fn normal_cdf(z: f64) -> f64 {
    normal_sf(-z)
}

pub fn normal_pdf(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// z with P(Z <= z) = `p`; infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let z = if p < 0.25 {
        -std::f64::consts::SQRT_2 * erfc_inv(2.0 * p)
    } else {
        std::f64::consts::SQRT_2 * erf_inv(2.0 * p - 1.0)
    };
    polish(z, p, normal_cdf, normal_pdf)
}

/// P(T > t) with `df` degrees of freedom; NaN where `df` is not above 0.
pub fn t_sf(t: f64, df: f64) -> f64 {
    if df > NORMAL_FROM_DF {
        return normal_sf(nearly_normal(t, df, 0.0));
    }
    student(df).map_or(f64::NAN, |student| student.sf(t))
}

/// The z whose tail is nearly that of t (Abramowitz and Stegun 26.7.8 and 26.7.10).
fn nearly_normal(t: f64, df: f64, noncentrality: f64) -> f64 {
    if t.is_infinite() {
        return t;
    }
    (t * (1.0 - 0.25 / df) - noncentrality) / (1.0 + t * t / (2.0 * df)).sqrt()
}

/// P(T <= t).
pub fn t_cdf(t: f64, df: f64) -> f64 {
    t_sf(-t, df)
}

/// P(|T| >= |t|).
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    (2.0 * t_sf(t.abs(), df)).min(1.0)
}

/// t with P(T <= t) = `p`; NaN where `df` is not above 0.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if !(p > 0.0 && p < 1.0) {
        return normal_quantile(p);
    }
    // By symmetry through the tail, where p keeps its digits.
    if p < 0.5 {
        return -upper_point(p, df);
    }
    upper_point(1.0 - p, df)
}

/// t with P(T > t) = `tail`, which is at most 1/2. Logarithms make the search as fast in the tail as in the center.
fn upper_point(tail: f64, df: f64) -> f64 {
    if tail >= 0.5 {
        return 0.0;
    }
    let target = tail.ln();
    root::above(0.0, 1.0, |t| t_sf(t, df).ln() - target).unwrap_or(f64::NAN)
}

/// The t that `level` (such as 0.95) of the distribution lies within, on both sides.
pub fn t_critical(level: f64, df: f64) -> f64 {
    -t_quantile((1.0 - level) / 2.0, df)
}

fn student(df: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, df).ok()
}

/// A Newton step or two from a quantile that is nearly right.
fn polish(start: f64, p: f64, cdf: impl Fn(f64) -> f64, pdf: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 2;
    let mut x = start;
    for _ in 0..STEPS {
        let step = (cdf(x) - p) / pdf(x);
        if !step.is_finite() {
            return x;
        }
        x -= step;
    }
    x
}

/// P(X > x) of chi-squared.
pub fn chi_squared_sf(x: f64, df: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    ChiSquared::new(df).map_or(f64::NAN, |chi| chi.sf(x))
}

/// P(X > x) of Fisher's F.
pub fn f_sf(x: f64, df1: f64, df2: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    FisherSnedecor::new(df1, df2).map_or(f64::NAN, |f| f.sf(x))
}

/// x with P(X <= x) = `p` of the beta distribution.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    if !(a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    root::between(0.0, 1.0, |x| incomplete_beta(a, b, x) - p).unwrap_or(f64::NAN)
}

/// The regularised incomplete beta function, with its ends.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if x >= 1.0 {
        1.0
    } else {
        beta_reg(a, b, x)
    }
}

/// P(T <= t) of the noncentral t: Poisson-weighted incomplete betas (Lenth 1989, AS 243), begun at the largest weight so
/// that it does not underflow. NaN only where the arguments are NaN or `df` is not above 0.
pub fn noncentral_t_cdf(t: f64, df: f64, noncentrality: f64) -> f64 {
    if t.is_nan() || noncentrality.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if t < 0.0 {
        return (1.0 - noncentral_t_cdf(-t, df, -noncentrality)).clamp(0.0, 1.0);
    }
    if t.is_infinite() {
        return 1.0;
    }
    if df > NORMAL_FROM_DF || noncentrality.is_infinite() {
        return normal_cdf(nearly_normal(t, df, noncentrality));
    }
    if noncentrality.abs() > INTEGRAL_FROM_NONCENTRALITY {
        return spread_integral(t, df, noncentrality);
    }
    let below_zero = normal_sf(noncentrality);
    let squared = t * t;
    let x = if squared.is_finite() {
        squared / (squared + df)
    } else {
        1.0
    };
    if x == 0.0 {
        return below_zero;
    }
    if noncentrality == 0.0 {
        return t_cdf(t, df);
    }
    (below_zero + 0.5 * series(x, df, noncentrality)).clamp(0.0, 1.0)
}

/// P(T > t) of the noncentral t, to an absolute precision of 1e-12.
pub fn noncentral_t_sf(t: f64, df: f64, noncentrality: f64) -> f64 {
    // P(T > t | d) = P(T < -t | -d), of which one side is a sum of small terms.
    noncentral_t_cdf(-t, df, -noncentrality)
}

/// P(Z + noncentrality <= t v) over v, the estimated over the true standard deviation, by Simpson's rule.
fn spread_integral(t: f64, df: f64, noncentrality: f64) -> f64 {
    // Over ln v, in which the density is bounded at any df.
    let ln_constant = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let reach = INTEGRAL_REACH / (2.0 * df).sqrt();
    let (low, high) = (-(reach + reach * reach), reach.min(4.0));
    let width = (high - low) / INTEGRAL_STEPS as f64;
    let (mut sum, mut all) = (0.0, 0.0);
    for at in 0..=INTEGRAL_STEPS {
        let ln_v = low + width * at as f64;
        let weight = match at {
            0 | INTEGRAL_STEPS => 1.0,
            at if at % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let density = (ln_constant + df * ln_v - df / 2.0 * (2.0 * ln_v).exp()).exp() * weight;
        all += density;
        sum += density * normal_cdf(t * ln_v.exp() - noncentrality);
    }
    // By the sum of the density, whose constant then does not matter.
    (sum / all).clamp(0.0, 1.0)
}

/// The sum over j of p_j I(j + 1/2) + q_j I(j + 1).
fn series(x: f64, df: f64, noncentrality: f64) -> f64 {
    let rate = noncentrality * noncentrality / 2.0;
    let b = df / 2.0;
    let term = |j: usize, p: f64, q: f64| {
        let j = j as f64;
        p * incomplete_beta(j + 0.5, b, x) + q * incomplete_beta(j + 1.0, b, x)
    };
    let mode = rate.floor();
    let p_mode = (-rate + mode * rate.ln() - ln_gamma(mode + 1.0)).exp();
    let q_mode = noncentrality / std::f64::consts::SQRT_2
        * (-rate + mode * rate.ln() - ln_gamma(mode + 1.5)).exp();
    let mode = mode as usize;
    let mut sum = term(mode, p_mode, q_mode);
    let (mut p, mut q) = (p_mode, q_mode);
    for j in mode + 1..mode + SERIES_MAX_TERMS {
        p *= rate / j as f64;
        q *= rate / (j as f64 + 0.5);
        sum += term(j, p, q);
        // The incomplete betas fall with j, so that the weights bound what is left.
        if p + q.abs() < SERIES_PRECISION {
            break;
        }
    }
    let (mut p, mut q) = (p_mode, q_mode);
    for j in (0..mode).rev().take(SERIES_MAX_TERMS) {
        p *= (j + 1) as f64 / rate;
        q *= (j as f64 + 1.5) / rate;
        sum += term(j, p, q);
        if p + q.abs() < SERIES_PRECISION {
            break;
        }
    }
    sum
}
