//! Analyses as an experiment would give them, made by hand: scores by level, everything else computed by the statistics
//! core or put in plainly.

use std::collections::BTreeMap;

use super::parts;
use agent_breakage::experiment::analysis::model::*;
use agent_breakage::ids::{ArmId, MicroPoints, ScenarioId};
use agent_breakage::stats::multiplicity::holm;
use agent_breakage::stats::sample::{Sample, Summary};
use agent_breakage::stats::{brunner_munzel, effect, stratified, tost, welch};

pub const SCENARIOS: [&str; 3] = [
    "secret-missing-key-advocate",
    "cpu-limit-too-low-advocate",
    "readiness-probe-wrong-port",
];

pub const SESOI: f64 = 0.05;

type Levels = &'static [(u32, u32)];

/// Score levels in thousandths with their counts, treatment and control, for each scenario.
const FALSIFICATION: [(Levels, Levels); 3] = [
    (
        &[(700, 3), (805, 3), (910, 12), (940, 2)],
        &[(500, 2), (700, 7), (805, 4), (910, 7)],
    ),
    (
        &[(700, 5), (805, 5), (910, 10)],
        &[(700, 4), (805, 3), (910, 12), (940, 1)],
    ),
    (
        &[(700, 2), (805, 5), (910, 13)],
        &[(700, 1), (805, 6), (910, 12), (940, 1)],
    ),
];

/// Three scenarios, two arms, 20 blocks, everything kept, by simulated agents.
pub fn falsification() -> Analysis {
    let comparison = compare("treatment", None, &FALSIFICATION, true);
    let mut analysis = around(vec![comparison], &["treatment"], 20);
    analysis.decision.operating = operating();
    analysis
}

/// As [`falsification`], by real agents, with the seal broken on the way.
pub fn exploratory() -> Analysis {
    let mut analysis = falsification();
    analysis.registration.simulation = false;
    for arm in &mut analysis.registration.arms {
        arm.simulation = false;
        arm.agent = "oncall-agent".to_owned();
    }
    analysis.comparisons[0].primary = false;
    analysis.comparisons[0].scenarios[0].gated = true;
    analysis.standing.confirmatory = false;
    analysis.standing.exploratory_because = vec![
        "scores were read before the end, with no look registered".to_owned(),
        "the scenario file changed after block 7".to_owned(),
    ];
    analysis.standing.looks_taken = vec!["runs show, after block 9 (not registered)".to_owned()];
    analysis.standing.deviations = vec!["block 3 was run in another order than planned".to_owned()];
    analysis.standing.complete = false;
    analysis.standing.ended_runs = 96;
    analysis.standing.complete_blocks = 16;
    analysis.calibration = None;
    analysis
}

/// Three tiers of the corpus against one shared control.
pub fn density() -> Analysis {
    let tiers = ["5", "15", "full"];
    let shifted: [[(Levels, Levels); 3]; 3] = [
        FALSIFICATION,
        [FALSIFICATION[1], FALSIFICATION[0], FALSIFICATION[2]],
        [FALSIFICATION[0], FALSIFICATION[2], FALSIFICATION[1]],
    ];
    // The primary comparison is that of the last tier, and comes first.
    let comparisons = tiers
        .iter()
        .zip(&shifted)
        .rev()
        .map(|(tier, data)| compare("treatment", Some(tier), data, *tier == "full"))
        .collect();
    let mut analysis = around(comparisons, &["treatment"], 20);
    analysis.registration.title = "Does a denser corpus help more?".to_owned();
    analysis.tiers = Some(TierContrast {
        codes: vec![
            ("5".to_owned(), -1),
            ("15".to_owned(), 0),
            ("full".to_owned(), 1),
        ],
        estimate: 0.049,
        se: 0.037,
        t: Some(1.324),
        df: Some(201.4),
        p: Some(0.187),
        treatment: vec![
            ("5".to_owned(), 0.842, 0.0142),
            ("15".to_owned(), 0.851, 0.0135),
            ("full".to_owned(), 0.871, 0.0129),
        ],
        control: (0.823, 0.0151),
    });
    analysis.decision.operating = operating();
    analysis
}

/// One scenario without any variation, one without runs on one side; exclusions above the cap; nothing delivered.
pub fn degenerate() -> Analysis {
    let constant: Levels = &[(910, 8)];
    let data: [(Levels, Levels); 3] = [
        (constant, constant),
        (&[(910, 8)], &[(500, 8)]),
        (&[], &[(805, 1)]),
    ];
    let mut comparison = compare("treatment", None, &data, true);
    comparison.pooled = None;
    comparison.pooled_missing =
        Some("no run of readiness-probe-wrong-port counts in arm treatment".to_owned());
    comparison.multiverse = None;
    comparison.precision = None;
    comparison.exclusions.share = 0.3125;
    comparison.exclusions.rows[2].treatment = (8, 0);
    comparison.exclusions.rows[2].p = None;
    comparison.exclusions.rows[2].bounds = None;
    let mut analysis = around(vec![comparison], &["treatment"], 8);
    let row = &mut analysis.flow[4];
    row.excluded = BTreeMap::from([("fault-vanished".to_owned(), 7), ("crashed".to_owned(), 1)]);
    row.retried = 9;
    row.analysed = 0;
    analysis.manipulation.passed = false;
    analysis.manipulation.checks[1].passed = false;
    analysis.manipulation.checks[1].observed = "0 of 16 runs".to_owned();
    for row in &mut analysis.manipulation.exposure {
        row.exposed = 0;
        row.mean_served = 0.0;
        row.distance = None;
        row.distinct_sets = 0;
    }
    analysis.decision.row = None;
    analysis.decision.decision = "no decision".to_owned();
    analysis.decision.because = "the treatment was not delivered".to_owned();
    analysis.decision.verdicts = VerdictCounts {
        degenerate: 2,
        invalid: 1,
        ..VerdictCounts::default()
    };
    analysis.calibration = None;
    analysis
}

/// Texts that people or agents wrote where they do most harm.
pub fn hostile() -> Analysis {
    let mut analysis = falsification();
    let evil = HOSTILE.join(" ");
    let note = &mut analysis.registration;
    note.title = evil.clone();
    note.authors = HOSTILE.iter().map(ToString::to_string).collect();
    note.prior_data = "x".repeat(20_000);
    note.hypotheses[0].text = evil.clone();
    note.arms[0].agent = "=cmd|' /C calc'!A0".to_owned();
    note.arms[1].id = ArmId::new("=1+1");
    for run in analysis
        .runs
        .iter_mut()
        .filter(|run| run.arm.as_str() == "treatment")
    {
        run.arm = ArmId::new("=1+1");
    }
    analysis.comparisons[0].treatment = ArmId::new("=1+1");
    analysis.standing.deviations = vec![evil.clone(), "| a | b |\n|---|---|".to_owned()];
    analysis.decision.rows[0].when = "benefit >= 2 || pooled == `x`".to_owned();
    analysis.decision.rows[0].next = Some(evil);
    analysis.comparisons[0].scenarios[0].welch = Some(WelchNote {
        se: f64::NAN,
        t: f64::INFINITY,
        df: f64::NAN,
        p: 1.1e-32,
    });
    analysis
}

pub const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "](javascript:x)",
    "a|b \\| c",
    "```",
    "one\r\ntwo",
    "\u{1b}[31mred",
    "\u{202e}detrever",
    "<!-- comment",
    "]]>",
    "&amp;",
];

fn operating() -> Vec<(String, String, f64)> {
    let mut all = Vec::new();
    for (pattern, shares) in [
        ("none", [0.02, 0.001, 0.12, 0.859]),
        ("0.05", [0.35, 0.0, 0.43, 0.22]),
        ("0.10", [0.90, 0.0, 0.09, 0.01]),
        ("mixed", [0.11, 0.08, 0.62, 0.19]),
    ] {
        for (row, share) in ["ship", "harm", "extend", "stop"].iter().zip(shares) {
            all.push((pattern.to_owned(), (*row).to_owned(), share));
        }
    }
    all
}

fn around(comparisons: Vec<Comparison>, treatments: &[&str], blocks: u32) -> Analysis {
    let tiers: Vec<Option<String>> = comparisons.iter().map(|one| one.tier.clone()).collect();
    let mut cells: Vec<(ScenarioId, ArmId, Option<String>)> = Vec::new();
    for scenario in SCENARIOS {
        for treatment in treatments {
            for tier in &tiers {
                cells.push((
                    ScenarioId::new(scenario),
                    ArmId::new(*treatment),
                    tier.clone(),
                ));
            }
        }
        cells.push((ScenarioId::new(scenario), ArmId::new("control"), None));
    }
    let runs = runs(&comparisons);
    let planned = cells.len() as u64 * u64::from(blocks);
    let pooled = comparisons[0].pooled.as_ref().map(|one| one.verdict);
    Analysis {
        registration: parts::note(blocks),
        standing: parts::standing(planned, blocks),
        decision: parts::decision(pooled),
        manipulation: parts::manipulation(&cells, blocks),
        flow: parts::flow(&cells, blocks),
        comparisons,
        tiers: None,
        axes: parts::axes(),
        rates: parts::rates(),
        drift: parts::drift(),
        runs,
        calibration: Some(parts::calibration()),
    }
}

fn sample(levels: Levels) -> Sample {
    Sample::new(
        levels.iter().flat_map(|(level, count)| {
            std::iter::repeat_n(i64::from(*level) * 1000, *count as usize)
        }),
    )
}

fn summary(levels: Levels) -> ArmSummary {
    let sample = sample(levels);
    ArmSummary {
        n: sample.n() as u32,
        mean: sample.mean(),
        sd: sample.sd(),
        levels: levels
            .iter()
            .map(|(level, count)| (MicroPoints(level * 1000), *count))
            .collect(),
    }
}

fn interval(one: agent_breakage::stats::Interval) -> Interval {
    Interval {
        low: one.low,
        high: one.high,
    }
}

fn compare(
    treatment: &str,
    tier: Option<&str>,
    data: &[(Levels, Levels); 3],
    primary: bool,
) -> Comparison {
    let mut scenarios: Vec<ScenarioResult> = SCENARIOS
        .iter()
        .zip(data)
        .map(|(id, (x, y))| scenario(id, x, y))
        .collect();
    let raw: Vec<f64> = scenarios.iter().map(|one| one.p.unwrap_or(1.0)).collect();
    for (one, p) in scenarios.iter_mut().zip(holm(&raw)) {
        one.p_adjusted = one.p.map(|_| p);
    }
    let strata: Vec<(Summary, Summary)> = data
        .iter()
        .filter_map(|(x, y)| Some((Summary::of(&sample(x))?, Summary::of(&sample(y))?)))
        .collect();
    Comparison {
        treatment: ArmId::new(treatment),
        control: ArmId::new("control"),
        tier: tier.map(str::to_owned),
        primary,
        exclusions: Exclusions {
            share: 0.0,
            cap: 0.05,
            rows: scenarios
                .iter()
                .map(|one| ExclusionRow {
                    scenario: one.scenario.clone(),
                    treatment: (0, one.treatment.n),
                    control: (0, one.control.n),
                    p: Some(1.0),
                    bounds: one.delta.map(|delta| Interval {
                        low: delta,
                        high: delta,
                    }),
                })
                .collect(),
            p: Some(1.0),
        },
        scenarios,
        pooled: (strata.len() == 3).then(|| pooled(&strata)),
        pooled_missing: None,
        multiverse: Some(multiverse()),
        precision: Some(Precision {
            half_width_planned: 0.0475,
            half_width: 0.0432,
            sigma_planned: 0.13,
            sigma: 0.118,
            mde: 0.0613,
            excluded_beyond: 0.0843,
        }),
    }
}

fn multiverse() -> Multiverse {
    Multiverse {
        variants: 418,
        same_sign: 0.981,
        same_verdict: 0.874,
        range: Interval {
            low: -0.006,
            high: 0.071,
        },
        worst: "near-miss credit 0.7, weights on diagnosis only".to_owned(),
        nearest_flip: Some("near-miss credit 0.525".to_owned()),
        near_miss: vec![
            (0.0, 0.051, Verdict::Inconclusive),
            (0.35, 0.041, Verdict::Inconclusive),
            (0.7, -0.004, Verdict::NoBenefit),
        ],
    }
}

fn pooled(strata: &[(Summary, Summary)]) -> Pooled {
    let weights = stratified::equal(strata.len());
    let found = stratified::pooled(strata, &weights).expect("every stratum has runs");
    Pooled {
        weights: SCENARIOS
            .iter()
            .map(|id| (ScenarioId::new(*id), 1.0 / 3.0))
            .collect(),
        estimate: found.estimate,
        se: found.se,
        t: found.t,
        df: found.df,
        ci95: found.interval(0.95).map(interval),
        tost: found.interval(0.9).map(|ci| TostNote {
            p: 0.31,
            ci90: interval(ci),
        }),
        p_t: Some(0.0712),
        p: 0.0698,
        method: "stratified permutation, exact".to_owned(),
        cochran_q: Some(Heterogeneity {
            q: 9.21,
            df: 2,
            p: 0.01,
            i2: 0.783,
        }),
        unlike_effects: true,
        verdict: Verdict::Inconclusive,
        material: false,
        fragile: vec![Fragility::Rubric],
    }
}

fn scenario(id: &str, x: Levels, y: Levels) -> ScenarioResult {
    let (treatment, control) = (summary(x), summary(y));
    let both = Summary::of(&sample(x)).zip(Summary::of(&sample(y)));
    let tested = both.as_ref().and_then(|(x, y)| welch::welch(x, y).ok());
    let constant = x.len() == 1 && y.len() == 1;
    let bm = brunner_munzel::brunner_munzel(&sample(x), &sample(y)).filter(|_| !constant);
    let g = both.as_ref().and_then(|(x, y)| effect::hedges_g(x, y));
    let delta = treatment.mean.zip(control.mean).map(|(x, y)| x - y);
    let p = tested.as_ref().map(|one| one.p_two_sided());
    let simultaneous = tested
        .as_ref()
        .map(|one| interval(one.interval(1.0 - 0.05 / 3.0)));
    let verdict = match simultaneous {
        Some(ci) if ci.low > 0.0 => Verdict::Benefit,
        Some(_) => Verdict::Inconclusive,
        None if both.is_some() => Verdict::Degenerate,
        None => Verdict::Invalid,
    };
    ScenarioResult {
        scenario: ScenarioId::new(id),
        delta,
        welch: tested.as_ref().map(|one| WelchNote {
            se: one.se,
            t: one.t,
            df: one.df,
            p: one.p_two_sided(),
        }),
        ci95: tested.as_ref().map(|one| interval(one.interval(0.95))),
        ci_simultaneous: simultaneous,
        permutation: p.map(|p| PermutationNote {
            p,
            mid_p: Some(0.9 * p),
            method: "exact".to_owned(),
        }),
        paired: tested.as_ref().map(|one| pairs(one, treatment.n)),
        p,
        p_adjusted: None,
        brunner_munzel: bm.map(|one| BrunnerMunzelNote {
            p_hat: one.p_hat,
            ci95: None,
            p,
        }),
        hedges_g: g.and_then(|one| Some((one.g, interval(one.interval?)))),
        tost: tested.as_ref().map(|one| {
            let found = tost::tost(one, SESOI);
            TostNote {
                p: found.p,
                ci90: interval(found.ci90),
            }
        }),
        bca: tested.as_ref().map(|one| interval(one.interval(0.94))),
        rule_of_three: (constant && x == y).then_some(0.312),
        verdict,
        gated: false,
        material: false,
        fragile: match verdict {
            Verdict::Benefit => vec![Fragility::Test, Fragility::Rubric],
            _ => Vec::new(),
        },
        treatment,
        control,
    }
}

/// As if the pairs had differed by chance only, so that their test is Welch's.
fn pairs(one: &welch::Welch, pairs: u32) -> PairedNote {
    let p = one.p_two_sided();
    PairedNote {
        pairs,
        unpaired: 0,
        mean: one.delta,
        ci95: Some(interval(one.interval(0.95))),
        t: Some(one.t),
        p_t: Some(p),
        p_sign_flip: p,
        rho: Some(0.21),
    }
}

/// The runs behind the levels, dealt out over blocks in a fixed shuffle.
fn runs(comparisons: &[Comparison]) -> Vec<RunPoint> {
    let mut runs = Vec::new();
    let mut deal = |arm: &ArmId, tier: Option<&String>, one: &ScenarioResult, of: &ArmSummary| {
        let scores: Vec<MicroPoints> = of
            .levels
            .iter()
            .flat_map(|(level, count)| std::iter::repeat_n(*level, *count as usize))
            .collect();
        for block in 0..scores.len() {
            // 7 and the counts of these fixtures have no common divisor.
            let total = scores[(block * 7 + 3) % scores.len()];
            runs.push(RunPoint {
                order: 0,
                block: block as u32,
                scenario: one.scenario.clone(),
                arm: arm.clone(),
                tier: tier.cloned(),
                total,
                timeout: total.0 == 500_000,
            });
        }
    };
    for (at, comparison) in comparisons.iter().enumerate() {
        for one in &comparison.scenarios {
            deal(
                &comparison.treatment,
                comparison.tier.as_ref(),
                one,
                &one.treatment,
            );
            if at == 0 {
                deal(&comparison.control, None, one, &one.control);
            }
        }
    }
    runs.sort_by_key(|run| {
        (
            run.block,
            run.total.0 % 7,
            run.scenario.clone(),
            run.arm.clone(),
        )
    });
    for (order, run) in runs.iter_mut().enumerate() {
        run.order = order as u64;
    }
    runs
}
