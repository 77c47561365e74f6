//! The density sweep: what moves between its tiers, and what its cells say once the tiers are taken together.

use serde_json::Value;

use crate::report::published::check::{Checks, check_difference};
use crate::report::published::{Cell, Published};
use crate::stats::distribution::normal_sf;
use crate::stats::exclusion::fisher_two_sided;
use crate::stats::one_way::one_way;
use crate::stats::permutation::two_sample;
use crate::stats::sample::{Sample, Summary};
use crate::stats::stratified::{Contrast, contrast};

/// The score of a run that timed out with its symptom gone.
const STUB: i64 = 500_000;

/// From the smallest tier to the largest, averaged over scenarios.
#[derive(Clone, Copy, Debug)]
pub struct FullMinusFive {
    pub treatment: Contrast,
    pub control: Contrast,
    pub difference: Contrast,
}

pub fn full_minus_five(published: &Published) -> Option<FullMinusFive> {
    let groups = published.tier_groups(&[-1.0, 0.0, 1.0])?;
    // Treatment and control alternate; the control's weights count as negative in the difference.
    let of = |first: usize, sign: f64| -> Vec<(Summary, f64)> {
        let arm = groups.iter().skip(first).step_by(2);
        arm.map(|(group, weight)| (*group, sign * weight)).collect()
    };
    Some(FullMinusFive {
        treatment: contrast(&of(0, 1.0)),
        control: contrast(&of(1, -1.0)),
        difference: contrast(&groups),
    })
}

/// Two-sided, by the normal.
pub fn p_of_z(z: f64) -> f64 {
    (2.0 * normal_sf(z.abs())).min(1.0)
}

pub(super) fn check(checks: &mut Checks, published: &Published) {
    let golden = &published.rest["density_sweep"];
    if let Some(found) = full_minus_five(published) {
        let golden = &golden["full_minus_5"];
        for (name, contrast) in [
            ("treatment", found.treatment),
            ("control", found.control),
            ("difference_in_differences", found.difference),
        ] {
            checks.numbers(
                &format!("density_sweep/full_minus_5/{name}"),
                &golden[name],
                &[
                    ("estimate", contrast.estimate),
                    ("se", contrast.se),
                    ("p_z", p_of_z(contrast.estimate / contrast.se)),
                ],
            );
        }
        let share = -found.control.estimate / found.difference.estimate;
        checks.number(
            "density_sweep/share from control",
            &published.rest["density_sweep"]["share_of_pooled_trend_from_control_arm"],
            share,
        );
    }
    let collapsed = &golden["tiers_collapsed_n60"];
    for (scenario, golden) in collapsed.as_object().into_iter().flatten() {
        check_collapsed(checks, published, scenario, golden);
    }
}

fn check_collapsed(checks: &mut Checks, published: &Published, scenario: &str, golden: &Value) {
    let place = format!("density_sweep/tiers_collapsed/{scenario}");
    let prefix = format!("sweep/{scenario}/");
    let tiers: Vec<(Sample, Sample)> = published
        .cells
        .iter()
        .filter(|cell| cell.id.starts_with(&prefix))
        .map(Cell::samples)
        .collect();
    let all = |pick: fn(&(Sample, Sample)) -> &Sample| {
        Sample::new(tiers.iter().flat_map(|t| pick(t).values().iter().copied()))
    };
    let (x, y) = (all(|t| &t.0), all(|t| &t.1));
    let Some(pair) = Summary::of(&x).zip(Summary::of(&y)) else {
        checks.fact(&place, false);
        return;
    };
    check_difference(checks, &place, &pair, golden);
    let stubs = |arm: &Sample| arm.values().iter().filter(|score| **score == STUB).count() as u64;
    let (of_x, of_y) = (stubs(&x), stubs(&y));
    let controls: Vec<Summary> = tiers.iter().filter_map(|(_, y)| Summary::of(y)).collect();
    checks.numbers(
        &place,
        golden,
        &[
            ("permutation_exact_p", two_sample(&x, &y).p_two_sided),
            (
                "fisher_p_stub",
                fisher_two_sided([[of_x, x.n() as u64 - of_x], [of_y, y.n() as u64 - of_y]]),
            ),
            (
                "control_tiers_oneway_F_p",
                one_way(&controls).map_or(f64::NAN, |found| found.p),
            ),
        ],
    );
    checks.list(
        &format!("{place}/stub_0_5"),
        &golden["stub_0_5"],
        &[of_x as f64, of_y as f64],
    );
}
