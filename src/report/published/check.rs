//! Every number of the published data that our core reaches, computed again.

use serde::Serialize;
use serde_json::Value;

use crate::report::published::{
    Cell, MARGIN, PooledRow, Published, ROUNDING, density, design, envelope, rubric, true_label,
};
use crate::stats::brunner_munzel::brunner_munzel;
use crate::stats::distribution::t_critical;
use crate::stats::effect::hedges_g;
use crate::stats::permutation::two_sample;
use crate::stats::sample::{Sample, Summary};
use crate::stats::stratified::{self, Pair, Pooled};
use crate::stats::tost::tost;
use crate::stats::welch::welch;

/// One number of ours beside the one that was computed by other means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    pub place: String,
    /// Nothing where the golden has no such number.
    pub golden: Option<f64>,
    pub ours: f64,
    pub agrees: bool,
}

#[derive(Default)]
pub(super) struct Checks(pub(super) Vec<Check>);

/// Printed golden numbers have six digits behind the point, or six in all where that is more.
const ABSOLUTE: f64 = 1e-6;
const RELATIVE: f64 = 6e-6;
const SMALL: f64 = 0.1;
/// A golden of less is the rounding error of a 0.
const ZERO: f64 = 1e-15;

impl Checks {
    pub(super) fn number(&mut self, place: &str, golden: &Value, ours: f64) {
        let tolerance = |golden: f64| {
            if golden.abs() < SMALL {
                (golden.abs() * RELATIVE).max(ZERO)
            } else {
                ABSOLUTE
            }
        };
        let limit = golden.as_f64().map_or(0.0, tolerance);
        self.within(place, golden, ours, limit);
    }

    pub(super) fn within(&mut self, place: &str, golden: &Value, ours: f64, tolerance: f64) {
        let golden = golden.as_f64();
        self.0.push(Check {
            place: place.to_owned(),
            golden,
            ours,
            agrees: golden.is_some_and(|golden| (golden - ours).abs() <= tolerance),
        });
    }

    pub(super) fn numbers(&mut self, place: &str, golden: &Value, ours: &[(&str, f64)]) {
        for (key, ours) in ours {
            self.number(&format!("{place}/{key}"), &golden[*key], *ours);
        }
    }

    pub(super) fn list(&mut self, place: &str, golden: &Value, ours: &[f64]) {
        for (at, ours) in ours.iter().enumerate() {
            self.number(&format!("{place}/{at}"), &golden[at], *ours);
        }
    }

    /// Something that is no number, as 1 for equal.
    pub(super) fn fact(&mut self, place: &str, holds: bool) {
        self.within(place, &Value::from(1.0), f64::from(u8::from(holds)), 0.0);
    }
}

/// Every number of the data that our core reaches, computed again.
pub fn check(published: &Published) -> Vec<Check> {
    let mut checks = Checks::default();
    for cell in &published.cells {
        check_cell(&mut checks, published, cell);
    }
    for row in &published.pooled {
        check_pooled(&mut checks, published, row);
    }
    for family in published.families() {
        family.check(&mut checks);
    }
    density::check(&mut checks, published);
    design::check(&mut checks, published);
    rubric::check(&mut checks, published);
    checks.0
}

pub(super) fn check_summaries(checks: &mut Checks, place: &str, pair: &Pair, golden: &Value) {
    let Ok(found) = welch(&pair.0, &pair.1) else {
        checks.fact(&format!("{place}/has a t"), false);
        return;
    };
    let interval = found.interval(0.95);
    checks.numbers(
        place,
        golden,
        &[
            ("delta", found.delta),
            ("se", found.se),
            ("t", found.t),
            ("df", found.df),
            ("p_two_sided", found.p_two_sided()),
            ("p_greater", found.p_greater()),
            ("p_less", found.p_less()),
            ("t_crit_95", t_critical(0.95, found.df)),
            ("ci95_low", interval.low),
            ("ci95_high", interval.high),
        ],
    );
    let Some(g) = hedges_g(&pair.0, &pair.1) else {
        checks.fact(&format!("{place}/has a g"), false);
        return;
    };
    let interval = g.interval;
    checks.numbers(
        place,
        golden,
        &[
            ("sd_pooled", g.sd_pooled),
            ("cohens_d", g.d),
            ("J", g.j),
            ("hedges_g", g.g),
            ("g_ci95_low", interval.map_or(f64::NAN, |i| i.low)),
            ("g_ci95_high", interval.map_or(f64::NAN, |i| i.high)),
            ("g_se_large_sample", g.se_large_sample),
        ],
    );
}

fn check_envelope(checks: &mut Checks, place: &str, pair: &Pair, golden: &Value) {
    if let Some(found) = envelope(pair, ROUNDING) {
        checks.numbers(
            &format!("{place}/rounding_envelope"),
            golden,
            &[
                ("t_min", found.t_min),
                ("t_max", found.t_max),
                ("p_min", found.p_min),
                ("p_max", found.p_max),
            ],
        );
    }
}

fn check_cell(checks: &mut Checks, published: &Published, cell: &Cell) {
    let pair = cell.input.summaries();
    check_summaries(checks, &cell.id, &pair, &cell.expected);
    check_envelope(checks, &cell.id, &pair, &cell.rounding_envelope);
    if let Some(found) = cell.welch() {
        let equivalence = tost(&found, MARGIN);
        checks.numbers(
            &format!("{}/tost", cell.id),
            &cell.tost_margin_0_05,
            &[
                ("p", equivalence.p),
                ("ci90_low", equivalence.ci90.low),
                ("ci90_high", equivalence.ci90.high),
            ],
        );
        let label = cell.published.label.split(' ').next().unwrap_or_default();
        let by_rule = published.reference_rule.label(cell.published.t);
        checks.fact(
            &format!("{}/label by the paper's rule", cell.id),
            label == by_rule,
        );
        let earned = true_label(found.p_two_sided());
        checks.fact(&format!("{}/label by p", cell.id), label == earned);
    }
    check_scores(checks, cell);
}

fn check_scores(checks: &mut Checks, cell: &Cell) {
    let place = format!("{}/scores", cell.id);
    let golden = &cell.from_reconstructed_scores.computed;
    let (x, y) = cell.samples();
    let (Some(of_x), Some(of_y)) = (Summary::of(&x), Summary::of(&y)) else {
        checks.fact(&place, false);
        return;
    };
    checks.numbers(
        &place,
        golden,
        &[
            ("n_t", of_x.n as f64),
            ("mean_t", of_x.mean),
            ("sd_t", of_x.sd),
            ("n_c", of_y.n as f64),
            ("mean_c", of_y.mean),
            ("sd_c", of_y.sd),
        ],
    );
    check_difference(
        checks,
        &format!("{place}/welch"),
        &(of_x, of_y),
        &golden["welch"],
    );
    let permutation = two_sample(&x, &y);
    checks.numbers(
        &place,
        golden,
        &[("permutation_exact_p_two_sided", permutation.p_two_sided)],
    );
    checks.fact(
        &format!("{place}/arrangements"),
        golden["permutation_n_arrangements"].as_str() == Some(&permutation.arrangements),
    );
    if let Some(found) = brunner_munzel(&x, &y) {
        checks.numbers(
            &format!("{place}/brunner_munzel"),
            &golden["brunner_munzel"],
            &[
                ("p_hat", found.p_hat),
                ("W", found.w.unwrap_or(f64::NAN)),
                ("df", found.df.unwrap_or(f64::NAN)),
                ("p_two_sided", found.p_two_sided.unwrap_or(f64::NAN)),
            ],
        );
    }
}

/// Welch's t without what only printed summaries were checked for.
pub(super) fn check_difference(checks: &mut Checks, place: &str, pair: &Pair, golden: &Value) {
    let Ok(found) = welch(&pair.0, &pair.1) else {
        checks.fact(&format!("{place}/has a t"), false);
        return;
    };
    let interval = found.interval(0.95);
    checks.numbers(
        place,
        golden,
        &[
            ("delta", found.delta),
            ("se", found.se),
            ("t", found.t),
            ("df", found.df),
            ("p_two_sided", found.p_two_sided()),
            ("ci95_low", interval.low),
            ("ci95_high", interval.high),
        ],
    );
}

fn check_pooled(checks: &mut Checks, published: &Published, row: &PooledRow) {
    let pair = row.input.summaries();
    check_summaries(checks, &row.id, &pair, &row.expected);
    check_envelope(checks, &row.id, &pair, &row.rounding_envelope);
    let members: Vec<&Cell> = row
        .members
        .iter()
        .filter_map(|id| published.cell(id))
        .collect();
    checks.fact(
        &format!("{}/all members are there", row.id),
        members.len() == row.members.len(),
    );
    let samples: Vec<(Sample, Sample)> = members.iter().map(|cell| cell.samples()).collect();
    let all = |pick: fn(&(Sample, Sample)) -> &Sample| {
        Summary::of(&Sample::new(
            samples
                .iter()
                .flat_map(|s| pick(s).values().iter().copied()),
        ))
    };
    if let Some(naive) = all(|s| &s.0).zip(all(|s| &s.1)) {
        let place = format!("{}/naive from scores", row.id);
        check_difference(checks, &place, &naive, &row.naive_from_reconstructed_scores);
    }
    let printed: Vec<Pair> = members.iter().map(|cell| cell.input.summaries()).collect();
    let scored: Vec<Pair> = samples
        .iter()
        .filter_map(|(x, y)| Summary::of(x).zip(Summary::of(y)))
        .collect();
    let equal = stratified::equal(members.len());
    let inverse = stratified::inverse_variance(&scored).unwrap_or_default();
    let forms = [
        (
            "stratified from summaries",
            stratified::pooled(&printed, &equal),
            &row.stratified_equal_weights_from_printed_summaries,
        ),
        (
            "stratified",
            stratified::pooled(&scored, &equal),
            &row.stratified_equal_weights,
        ),
        (
            "inverse variance",
            stratified::pooled(&scored, &inverse),
            &row.stratified_inverse_variance,
        ),
    ];
    for (name, found, golden) in forms {
        let place = format!("{}/{name}", row.id);
        match found {
            Ok(found) => check_stratified(checks, &place, &found, golden),
            Err(_) => checks.fact(&place, false),
        }
    }
    if let Some((_, found)) = published.stratified(row) {
        checks.numbers(
            &format!("{}/stratified permutation", row.id),
            &row.stratified_permutation_exact,
            &[
                ("stat_obs", found.statistic),
                ("p_two_sided", found.p_two_sided),
                ("p_greater", found.p_greater),
            ],
        );
    }
}

fn check_stratified(checks: &mut Checks, place: &str, found: &Pooled, golden: &Value) {
    let interval = found.interval(0.95);
    let spread = found.heterogeneity;
    checks.list(
        &format!("{place}/weights"),
        &golden["weights"],
        &found.weights,
    );
    checks.numbers(
        place,
        golden,
        &[
            ("estimate", found.estimate),
            ("se", found.se),
            ("t", found.t.unwrap_or(f64::NAN)),
            ("df", found.df.unwrap_or(f64::NAN)),
            ("p_two_sided", found.p_two_sided.unwrap_or(f64::NAN)),
            ("ci95_low", interval.map_or(f64::NAN, |i| i.low)),
            ("ci95_high", interval.map_or(f64::NAN, |i| i.high)),
            ("cochran_Q", spread.map_or(f64::NAN, |s| s.q)),
            ("Q_df", spread.map_or(f64::NAN, |s| f64::from(s.df))),
            ("Q_p", spread.map_or(f64::NAN, |s| s.p)),
            ("I2", spread.map_or(f64::NAN, |s| s.i2)),
        ],
    );
}
