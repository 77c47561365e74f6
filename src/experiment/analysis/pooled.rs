//! The registered estimand: the weighted mean of the scenarios' differences.

use crate::experiment::analysis::compare::{Levels, Strata};
use crate::experiment::analysis::measure::{Shape, of_difference, permutation_note, tost};
use crate::experiment::analysis::model::{Fragility, Heterogeneity, Pooled, Verdict};
use crate::experiment::analysis::verdict::{Estimate, Question};
use crate::experiment::plan::Primary;
use crate::stats::distribution::{chi_squared_sf, t_two_sided};
use crate::stats::permutation::{Permutation, Stratum, sign_flip_stratified, stratified};

/// Cochran's Q below this says that the scenarios differ by more than chance: the usual, lenient level for a test of
/// little power.
const UNLIKE: f64 = 0.10;

pub(super) enum Pool {
    /// With what its intervals need, unless nothing varies.
    Estimated(Box<Pooled>, Option<Estimate>),
    Missing(String),
}

impl Pool {
    /// Of the registered test, unadjusted.
    pub(super) fn p(&self) -> Option<f64> {
        match self {
            Pool::Estimated(pooled, _) => Some(pooled.p),
            Pool::Missing(_) => None,
        }
    }

    /// Gives the verdict by an adjusted p.
    pub(super) fn judge(&mut self, p_adjusted: f64, levels: Levels) {
        let Pool::Estimated(pooled, Some(estimate)) = self else {
            return;
        };
        let answer = Question {
            estimate: *estimate,
            alpha: levels.pooled,
            intervals: 1,
            p_adjusted,
            p_of_tests: std::iter::once(pooled.p).chain(pooled.p_t).collect(),
            sesoi: levels.sesoi,
        }
        .answer();
        pooled.verdict = answer.verdict;
        pooled.material = answer.material;
        pooled.fragile = answer
            .fragile
            .then_some(Fragility::Test)
            .into_iter()
            .collect();
    }
}

pub(super) fn pool(strata: &Strata<'_>, levels: Levels) -> Pool {
    let lacking = strata
        .measured
        .iter()
        .zip(&strata.scenarios)
        .find(|(measured, _)| measured.shape == Shape::Invalid || measured.delta().is_none());
    if let Some((_, scenario)) = lacking {
        return Pool::Missing(format!(
            "{} has fewer than two runs that count in an arm; the other scenarios are not given its weight",
            scenario.id
        ));
    }
    let weights = strata.weights();
    let (delta, estimate) = combined(strata, &weights);
    let permutation = exact(strata, levels.primary);
    let p = permutation_note(&permutation);
    let by_t = estimate.map(|one| t_two_sided(one.delta / one.se, one.df));
    let heterogeneity = heterogeneity(strata);
    let pooled = Pooled {
        weights: strata
            .scenarios
            .iter()
            .zip(&weights)
            .map(|(scenario, weight)| (scenario.id.clone(), *weight))
            .collect(),
        estimate: delta,
        se: estimate.map_or(0.0, |one| one.se),
        t: estimate.map(|one| one.delta / one.se),
        df: estimate.map(|one| one.df),
        ci95: estimate.map(|one| of_difference(one.interval(0.95))),
        tost: estimate.map(|one| tost(&one, levels.sesoi)),
        p_t: by_t,
        p: p.p,
        method: p.method,
        cochran_q: heterogeneity,
        unlike_effects: heterogeneity.is_some_and(|one| one.p < UNLIKE),
        verdict: Verdict::Degenerate,
        material: false,
        fragile: Vec::new(),
    };
    let p = pooled.p;
    let mut pool = Pool::Estimated(Box::new(pooled), estimate);
    pool.judge(p, levels);
    pool
}

/// The weighted difference, and what its intervals need unless nothing varies. Satterthwaite's degrees of freedom.
pub(super) fn combined(strata: &Strata<'_>, weights: &[f64]) -> (f64, Option<Estimate>) {
    let parts: Vec<(f64, Option<Estimate>)> = strata
        .measured
        .iter()
        .map(|one| (one.delta().unwrap_or(0.0), one.estimate()))
        .collect();
    satterthwaite(&parts, weights)
}

/// As [`combined`], from differences alone; a part without an estimate does not vary.
pub(super) fn satterthwaite(
    parts: &[(f64, Option<Estimate>)],
    weights: &[f64],
) -> (f64, Option<Estimate>) {
    let delta = parts.iter().zip(weights).map(|((d, _), w)| d * w).sum();
    let (mut variance, mut per_df) = (0.0, 0.0);
    for ((_, estimate), weight) in parts.iter().zip(weights) {
        if let Some(estimate) = estimate {
            let part = (weight * estimate.se).powi(2);
            variance += part;
            per_df += part * part / estimate.df;
        }
    }
    let estimate = (variance > 0.0).then(|| Estimate {
        delta,
        se: f64::sqrt(variance),
        df: variance * variance / per_df,
    });
    (delta, estimate)
}

fn exact(strata: &Strata<'_>, primary: Primary) -> Permutation {
    let weights = strata.scenarios.iter().map(|one| u64::from(one.weight));
    match primary {
        Primary::StratifiedPermutation => {
            let measured = strata.measured.iter();
            let strata: Vec<Stratum<'_>> = measured
                .zip(weights)
                .map(|(one, weight)| Stratum {
                    x: &one.x,
                    y: &one.y,
                    weight,
                })
                .collect();
            stratified(&strata)
        }
        Primary::PairedSignFlip => {
            let differences: Vec<Vec<i64>> = strata
                .contests
                .iter()
                .map(|contest| {
                    let (x, y) = contest.pairs();
                    x.iter().zip(&y).map(|(x, y)| x - y).collect()
                })
                .collect();
            let strata: Vec<(&[i64], u64)> =
                differences.iter().map(Vec::as_slice).zip(weights).collect();
            sign_flip_stratified(&strata)
        }
    }
}

/// Cochran's Q and I^2 over the scenarios that vary, with inverse-variance weights.
fn heterogeneity(strata: &Strata<'_>) -> Option<Heterogeneity> {
    let parts: Vec<Estimate> = strata
        .measured
        .iter()
        .filter_map(super::measure::Measured::estimate)
        .collect();
    if parts.len() < 2 || parts.len() < strata.measured.len() {
        return None;
    }
    let precisions: Vec<f64> = parts.iter().map(|one| one.se.powi(-2)).collect();
    let total: f64 = precisions.iter().sum();
    let centre = parts
        .iter()
        .zip(&precisions)
        .map(|(one, v)| one.delta * v)
        .sum::<f64>()
        / total;
    let q: f64 = parts
        .iter()
        .zip(&precisions)
        .map(|(one, v)| v * (one.delta - centre).powi(2))
        .sum();
    let df = (parts.len() - 1) as f64;
    Some(Heterogeneity {
        q,
        df: super::measure::count(parts.len() - 1),
        p: chi_squared_sf(q, df),
        i2: if q > 0.0 {
            ((q - df) / q).max(0.0)
        } else {
            0.0
        },
    })
}
