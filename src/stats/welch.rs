//! Two means whose variances may differ.

use serde::Serialize;
use thiserror::Error;

use crate::stats::Interval;
use crate::stats::distribution::{t_critical, t_sf, t_two_sided};
use crate::stats::sample::Summary;

/// Why two arms have no t.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Degenerate {
    /// No score differs from another. That is no evidence of equality beyond what the number of runs gives.
    #[error("no variation was observed: all scores of both arms are equal")]
    Identical,
    /// Each arm is constant, at different scores.
    #[error("each arm is constant and they differ: there is no variance to divide by")]
    Separated,
}

/// Treatment minus control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Welch {
    pub delta: f64,
    pub se: f64,
    pub t: f64,
    pub df: f64,
}

/// Welch's t with Satterthwaite's degrees of freedom, x as treatment.
pub fn welch(x: &Summary, y: &Summary) -> Result<Welch, Degenerate> {
    let delta = x.mean - y.mean;
    let (vx, vy) = (x.squared_error(), y.squared_error());
    let variance = vx + vy;
    if variance <= 0.0 {
        return Err(if delta == 0.0 {
            Degenerate::Identical
        } else {
            Degenerate::Separated
        });
    }
    // As shares of the variance, whose squares neither overflow nor vanish.
    let (sx, sy) = (vx / variance, vy / variance);
    let se = variance.sqrt();
    Ok(Welch {
        delta,
        se,
        t: delta / se,
        df: 1.0 / (sx * sx / x.df() + sy * sy / y.df()),
    })
}

impl Welch {
    pub fn p_two_sided(&self) -> f64 {
        t_two_sided(self.t, self.df)
    }

    /// Of the alternative that treatment is higher.
    pub fn p_greater(&self) -> f64 {
        t_sf(self.t, self.df)
    }

    pub fn p_less(&self) -> f64 {
        t_sf(-self.t, self.df)
    }

    /// Of the difference; `level` such as 0.95.
    pub fn interval(&self, level: f64) -> Interval {
        Interval::around(self.delta, t_critical(level, self.df) * self.se)
    }
}
