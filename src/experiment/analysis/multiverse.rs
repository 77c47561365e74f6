//! The result under other rubrics, credits and tests than the registered: how much hangs on choices that somebody might
//! have made differently.

use std::collections::BTreeSet;

use crate::experiment::analysis::compare::{Levels, contests};
use crate::experiment::analysis::data::{Contest, Counted, Credits, Data, Side};
use crate::experiment::analysis::exclusions::{quick_estimate, quick_verdict};
use crate::experiment::analysis::model::{Comparison, Interval, Multiverse, Verdict};
use crate::experiment::ledger::{AxisLine, DiagnosisMatch, ScoreLine};
use crate::experiment::plan::Primary;
use crate::stats::dirichlet::weights_around;

/// How closely the drawn weights keep to the rubric's: a standard deviation of about 0.06 for a weight of 0.3.
const CONCENTRATION: f64 = 50.0;
/// The draws are the same for everybody.
const SEED: u64 = 0;

/// One way to score every run.
#[derive(Clone, Debug, PartialEq)]
struct Variant {
    /// Millionths of the diagnosis axis.
    near_miss: i64,
    /// Of detected, diagnosed, fixed, no regressions; they sum to 1.
    weights: [f64; 4],
    timeouts_count: bool,
    primary: Primary,
}

pub(super) fn multiverse(
    data: &Data<'_>,
    (treatment, control): (&Side, &Side),
    levels: Levels,
    comparison: &Comparison,
) -> Option<Multiverse> {
    let pooled = comparison.pooled.as_ref()?;
    let registered = registered(data, levels.primary)?;
    let weights: Vec<f64> = pooled.weights.iter().map(|(_, weight)| *weight).collect();
    let base = quick(data, (treatment, control), levels, &weights, &registered)?;
    let mut seen = Tally::new(base);
    let mut near_miss = Vec::new();
    for variant in variants(data, &registered) {
        let Some(result) = quick(data, (treatment, control), levels, &weights, &variant) else {
            continue;
        };
        if (&variant.weights, variant.timeouts_count, variant.primary)
            == (&registered.weights, true, registered.primary)
        {
            let credit = variant.near_miss as f64 / 1e6;
            near_miss.push((credit, result.0, result.1));
        }
        seen.take(&variant, &registered, result);
    }
    Some(seen.result(near_miss))
}

fn quick(
    data: &Data<'_>,
    (treatment, control): (&Side, &Side),
    levels: Levels,
    weights: &[f64],
    variant: &Variant,
) -> Option<(f64, Verdict)> {
    let credits = data.credits;
    let contests: Vec<Contest> =
        contests(data, treatment, control, |run| total(run, variant, credits));
    let levels = Levels {
        primary: variant.primary,
        ..levels
    };
    match quick_estimate(&contests, weights, levels) {
        Some(estimate) => Some((estimate.delta, quick_verdict(&contests, weights, levels)?)),
        None => Some((0.0, Verdict::Degenerate)),
    }
}

/// The registered way: the weights are what the axes of the first run that counts could have earned.
fn registered(data: &Data<'_>, primary: Primary) -> Option<Variant> {
    let (_, cell) = data.cells().find(|(_, cell)| !cell.counted.is_empty())?;
    let score = &cell.counted.values().next()?.score;
    Some(Variant {
        near_miss: i64::from(data.credits.near_miss.0),
        weights: axes(score).map(|axis| axis.possible.as_f64()),
        timeouts_count: true,
        primary,
    })
}

fn axes(score: &ScoreLine) -> [AxisLine; 4] {
    [
        score.detected,
        score.diagnosed,
        score.fixed,
        score.no_regressions,
    ]
}

/// Every combination of near-miss credit, weights and time-out credit, and the other test for the registered rubric.
fn variants(data: &Data<'_>, registered: &Variant) -> Vec<Variant> {
    let plan = &data.plan.multiverse;
    let mut credits: BTreeSet<i64> = plan.near_miss.iter().map(|one| i64::from(one.0)).collect();
    credits.insert(registered.near_miss);
    let mut weights = vec![registered.weights, [0.25; 4]];
    for axis in 0..4 {
        let mut alone = [0.0; 4];
        alone[axis] = 1.0;
        weights.push(alone);
    }
    for draw in 0..plan.weight_vectors {
        weights.push(weights_around(
            registered.weights,
            CONCENTRATION,
            SEED,
            u64::from(draw),
        ));
    }
    let mut variants = Vec::new();
    for near_miss in credits {
        for weights in &weights {
            for timeouts_count in [true, false] {
                variants.push(Variant {
                    near_miss,
                    weights: *weights,
                    timeouts_count,
                    primary: registered.primary,
                });
            }
        }
    }
    let other = match registered.primary {
        Primary::PairedSignFlip => Primary::StratifiedPermutation,
        Primary::StratifiedPermutation => Primary::PairedSignFlip,
    };
    variants.push(Variant {
        primary: other,
        ..registered.clone()
    });
    variants
}

/// A run's total under a variant, in micro-points.
fn total(run: &Counted, variant: &Variant, credits: Credits) -> i64 {
    if run.timeout && !variant.timeouts_count {
        return 0;
    }
    let share = |axis: AxisLine| match axis.possible.0 {
        0 => 0.0,
        possible => f64::from(axis.earned.0) / f64::from(possible),
    };
    let mut shares = axes(&run.score).map(share);
    if run.score.diagnosis == DiagnosisMatch::NearMiss {
        let bonus = shares[1] - credits.near_miss.as_f64();
        let credit = variant.near_miss as f64 / 1e6;
        // As in the rubric, secondaries add to a primary that earns something.
        shares[1] = if credit > 0.0 {
            (credit + bonus).min(1.0)
        } else {
            0.0
        };
    }
    let sum: f64 = shares
        .iter()
        .zip(variant.weights)
        .map(|(share, weight)| share * weight)
        .sum();
    (sum * 1e6).round() as i64
}

/// What the variants say, against the registered.
struct Tally {
    base: (f64, Verdict),
    variants: u32,
    same_sign: u32,
    same_verdict: u32,
    lowest: f64,
    highest: f64,
    worst: (f64, String),
    flip: Option<(f64, String)>,
}

impl Tally {
    fn new(base: (f64, Verdict)) -> Tally {
        Tally {
            base,
            variants: 0,
            same_sign: 0,
            same_verdict: 0,
            lowest: f64::INFINITY,
            highest: f64::NEG_INFINITY,
            worst: (f64::NEG_INFINITY, String::new()),
            flip: None,
        }
    }

    fn take(&mut self, variant: &Variant, registered: &Variant, (delta, verdict): (f64, Verdict)) {
        let sign = if self.base.0 < 0.0 { -1.0 } else { 1.0 };
        self.variants += 1;
        self.same_sign += u32::from(delta * sign > 0.0 || (delta == 0.0 && self.base.0 == 0.0));
        self.lowest = self.lowest.min(delta);
        self.highest = self.highest.max(delta);
        let against = -delta * sign;
        if against > self.worst.0 {
            self.worst = (against, variant.told(registered));
        }
        if verdict == self.base.1 {
            self.same_verdict += 1;
            return;
        }
        let distance = variant.distance(registered);
        if self
            .flip
            .as_ref()
            .is_none_or(|(nearest, _)| distance < *nearest)
        {
            self.flip = Some((distance, variant.told(registered)));
        }
    }

    fn result(self, near_miss: Vec<(f64, f64, Verdict)>) -> Multiverse {
        let share = |count: u32| f64::from(count) / f64::from(self.variants.max(1));
        Multiverse {
            variants: self.variants,
            same_sign: share(self.same_sign),
            same_verdict: share(self.same_verdict),
            range: Interval {
                low: self.lowest,
                high: self.highest,
            },
            worst: self.worst.1,
            nearest_flip: self.flip.map(|(_, told)| told),
            near_miss,
        }
    }
}

impl Variant {
    /// How far from the registered, in points of credit and weight.
    fn distance(&self, registered: &Variant) -> f64 {
        let credit = (self.near_miss - registered.near_miss).abs() as f64 / 1e6;
        let weights: f64 = self
            .weights
            .iter()
            .zip(registered.weights)
            .map(|(a, b)| (a - b).abs())
            .sum();
        let timeouts = if self.timeouts_count { 0.0 } else { 0.5 };
        let test = if self.primary == registered.primary {
            0.0
        } else {
            0.5
        };
        credit + weights + timeouts + test
    }

    fn told(&self, registered: &Variant) -> String {
        let mut parts = Vec::new();
        if self.near_miss != registered.near_miss {
            parts.push(format!("near miss {:.3}", self.near_miss as f64 / 1e6));
        }
        if self.weights != registered.weights {
            let [a, b, c, d] = self.weights;
            parts.push(format!("weights {a:.2}/{b:.2}/{c:.2}/{d:.2}"));
        }
        if !self.timeouts_count {
            parts.push("time-outs earn 0".to_owned());
        }
        if self.primary != registered.primary {
            parts.push(match self.primary {
                Primary::PairedSignFlip => "paired".to_owned(),
                Primary::StratifiedPermutation => "unpaired".to_owned(),
            });
        }
        if parts.is_empty() {
            "as registered".to_owned()
        } else {
            parts.join(", ")
        }
    }
}
