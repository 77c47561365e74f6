//! Statistics: pure functions over numbers. Scores come in as integer micro-points, so that sums, ties and variances are
//! exact; everything else is f64 on the scale 0 to 1.
//!
//! `docs/statistics.md` has the formulas with their sources and says how each is checked.

pub mod bca;
pub mod brunner_munzel;
pub mod dirichlet;
pub mod distribution;
pub mod drift;
pub mod effect;
pub mod exclusion;
pub mod lattice;
pub mod multiplicity;
pub mod one_way;
pub mod paired;
pub mod permutation;
pub mod power;
pub mod proportion;
pub mod root;
pub mod sample;
pub mod sequential;
pub mod stratified;
pub mod tost;
pub mod welch;

use serde::Serialize;

/// Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// `center - half` to `center + half`.
    pub fn around(center: f64, half: f64) -> Interval {
        Interval {
            low: center - half,
            high: center + half,
        }
    }

    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
