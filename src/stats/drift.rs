//! Whether scores change with the order of runs.

use serde::Serialize;

use crate::stats::distribution::t_two_sided;

/// A straight line through scores in the order of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    /// Points per step of `x`.
    pub slope: f64,
    /// Nothing for two points, through which a line always goes.
    pub se: Option<f64>,
    pub t: Option<f64>,
    pub df: f64,
    pub p: Option<f64>,
}

/// Least squares of `y` on its place in the sequence, 0, 1, 2, ...
pub fn slope(y: &[f64]) -> Option<Slope> {
    let x: Vec<f64> = (0..y.len()).map(|at| at as f64).collect();
    slope_on(&x, y)
}

/// Least squares of `y` on `x`, such as the actual order of the runs of one arm among all. Nothing for fewer than two
/// different `x`.
pub fn slope_on(x: &[f64], y: &[f64]) -> Option<Slope> {
    let n = x.len() as f64;
    if x.len() != y.len() || x.len() < 2 {
        return None;
    }
    let (mx, my) = (mean(x), mean(y));
    let sxx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    if !(sxx > 0.0 && sxx.is_finite()) {
        return None;
    }
    let sxy: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let syy: f64 = y.iter().map(|y| (y - my).powi(2)).sum();
    let slope = sxy / sxx;
    let df = n - 2.0;
    let residual: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (y - my - slope * (x - mx)).powi(2))
        .sum();
    // Constant scores have no slope, exactly; rounding must not give them a t.
    let flat = y.iter().all(|value| *value == y[0]);
    let slope = if flat { 0.0 } else { slope };
    let se = (df > 0.0).then(|| (residual / df / sxx).sqrt());
    let varies = residual > syy * f64::EPSILON && !flat;
    let t = se.filter(|_| varies).map(|se| slope / se);
    Some(Slope {
        slope,
        se,
        t,
        df,
        p: t.map(|t| t_two_sided(t, df)),
    })
}

/// Correlation of each score with the one before it. Nothing for fewer than three, or where none varies.
pub fn lag1(y: &[f64]) -> Option<f64> {
    if y.len() < 3 || y.iter().all(|value| *value == y[0]) {
        return None;
    }
    let center = mean(y);
    let all: f64 = y.iter().map(|y| (y - center).powi(2)).sum();
    let neighbours: f64 = y
        .windows(2)
        .map(|pair| (pair[0] - center) * (pair[1] - center))
        .sum();
    Some(neighbours / all)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
