//! One effect over several scenarios, each compared within itself.

use serde::Serialize;
use thiserror::Error;

use crate::stats::Interval;
use crate::stats::distribution::{chi_squared_sf, t_critical, t_two_sided};
use crate::stats::sample::Summary;

/// Treatment and control of one scenario.
pub type Pair = (Summary, Summary);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unpoolable {
    #[error("there is no scenario to pool")]
    Empty,
    #[error("{strata} scenarios have {weights} weights")]
    Weights { strata: usize, weights: usize },
    #[error("weights must be numbers of at least 0 that do not sum to 0")]
    NoWeight,
}

/// A weighted mean of differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// Summing to 1.
    pub weights: Vec<f64>,
    pub estimate: f64,
    pub se: f64,
    /// Nothing where no score varies in any scenario.
    pub t: Option<f64>,
    /// Satterthwaite's.
    pub df: Option<f64>,
    pub p_two_sided: Option<f64>,
    /// Nothing for one scenario, or where a scenario has no variance to weigh its difference by.
    pub heterogeneity: Option<Heterogeneity>,
}

/// Cochran's Q with inverse-variance weights, and the share of it that chance does not explain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Heterogeneity {
    pub q: f64,
    pub df: u32,
    pub p: f64,
    pub i2: f64,
}

/// Fixed `weights`, one per scenario, scaled here to sum to 1. The error is within scenarios only: what scenarios differ
/// by does not count.
pub fn pooled(strata: &[Pair], weights: &[f64]) -> Result<Pooled, Unpoolable> {
    if strata.is_empty() {
        return Err(Unpoolable::Empty);
    }
    if strata.len() != weights.len() {
        return Err(Unpoolable::Weights {
            strata: strata.len(),
            weights: weights.len(),
        });
    }
    let total: f64 = weights.iter().sum();
    if !(total > 0.0 && total.is_finite() && weights.iter().all(|w| *w >= 0.0)) {
        return Err(Unpoolable::NoWeight);
    }
    let weights: Vec<f64> = weights.iter().map(|w| w / total).collect();
    let groups: Vec<(Summary, f64)> = strata
        .iter()
        .zip(&weights)
        .flat_map(|((x, y), w)| [(*x, *w), (*y, -*w)])
        .collect();
    let Contrast {
        estimate,
        se,
        t,
        df,
        p,
    } = contrast(&groups);
    Ok(Pooled {
        weights,
        estimate,
        se,
        t,
        df,
        p_two_sided: p,
        heterogeneity: heterogeneity(strata),
    })
}

impl Pooled {
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let df = self.df?;
        Some(Interval::around(
            self.estimate,
            t_critical(level, df) * self.se,
        ))
    }
}

/// The same weight for every scenario: the registered estimand unless the registration says otherwise.
pub fn equal(strata: usize) -> Vec<f64> {
    vec![1.0 / strata as f64; strata]
}

/// In proportion to n1 n2 / (n1 + n2).
pub fn size(strata: &[Pair]) -> Vec<f64> {
    let raw = strata
        .iter()
        .map(|(x, y)| (x.n * y.n) as f64 / (x.n + y.n) as f64);
    scaled(raw.collect())
}

/// Nothing where a scenario has no variance: it would take all the weight.
pub fn inverse_variance(strata: &[Pair]) -> Option<Vec<f64>> {
    let variances: Vec<f64> = strata.iter().map(variance).collect();
    variances
        .iter()
        .all(|v| *v > 0.0)
        .then(|| scaled(variances.iter().map(|v| 1.0 / v).collect()))
}

fn scaled(raw: Vec<f64>) -> Vec<f64> {
    let total: f64 = raw.iter().sum();
    raw.iter().map(|w| w / total).collect()
}

fn variance((x, y): &Pair) -> f64 {
    x.squared_error() + y.squared_error()
}

fn heterogeneity(strata: &[Pair]) -> Option<Heterogeneity> {
    if strata.len() < 2 {
        return None;
    }
    let weights = inverse_variance(strata)?;
    let difference = |(x, y): &Pair| x.mean - y.mean;
    let center: f64 = strata
        .iter()
        .zip(&weights)
        .map(|(s, w)| w * difference(s))
        .sum();
    let q: f64 = strata
        .iter()
        .map(|s| (difference(s) - center).powi(2) / variance(s))
        .sum();
    let df = strata.len() as u32 - 1;
    let i2 = if q > 0.0 {
        ((q - f64::from(df)) / q).max(0.0)
    } else {
        0.0
    };
    Some(Heterogeneity {
        q,
        df,
        p: chi_squared_sf(q, f64::from(df)),
        i2,
    })
}

/// A weighted sum of means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contrast {
    pub estimate: f64,
    pub se: f64,
    pub t: Option<f64>,
    pub df: Option<f64>,
    pub p: Option<f64>,
}

/// Independent groups with a weight each; se and Satterthwaite's df of their weighted sum. A control that is shared by
/// several tiers is one group with the sum of its weights, which is what its covariance amounts to.
pub fn contrast(groups: &[(Summary, f64)]) -> Contrast {
    let parts = groups
        .iter()
        .map(|(group, weight)| (weight * weight * group.squared_error(), group.df()));
    let variance: f64 = parts.clone().map(|(part, _)| part).sum();
    let estimate = groups
        .iter()
        .map(|(group, weight)| weight * group.mean)
        .sum();
    let se = variance.sqrt();
    let varies = se > 0.0;
    let t = varies.then(|| estimate / se);
    let df = varies.then(|| {
        1.0 / parts
            .map(|(part, df)| (part / variance).powi(2) / df)
            .sum::<f64>()
    });
    Contrast {
        estimate,
        se,
        t,
        df,
        p: t.zip(df).map(|(t, df)| t_two_sided(t, df)),
    }
}

impl Contrast {
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let df = self.df?;
        Some(Interval::around(
            self.estimate,
            t_critical(level, df) * self.se,
        ))
    }
}
