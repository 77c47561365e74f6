//! Permutation tests: labels or signs are exchanged as the randomisation could have given them, and it is counted how
//! often the difference is as large as the observed one.
//!
//! Exact wherever scores take few values. Comparisons are between integers, so that ties are ties. Beyond a limit of
//! states p is sampled, and says so.

mod arrangements;
mod draws;
mod labels;
mod signs;
mod studentised;

pub use labels::{Stratum, stratified, stratified_seeded, two_sample, two_sample_seeded};
pub use signs::{sign_flip, sign_flip_seeded, sign_flip_stratified, sign_flip_stratified_seeded};

use std::cmp::Ordering;

use serde::Serialize;

use crate::stats::Interval;
use crate::stats::lattice::{Lattice, Tails, tails_of_sum};

/// The seed where the caller gives none. Any will do; that it stands here makes the same data give the same p.
pub const DEFAULT_SEED: u64 = 20_260_424;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Permutation {
    /// Treatment minus control (or the mean difference), in points.
    pub statistic: f64,
    /// P(|T*| >= |T|).
    pub p_two_sided: f64,
    /// P(T* >= T).
    pub p_greater: f64,
    /// Two-sided, with the arrangements exactly as extreme as the observed one counted half: an exact p is conservative
    /// where there are few arrangements.
    pub mid_p: f64,
    /// Two-sided p of Welch's t; differs from `p_two_sided` only where the arms differ in size. Nothing for tests
    /// that are not of two samples.
    pub studentised: Option<f64>,
    /// In decimal digits: they exceed every integer type.
    pub arrangements: String,
    pub method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Method {
    /// Every arrangement counts.
    Exact,
    /// p = (b + 1) / (draws + 1), which is never 0; `band` is the 99 % Clopper-Pearson interval of the share of
    /// arrangements that are as extreme.
    MonteCarlo {
        draws: u32,
        seed: u64,
        band: Interval,
    },
}

impl Method {
    /// `exact`, or `Monte Carlo, 9999 draws`.
    pub fn label(&self) -> String {
        match self {
            Method::Exact => "exact".to_owned(),
            Method::MonteCarlo { draws, .. } => format!("Monte Carlo, {draws} draws"),
        }
    }
}

/// Where arrangements begin to be as extreme as the observed one, in steps of the lattice from it.
struct Threshold {
    low: i64,
    high: i64,
    /// Whether an arrangement at `low` is exactly as extreme, or beyond.
    low_is_tie: bool,
    high_is_tie: bool,
    sign: Ordering,
}

impl Threshold {
    /// The statistic of an arrangement is `observed + step * y` for a whole y.
    fn new(observed: i128, step: i128) -> Option<Threshold> {
        let opposite = observed.checked_mul(-2)?;
        let step = step.max(1);
        let exact = opposite % step == 0;
        let low = i64::try_from(opposite.div_euclid(step)).ok()?;
        let high = low.checked_add(i64::from(!exact))?;
        Some(match observed.cmp(&0) {
            Ordering::Greater => Threshold {
                low,
                high: 0,
                low_is_tie: exact,
                high_is_tie: true,
                sign: Ordering::Greater,
            },
            sign => Threshold {
                low: 0,
                high,
                low_is_tie: true,
                high_is_tie: exact,
                sign,
            },
        })
    }

    /// The p of tails of a distribution whose weights sum to 1.
    fn p(&self, tails: Tails) -> Shares {
        let ties = match self.sign {
            Ordering::Equal => tails.at_low,
            _ => {
                f64::from(u8::from(self.low_is_tie)) * tails.at_low
                    + f64::from(u8::from(self.high_is_tie)) * tails.at_high
            }
        };
        let two_sided = match self.sign {
            Ordering::Equal => 1.0,
            _ => tails.lower + tails.upper,
        };
        let greater = match self.sign {
            Ordering::Less => 1.0 - tails.lower + tails.at_low,
            _ => tails.upper,
        };
        Shares {
            two_sided: above_zero(two_sided),
            greater: above_zero(greater),
            mid: above_zero(two_sided.min(1.0) - ties / 2.0),
        }
    }
}

/// Shares of the arrangements.
struct Shares {
    two_sided: f64,
    greater: f64,
    mid: f64,
}

/// The observed arrangement is one of those counted, so that no p is 0; what is below the smallest f64 would make it so.
fn above_zero(p: f64) -> f64 {
    p.clamp(f64::MIN_POSITIVE, 1.0)
}

/// p of a statistic that is a sum of independent parts, each of which is 0 as observed. Nothing beyond the limits.
fn exact(parts: Vec<Lattice>, observed: i128, step: i128) -> Option<Shares> {
    let threshold = Threshold::new(observed, step)?;
    let tails = tails_of_sum(parts, threshold.low, threshold.high)?;
    Some(threshold.p(tails))
}

impl Permutation {
    fn exact(statistic: f64, shares: Shares, arrangements: String) -> Permutation {
        Permutation {
            statistic,
            p_two_sided: shares.two_sided,
            p_greater: shares.greater,
            mid_p: shares.mid,
            studentised: None,
            arrangements,
            method: Method::Exact,
        }
    }
}
