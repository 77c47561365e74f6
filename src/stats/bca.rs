//! A bootstrap interval of the difference of means, bias-corrected and accelerated (Efron 1987), from the exact bootstrap
//! distribution: sums of draws with replacement are convolved instead of sampled.

use serde::Serialize;

use crate::stats::Interval;
use crate::stats::distribution::{normal_cdf, normal_quantile};
use crate::stats::lattice::{Lattice, Point, gcd};
use crate::stats::sample::{MICRO, Sample};

/// Cumulative weights that miss a bound by less are on it.
const ON_BOUND: f64 = 1e-12;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bca {
    pub theta: f64,
    /// Share of bootstrap differences below the observed one, ties counting half.
    pub proportion_below: f64,
    pub z0: f64,
    pub acceleration: f64,
    pub alpha_low: f64,
    pub alpha_high: f64,
    pub interval: Interval,
    /// The plain percentile interval, for comparison.
    pub percentile: Interval,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreported {
    #[error("an arm has no run")]
    Empty,
    #[error("no score varies: the acceleration is 0/0")]
    Constant,
    #[error("all bootstrap differences lie on one side: the bias correction is infinite")]
    OneSided,
    #[error("the scores take too many different values for an exact bootstrap distribution")]
    TooManyValues,
}

/// Of mean(x) - mean(y); `level` such as 0.95.
pub fn bca(x: &Sample, y: &Sample, level: f64) -> Result<Bca, Unreported> {
    let theta = x
        .mean()
        .zip(y.mean())
        .map(|(x, y)| x - y)
        .ok_or(Unreported::Empty)?;
    let acceleration = acceleration(x, y).ok_or(Unreported::Constant)?;
    let bootstrap = Bootstrap::new(x, y).ok_or(Unreported::TooManyValues)?;
    let proportion_below = bootstrap.proportion_below();
    let z0 = normal_quantile(proportion_below);
    if !z0.is_finite() {
        return Err(Unreported::OneSided);
    }
    let tail = (1.0 - level) / 2.0;
    let corrected = |alpha: f64| {
        let z = z0 + normal_quantile(alpha);
        normal_cdf(z0 + z / (1.0 - acceleration * z))
    };
    let (alpha_low, alpha_high) = (corrected(tail), corrected(1.0 - tail));
    Ok(Bca {
        theta,
        proportion_below,
        z0,
        acceleration,
        alpha_low,
        alpha_high,
        interval: Interval {
            low: bootstrap.quantile(alpha_low),
            high: bootstrap.quantile(alpha_high),
        },
        percentile: Interval {
            low: bootstrap.quantile(tail),
            high: bootstrap.quantile(1.0 - tail),
        },
    })
}

/// Of several samples (Davison and Hinkley 1997, 5.3.2), from the jackknife. Of a mean the influence of a score is its
/// deviation. Nothing where no score varies.
pub fn acceleration(x: &Sample, y: &Sample) -> Option<f64> {
    if x.is_constant() && y.is_constant() {
        return None;
    }
    let moments = |sample: &Sample, sign: f64| {
        let center = sample.mean()?;
        let n = sample.n() as f64;
        let mut squares = 0.0;
        let mut cubes = 0.0;
        if !sample.is_constant() {
            for score in sample.values() {
                let influence = sign * (*score as f64 / MICRO - center);
                squares += influence.powi(2);
                cubes += influence.powi(3);
            }
        }
        Some((squares / (n * n), cubes / (n * n * n)))
    };
    let (sx, cx) = moments(x, 1.0)?;
    let (sy, cy) = moments(y, -1.0)?;
    let squares = sx + sy;
    (squares > 0.0).then(|| (cx + cy) / (6.0 * squares.powf(1.5)))
}

/// All resampled differences, on a lattice of whole steps around the observed one.
struct Bootstrap {
    lattice: Lattice,
    /// The observed difference, in steps.
    observed: i64,
    /// Points per step.
    step: f64,
    /// The difference at step 0, in points.
    origin: f64,
}

impl Bootstrap {
    /// Nothing beyond the limits of states.
    fn new(x: &Sample, y: &Sample) -> Option<Bootstrap> {
        let (nx, ny) = (x.n() as i128, y.n() as i128);
        let common = nx / gcd(nx, ny) * ny;
        // A score of x counts common / nx in the difference times common, one of y as much less.
        let factor_x = common / nx;
        let factor_y = common / ny;
        let low_x = i128::from(*x.values().first()?);
        let low_y = i128::from(*y.values().first()?);
        let mut step: i128 = 0;
        for (level, _) in x.levels() {
            step = gcd(step, factor_x.checked_mul(i128::from(level) - low_x)?);
        }
        for (level, _) in y.levels() {
            step = gcd(step, factor_y.checked_mul(i128::from(level) - low_y)?);
        }
        let step = step.max(1);
        let sum = |sample: &Sample, low: i128, factor: i128| -> Option<Lattice> {
            let points = sample
                .levels()
                .into_iter()
                .map(|(level, count)| {
                    let steps = factor.checked_mul(i128::from(level) - low)? / step;
                    Some((i64::try_from(steps).ok()?, f64::from(count)))
                })
                .collect::<Option<Vec<Point>>>()?;
            Lattice::new(points)?.times(sample.n())
        };
        let of_y = sum(y, low_y, factor_y)?.scaled(-1, 0)?;
        let lattice = sum(x, low_x, factor_x)?.plus(&of_y)?;
        let above = |sample: &Sample, low: i128, factor: i128| {
            factor.checked_mul(sample.sum() - low * sample.n() as i128)
        };
        let observed = above(x, low_x, factor_x)?.checked_sub(above(y, low_y, factor_y)?)? / step;
        Some(Bootstrap {
            lattice,
            observed: i64::try_from(observed).ok()?,
            step: step as f64 / (common as f64 * MICRO),
            origin: (low_x - low_y) as f64 / MICRO,
        })
    }

    fn proportion_below(&self) -> f64 {
        self.lattice
            .points()
            .iter()
            .map(|(value, weight)| match value.cmp(&self.observed) {
                std::cmp::Ordering::Less => *weight,
                std::cmp::Ordering::Equal => weight / 2.0,
                std::cmp::Ordering::Greater => 0.0,
            })
            .sum()
    }

    /// The smallest difference up to which at least this share lies.
    fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        let mut last = 0;
        for (value, weight) in self.lattice.points() {
            sum += weight;
            last = *value;
            if sum >= share - ON_BOUND {
                break;
            }
        }
        self.origin + last as f64 * self.step
    }
}
