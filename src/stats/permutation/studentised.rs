//! The exact distribution of |t| under permuted labels, for arms of different sizes, where a difference of means alone
//! does not measure how unusual an arrangement is.

use crate::stats::lattice::binomial_weights;
use crate::stats::permutation::above_zero;
use crate::stats::permutation::labels::Pool;
use crate::stats::sample::Sample;

/// Multisets that are looked at one by one: a tenth of a second.
const MAX_MULTISETS: f64 = 2e6;

/// P(|t*| >= |t|) with Welch's t. Nothing beyond the limit, or where an arm has a single run and so no variance.
pub(super) fn exact(x: &Sample, y: &Sample) -> Option<f64> {
    let pool = Pool::new(x, y)?;
    if pool.nx < 2 || pool.ny < 2 || multisets(&pool.levels) > MAX_MULTISETS {
        return None;
    }
    let scores = Scores {
        nx: pool.nx as i128,
        ny: pool.ny as i128,
        sum: i128::from(pool.sum),
        squares: pool.squares(x)?.checked_add(pool.squares(y)?)?,
    };
    let observed = scores.split(i128::from(pool.sum_x), pool.squares(x)?)?;
    let odds = pool.nx as f64 / pool.ny as f64;
    let levels: Vec<Level> = pool
        .levels
        .iter()
        .map(|(value, count)| Level {
            value: i128::from(*value),
            weights: binomial_weights(*count, odds),
        })
        .collect();
    let mut walk = Walk {
        scores,
        observed,
        extreme: 0.0,
        all: 0.0,
    };
    walk.down(&levels, pool.nx, (0, 0), 1.0)?;
    Some(above_zero(walk.extreme / walk.all))
}

/// An upper bound of how many multisets there are.
fn multisets(levels: &[(i64, u32)]) -> f64 {
    let largest = levels.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let all: f64 = levels
        .iter()
        .map(|(_, count)| f64::from(*count) + 1.0)
        .product();
    // The count of the last level follows from the others.
    all / (f64::from(largest) + 1.0)
}

struct Level {
    value: i128,
    /// Of taking 0, 1, 2, ... runs of this level.
    weights: Vec<f64>,
}

/// All scores of both arms, in steps.
struct Scores {
    nx: i128,
    ny: i128,
    sum: i128,
    squares: i128,
}

/// Numerator and squared denominator of t, each times a constant of the sizes.
#[derive(Clone, Copy)]
struct Split {
    difference: i128,
    variance: i128,
}

impl Scores {
    fn split(&self, sum_x: i128, squares_x: i128) -> Option<Split> {
        let (nx, ny) = (self.nx, self.ny);
        let spread = |n: i128, sum: i128, squares: i128| {
            n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)
        };
        let of_x = spread(nx, sum_x, squares_x)?.checked_mul(ny * ny * (ny - 1))?;
        let of_y = spread(ny, self.sum - sum_x, self.squares - squares_x)?
            .checked_mul(nx * nx * (nx - 1))?;
        Some(Split {
            difference: (nx + ny) * sum_x - nx * self.sum,
            variance: of_x.checked_add(of_y)?,
        })
    }
}

impl Split {
    /// Whether |t| is at least the other's. Cross-multiplied, so that no variance of 0 is divided by: then t is
    /// infinite. Nothing where the products do not fit.
    fn at_least(&self, other: &Split) -> Option<bool> {
        let square = |d: i128| d.checked_mul(d);
        let left = square(self.difference)?.checked_mul(other.variance)?;
        let right = square(other.difference)?.checked_mul(self.variance)?;
        Some(left >= right)
    }
}

struct Walk {
    scores: Scores,
    observed: Split,
    extreme: f64,
    all: f64,
}

impl Walk {
    fn down(
        &mut self,
        levels: &[Level],
        missing: usize,
        (sum, squares): (i128, i128),
        weight: f64,
    ) -> Option<()> {
        let Some((level, rest)) = levels.split_first() else {
            if missing == 0 {
                self.all += weight;
                if self.scores.split(sum, squares)?.at_least(&self.observed)? {
                    self.extreme += weight;
                }
            }
            return Some(());
        };
        let room: usize = rest.iter().map(|level| level.weights.len() - 1).sum();
        let most = missing.min(level.weights.len() - 1);
        for taken in missing.saturating_sub(room)..=most {
            let of_level = taken as i128 * level.value;
            let sums = (sum + of_level, squares + of_level * level.value);
            self.down(rest, missing - taken, sums, weight * level.weights[taken])?;
        }
        Some(())
    }
}
