//! Whether the arms got what the plan says they get. Without that there is no verdict.

use std::collections::BTreeSet;

use crate::experiment::analysis::data::{CellData, Data, Side, decimal};
use crate::experiment::analysis::measure::count;
use crate::experiment::analysis::model::{Check, ExposureRow, Manipulation, Range};
use crate::experiment::plan::{Arm, Cell, Plan, Retrieval, Tiers};
use crate::ids::PostmortemId;

pub(super) fn manipulation(data: &Data<'_>) -> Manipulation {
    let exposure: Vec<ExposureRow> = data.cells().map(|(cell, of)| row(&cell, of)).collect();
    let mut checks = Vec::new();
    for arm in &data.plan.arms {
        if serves(arm) {
            checks.push(delivered(data.plan, arm, &exposure));
        } else {
            checks.push(unexposed(data, arm));
        }
    }
    if let Some(tiers) = &data.plan.tiers {
        let arms = data
            .plan
            .arms
            .iter()
            .filter(|arm| arm.id != data.plan.control);
        for arm in arms.filter(|arm| serves(arm)) {
            checks.extend(different(data, arm, tiers));
        }
    }
    Manipulation {
        passed: checks.iter().all(|check| check.passed),
        checks,
        exposure,
    }
}

/// Whether the arm's agents are meant to be served anything.
fn serves(arm: &Arm) -> bool {
    matches!(arm.retrieval, Retrieval::On(_) | Retrieval::Placebo(_))
}

fn row(cell: &Cell, of: &CellData) -> ExposureRow {
    let runs = || of.counted.values();
    let exposed = runs().filter(|run| !run.exposure.served.is_empty()).count();
    let served: usize = runs().map(|run| run.exposure.served.len()).sum();
    let distances: Vec<i64> = runs()
        .flat_map(|run| &run.exposure.served)
        .map(|(_, distance)| i64::from(*distance))
        .collect();
    let served_sets = runs().map(ids).filter(|set| !set.is_empty());
    let sets: BTreeSet<BTreeSet<&PostmortemId>> = served_sets.collect();
    let n = of.counted.len();
    ExposureRow {
        scenario: cell.scenario.clone(),
        arm: cell.arm.clone(),
        tier: cell.tier.clone(),
        runs: count(n),
        exposed: count(exposed),
        mean_served: if n == 0 {
            0.0
        } else {
            served as f64 / n as f64
        },
        distance: range(&distances),
        distinct_sets: count(sets.len()),
    }
}

fn ids(run: &super::data::Counted) -> BTreeSet<&PostmortemId> {
    run.exposure.served.iter().map(|(id, _)| id).collect()
}

fn range(distances: &[i64]) -> Option<Range> {
    let (low, high) = (distances.iter().min()?, distances.iter().max()?);
    let sum: i64 = distances.iter().sum();
    Some(Range {
        low: decimal(*low),
        mean: decimal(sum) / distances.len() as f64,
        high: decimal(*high),
    })
}

fn unexposed(data: &Data<'_>, arm: &Arm) -> Check {
    let exposed: u32 = data
        .cells()
        .filter(|(cell, _)| cell.arm == arm.id)
        .map(|(_, of)| of.exposed_attempts)
        .sum();
    Check {
        what: format!("runs of {} that were served anything", arm.id),
        required: "0".to_owned(),
        observed: exposed.to_string(),
        passed: exposed == 0,
    }
}

/// Every cell of the arm by itself: a scenario in which nothing was served is no trial of serving.
fn delivered(plan: &Plan, arm: &Arm, exposure: &[ExposureRow]) -> Check {
    let least = plan.manipulation.min_exposed.as_f64();
    let shares = exposure.iter().filter(|row| row.arm == arm.id).map(|row| {
        let share = match row.runs {
            0 => 0.0,
            runs => f64::from(row.exposed) / f64::from(runs),
        };
        (share, row)
    });
    let worst = shares.min_by(|a, b| a.0.total_cmp(&b.0));
    let (share, place) = worst.map_or((0.0, String::new()), |(share, row)| {
        let tier = row
            .tier
            .as_ref()
            .map_or(String::new(), |tier| format!(" at tier {tier}"));
        (share, format!(" in {}{tier}", row.scenario))
    });
    Check {
        what: format!(
            "share of runs of {} that were served something, in its least cell",
            arm.id
        ),
        required: format!("at least {:.0} %", least * 100.0),
        observed: format!("{:.0} %{place}", share * 100.0),
        passed: share >= least,
    }
}

/// Tiers that serve the same are replicates, whatever they are called.
fn different(data: &Data<'_>, arm: &Arm, tiers: &Tiers) -> Vec<Check> {
    let least = data.plan.manipulation.min_tier_difference.as_f64();
    let mut checks = Vec::new();
    for (index, one) in tiers.tiers.iter().enumerate() {
        for other in &tiers.tiers[index + 1..] {
            let share = different_share(data, arm, &one.id, &other.id);
            checks.push(Check {
                what: format!(
                    "share of runs of {} in which tiers {} and {} served different incidents",
                    arm.id, one.id, other.id
                ),
                required: format!("at least {:.0} %", least * 100.0),
                observed: share.map_or("no runs".to_owned(), |share| {
                    format!("{:.0} %", share * 100.0)
                }),
                passed: share.is_some_and(|share| share >= least),
            });
        }
    }
    checks
}

fn different_share(data: &Data<'_>, arm: &Arm, one: &str, other: &str) -> Option<f64> {
    let side = |tier: &str| Side {
        arm: arm.id.clone(),
        tier: Some(tier.to_owned()),
    };
    let (mut both, mut different) = (0u32, 0u32);
    for scenario in &data.plan.scenarios {
        let x = data.cell(&scenario.id, &side(one))?;
        let y = data.cell(&scenario.id, &side(other))?;
        for (block, run) in &x.counted {
            if let Some(partner) = y.counted.get(block) {
                both += 1;
                different += u32::from(ids(run) != ids(partner));
            }
        }
    }
    (both > 0).then(|| f64::from(different) / f64::from(both))
}
