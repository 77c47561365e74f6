//! One scenario's two arms, measured: every test that a report shows, before any is adjusted or judged.

use crate::experiment::analysis::data::{Contest, decimal};
use crate::experiment::analysis::model::{
    ArmSummary, BrunnerMunzelNote, Interval, PairedNote, PermutationNote, TostNote, WelchNote,
};
use crate::experiment::analysis::verdict::Estimate;
use crate::experiment::plan::Primary;
use crate::ids::MicroPoints;
use crate::stats;
use crate::stats::bca::bca;
use crate::stats::brunner_munzel::brunner_munzel;
use crate::stats::effect::hedges_g;
use crate::stats::paired::paired;
use crate::stats::permutation::{Method, Permutation, sign_flip, two_sample};
use crate::stats::proportion::rule_of_three;
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::welch;

/// Whether the arms of a scenario can be compared, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Fewer than two runs in an arm (or fewer than two pairs).
    Invalid,
    /// Nothing varies: there is no standard error.
    Degenerate,
    Estimated(Estimate),
}

/// See the module.
pub(super) struct Measured {
    pub x: Sample,
    pub y: Sample,
    pub shape: Shape,
    /// Unadjusted, of the registered test.
    pub p: Option<f64>,
    /// Of the tests beside it that have one.
    pub p_beside: Vec<f64>,
    pub welch: Option<stats::welch::Welch>,
    pub permutation: Option<Permutation>,
    pub paired: Option<PairedNote>,
}

/// The estimate by the registered design, without any exact test.
pub(super) fn shape(contest: &Contest, primary: Primary) -> Shape {
    match primary {
        Primary::PairedSignFlip => {
            let (x, y) = contest.pairs();
            let differences = Sample::new(x.iter().zip(&y).map(|(x, y)| x - y));
            let Some(summary) = Summary::of(&differences) else {
                return Shape::Invalid;
            };
            if summary.sd == 0.0 {
                return Shape::Degenerate;
            }
            let n = summary.n as f64;
            Shape::Estimated(Estimate {
                delta: summary.mean,
                se: summary.sd / n.sqrt(),
                df: n - 1.0,
            })
        }
        Primary::StratifiedPermutation => {
            let x = Summary::of(&Sample::new(contest.treatment.values().copied()));
            let y = Summary::of(&Sample::new(contest.control.values().copied()));
            match (x, y) {
                (Some(x), Some(y)) => match welch(&x, &y) {
                    Ok(w) => Shape::Estimated(Estimate {
                        delta: w.delta,
                        se: w.se,
                        df: w.df,
                    }),
                    Err(_) => Shape::Degenerate,
                },
                _ => Shape::Invalid,
            }
        }
    }
}

pub(super) fn measure(contest: &Contest, primary: Primary) -> Measured {
    let x = Sample::new(contest.treatment.values().copied());
    let y = Sample::new(contest.control.values().copied());
    let shape = shape(contest, primary);
    let welch = match (Summary::of(&x), Summary::of(&y)) {
        (Some(x), Some(y)) => welch(&x, &y).ok(),
        _ => None,
    };
    let enough = x.n() >= 2 && y.n() >= 2;
    let permutation = enough.then(|| two_sample(&x, &y));
    let paired = paired_note(contest);
    let p_permutation = permutation.as_ref().map(tested);
    let p_paired = paired.as_ref().map(|note| note.p_sign_flip);
    let munzel = brunner_munzel(&x, &y).and_then(|bm| bm.p_two_sided);
    let (p, p_beside) = match (primary, &shape) {
        (_, Shape::Invalid) => (None, Vec::new()),
        // The other tests do not know the pairs: they are shown, and do not decide.
        (Primary::PairedSignFlip, _) => {
            let by_t = paired.as_ref().and_then(|note| note.p_t);
            (p_paired, by_t.into_iter().collect())
        }
        (Primary::StratifiedPermutation, _) => {
            let by_welch = welch.as_ref().map(stats::welch::Welch::p_two_sided);
            (p_permutation, by_welch.into_iter().chain(munzel).collect())
        }
    };
    Measured {
        x,
        y,
        shape,
        p,
        p_beside,
        welch,
        permutation,
        paired,
    }
}

/// The studentised form where the arms differ in size.
fn tested(permutation: &Permutation) -> f64 {
    permutation.studentised.unwrap_or(permutation.p_two_sided)
}

fn paired_note(contest: &Contest) -> Option<PairedNote> {
    let (x, y) = contest.pairs();
    let result = paired(&x, &y)?;
    let differences: Vec<i64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
    let all = contest.treatment.len() + contest.control.len();
    Some(PairedNote {
        pairs: count(x.len()),
        unpaired: count(all - 2 * x.len()),
        mean: result.mean_diff,
        ci95: result.interval95.map(of_difference),
        t: result.t,
        p_t: result.p_two_sided,
        p_sign_flip: sign_flip(&differences).p_two_sided,
        rho: result.rho,
    })
}

impl Measured {
    pub(super) fn estimate(&self) -> Option<Estimate> {
        match self.shape {
            Shape::Estimated(estimate) => Some(estimate),
            _ => None,
        }
    }

    /// Treatment minus control by the registered design, where both arms have runs.
    pub(super) fn delta(&self) -> Option<f64> {
        match (&self.shape, &self.paired) {
            (Shape::Estimated(estimate), _) => Some(estimate.delta),
            (Shape::Degenerate, _) => Some(self.x.mean()? - self.y.mean()?),
            _ => None,
        }
    }

    pub(super) fn welch_note(&self) -> Option<WelchNote> {
        self.welch.as_ref().map(|w| WelchNote {
            se: w.se,
            t: w.t,
            df: w.df,
            p: w.p_two_sided(),
        })
    }

    pub(super) fn permutation_note(&self) -> Option<PermutationNote> {
        self.permutation.as_ref().map(permutation_note)
    }

    pub(super) fn munzel_note(&self) -> Option<BrunnerMunzelNote> {
        let result = brunner_munzel(&self.x, &self.y)?;
        Some(BrunnerMunzelNote {
            p_hat: result.p_hat,
            ci95: result.interval95.map(of_share),
            p: result.p_two_sided,
        })
    }

    pub(super) fn hedges(&self) -> Option<(f64, Interval)> {
        let (x, y) = (Summary::of(&self.x)?, Summary::of(&self.y)?);
        let result = hedges_g(&x, &y)?;
        Some((result.g, interval(result.interval?)))
    }

    pub(super) fn bca(&self) -> Option<Interval> {
        let result = bca(&self.x, &self.y, 0.95).ok()?;
        Some(of_difference(result.interval))
    }

    /// The largest share of deviating runs that is not excluded, where neither arm varies.
    pub(super) fn unseen_share(&self) -> Option<f64> {
        let n = self.x.n().min(self.y.n());
        if self.x.is_constant() && self.y.is_constant() {
            rule_of_three(n as u64)
        } else {
            None
        }
    }
}

pub(super) fn permutation_note(permutation: &Permutation) -> PermutationNote {
    PermutationNote {
        p: tested(permutation),
        mid_p: (permutation.method == Method::Exact).then_some(permutation.mid_p),
        method: permutation.method.label(),
    }
}

/// Equivalence by two one-sided tests at an estimate's own degrees of freedom.
pub(super) fn tost(estimate: &Estimate, margin: f64) -> TostNote {
    let up = stats::distribution::t_sf((estimate.delta + margin) / estimate.se, estimate.df);
    let down = stats::distribution::t_sf((margin - estimate.delta) / estimate.se, estimate.df);
    TostNote {
        p: up.max(down),
        ci90: of_difference(estimate.interval(0.90)),
    }
}

pub(super) fn arm_summary(sample: &Sample) -> ArmSummary {
    let levels = sample.levels().into_iter();
    ArmSummary {
        n: count(sample.n()),
        mean: sample.mean(),
        sd: sample.sd(),
        levels: levels
            .map(|(value, count)| (MicroPoints(u32::try_from(value).unwrap_or(0)), count))
            .collect(),
    }
}

/// Of a difference of totals, which lies between -1 and 1 whatever few runs let the formula say.
pub(super) fn of_difference(found: stats::Interval) -> Interval {
    Interval {
        low: found.low.clamp(-1.0, 1.0),
        high: found.high.clamp(-1.0, 1.0),
    }
}

/// Of a share or a probability.
fn of_share(found: stats::Interval) -> Interval {
    Interval {
        low: found.low.clamp(0.0, 1.0),
        high: found.high.clamp(0.0, 1.0),
    }
}

pub(super) fn interval(interval: stats::Interval) -> Interval {
    Interval {
        low: interval.low,
        high: interval.high,
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The difference of means of two totals, for what needs no test.
pub(super) fn difference(x: &[i64], y: &[i64]) -> Option<f64> {
    let mean = |values: &[i64]| {
        let sum: i64 = values.iter().sum();
        (!values.is_empty()).then(|| decimal(sum) / values.len() as f64)
    };
    Some(mean(x)? - mean(y)?)
}
