//! Scores of one arm, and what is known of an arm from a publication: n, mean and standard deviation.

use serde::Serialize;
use thiserror::Error;

/// Micro-points in one point: a score of 1 is a million.
pub const MICRO: f64 = 1e6;

/// How far a printed standard deviation may lie above what its mean allows, as a share of it: rounding of arithmetic,
/// not of printing.
const FEASIBLE_SLACK: f64 = 1e-9;

/// Scores of one arm in micro-points, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample(Vec<i64>);

impl Sample {
    /// The order in which scores come in does not matter.
    pub fn new(scores: impl IntoIterator<Item = i64>) -> Sample {
        let mut scores: Vec<i64> = scores.into_iter().collect();
        scores.sort_unstable();
        Sample(scores)
    }

    pub fn n(&self) -> usize {
        self.0.len()
    }

    pub fn values(&self) -> &[i64] {
        &self.0
    }

    /// In micro-points.
    pub fn sum(&self) -> i128 {
        self.0.iter().map(|score| i128::from(*score)).sum()
    }

    /// On the scale 0 to 1; nothing of no scores.
    pub fn mean(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.sum() as f64 / (self.n() as f64 * MICRO))
    }

    /// With n - 1. The squares are summed as integers, so that equal scores have a variance of exactly 0, which a sum of
    /// rounded fractions has not.
    pub fn variance(&self) -> Option<f64> {
        let n = self.n() as i128;
        if n < 2 {
            return None;
        }
        // Around the lowest score the squares stay small.
        let low = i128::from(self.0[0]);
        let (mut sum, mut squares) = (0_i128, 0_i128);
        for score in &self.0 {
            let above = i128::from(*score) - low;
            sum = sum.saturating_add(above);
            squares = squares.saturating_add(above.saturating_mul(above));
        }
        let scaled = squares.saturating_mul(n) - sum.saturating_mul(sum);
        Some(scaled as f64 / (n * (n - 1)) as f64 / (MICRO * MICRO))
    }

    pub fn sd(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Different scores with how many runs have each, lowest first.
    pub fn levels(&self) -> Vec<(i64, u32)> {
        let mut levels: Vec<(i64, u32)> = Vec::new();
        for score in &self.0 {
            match levels.last_mut() {
                Some((level, count)) if level == score => *count += 1,
                _ => levels.push((*score, 1)),
            }
        }
        levels
    }

    /// Whether no score differs from another; true of no scores.
    pub fn is_constant(&self) -> bool {
        self.0.first() == self.0.last()
    }
}

/// n, mean and standard deviation (with n - 1) of one arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub n: u64,
    pub mean: f64,
    pub sd: f64,
}

/// Why numbers cannot be those of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Infeasible {
    #[error("n is {0}; a standard deviation needs at least 2 runs")]
    TooFew(u64),
    #[error("mean {mean} is not between {low} and {high}")]
    Mean { mean: f64, low: f64, high: f64 },
    #[error("standard deviation {0} is not a number of at least 0")]
    Sd(f64),
    #[error(
        "standard deviation {sd} is impossible: {n} scores between {low} and {high} with mean {mean} have at most {max:.6}"
    )]
    TooSpread {
        sd: f64,
        max: f64,
        n: u64,
        mean: f64,
        low: f64,
        high: f64,
    },
}

impl Summary {
    /// Nothing below two scores, of which no spread is known.
    pub fn of(sample: &Sample) -> Option<Summary> {
        Some(Summary {
            n: sample.n() as u64,
            mean: sample.mean()?,
            sd: sample.sd()?,
        })
    }

    /// Refuses what no n scores in `low..=high` can have.
    pub fn checked(n: u64, mean: f64, sd: f64, low: f64, high: f64) -> Result<Summary, Infeasible> {
        if n < 2 {
            return Err(Infeasible::TooFew(n));
        }
        if !(low..=high).contains(&mean) {
            return Err(Infeasible::Mean { mean, low, high });
        }
        if !(sd.is_finite() && sd >= 0.0) {
            return Err(Infeasible::Sd(sd));
        }
        let max = max_sd(n, mean, low, high);
        if sd > max * (1.0 + FEASIBLE_SLACK) {
            return Err(Infeasible::TooSpread {
                sd,
                max,
                n,
                mean,
                low,
                high,
            });
        }
        Ok(Summary { n, mean, sd })
    }

    /// Of the mean, squared.
    pub fn squared_error(&self) -> f64 {
        self.sd * self.sd / self.n as f64
    }

    /// Degrees of freedom of the standard deviation.
    pub fn df(&self) -> f64 {
        self.n as f64 - 1.0
    }
}

/// Largest standard deviation that n scores in `low..=high` with this mean can have (Bhatia and Davis, with n - 1).
pub fn max_sd(n: u64, mean: f64, low: f64, high: f64) -> f64 {
    let n = n as f64;
    ((mean - low) * (high - mean) * n / (n - 1.0))
        .max(0.0)
        .sqrt()
}
