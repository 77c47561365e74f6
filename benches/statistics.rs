//! How long exact tests take: labels permuted in one and in ten scenarios, signs of pairs flipped.

use std::hint::black_box;
use std::time::Duration;

use agent_breakage::stats::bca::bca;
use agent_breakage::stats::permutation::{
    Stratum, sign_flip, sign_flip_stratified, stratified, two_sample,
};
use agent_breakage::stats::sample::Sample;
use criterion::{Criterion, criterion_group, criterion_main};

/// Every level that the published rubric gives.
const LEVELS: [i64; 7] = [
    500_000, 700_000, 730_000, 805_000, 835_000, 910_000, 940_000,
];

/// Scores that look random and are the same every time.
fn scores(n: usize, seed: u64, levels: &'static [i64]) -> Vec<i64> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            levels[(state >> 33) as usize % levels.len()]
        })
        .collect()
}

fn labels(criterion: &mut Criterion) {
    for (n, levels) in [(20, &LEVELS[..4]), (40, &LEVELS[..]), (200, &LEVELS[..4])] {
        let x = Sample::new(scores(n, 1, levels));
        let y = Sample::new(scores(n, 2, levels));
        let name = format!("two samples/{n} per arm, {} levels", levels.len());
        criterion.bench_function(&name, |bench| {
            bench.iter(|| black_box(two_sample(&x, &y).p_two_sided));
        });
    }
    let x = Sample::new(scores(20, 1, &LEVELS[..4]));
    let y = Sample::new(scores(18, 2, &LEVELS[..4]));
    criterion.bench_function("two samples/20 and 18, with |t|", |bench| {
        bench.iter(|| black_box(two_sample(&x, &y).studentised));
    });
    criterion.bench_function("bca/20 and 18", |bench| {
        bench.iter(|| black_box(bca(&x, &y, 0.95).is_ok()));
    });
}

fn scenarios(criterion: &mut Criterion) {
    for (count, n, levels) in [
        (3, 20, &LEVELS[..4]),
        (10, 40, &LEVELS[..]),
        (10, 200, &LEVELS[..4]),
    ] {
        let arms: Vec<(Sample, Sample)> = (0..count)
            .map(|s| {
                (
                    Sample::new(scores(n, s, levels)),
                    Sample::new(scores(n, s + 100, levels)),
                )
            })
            .collect();
        let strata: Vec<Stratum> = arms
            .iter()
            .map(|(x, y)| Stratum { x, y, weight: 1 })
            .collect();
        let name = format!(
            "stratified/{count} scenarios, {n} per arm, {} levels",
            levels.len()
        );
        criterion.bench_function(&name, |bench| {
            bench.iter(|| black_box(stratified(&strata).p_two_sided));
        });
    }
}

fn signs(criterion: &mut Criterion) {
    let differences = |n: usize, seed: u64| -> Vec<i64> {
        let (x, y) = (scores(n, seed, &LEVELS), scores(n, seed + 50, &LEVELS));
        x.iter().zip(y).map(|(x, y)| x - y).collect()
    };
    let one = differences(200, 1);
    criterion.bench_function("sign flip/200 pairs", |bench| {
        bench.iter(|| black_box(sign_flip(&one).p_two_sided));
    });
    let ten: Vec<Vec<i64>> = (0..10).map(|s| differences(40, s)).collect();
    let strata: Vec<(&[i64], u64)> = ten.iter().map(|d| (d.as_slice(), 1)).collect();
    criterion.bench_function("sign flip/10 scenarios, 40 pairs", |bench| {
        bench.iter(|| black_box(sign_flip_stratified(&strata).p_two_sided));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = labels, scenarios, signs
}
criterion_main!(benches);
