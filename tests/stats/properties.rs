//! What holds for every pair of arms.

use agent_breakage::stats::brunner_munzel::brunner_munzel;
use agent_breakage::stats::effect::hedges_g;
use agent_breakage::stats::multiplicity::{bh, bonferroni, holm};
use agent_breakage::stats::permutation::{Stratum, sign_flip, stratified as permuted, two_sample};
use agent_breakage::stats::sample::{Sample, Summary};
use agent_breakage::stats::stratified::pooled;
use agent_breakage::stats::tost::tost;
use agent_breakage::stats::welch::welch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn level() -> impl Strategy<Value = i64> {
    select(vec![
        500_000_i64,
        700_000,
        730_000,
        805_000,
        835_000,
        910_000,
        940_000,
    ])
}

fn arm() -> impl Strategy<Value = Vec<i64>> {
    vec(level(), 2..9)
}

fn sample(scores: &[i64]) -> Sample {
    Sample::new(scores.iter().copied())
}

fn summaries(x: &[i64], y: &[i64]) -> (Summary, Summary) {
    let of = |scores| Summary::of(&sample(scores)).expect("at least two scores");
    (of(x), of(y))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

/// All assignments of labels, one by one: differences in units of micro-points times n_x n_y.
fn every_assignment(x: &[i64], y: &[i64]) -> Vec<i128> {
    let all: Vec<i64> = x.iter().chain(y).copied().collect();
    let total: i128 = all.iter().map(|v| i128::from(*v)).sum();
    let (nx, n) = (x.len() as i128, all.len() as i128);
    (0_u32..1 << all.len())
        .filter(|bits| bits.count_ones() as usize == x.len())
        .map(|bits| {
            let chosen = all.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            let sum: i128 = chosen.map(|(_, v)| i128::from(*v)).sum();
            sum * n - total * nx
        })
        .collect()
}

fn share(of: &[i128], hits: impl Fn(i128) -> bool) -> f64 {
    of.iter().filter(|d| hits(**d)).count() as f64 / of.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn exchanging_the_arms_negates_effects_and_keeps_p(x in arm(), y in arm()) {
        let (sx, sy) = summaries(&x, &y);
        if let (Ok(a), Ok(b)) = (welch(&sx, &sy), welch(&sy, &sx)) {
            prop_assert!(near(a.delta, -b.delta) && near(a.t, -b.t) && near(a.df, b.df));
            prop_assert!(near(a.p_two_sided(), b.p_two_sided()));
            prop_assert!(near(a.p_greater(), b.p_less()));
        }
        if let (Some(a), Some(b)) = (hedges_g(&sx, &sy), hedges_g(&sy, &sx)) {
            prop_assert!(near(a.g, -b.g));
        }
        let (x, y) = (sample(&x), sample(&y));
        let (a, b) = (brunner_munzel(&x, &y).expect("runs"), brunner_munzel(&y, &x).expect("runs"));
        prop_assert!(near(a.p_hat - 0.5, 0.5 - b.p_hat));
        prop_assert_eq!(a.p_two_sided.is_some(), b.p_two_sided.is_some());
        if let (Some(p), Some(q)) = (a.p_two_sided, b.p_two_sided) {
            prop_assert!(near(p, q));
        }
        let (a, b) = (two_sample(&x, &y), two_sample(&y, &x));
        prop_assert!(near(a.p_two_sided, b.p_two_sided) && near(a.mid_p, b.mid_p));
        prop_assert!(near(a.statistic, -b.statistic));
        prop_assert!(near(a.studentised.expect("two samples"), b.studentised.expect("two samples")));
    }

    #[test]
    fn adding_a_constant_changes_no_test(x in arm(), y in arm(), constant in 1_i64..60_000) {
        let moved = |scores: &[i64]| scores.iter().map(|s| s + constant).collect::<Vec<i64>>();
        let (mx, my) = (moved(&x), moved(&y));
        let before = summaries(&x, &y);
        let after = summaries(&mx, &my);
        match (welch(&before.0, &before.1), welch(&after.0, &after.1)) {
            (Ok(a), Ok(b)) => prop_assert!((a.t - b.t).abs() < 1e-7 && near(a.df, b.df)),
            (a, b) => prop_assert_eq!(a.is_err(), b.is_err()),
        }
        let a = two_sample(&sample(&x), &sample(&y));
        let b = two_sample(&sample(&mx), &sample(&my));
        prop_assert!(near(a.p_two_sided, b.p_two_sided) && near(a.p_greater, b.p_greater));
    }

    #[test]
    fn the_exact_p_is_that_of_every_assignment_counted_one_by_one(
        x in vec(level(), 1..8),
        y in vec(level(), 1..8),
    ) {
        let all = every_assignment(&x, &y);
        let total: i128 = x.iter().chain(&y).map(|v| i128::from(*v)).sum();
        let n = (x.len() + y.len()) as i128;
        let sum: i128 = x.iter().map(|v| i128::from(*v)).sum();
        let observed = sum * n - total * x.len() as i128;
        let found = two_sample(&sample(&x), &sample(&y));
        let two_sided = share(&all, |d| d.abs() >= observed.abs());
        prop_assert!(near(found.p_two_sided, two_sided), "{} {}", found.p_two_sided, two_sided);
        prop_assert!(near(found.p_greater, share(&all, |d| d >= observed)));
        let ties = share(&all, |d| d.abs() == observed.abs());
        prop_assert!(near(found.mid_p, two_sided - ties / 2.0), "{} {}", found.mid_p, two_sided - ties / 2.0);
        prop_assert_eq!(&found.arrangements, &all.len().to_string());
        let least = if x.len() == y.len() { 2.0 } else { 1.0 } / all.len() as f64;
        prop_assert!(found.p_two_sided >= least.min(1.0) - 1e-12);
    }

    #[test]
    fn p_does_not_depend_on_the_order_of_runs(
        (x, shuffled) in arm().prop_flat_map(|x| (Just(x.clone()), Just(x).prop_shuffle())),
        y in arm(),
    ) {
        prop_assert_eq!(two_sample(&sample(&x), &sample(&y)), two_sample(&sample(&shuffled), &sample(&y)));
    }

    #[test]
    fn one_scenario_stratified_is_the_plain_test(x in arm(), y in arm(), weight in 1_u64..5) {
        let pair = summaries(&x, &y);
        let strata = pooled(&[pair], &[3.0]).expect("one scenario");
        match welch(&pair.0, &pair.1) {
            Ok(plain) => {
                prop_assert!(near(strata.estimate, plain.delta) && near(strata.se, plain.se));
                prop_assert!(near(strata.df.expect("varies"), plain.df));
                prop_assert!(near(strata.p_two_sided.expect("varies"), plain.p_two_sided()));
            }
            Err(_) => prop_assert!(strata.t.is_none()),
        }
        let (x, y) = (sample(&x), sample(&y));
        let plain = two_sample(&x, &y);
        let one = permuted(&[Stratum { x: &x, y: &y, weight }]);
        prop_assert!(near(plain.p_two_sided, one.p_two_sided) && near(plain.p_greater, one.p_greater));
        prop_assert!(near(plain.mid_p, one.mid_p));
    }

    #[test]
    fn two_scenarios_are_permuted_as_every_pair_of_assignments(
        x1 in vec(level(), 2..5), y1 in vec(level(), 2..5),
        x2 in vec(level(), 2..5), y2 in vec(level(), 2..5),
        w1 in 1_i128..4, w2 in 1_i128..4,
    ) {
        let scaled = |x: &[i64], y: &[i64], other: i128| -> Vec<i128> {
            every_assignment(x, y).iter().map(|d| d * other).collect()
        };
        let (n1, n2) = ((x1.len() * y1.len()) as i128, (x2.len() * y2.len()) as i128);
        let (a, b) = (scaled(&x1, &y1, w1 * n2), scaled(&x2, &y2, w2 * n1));
        let observed_of = |x: &[i64], y: &[i64]| {
            let sum = |s: &[i64]| s.iter().map(|v| i128::from(*v)).sum::<i128>();
            sum(x) * (x.len() + y.len()) as i128 - (sum(x) + sum(y)) * x.len() as i128
        };
        let observed = observed_of(&x1, &y1) * w1 * n2 + observed_of(&x2, &y2) * w2 * n1;
        let all: Vec<i128> = a.iter().flat_map(|a| b.iter().map(move |b| a + b)).collect();
        let samples = [sample(&x1), sample(&y1), sample(&x2), sample(&y2)];
        let found = permuted(&[
            Stratum { x: &samples[0], y: &samples[1], weight: w1 as u64 },
            Stratum { x: &samples[2], y: &samples[3], weight: w2 as u64 },
        ]);
        prop_assert!(near(found.p_two_sided, share(&all, |d| d.abs() >= observed.abs())));
        prop_assert!(near(found.p_greater, share(&all, |d| d >= observed)));
        prop_assert_eq!(found.arrangements, all.len().to_string());
    }

    #[test]
    fn flipped_signs_are_those_of_every_combination(d in vec(-3_i64..4, 1..11)) {
        let d: Vec<i64> = d.iter().map(|d| d * 105_000).collect();
        let observed: i64 = d.iter().sum();
        let all: Vec<i128> = (0_u32..1 << d.len())
            .map(|bits| {
                let signed = d.iter().enumerate().map(|(at, d)| if bits >> at & 1 == 1 { -d } else { *d });
                i128::from(signed.sum::<i64>())
            })
            .collect();
        let found = sign_flip(&d);
        let observed = i128::from(observed);
        prop_assert!(near(found.p_two_sided, share(&all, |s| s.abs() >= observed.abs())));
        prop_assert!(near(found.p_greater, share(&all, |s| s >= observed)));
        prop_assert_eq!(found.arrangements, all.len().to_string());
    }

    #[test]
    fn adjusted_p_are_at_least_the_raw_in_their_order_and_at_most_1(p in vec(0.0_f64..=1.0, 1..12)) {
        let (step_down, discovery, all) = (holm(&p), bh(&p), bonferroni(&p));
        for at in 0..p.len() {
            prop_assert!(step_down[at] >= p[at] && step_down[at] <= 1.0);
            prop_assert!(discovery[at] >= p[at] - 1e-15 && discovery[at] <= step_down[at] + 1e-15);
            prop_assert!(step_down[at] <= all[at]);
            for other in 0..p.len() {
                if p[at] < p[other] {
                    prop_assert!(step_down[at] <= step_down[other]);
                    prop_assert!(discovery[at] <= discovery[other]);
                }
            }
        }
    }

    #[test]
    fn equivalence_is_the_interval_inside_the_margins(x in arm(), y in arm(), margin in 0.01_f64..0.5) {
        let (sx, sy) = summaries(&x, &y);
        if let Ok(found) = welch(&sx, &sy) {
            let test = tost(&found, margin);
            let inside = -margin < test.ci90.low && test.ci90.high < margin;
            prop_assert_eq!(test.equivalent(), inside);
            // At the edge both are equal to within rounding.
            if (test.p - 0.05).abs() > 1e-9 {
                prop_assert_eq!(test.p < 0.05, inside);
            }
        }
    }

    #[test]
    fn no_p_leaves_0_to_1_and_none_is_0(x in arm(), y in arm()) {
        let found = two_sample(&sample(&x), &sample(&y));
        let studentised = found.studentised.expect("two samples");
        for p in [found.p_two_sided, found.p_greater, found.mid_p, studentised] {
            prop_assert!(p > 0.0 && p <= 1.0, "{}", p);
        }
    }
}
