//! p by sampled arrangements, where there are too many different ones to count.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::stats::permutation::arrangements::Arrangements;
use crate::stats::permutation::labels::{self, Stratum};
use crate::stats::permutation::{Method, Permutation, signs as flips};
use crate::stats::proportion::clopper_pearson;
use crate::stats::sample::{MICRO, Sample};
use crate::stats::welch::welch;
use crate::stats::{Interval, sample::Summary};

/// The band of a p of 0.05 is then 0.046 to 0.054.
const DRAWS: u32 = 19_999;
/// Of the band on p.
const BAND_LEVEL: f64 = 0.99;
/// Sums of rounded fractions that differ by less than this share are the same: scores are whole micro-points, whose
/// means differ by more.
const TIE: f64 = 1e-12;

/// How many drawn arrangements were how extreme.
#[derive(Default)]
struct Counts {
    two_sided: u32,
    greater: u32,
    tied: u32,
}

impl Counts {
    fn note(&mut self, drawn: f64, observed: f64, scale: f64) {
        let slack = TIE * scale;
        self.two_sided += u32::from(drawn.abs() >= observed.abs() - slack);
        self.greater += u32::from(drawn >= observed - slack);
        self.tied += u32::from((drawn.abs() - observed.abs()).abs() <= slack);
    }

    /// The observed arrangement counts as one of the drawn.
    fn permutation(&self, statistic: f64, seed: u64, arrangements: Arrangements) -> Permutation {
        let share = |count: f64| (count + 1.0) / (f64::from(DRAWS) + 1.0);
        let two_sided = f64::from(self.two_sided);
        Permutation {
            statistic,
            p_two_sided: share(two_sided),
            p_greater: share(f64::from(self.greater)),
            mid_p: share(two_sided) - share(f64::from(self.tied)) / 2.0,
            studentised: None,
            arrangements: arrangements.to_string(),
            method: Method::MonteCarlo {
                draws: DRAWS,
                seed,
                band: clopper_pearson(u64::from(self.two_sided), u64::from(DRAWS), BAND_LEVEL)
                    .unwrap_or(Interval {
                        low: 0.0,
                        high: 1.0,
                    }),
            },
        }
    }
}

pub(super) fn two_sample(x: &Sample, y: &Sample, seed: u64) -> Permutation {
    let stratum = Stratum { x, y, weight: 1 };
    let mut found = stratified(&[stratum], seed);
    found.studentised = Some(if x.n() == y.n() {
        found.p_two_sided
    } else {
        studentised(x, y, seed)
    });
    found
}

pub(super) fn stratified(strata: &[Stratum], seed: u64) -> Permutation {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut pools: Vec<Vec<i64>> = strata.iter().map(|s| pool(s.x, s.y)).collect();
    let observed = labels::weighted(strata);
    let scale = scale(pools.iter().flatten());
    let total: f64 = strata.iter().map(|s| s.weight as f64).sum();
    let mut counts = Counts::default();
    for _ in 0..DRAWS {
        let mut drawn = 0.0;
        for (stratum, pool) in strata.iter().zip(&mut pools) {
            if stratum.x.n() > 0 && stratum.y.n() > 0 && stratum.weight > 0 {
                choose(&mut rng, pool, stratum.x.n());
                let (x, y) = pool.split_at(stratum.x.n());
                drawn += stratum.weight as f64 / total * (mean(x) - mean(y));
            }
        }
        counts.note(drawn, observed, scale);
    }
    let arrangements = strata.iter().fold(Arrangements::one(), |sum, s| {
        sum.choose(s.x.n() + s.y.n(), s.x.n())
    });
    counts.permutation(observed, seed, arrangements)
}

/// p of Welch's |t|; an arrangement whose arms are both constant has an infinite t.
pub(super) fn studentised(x: &Sample, y: &Sample, seed: u64) -> f64 {
    let t = |x: &Sample, y: &Sample| -> f64 {
        match Summary::of(x).zip(Summary::of(y)) {
            Some((x, y)) => welch(&x, &y).map_or_else(
                |_| {
                    if x.mean == y.mean { 0.0 } else { f64::INFINITY }
                },
                |welch| welch.t.abs(),
            ),
            None => 0.0,
        }
    };
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut pool = pool(x, y);
    let threshold = t(x, y) * (1.0 - TIE);
    let mut extreme = 0;
    for _ in 0..DRAWS {
        choose(&mut rng, &mut pool, x.n());
        let (x, y) = pool.split_at(x.n());
        let drawn = t(
            &Sample::new(x.iter().copied()),
            &Sample::new(y.iter().copied()),
        );
        extreme += u32::from(drawn >= threshold);
    }
    f64::from(extreme + 1) / f64::from(DRAWS + 1)
}

pub(super) fn signs(strata: &[(&[i64], u64)], seed: u64) -> Permutation {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let observed = flips::weighted(strata);
    let scale = scale(strata.iter().flat_map(|(differences, _)| *differences));
    let total: f64 = strata.iter().map(|(_, weight)| *weight as f64).sum();
    let mut counts = Counts::default();
    for _ in 0..DRAWS {
        let mut drawn = 0.0;
        for (differences, weight) in strata.iter().filter(|(d, _)| !d.is_empty()) {
            let sum = flipped(&mut rng, differences);
            drawn += *weight as f64 / total * sum as f64 / (differences.len() as f64 * MICRO);
        }
        counts.note(drawn, observed, scale);
    }
    let pairs = strata
        .iter()
        .map(|(differences, _)| differences.len())
        .sum();
    counts.permutation(observed, seed, Arrangements::one().signs(pairs))
}

fn flipped(rng: &mut ChaCha20Rng, differences: &[i64]) -> i128 {
    let mut sum = 0_i128;
    for sixty_four in differences.chunks(64) {
        let bits = rng.next_u64();
        for (at, difference) in sixty_four.iter().enumerate() {
            let sign = if bits >> at & 1 == 1 { 1 } else { -1 };
            sum += sign * i128::from(*difference);
        }
    }
    sum
}

fn pool(x: &Sample, y: &Sample) -> Vec<i64> {
    x.values().iter().chain(y.values()).copied().collect()
}

/// The largest score, in points: what rounding errors are in proportion to.
fn scale<'a>(scores: impl Iterator<Item = &'a i64>) -> f64 {
    scores.fold(0.0_f64, |most, score| {
        most.max((*score as f64 / MICRO).abs())
    })
}

fn mean(scores: &[i64]) -> f64 {
    let sum: i128 = scores.iter().map(|score| i128::from(*score)).sum();
    sum as f64 / (scores.len() as f64 * MICRO)
}

/// Brings a random selection of `n` to the front (Fisher and Yates, as far as needed).
fn choose(rng: &mut ChaCha20Rng, pool: &mut [i64], n: usize) {
    for at in 0..n {
        let left = (pool.len() - at) as u128;
        // The high half of the product is uniform to within 2^-57 for any number of runs there can be.
        let offset = (u128::from(rng.next_u64()) * left) >> 64;
        pool.swap(at, at + offset as usize);
    }
}
