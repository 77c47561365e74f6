//! Differences of runs that share a world.

use serde::Serialize;

use crate::stats::Interval;
use crate::stats::distribution::{t_critical, t_two_sided};
use crate::stats::sample::{MICRO, Sample};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Pairs.
    pub n: u64,
    pub mean_diff: f64,
    pub sd_diff: f64,
    /// Nothing where all differences are equal.
    pub t: Option<f64>,
    pub df: f64,
    pub p_two_sided: Option<f64>,
    pub interval95: Option<Interval>,
    /// Pearson's correlation of the pairs' scores; nothing where an arm is constant.
    pub rho: Option<f64>,
}

/// `x[i]` (treatment) and `y[i]` are a pair; micro-points. Nothing where there are fewer than two pairs or the lengths
/// differ.
pub fn paired(x: &[i64], y: &[i64]) -> Option<Paired> {
    if x.len() != y.len() {
        return None;
    }
    let differences = Sample::new(x.iter().zip(y).map(|(x, y)| x - y));
    let n = differences.n();
    let mean_diff = differences.mean()?;
    let sd_diff = differences.sd()?;
    let df = n as f64 - 1.0;
    let se = sd_diff / (n as f64).sqrt();
    let t = (se > 0.0).then(|| mean_diff / se);
    Some(Paired {
        n: n as u64,
        mean_diff,
        sd_diff,
        t,
        df,
        p_two_sided: t.map(|t| t_two_sided(t, df)),
        interval95: t.map(|_| Interval::around(mean_diff, t_critical(0.95, df) * se)),
        rho: correlation(x, y),
    })
}

/// Pearson's, over integers until the last division.
fn correlation(x: &[i64], y: &[i64]) -> Option<f64> {
    let n = x.len() as i128;
    let sums = |f: &dyn Fn(i128, i128) -> i128| -> i128 {
        x.iter()
            .zip(y)
            .map(|(x, y)| f(i128::from(*x), i128::from(*y)))
            .fold(0, i128::saturating_add)
    };
    let (sx, sy) = (sums(&|x, _| x), sums(&|_, y| y));
    let covariance = n * sums(&|x, y| x * y) - sx * sy;
    let vx = n * sums(&|x, _| x * x) - sx * sx;
    let vy = n * sums(&|_, y| y * y) - sy * sy;
    let scale = MICRO * MICRO;
    let (vx, vy) = (vx as f64 / scale, vy as f64 / scale);
    (vx > 0.0 && vy > 0.0)
        .then(|| (covariance as f64 / scale / (vx.sqrt() * vy.sqrt())).clamp(-1.0, 1.0))
}
