//! The instrument measured by itself: how often it finds a difference where there is none, and how often one that is
//! known. It reads the totals that runs earned.
//!
//! *Live*: consecutive blocks of an experiment form independent datasets. *Shuffled*: runs of one arm are given labels at
//! random, over and over; datasets then share runs, which makes a rate more even than independent ones are, never less
//! honest about the test.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use crate::experiment::analysis::model::CalibrationNote;
use crate::store::{Batch, Store, StoreError};

use crate::stats::Interval;
use crate::stats::brunner_munzel::brunner_munzel;
use crate::stats::permutation::{sign_flip, two_sample};
use crate::stats::proportion::clopper_pearson;
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::welch;

/// What is calibrated: rejection at this level.
pub const ALPHA: f64 = 0.05;
/// A false-positive rate is too high when its interval at this level lies wholly above [`ALPHA`].
pub const GATE_LEVEL: f64 = 0.99;

/// Where a version's last result is kept among what is proven of things.
fn key() -> String {
    format!("calibration:{}", env!("CARGO_PKG_VERSION"))
}

/// Keeps the result of this version.
pub fn keep(store: &Store, note: &CalibrationNote) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    batch.qualification(&key(), note)?;
    store.write(&batch).map(drop)
}

/// The last result of this version.
pub fn kept(store: &Store) -> Result<Option<CalibrationNote>, StoreError> {
    store.qualification(&key())
}

/// How often each test rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rejections {
    pub datasets: u32,
    /// Two-sample, exact.
    pub permutation: u32,
    /// The same with half of the probability of the observed value.
    pub mid_p: u32,
    /// Over pairs of one world, exact; 0 where there are no pairs.
    pub sign_flip: u32,
    pub welch: u32,
    pub brunner_munzel: u32,
    /// Datasets whose 95 % Welch interval holds the true difference.
    pub covered: u32,
    /// Datasets in which the estimate has the sign of the true difference.
    pub right_sign: u32,
}

/// A share of datasets with its exact interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub count: u32,
    pub of: u32,
    pub rate: f64,
    pub low: f64,
    pub high: f64,
}

impl Rate {
    pub fn of(count: u32, of: u32, level: f64) -> Rate {
        let interval = clopper_pearson(u64::from(count), u64::from(of), level);
        // Without datasets nothing is known of the rate.
        let interval = interval.unwrap_or(Interval {
            low: 0.0,
            high: 1.0,
        });
        Rate {
            count,
            of,
            rate: f64::from(count) / f64::from(of.max(1)),
            low: interval.low,
            high: interval.high,
        }
    }
}

impl Rejections {
    /// Whether a test that should reject in 5 % of the datasets did so no oftener, as far as their number can tell.
    pub fn is_honest(count: u32, of: u32) -> bool {
        Rate::of(count, of, GATE_LEVEL).low <= ALPHA
    }

    fn take(&mut self, x: &[i64], y: &[i64], paired: bool, truth: f64) {
        let (sx, sy) = (
            Sample::new(x.iter().copied()),
            Sample::new(y.iter().copied()),
        );
        let exact = two_sample(&sx, &sy);
        self.datasets += 1;
        self.permutation += u32::from(exact.p_two_sided <= ALPHA);
        self.mid_p += u32::from(exact.mid_p <= ALPHA);
        if paired {
            let differences: Vec<i64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
            self.sign_flip += u32::from(sign_flip(&differences).p_two_sided <= ALPHA);
        }
        let munzel = brunner_munzel(&sx, &sy).and_then(|of| of.p_two_sided);
        self.brunner_munzel += u32::from(munzel.is_some_and(|p| p <= ALPHA));
        let delta = sx.mean().unwrap_or(0.0) - sy.mean().unwrap_or(0.0);
        self.right_sign += u32::from(delta * truth > 0.0);
        let of = match (Summary::of(&sx), Summary::of(&sy)) {
            (Some(x), Some(y)) => welch(&x, &y).ok(),
            _ => None,
        };
        let Some(of) = of else {
            // Nothing varies: the difference is known exactly.
            self.covered += u32::from((delta - truth).abs() < 1e-9);
            return;
        };
        self.welch += u32::from(of.p_two_sided() <= ALPHA);
        let interval = of.interval(0.95);
        self.covered += u32::from(interval.low <= truth && truth <= interval.high);
    }
}

/// Consecutive blocks of both arms, `n` at a time; `truth` is the known difference, treatment minus control.
pub fn live(treatment: &[i64], control: &[i64], n: usize, truth: f64) -> Rejections {
    let mut rejections = Rejections::default();
    for (x, y) in treatment.chunks_exact(n).zip(control.chunks_exact(n)) {
        rejections.take(x, y, true, truth);
    }
    rejections
}

/// `2 n` runs are drawn from the pool without replacement and dealt to two arms, `datasets` times.
pub fn shuffled(pool: &[i64], n: usize, datasets: u32, seed: u64) -> Rejections {
    let mut rejections = Rejections::default();
    if pool.len() < 2 * n {
        return rejections;
    }
    let mut generator = ChaCha20Rng::seed_from_u64(seed);
    let mut deck = pool.to_vec();
    for _ in 0..datasets {
        for place in 0..2 * n {
            let left = (deck.len() - place) as u64;
            // The high half of the product is evenly distributed below `left`, to within 2^-60.
            let step = (u128::from(generator.next_u64()) * u128::from(left)) >> u64::BITS;
            deck.swap(place, place + step as usize);
        }
        rejections.take(&deck[..n], &deck[n..2 * n], false, 0.0);
    }
    rejections
}

/// Two agents that earn `hit` with probability `p` and `miss` otherwise, in micro-points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoCoins {
    pub treatment: f64,
    pub control: f64,
    pub hit: i64,
    pub miss: i64,
}

impl TwoCoins {
    /// The true difference of mean totals.
    pub fn difference(&self) -> f64 {
        (self.treatment - self.control) * (self.hit - self.miss) as f64 / 1e6
    }

    /// The probability that the exact two-sample test rejects with `n` runs an arm, by summing over all outcomes.
    pub fn power(&self, n: usize) -> f64 {
        let arm = |k: usize| {
            let hits = std::iter::repeat_n(self.hit, k);
            Sample::new(hits.chain(std::iter::repeat_n(self.miss, n - k)))
        };
        let mut power = 0.0;
        for x in 0..=n {
            for y in 0..=n {
                if two_sample(&arm(x), &arm(y)).p_two_sided <= ALPHA {
                    power += binomial(n, x, self.treatment) * binomial(n, y, self.control);
                }
            }
        }
        power
    }
}

fn binomial(n: usize, k: usize, p: f64) -> f64 {
    let mut probability = 1.0;
    for i in 0..k {
        probability *= (n - i) as f64 / (i + 1) as f64 * p;
    }
    probability * (1.0 - p).powi(i32::try_from(n - k).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels and shares of a published cell.
    fn pool() -> Vec<i64> {
        [(700_000, 20), (805_000, 18), (910_000, 42)]
            .into_iter()
            .flat_map(|(value, count)| std::iter::repeat_n(value, count))
            .collect()
    }

    #[test]
    fn shuffled_labels_are_rejected_no_oftener_than_they_should_be() {
        let found = shuffled(&pool(), 20, 1000, 1);
        let rate = f64::from(found.permutation) / 1000.0;
        assert_eq!(found.datasets, 1000);
        // Discrete scores make the exact test conservative: 1.9 to 4.5 % is what it should be.
        assert!((0.012..0.055).contains(&rate), "{rate}");
        assert!(Rejections::is_honest(found.permutation, 1000));
        assert!(!Rejections::is_honest(80, 1000));
    }

    #[test]
    fn power_is_the_level_or_less_without_a_difference_and_grows_with_one() {
        let coins = |treatment| TwoCoins {
            treatment,
            control: 0.4,
            hit: 910_000,
            miss: 700_000,
        };
        assert!(coins(0.4).power(20) <= ALPHA);
        assert!(coins(0.9).power(20) > 0.85);
        assert!((coins(0.9).difference() - 0.105).abs() < 1e-12);
    }

    #[test]
    fn a_planted_difference_is_found_with_the_power_that_was_computed() {
        let coins = TwoCoins {
            treatment: 0.8,
            control: 0.4,
            hit: 910_000,
            miss: 700_000,
        };
        let mut generator = ChaCha20Rng::seed_from_u64(3);
        let mut flip = |p: f64| {
            let unit = (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if unit < p { coins.hit } else { coins.miss }
        };
        let x: Vec<i64> = (0..4000).map(|_| flip(coins.treatment)).collect();
        let y: Vec<i64> = (0..4000).map(|_| flip(coins.control)).collect();
        let found = live(&x, &y, 20, coins.difference());
        let rate = Rate::of(found.permutation, found.datasets, 0.99);
        let expected = coins.power(20);
        assert!(
            (rate.low..rate.high).contains(&expected),
            "{rate:?} {expected}"
        );
        let coverage = Rate::of(found.covered, found.datasets, 0.99);
        assert!(coverage.high > 0.93, "{coverage:?}");
    }
}
