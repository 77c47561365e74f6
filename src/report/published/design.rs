//! What the published designs could have found: sample sizes, widths, inflated estimates, rows of the matrix.

use serde_json::Value;

use crate::report::published::Published;
use crate::report::published::check::{Checks, check_summaries};
use crate::report::published::density::p_of_z;
use crate::stats::distribution::{normal_quantile, t_critical};
use crate::stats::permutation::two_sample;
use crate::stats::power::{
    half_width_of_difference, half_width_of_mean, mde, n_exact, n_for, n_guenther, n_normal,
    paired_sd, power, rejects_upward, type_s_m,
};
use crate::stats::proportion::{clopper_pearson, rule_of_three};
use crate::stats::sample::{Sample, Summary};
use crate::stats::welch::{Degenerate, welch};

const ALPHA: f64 = 0.05;
const TARGET: f64 = 0.8;
/// The golden of type S and M was sampled with four million draws.
const SAMPLED: f64 = 0.005;

pub(super) fn check(checks: &mut Checks, published: &Published) {
    check_sizes(checks, &published.rest["sample_size"]);
    check_widths(checks, &published.rest["ci_half_widths"]);
    check_inflation(checks, &published.rest["winners_curse"]);
    check_matrix(
        checks,
        &published.rest["decision_matrix_operating_characteristics"],
    );
    check_across(checks, published);
    check_edges(checks, &published.rest["edge_cases"]);
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number of the data that the computation starts from; NaN, which agrees with nothing, where it is missing.
fn input(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

fn check_sizes(checks: &mut Checks, golden: &Value) {
    let (sigma, delta) = (input(golden, "sigma"), input(golden, "delta"));
    let methods = &golden["methods"];
    let (z_alpha, z_beta) = (normal_quantile(1.0 - ALPHA / 2.0), normal_quantile(TARGET));
    // As the paper's snippet has it: the formula of one sample, half of what two arms need.
    let snippet = ((z_alpha + z_beta) * sigma / delta).powi(2);
    let normal = n_normal(delta, sigma, TARGET, ALPHA);
    let guenther = n_guenther(delta, sigma, TARGET, ALPHA);
    let exact = n_exact(delta, sigma, TARGET, ALPHA).unwrap_or(f64::NAN);
    let solved = n_for(delta, sigma, TARGET, ALPHA).map_or(f64::NAN, |n| n as f64);
    let at = |n: u64| power(delta, sigma, n, n, ALPHA);
    let numbers = [
        (0, "n_raw", snippet),
        (0, "n", snippet.ceil()),
        (0, "power_of_two_sample_welch_at_that_n", at(54)),
        (1, "power_exact", at(105)),
        (2, "n_raw", normal),
        (2, "n", normal.ceil()),
        (2, "power_exact", at(107)),
        (3, "n_raw", guenther),
        (3, "n", guenther.ceil()),
        (4, "n_raw", exact),
        (4, "n", solved),
        (4, "power_exact", at(108)),
    ];
    for (method, key, ours) in numbers {
        let place = format!("sample_size/{method}/{key}");
        checks.number(&place, &methods[method][key], ours);
    }
    let by_n = golden["power_exact_by_n"].as_object().into_iter().flatten();
    for (n, golden) in by_n {
        let Ok(runs) = n.parse::<u64>() else {
            continue;
        };
        for (key, delta) in [("delta_0_05", 0.05), ("delta_0_10", 0.10)] {
            let ours = power(delta, sigma, runs, runs, ALPHA);
            checks.number(
                &format!("sample_size/power at n={n}/{key}"),
                &golden[key],
                ours,
            );
        }
    }
    for row in rows(&golden["paired"]) {
        let rho = input(row, "rho");
        let sd = paired_sd(sigma, rho);
        let pairs = ((z_alpha + z_beta) * sd / delta).powi(2).ceil();
        checks.numbers(
            &format!("sample_size/paired at rho={rho}"),
            row,
            &[("sd_diff", sd), ("n_pairs_normal", pairs)],
        );
    }
}

fn check_widths(checks: &mut Checks, golden: &Value) {
    for row in rows(golden) {
        let (sd, n) = (input(row, "sd"), input(row, "n_per_arm"));
        let runs = n as u64;
        checks.numbers(
            &format!("ci_half_widths/sd={sd} n={runs}"),
            row,
            &[
                ("se_mean", sd / n.sqrt()),
                ("half_width_single_mean", half_width_of_mean(sd, runs, 0.95)),
                (
                    "half_width_difference",
                    half_width_of_difference(sd, runs, 0.95),
                ),
                (
                    "mde_80",
                    mde(runs, runs, sd, TARGET, ALPHA).unwrap_or(f64::NAN),
                ),
            ],
        );
    }
}

fn check_inflation(checks: &mut Checks, golden: &Value) {
    for row in rows(golden) {
        let (delta, sd) = (input(row, "delta"), input(row, "sd"));
        let n = input(row, "n") as u64;
        let place = format!("winners_curse/n={n}");
        checks.number(
            &format!("{place}/power"),
            &row["power"],
            power(delta, sd, n, n, ALPHA),
        );
        let (s, m) = type_s_m(delta, sd, n, ALPHA).unwrap_or((f64::NAN, f64::NAN));
        checks.within(&format!("{place}/type_S"), &row["type_S"], s, SAMPLED);
        let place = format!("{place}/exaggeration_ratio");
        checks.within(&place, &row["exaggeration_ratio"], m, SAMPLED);
    }
}

/// Rows of the published matrix over three scenarios, each positive with this probability: two or three, one, none.
fn matrix(p: f64) -> [f64; 3] {
    let q = 1.0 - p;
    [p * p * (p + 3.0 * q), 3.0 * p * q * q, q * q * q]
}

fn check_matrix(checks: &mut Checks, golden: &Value) {
    for row in rows(golden) {
        let (delta, sd) = (input(row, "true_delta"), input(row, "sd"));
        let n = input(row, "n") as u64;
        let p = rejects_upward(delta, sd, n, n, ALPHA);
        let [go_on, mixed, null] = matrix(p);
        checks.numbers(
            &format!("decision_matrix/delta={delta} n={n}"),
            row,
            &[
                ("p_significant_positive_per_scenario", p),
                ("P_continue", go_on),
                ("P_mixed", mixed),
            ],
        );
        // Of a remainder that is printed with six digits, less than the noncentral t is computed to.
        let place = format!("decision_matrix/delta={delta} n={n}/P_null");
        checks.within(&place, &row["P_null"], null, 1e-9 + null * 6e-6);
    }
}

fn check_across(checks: &mut Checks, published: &Published) {
    for row in rows(&published.rest["cross_experiment_differences"]) {
        let (first, second) = (&row["first"], &row["second"]);
        let found = |id: &Value| published.cell(id.as_str()?)?.welch();
        let place = format!(
            "across/{} - {}",
            second.as_str().unwrap_or_default(),
            first.as_str().unwrap_or_default()
        );
        let Some((a, b)) = found(first).zip(found(second)) else {
            checks.fact(&place, false);
            continue;
        };
        let (difference, se) = (b.delta - a.delta, a.se.hypot(b.se));
        checks.numbers(
            &place,
            row,
            &[
                ("difference", difference),
                ("se", se),
                ("z", difference / se),
                ("p", p_of_z(difference / se)),
            ],
        );
    }
}

fn check_edges(checks: &mut Checks, golden: &Value) {
    let find = |name: &str| {
        let named = |row: &&Value| row["case"].as_str() == Some(name);
        rows(golden).iter().find(named).unwrap_or(&Value::Null)
    };
    let constant = |mean: f64| Summary {
        n: 20,
        mean,
        sd: 0.0,
    };
    checks.fact(
        "edge_cases/both constant and equal",
        welch(&constant(0.91), &constant(0.91)) == Err(Degenerate::Identical),
    );
    checks.fact(
        "edge_cases/both constant and different",
        welch(&constant(0.91), &constant(0.5)) == Err(Degenerate::Separated),
    );
    let arm = |score: i64| Sample::new((0..20).map(|_| score));
    checks.number(
        "edge_cases/separated permutation_p",
        &find("both sd 0, different means")["permutation_p"],
        two_sample(&arm(910_000), &arm(500_000)).p_two_sided,
    );
    let one = find("one sd 0");
    let control = Summary {
        n: 20,
        mean: 0.85,
        sd: 0.1,
    };
    if one["expected"].is_object() {
        let mut only_t = Checks::default();
        check_summaries(
            &mut only_t,
            "edge_cases/one constant",
            &(constant(0.91), control),
            &one["expected"],
        );
        // The data has no g for this case.
        checks
            .0
            .extend(only_t.0.into_iter().filter(|check| check.golden.is_some()));
    }
    let zero = find("zero events bound (rule of three)");
    let upper = clopper_pearson(0, 40, 0.95).map_or(f64::NAN, |interval| interval.high);
    checks.numbers(
        "edge_cases/40 of 40 equal",
        zero,
        &[
            ("upper", rule_of_three(40).unwrap_or(f64::NAN)),
            ("upper_two_sided_95", upper),
        ],
    );
    let crit = &find("reference mislabels by fixed critical values")["crit"];
    for (df, of_df) in [("19", 19.0), ("38", 38.0), ("78", 78.0)] {
        checks.list(
            &format!("edge_cases/critical values at df {df}"),
            &crit[df],
            &[t_critical(0.95, of_df), t_critical(0.99, of_df)],
        );
    }
}
