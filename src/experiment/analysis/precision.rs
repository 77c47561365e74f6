//! What was achieved against what was planned.

use crate::experiment::analysis::compare::{Levels, Strata};
use crate::experiment::analysis::measure::Measured;
use crate::experiment::analysis::model::{Comparison, Precision};
use crate::experiment::plan::{Plan, Primary};
use crate::stats::distribution::t_quantile;
use crate::stats::power;
use crate::stats::sample::Sample;

pub(super) fn precision(
    plan: &Plan,
    strata: &Strata<'_>,
    comparison: &Comparison,
    levels: Levels,
) -> Option<Precision> {
    let pooled = comparison.pooled.as_ref()?;
    let interval = pooled.ci95?;
    let scenarios = plan.scenarios.len();
    let n = f64::from(plan.blocks);
    let sigma_planned = plan.power.sigma.as_f64();
    // The spread of an equally weighted mean of scenarios; unequal weights make it a little larger.
    let spread: f64 = strata.weights().iter().map(|w| w * w).sum::<f64>().sqrt();
    // Pairs have one difference each, and so half of the degrees of freedom.
    let (paired, df) = match levels.primary {
        Primary::PairedSignFlip => ((1.0 - plan.power.rho.as_f64()).sqrt(), n - 1.0),
        Primary::StratifiedPermutation => (1.0, 2.0 * n - 2.0),
    };
    let df = scenarios as f64 * df;
    let se = sigma_planned * (2.0 / n).sqrt() * spread * paired;
    let sigma = within(&strata.measured)?;
    // The spread that a plan of this size would need for the standard error that was found.
    let as_planned = pooled.se * (scenarios as f64).sqrt() * (n / 2.0).sqrt();
    Some(Precision {
        half_width_planned: t_quantile(0.975, df.max(1.0)) * se,
        half_width: (interval.high - interval.low) / 2.0,
        sigma_planned,
        sigma,
        mde: power::stratified_mde(
            u64::from(plan.blocks),
            scenarios as u64,
            as_planned,
            plan.power.target.as_f64(),
            levels.pooled,
        )?,
        excluded_beyond: interval.low.abs().max(interval.high.abs()),
    })
}

/// The root mean variance within a cell.
fn within(measured: &[Measured]) -> Option<f64> {
    let variances: Vec<f64> = measured
        .iter()
        .flat_map(|one| [&one.x, &one.y])
        .filter_map(Sample::variance)
        .collect();
    let mean = variances.iter().sum::<f64>() / variances.len() as f64;
    (!variances.is_empty()).then(|| mean.sqrt())
}
