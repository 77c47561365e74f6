//! Inputs at which statistics break: constant arms, ties, too few runs, p below what an f64 near 1 can tell.

use agent_breakage::report::cases::evaluate;
use agent_breakage::stats::bca::{Unreported, bca};
use agent_breakage::stats::brunner_munzel::brunner_munzel;
use agent_breakage::stats::distribution::t_two_sided;
use agent_breakage::stats::drift::{lag1, slope};
use agent_breakage::stats::effect::hedges_g;
use agent_breakage::stats::exclusion::{Incomplete, bounds, fisher_stratified, fisher_two_sided};
use agent_breakage::stats::multiplicity::{bh, bonferroni, by, holm};
use agent_breakage::stats::paired::paired;
use agent_breakage::stats::permutation::{
    Method, Stratum, sign_flip, stratified as permuted, two_sample, two_sample_seeded,
};
use agent_breakage::stats::power::{
    mde, n_for, paired_n_for, power, stratified_n_for, type_s_m, upper_sd,
};
use agent_breakage::stats::proportion::{
    binomial_two_sided, clopper_pearson, newcombe, rule_of_three, wilson,
};
use agent_breakage::stats::sample::{Infeasible, Sample, Summary};
use agent_breakage::stats::sequential::{Spending, betting, boundaries};
use agent_breakage::stats::stratified::{equal, inverse_variance, pooled};
use agent_breakage::stats::welch::{Degenerate, welch};
use serde_json::{Value, json};

fn constant(score: i64, n: usize) -> Sample {
    Sample::new((0..n).map(|_| score))
}

fn summary(sample: &Sample) -> Summary {
    Summary::of(sample).expect("at least two scores")
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} and {b}");
}

#[test]
fn equal_scores_have_a_variance_of_exactly_zero() {
    // In f64 six times 0.91 has not.
    let arm = constant(910_000, 6);
    assert_eq!(arm.variance(), Some(0.0));
    assert_eq!(arm.mean(), Some(0.91));
    assert_eq!(arm.levels(), vec![(910_000, 6)]);
}

#[test]
fn two_constant_arms_have_no_t() {
    let (high, low) = (constant(910_000, 20), constant(500_000, 20));
    let (x, y) = (summary(&high), summary(&low));
    assert_eq!(welch(&x, &x), Err(Degenerate::Identical));
    assert_eq!(welch(&x, &y), Err(Degenerate::Separated));
    assert_eq!(hedges_g(&x, &y), None);
    assert_eq!(two_sample(&high, &high).p_two_sided, 1.0);
    // 2 of the C(40, 20) assignments are as extreme.
    close(
        two_sample(&high, &low).p_two_sided / (2.0 / 137_846_528_820.0),
        1.0,
        1e-9,
    );
    let pooled = pooled(&[(x, y), (x, y)], &equal(2)).expect("two scenarios");
    assert_eq!(
        (pooled.t, pooled.df, pooled.heterogeneity),
        (None, None, None)
    );
    assert_eq!(inverse_variance(&[(x, y)]), None);
}

#[test]
fn one_constant_arm_leaves_the_degrees_of_freedom_of_the_other() {
    let varied = Sample::new([910_000, 805_000, 700_000, 910_000, 500_000, 910_000]);
    let found = welch(&summary(&constant(910_000, 9)), &summary(&varied)).expect("one varies");
    close(found.df, 5.0, 1e-12);
    assert!(hedges_g(&summary(&constant(910_000, 9)), &summary(&varied)).is_some());
}

#[test]
fn fewer_than_two_runs_have_no_spread() {
    assert_eq!(Summary::of(&Sample::new([])), None);
    assert_eq!(Summary::of(&Sample::new([910_000])), None);
    assert_eq!(Sample::new([]).mean(), None);
    assert_eq!(paired(&[1], &[2]), None);
    assert_eq!(paired(&[1, 2], &[2]), None);
    assert_eq!(brunner_munzel(&Sample::new([]), &constant(1, 3)), None);
    let of_nothing = two_sample(&Sample::new([]), &constant(910_000, 3));
    assert_eq!(
        (of_nothing.p_two_sided, of_nothing.arrangements.as_str()),
        (1.0, "1")
    );
}

#[test]
fn tails_far_below_what_1_minus_cdf_can_tell_have_their_digits() {
    close(t_two_sided(40.0, 38.0) / 1.142_760_27e-32, 1.0, 1e-6);
    assert!(t_two_sided(100.0, 400.0) > 0.0);
}

#[test]
fn all_scores_tied_say_nothing() {
    let found = two_sample(&constant(700_000, 3), &constant(700_000, 3));
    assert_eq!(
        (found.p_two_sided, found.p_greater, found.mid_p),
        (1.0, 1.0, 0.5)
    );
    assert_eq!(found.studentised, Some(1.0));
    let ranks = brunner_munzel(&constant(700_000, 3), &constant(700_000, 3)).expect("runs");
    assert_eq!((ranks.p_hat, ranks.w), (0.5, None));
}

#[test]
fn complete_separation_has_no_brunner_munzel_statistic() {
    let (x, y) = (
        Sample::new([910_000, 910_000, 805_000]),
        Sample::new([500_000, 500_000, 700_000]),
    );
    let found = brunner_munzel(&x, &y).expect("runs");
    assert_eq!((found.p_hat, found.w, found.p_two_sided), (1.0, None, None));
}

#[test]
fn adjusting_keeps_order_ties_and_1() {
    assert_eq!(holm(&[1.0]), vec![1.0]);
    assert_eq!(holm(&[]), Vec::<f64>::new());
    assert_eq!(holm(&[0.04, 0.04, 1.0, 0.01]), vec![0.12, 0.12, 1.0, 0.04]);
    for adjust in [holm, bh, by, bonferroni] {
        assert_eq!(adjust(&[0.03]), vec![0.03]);
        assert!(adjust(&[1.0, 1.0]).iter().all(|p| *p == 1.0));
    }
}

#[test]
fn arms_of_different_size_are_compared_by_t() {
    // The arrangement with the largest difference is not the one with the largest t.
    let x = Sample::new([910_000, 910_000, 805_000]);
    let y = Sample::new([
        910_000, 700_000, 700_000, 700_000, 500_000, 500_000, 805_000,
    ]);
    let found = two_sample(&x, &y);
    assert_eq!(found.method, Method::Exact);
    let all: Vec<i64> = x.values().iter().chain(y.values()).copied().collect();
    let t = |bits: u32| {
        let pick = |wanted: u32| {
            let chosen = all
                .iter()
                .enumerate()
                .filter(move |(at, _)| bits >> at & 1 == wanted);
            summary(&Sample::new(chosen.map(|(_, v)| *v)))
        };
        welch(&pick(1), &pick(0)).map_or(f64::INFINITY, |w| w.t.abs())
    };
    let assignments: Vec<u32> = (0..1_u32 << 10).filter(|b| b.count_ones() == 3).collect();
    let observed = welch(&summary(&x), &summary(&y)).expect("varies").t.abs();
    let extreme = assignments
        .iter()
        .filter(|b| t(**b) >= observed - 1e-12)
        .count();
    close(
        found.studentised.expect("two samples"),
        extreme as f64 / 120.0,
        1e-12,
    );
    assert_ne!(found.studentised, Some(found.p_two_sided));
}

#[test]
fn a_sampled_p_is_never_0_and_repeats_with_its_seed() {
    // Scores without a common step: too many sums to count.
    let scores = |seed: u64, low: i64| {
        let mut state = seed;
        Sample::new((0..60).map(move |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            low + (state >> 33) as i64 % 199_999
        }))
    };
    let (x, y) = (scores(1, 700_001), scores(2, 200_000));
    let found = two_sample(&x, &y);
    let Method::MonteCarlo { draws, band, .. } = found.method else {
        panic!("counted: {found:?}");
    };
    close(found.p_two_sided, 1.0 / (f64::from(draws) + 1.0), 1e-15);
    assert!(draws >= 9_999 && band.low == 0.0 && band.high < 1e-3);
    assert_eq!(found, two_sample(&x, &y));
    let near = scores(3, 690_000);
    assert_eq!(
        two_sample_seeded(&x, &near, 7),
        two_sample_seeded(&x, &near, 7)
    );
    assert_ne!(
        two_sample_seeded(&x, &near, 7).p_two_sided,
        two_sample_seeded(&x, &near, 8).p_two_sided
    );
}

#[test]
fn two_hundred_runs_per_arm_and_ten_scenarios_are_counted_exactly() {
    let levels = [500_000, 700_000, 805_000, 910_000];
    let arm =
        |shift: usize| Sample::new((0..200).map(move |i| levels[(i * i + shift * i / 3) % 4]));
    let arms: Vec<(Sample, Sample)> = (0..10).map(|s| (arm(s), arm(s + 5))).collect();
    let strata: Vec<Stratum> = arms
        .iter()
        .map(|(x, y)| Stratum { x, y, weight: 1 })
        .collect();
    let found = permuted(&strata);
    assert_eq!(found.method, Method::Exact);
    assert!(found.p_two_sided > 0.0 && found.p_two_sided <= 1.0);
    // The normal approximation of the same distribution is near at this size.
    let pairs: Vec<_> = arms.iter().map(|(x, y)| (summary(x), summary(y))).collect();
    let by_t = pooled(&pairs, &equal(10))
        .expect("ten scenarios")
        .p_two_sided
        .expect("varies");
    close(found.p_two_sided, by_t, 0.01);
}

#[test]
fn signs_of_equal_and_zero_differences_are_flipped_too() {
    assert_eq!(sign_flip(&[]).p_two_sided, 1.0);
    assert_eq!(sign_flip(&[0, 0, 0]).p_two_sided, 1.0);
    let found = sign_flip(&[105_000; 5]);
    close(found.p_two_sided, 2.0 / 32.0, 1e-12);
    close(found.p_greater, 1.0 / 32.0, 1e-12);
    close(found.mid_p, 1.0 / 32.0, 1e-12);
    assert_eq!(found.arrangements, "32");
}

#[test]
fn an_interval_that_rests_on_nothing_is_not_reported() {
    let (x, y) = (constant(910_000, 5), constant(910_000, 5));
    assert_eq!(bca(&x, &y, 0.95), Err(Unreported::Constant));
    assert_eq!(bca(&Sample::new([]), &y, 0.95), Err(Unreported::Empty));
    assert_eq!(slope(&[0.9]), None);
    assert_eq!(slope(&[0.9, 0.9, 0.9]).expect("three").p, None);
    assert_eq!(lag1(&[0.7, 0.7, 0.7, 0.7]), None);
}

#[test]
fn rates_at_the_ends_have_intervals_with_a_width() {
    let none = wilson(0, 50, 0.95).expect("50 runs");
    close(none.high, 0.0713, 5e-4);
    assert_eq!(none.low, 0.0);
    let all = wilson(50, 50, 0.95).expect("50 runs");
    assert_eq!(all.high, 1.0);
    close(all.low, 1.0 - none.high, 1e-12);
    for (k, n) in [(0, 1), (1, 1)] {
        let exact = clopper_pearson(k, n, 0.95).expect("one run");
        assert!(exact.high - exact.low > 0.9, "{exact:?}");
    }
    close(rule_of_three(40).expect("40 runs"), 0.072_157_5, 1e-6);
    for nothing in [
        wilson(0, 0, 0.95),
        clopper_pearson(0, 0, 0.95),
        newcombe(0, 0, 1, 2),
        wilson(3, 2, 0.95),
    ] {
        assert_eq!(nothing, None);
    }
    assert_eq!(rule_of_three(0), None);
    assert_eq!(binomial_two_sided(0, 0, 0.05), None);
    assert_eq!(binomial_two_sided(0, 10, 0.0), Some(1.0));
}

#[test]
fn impossible_summaries_are_refused_by_name() {
    let check = |n, mean, sd| Summary::checked(n, mean, sd, 0.0, 1.0);
    assert!(check(40, 0.91, 0.2898).is_ok());
    assert!(matches!(
        check(40, 0.91, 0.29),
        Err(Infeasible::TooSpread { .. })
    ));
    assert!(matches!(check(1, 0.9, 0.1), Err(Infeasible::TooFew(1))));
    assert!(matches!(check(20, 1.1, 0.1), Err(Infeasible::Mean { .. })));
    assert!(matches!(
        check(20, f64::NAN, 0.1),
        Err(Infeasible::Mean { .. })
    ));
    assert!(matches!(check(20, 0.5, f64::NAN), Err(Infeasible::Sd(_))));
    assert!(matches!(check(20, 0.5, -0.1), Err(Infeasible::Sd(_))));
}

#[test]
fn uneven_exclusions_are_told_and_bounded() {
    close(fisher_two_sided([[5, 15], [0, 20]]), 0.047_124, 1e-6);
    assert_eq!(fisher_two_sided([[0, 20], [0, 20]]), 1.0);
    assert_eq!(fisher_two_sided([[0, 0], [0, 0]]), 1.0);
    let one = fisher_stratified(&[[[5, 15], [0, 20]]]).expect("small");
    close(one, 0.047_124, 1e-6);
    let three = fisher_stratified(&[[[5, 15], [0, 20]], [[5, 15], [0, 20]], [[0, 20], [0, 20]]]);
    assert!(three.expect("small") < one);
    let x = Incomplete {
        sum: 9.0,
        kept: 10,
        excluded: 2,
    };
    let y = Incomplete {
        sum: 8.0,
        kept: 10,
        excluded: 0,
    };
    let found = bounds(x, y, 0.0, 1.0).expect("runs were planned");
    close(found.low, 9.0 / 12.0 - 0.8, 1e-12);
    close(found.high, 11.0 / 12.0 - 0.8, 1e-12);
}

#[test]
fn designs_that_find_nothing_are_said_to() {
    assert_eq!(n_for(0.0, 0.13, 0.8, 0.05), None);
    assert_eq!(type_s_m(0.0, 0.13, 20, 0.05), None);
    assert!(power(0.05, 0.0, 20, 20, 0.05).is_nan());
    assert_eq!(mde(20, 20, 0.13, 0.04, 0.05), None);
    assert_eq!(stratified_n_for(0.05, 0.13, 3, 0.8, 0.05), Some(36));
    // Two more than the normal approximation's 54 and 32.
    assert_eq!(paired_n_for(0.05, 0.13, 0.5, 0.8, 0.05), Some(56));
    close(upper_sd(1.0, 10, 0.8).expect("ten runs"), 1.29, 0.01);
    assert_eq!(upper_sd(1.0, 1, 0.8), None);
}

#[test]
fn looks_that_do_not_ascend_have_no_boundaries() {
    assert_eq!(boundaries(Spending::Obf, 0.05, &[0.5, 0.5, 1.0]), None);
    assert_eq!(boundaries(Spending::Obf, 0.05, &[0.5, 1.2]), None);
    assert_eq!(betting(&[0.5], 0.4, 0.05, 0.5), None);
}

fn one(id: &str, inputs: Value) -> Value {
    let text = json!([{"id": id, "inputs": inputs}]).to_string();
    let outcomes = evaluate(&text).expect("cases");
    serde_json::to_value(&outcomes[0]).expect("serialisable")
}

#[test]
fn degenerate_cases_have_a_status_and_no_null() {
    let tied = json!({"x": [0.7, 0.7], "y": [0.7, 0.7], "margin": 0.05});
    let apart = json!({"x": [0.9, 0.9, 0.9], "y": [0.5, 0.5, 0.5], "margin": 0.05});
    let known = [
        ("welch/a", &tied, "degenerate_identical"),
        ("welch/b", &apart, "degenerate_separated"),
        ("tost/a", &tied, "degenerate_identical"),
        ("hedges_g/a", &tied, "degenerate: g undefined"),
        ("bca/a", &tied, "degenerate: interval not reported"),
        (
            "brunner_munzel/a",
            &apart,
            "degenerate: use the exact permutation p",
        ),
        ("paired", &tied, "degenerate_identical"),
    ];
    for (id, inputs, status) in known {
        let found = one(id, inputs.clone());
        assert_eq!(found["actual"]["status"], status, "{found}");
        assert!(!found.to_string().contains("null"), "{found}");
    }
    let p = one("welch/b", apart)["actual"]["permutation_p_two_sided"].clone();
    close(p.as_f64().expect("a number"), 0.1, 1e-12);
}

/// An id, its inputs and how its error begins.
const ODD: &str = r#"
nonsense/x | {} | `nonsense` is not a kind of case
random_effects | {} | `random_effects` is not computed here
welch/x | {"x": [0.9], "y": [0.9, 0.8]} | inputs.x has one score
welch/x | {"x": [], "y": [0.9]} | inputs.x is not a list with
welch/x | {"x": ["a"], "y": [0.9]} | inputs.x[0] is not a number
welch/x | {"n_t": 1, "n_c": 20} | inputs.mean_t is missing
hedges_g/x | {"n1": 1, "m1": 1, "s1": 1, "n2": 2, "m2": 1, "s2": 1} | inputs.n1 is 1
power/x | {"n_for": [[0, 0.1, 0.8]]} | inputs.n_for[0]: no n reaches
power/x | {} | inputs.cases, n_for or mde_for is missing
multiplicity/x | {"p": [1.5]} | inputs.p[0] is not between 0 and 1
aa/x | {"k": [5], "M": 3} | inputs.k is not at most M
exclusions/x | {"tables": [[[1, 2, 3], [1]]]} | inputs.tables[0] is not a table
permutation/x | {"x": [1e300], "y": [0.1]} | inputs.x and y is not scores
sequential/x | {"looks": [0]} | inputs.looks is not
stratified/x | {"strata": []} | inputs.strata is not
simpson | {"easy": 3} | inputs.easy.n_t is missing
tier_trend_contrast | {"data": "mine"} | inputs.data is not
proportion_ci | {"k": [0], "n": [0]} | inputs.k[0] is 0 of 0: not enough runs
"#;

#[test]
fn odd_cases_are_errors_by_name_and_never_panics() {
    let mut seen = 0;
    for line in ODD.trim().lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let inputs = serde_json::from_str(parts[1]).expect("JSON");
        let found = one(parts[0], inputs);
        let error = found["error"].as_str().unwrap_or_default();
        assert!(error.starts_with(parts[2]), "{line}: {found}");
        assert!(found.get("actual").is_none());
        seen += 1;
    }
    assert_eq!(seen, 18);
    let broken = evaluate("[1, {}]").expect("a list");
    assert!(broken.len() == 2 && broken.iter().all(|o| o.error.is_some()));
    assert!(evaluate("{}").is_err() && evaluate("[NaN]").is_err());
}

#[test]
fn scores_of_more_digits_than_micro_points_are_not_rounded() {
    let x = [0.123_456_789_1, 0.2, 0.345_678_912_3];
    let y = [0.111_111_111_1, 0.3, 0.987_654_321_9];
    let found = one("welch/fine", json!({"x": x, "y": y}));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    close(
        found["actual"]["delta"].as_f64().expect("a number"),
        mean(&x) - mean(&y),
        1e-12,
    );
}
