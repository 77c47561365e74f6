//! Equivalence: two one-sided tests (Schuirmann 1987) with Welch's standard error.

use serde::Serialize;

use crate::stats::Interval;
use crate::stats::distribution::t_sf;
use crate::stats::welch::Welch;

/// The level of the interval that is as strict as both tests at 5 %.
const LEVEL: f64 = 0.90;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tost {
    /// The larger of both.
    pub p: f64,
    /// Against a difference of at most minus the margin.
    pub t_lower: f64,
    pub p_lower: f64,
    /// Against a difference of at least the margin.
    pub t_upper: f64,
    pub p_upper: f64,
    pub ci90: Interval,
    pub margin: f64,
}

/// `margin` above 0, in points.
pub fn tost(welch: &Welch, margin: f64) -> Tost {
    let t_lower = (welch.delta + margin) / welch.se;
    let t_upper = (welch.delta - margin) / welch.se;
    let p_lower = t_sf(t_lower, welch.df);
    let p_upper = t_sf(-t_upper, welch.df);
    Tost {
        p: p_lower.max(p_upper),
        t_lower,
        p_lower,
        t_upper,
        p_upper,
        ci90: welch.interval(LEVEL),
        margin,
    }
}

impl Tost {
    /// At 5 %: the 90 % interval lies inside the margins.
    pub fn equivalent(&self) -> bool {
        -self.margin < self.ci90.low && self.ci90.high < self.margin
    }
}
