//! One registered contrast of the treatment over ordered tiers. The control has no tier: it is shared, and because the
//! codes sum to 0 it cancels out of the contrast altogether.

use crate::experiment::analysis::data::{Data, Side, decimal};
use crate::experiment::analysis::model::TierContrast;
use crate::experiment::analysis::pooled::satterthwaite;
use crate::experiment::analysis::verdict::Estimate;
use crate::ids::ArmId;
use crate::stats::distribution::t_two_sided;
use crate::stats::sample::{Sample, Summary};

pub(super) fn contrast(data: &Data<'_>, arm: &ArmId) -> Option<TierContrast> {
    let tiers = data.plan.tiers.as_ref()?;
    let total: u32 = data.plan.scenarios.iter().map(|one| one.weight).sum();
    let side = |tier: Option<&String>, arm: &ArmId| Side {
        arm: arm.clone(),
        tier: tier.cloned(),
    };
    let (mut parts, mut weights) = (Vec::new(), Vec::new());
    for scenario in &data.plan.scenarios {
        let weight = f64::from(scenario.weight) / f64::from(total.max(1));
        for tier in &tiers.tiers {
            let cell = data.cell(&scenario.id, &side(Some(&tier.id), arm))?;
            parts.push(part(&cell.totals())?);
            weights.push(weight * f64::from(tier.code));
        }
    }
    let (estimate, spread) = satterthwaite(&parts, &weights);
    let means = tiers.tiers.iter().map(|tier| {
        let (mean, se) = mean(data, &side(Some(&tier.id), arm))?;
        Some((tier.id.clone(), mean, se))
    });
    Some(TierContrast {
        codes: tiers
            .tiers
            .iter()
            .map(|tier| (tier.id.clone(), tier.code))
            .collect(),
        estimate,
        se: spread.map_or(0.0, |one| one.se),
        t: spread.map(|one| one.delta / one.se),
        df: spread.map(|one| one.df),
        p: spread.map(|one| t_two_sided(one.delta / one.se, one.df)),
        treatment: means.collect::<Option<_>>()?,
        control: mean(data, &side(None, &data.plan.control))?,
    })
}

/// The mean over the scenarios by the plan's weights, with its standard error.
fn mean(data: &Data<'_>, side: &Side) -> Option<(f64, f64)> {
    let total: u32 = data.plan.scenarios.iter().map(|one| one.weight).sum();
    let (mut parts, mut weights) = (Vec::new(), Vec::new());
    for scenario in &data.plan.scenarios {
        parts.push(part(&data.cell(&scenario.id, side)?.totals())?);
        weights.push(f64::from(scenario.weight) / f64::from(total.max(1)));
    }
    let (mean, spread) = satterthwaite(&parts, &weights);
    Some((mean, spread.map_or(0.0, |one| one.se)))
}

/// A cell's mean, with its standard error unless it does not vary.
fn part(totals: &[i64]) -> Option<(f64, Option<Estimate>)> {
    let sum: i64 = totals.iter().sum();
    let summary = Summary::of(&Sample::new(totals.iter().copied()))?;
    let mean = decimal(sum) / totals.len() as f64;
    let n = summary.n as f64;
    let estimate = (summary.sd > 0.0).then(|| Estimate {
        delta: mean,
        se: summary.sd / n.sqrt(),
        df: n - 1.0,
    });
    Some((mean, estimate))
}
