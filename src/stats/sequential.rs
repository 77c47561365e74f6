//! Looking at scores before the end: boundaries for planned looks, what unplanned ones cost, and evidence that may be
//! looked at at any time.

use serde::Serialize;

use crate::stats::distribution::{chi_squared_sf, normal_pdf, normal_quantile, normal_sf};
use crate::stats::root;

/// Points at which the density of the statistic between the bounds is kept; even. Boundaries are then right to 1e-6.
const GRID: usize = 400;
/// No boundary lies beyond: its tail is 1e-23.
const MAX_Z: f64 = 10.0;

/// How alpha is spent over the share t of the information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Spending {
    /// 4 (1 - Phi(z_{alpha/4} / sqrt t)): little early (O'Brien and Fleming, two-sided as two halves).
    Obf,
    /// alpha ln(1 + (e - 1) t): evenly.
    Pocock,
}

impl Spending {
    /// Spent by share `t` of the information.
    pub fn spent(self, alpha: f64, t: f64) -> f64 {
        match self {
            Spending::Obf => 4.0 * normal_sf(normal_quantile(1.0 - alpha / 4.0) / t.sqrt()),
            Spending::Pocock => alpha * (1.0 + (std::f64::consts::E - 1.0) * t).ln(),
        }
    }
}

/// |z| at each look that spends alpha as planned (Lan and DeMets 1983); `shares` of the information ascending, the last
/// usually 1. Nothing where they do not ascend or are not in (0, 1].
pub fn boundaries(spending: Spending, alpha: f64, shares: &[f64]) -> Option<Vec<f64>> {
    let mut process = Process::new();
    let mut spent = 0.0;
    let mut bounds = Vec::new();
    for share in shares {
        if !(*share > process.time && *share <= 1.0) {
            return None;
        }
        let due = spending.spent(alpha, *share) - spent;
        spent += due;
        let bound = root::between(0.0, MAX_Z, |z| process.crossing(*share, z) - due)?;
        process = process.continued(*share, bound);
        bounds.push(bound);
    }
    Some(bounds)
}

/// `looks` equally spaced shares.
pub fn equally_spaced(looks: u32) -> Vec<f64> {
    (1..=looks)
        .map(|look| f64::from(look) / f64::from(looks))
        .collect()
}

/// The error of rejecting as soon as |z| exceeds `critical` at any of `looks` equally spaced looks.
pub fn peeking_error(looks: u32, critical: f64) -> f64 {
    let mut process = Process::new();
    let mut error = 0.0;
    for share in equally_spaced(looks) {
        error += process.crossing(share, critical);
        process = process.continued(share, critical);
    }
    error
}

/// Brownian motion that has not crossed a boundary yet: its density at a time, on a grid with Simpson's weights
/// (Armitage, McPherson and Rowe 1969).
struct Process {
    time: f64,
    /// `(value, density times weight)`.
    grid: Vec<(f64, f64)>,
}

impl Process {
    fn new() -> Process {
        Process {
            time: 0.0,
            grid: vec![(0.0, 1.0)],
        }
    }

    /// Probability of not having crossed before, and |z| > `bound` at `time`.
    fn crossing(&self, time: f64, bound: f64) -> f64 {
        let scale = (time - self.time).sqrt();
        let edge = bound * time.sqrt();
        self.grid
            .iter()
            .map(|(value, mass)| {
                mass * (normal_sf((edge - value) / scale) + normal_sf((edge + value) / scale))
            })
            .sum()
    }

    /// Those that have not crossed `bound` at `time` either.
    fn continued(&self, time: f64, bound: f64) -> Process {
        let scale = (time - self.time).sqrt();
        let edge = bound * time.sqrt();
        let width = 2.0 * edge / GRID as f64;
        let grid = (0..=GRID)
            .map(|at| {
                let to = -edge + width * at as f64;
                let weight = match at {
                    0 | GRID => 1.0,
                    at if at % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                let density: f64 = self
                    .grid
                    .iter()
                    .map(|(from, mass)| mass * normal_pdf((to - from) / scale) / scale)
                    .sum();
                (to, density * weight * width / 3.0)
            })
            .collect();
        Process { time, grid }
    }
}

/// Calibrators that turn a p into evidence whose products stay valid, where every p is valid given the past.
pub mod e_value {
    use super::chi_squared_sf;

    /// kappa p^(kappa - 1), with kappa 1/2.
    pub fn kappa(p: f64) -> f64 {
        const KAPPA: f64 = 0.5;
        KAPPA * p.powf(KAPPA - 1.0)
    }

    /// (1 - p + p ln p) / (p ln^2 p): the average of the calibrators over all kappas. 1/2 at p = 1.
    pub fn integral(p: f64) -> f64 {
        /// Below this distance from 1 numerator and denominator cancel; the expansion is right to 1e-9 there.
        const NEAR_ONE: f64 = 1e-5;
        let distance = 1.0 - p;
        if distance.abs() < NEAR_ONE {
            return 0.5 + distance / 6.0;
        }
        let ln = p.ln();
        (1.0 - p + p * ln) / (p * ln * ln)
    }

    /// Fisher's combination of independent p: -2 sum ln p is chi-squared with twice as many degrees of freedom.
    pub fn fisher_combined(p: &[f64]) -> f64 {
        let statistic: f64 = p.iter().map(|p| -2.0 * p.ln()).sum();
        chi_squared_sf(statistic, 2.0 * p.len() as f64)
    }
}

/// One step of a betting process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bet {
    pub lambda: f64,
    pub capital_up: f64,
    pub capital_down: f64,
    /// Evidence against a mean difference of 0; at 1 / alpha it is rejected.
    pub e: f64,
}

/// Hedged capital against a mean difference of 0 (Waudby-Smith and Ramdas 2024): paired differences with |d| <= `bound`,
/// in their order. `cap` below 1 keeps a bet from losing everything. Nothing where a difference exceeds the bound or is
/// not a number.
pub fn betting(differences: &[f64], bound: f64, alpha: f64, cap: f64) -> Option<Vec<Bet>> {
    /// Of differences scaled to 0 to 1, under the hypothesis.
    const NULL: f64 = 0.5;
    /// Prior variance and mean: those of the widest bet.
    const PRIOR: f64 = 0.25;
    if !(bound > 0.0 && differences.iter().all(|d| d.abs() <= bound)) {
        return None;
    }
    let (mut up, mut down) = (1.0, 1.0);
    let (mut sum, mut squares) = (0.0, 0.0);
    let bets = differences.iter().enumerate().map(|(at, d)| {
        let x = (d / bound + 1.0) / 2.0;
        let t = at as f64 + 1.0;
        let variance = (PRIOR + squares) / t;
        let lambda = (2.0 * (2.0 / alpha).ln() / (variance * t * (1.0 + t).ln())).sqrt();
        let lambda = lambda.min(cap / NULL);
        up *= 1.0 + lambda * (x - NULL);
        down *= 1.0 - lambda * (x - NULL);
        sum += x;
        let mean = (NULL + sum) / (t + 1.0);
        squares += (x - mean).powi(2);
        Bet {
            lambda,
            capital_up: up,
            capital_down: down,
            e: (up + down) / 2.0,
        }
    });
    Some(bets.collect())
}

/// p that holds at whatever time one stops: 1 over the largest evidence so far.
pub fn anytime_p(bets: &[Bet]) -> f64 {
    let most = bets.iter().map(|bet| bet.e).fold(0.0, f64::max);
    (1.0 / most).min(1.0)
}
