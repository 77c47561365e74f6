//! The analysis of ledgers made from the published runs, and of ledgers in which something went wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

#[path = "experiment/ledger_maker.rs"]
mod ledger_maker;

use agent_breakage::experiment::analysis::analyze;
use agent_breakage::experiment::analysis::model::{Analysis, Fragility, Verdict};
use agent_breakage::experiment::ledger::{Entry, Event};
use agent_breakage::experiment::plan::{Plan, Primary, Retrieval};
use agent_breakage::record::FrameworkCode;

use ledger_maker::{CONTROL, Run, TREATMENT, chained, hash, ledger, plan, registration, tiers};

/// Totals of treatment and control in one scenario, by block.
type Cell = (&'static str, Vec<u32>, Vec<u32>);

/// The published runs of one cell, as reconstructed from its printed means and deviations.
fn published(id: &str, scenario: &'static str) -> Cell {
    let text = include_str!("../data/published-results.json");
    let all: serde_json::Value = serde_json::from_str(text).unwrap();
    let cells = all["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["id"] == id).unwrap();
    let of = &cell["from_reconstructed_scores"];
    let values = of["values"].as_array().unwrap();
    let runs = |counts: &str| {
        let counts = of[counts].as_array().unwrap();
        values
            .iter()
            .zip(counts)
            .flat_map(|(value, count)| {
                let total = (value.as_f64().unwrap() * 1e6).round() as u32;
                std::iter::repeat_n(total, count.as_u64().unwrap() as usize)
            })
            .collect()
    };
    (scenario, runs("counts_t"), runs("counts_c"))
}

fn falsification() -> Vec<Cell> {
    vec![
        published("falsification/secret-missing-key", "secret"),
        published("falsification/cpu-limit-throttling", "cpu"),
        published("falsification/readiness-probe", "readiness"),
    ]
}

fn planned(cells: &[Cell], primary: Primary) -> Plan {
    let ids: Vec<&str> = cells.iter().map(|(id, ..)| *id).collect();
    plan(&ids, cells[0].1.len() as u32, primary)
}

fn total(cells: &[Cell], scenario: &str, arm: &str, block: u32) -> Run {
    let (_, treatment, control) = cells.iter().find(|(id, ..)| *id == scenario).unwrap();
    let of = if arm == CONTROL { control } else { treatment };
    Run::Total(of[block as usize])
}

/// Everything as it should be: the treatment served, the control not.
fn delivered(arm: &str, _tier: Option<&str>, block: u32) -> Vec<&'static str> {
    match (arm, block % 2) {
        (CONTROL, _) => Vec::new(),
        (_, 0) => vec!["pm-1", "pm-2"],
        _ => vec!["pm-1"],
    }
}

fn entries(plan: &Plan, cells: &[Cell]) -> Vec<Entry> {
    ledger(
        plan,
        |scenario, arm, _, block| total(cells, scenario, arm, block),
        delivered,
    )
}

fn analysis(plan: Plan, entries: &[Entry]) -> Analysis {
    analyze(&hash(), &registration(plan), entries).unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 2e-6, "{found} is not {expected}");
}

#[test]
fn the_published_falsification_runs_decide_nothing() {
    let cells = falsification();
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let entries = entries(&plan, &cells);
    let found = analysis(plan, &entries);
    let primary = &found.comparisons[0];
    let [secret, cpu, readiness] = primary.scenarios.as_slice() else {
        panic!("three scenarios");
    };
    close(secret.permutation.as_ref().unwrap().p, 0.059_932_7);
    close(secret.welch.unwrap().p, 0.038_382_9);
    close(secret.p_adjusted.unwrap(), 0.179_798);
    close(secret.brunner_munzel.unwrap().p.unwrap(), 0.030_159_7);
    // By a hair: the interval of the printed summaries ends at 0.0512.
    close(readiness.ci_simultaneous.unwrap().high, 0.050_541_1);
    for one in [secret, cpu, readiness] {
        assert_eq!(one.verdict, Verdict::Inconclusive, "{}", one.scenario);
    }
    assert!(secret.fragile.contains(&Fragility::Test));
    let pooled = primary.pooled.as_ref().unwrap();
    close(pooled.estimate, 0.039_083_3);
    close(pooled.se, 0.021_846_9);
    close(pooled.p_t.unwrap(), 0.077_075_5);
    close(pooled.p, 0.090_162_1);
    close(pooled.cochran_q.unwrap().q, 6.080_443);
    assert!(pooled.unlike_effects);
    assert_eq!(pooled.verdict, Verdict::Inconclusive);
    assert_eq!(found.decision.row.as_deref(), Some("undecided"));
    assert!(found.standing.confirmatory, "{:?}", found.standing);
}

#[test]
fn the_published_rerun_excludes_a_benefit_in_one_scenario_and_shows_equivalence_in_the_other() {
    let cells = vec![
        published("n40/cpu-limit-throttling", "cpu"),
        published("n40/replicas-zero", "replicas"),
    ];
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let entries = entries(&plan, &cells);
    let found = analysis(plan, &entries);
    let verdicts: Vec<Verdict> = found.comparisons[0]
        .scenarios
        .iter()
        .map(|one| one.verdict)
        .collect();
    assert_eq!(verdicts, [Verdict::NoBenefit, Verdict::Equivalent]);
    assert_eq!(found.decision.row.as_deref(), Some("pivot"));
}

#[test]
fn rubrics_with_another_near_miss_credit_give_the_published_sensitivity() {
    let cells = vec![published("falsification/secret-missing-key", "secret")];
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let entries = entries(&plan, &cells);
    let found = analysis(plan, &entries);
    let multiverse = found.comparisons[0].multiverse.as_ref().unwrap();
    let of = |credit: f64| {
        let row = multiverse
            .near_miss
            .iter()
            .find(|row| row.0 == credit)
            .unwrap();
        row.1
    };
    close(of(0.0), 0.0735);
    close(of(0.35), 0.057_75);
    close(of(0.7), 0.042);
    assert!(multiverse.same_sign > 0.9);
}

#[test]
fn a_strong_effect_is_a_benefit_and_lands_in_its_row() {
    let strong = |n: u32| -> Vec<u32> {
        (0..20)
            .map(|block| if block % 10 < n { 910_000 } else { 700_000 })
            .collect()
    };
    let cells: Vec<Cell> = ["a", "b", "c"]
        .map(|id| (id, strong(9), strong(2)))
        .to_vec();
    for primary in [Primary::PairedSignFlip, Primary::StratifiedPermutation] {
        let plan = planned(&cells, primary);
        let entries = entries(&plan, &cells);
        let found = analysis(plan, &entries);
        let pooled = found.comparisons[0].pooled.as_ref().unwrap();
        assert_eq!(pooled.verdict, Verdict::Benefit, "{primary:?}");
        assert!(pooled.material);
        assert_eq!(found.decision.row.as_deref(), Some("continue"));
        assert_eq!(found.decision.verdicts.benefit, 3);
    }
}

#[test]
fn a_scenario_is_not_claimed_where_the_pooled_test_came_first_and_found_nothing() {
    let (high, low) = (vec![910_000; 20], vec![700_000; 20]);
    let mut up = high;
    up[0] = 700_000;
    let mut down = low;
    down[0] = 910_000;
    let cells: Vec<Cell> = vec![("a", up.clone(), down.clone()), ("b", down, up)];
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let entries = entries(&plan, &cells);
    let found = analysis(plan.clone(), &entries);
    let [a, b] = found.comparisons[0].scenarios.as_slice() else {
        panic!("two scenarios");
    };
    assert_eq!((a.verdict, a.gated), (Verdict::Inconclusive, true));
    // Harm is a veto, whatever the pooled test says.
    assert_eq!((b.verdict, b.gated), (Verdict::Harm, false));
    assert_eq!(found.decision.row.as_deref(), Some("stop"));
    let mut co_primary = plan;
    co_primary.tests.co_primary = true;
    let found = analysis(co_primary, &entries);
    assert_eq!(found.comparisons[0].scenarios[0].verdict, Verdict::Benefit);
}

#[test]
fn constant_scores_are_degenerate_and_bounded_by_the_rule_of_three() {
    let cells: Vec<Cell> = vec![("a", vec![910_000; 40], vec![910_000; 40])];
    for primary in [Primary::PairedSignFlip, Primary::StratifiedPermutation] {
        let plan = planned(&cells, primary);
        let entries = entries(&plan, &cells);
        let found = analysis(plan, &entries);
        let one = &found.comparisons[0].scenarios[0];
        assert_eq!(one.verdict, Verdict::Degenerate);
        assert_eq!(
            (one.delta, one.welch, one.hedges_g),
            (Some(0.0), None, None)
        );
        close(one.rule_of_three.unwrap(), 0.072_157_5);
        assert!(found.axes.iter().all(|axis| axis.dead));
    }
}

#[test]
fn a_control_that_was_served_anything_leaves_no_decision() {
    let cells = falsification();
    let plan = planned(&cells, Primary::PairedSignFlip);
    let entries = ledger(
        &plan,
        |scenario, arm, _, block| total(&cells, scenario, arm, block),
        |_, _, _| vec!["pm-1"],
    );
    let found = analysis(plan, &entries);
    assert!(!found.manipulation.passed);
    assert_eq!(found.decision.row, None);
    assert_eq!(found.decision.decision, "no decision");
    assert!(found.decision.because.contains("treatment_not_delivered"));
    let primary = &found.comparisons[0];
    assert_eq!(primary.pooled.as_ref().unwrap().verdict, Verdict::Invalid);
    let judged = primary
        .scenarios
        .iter()
        .filter(|one| one.verdict != Verdict::Invalid);
    assert_eq!(judged.count(), 0);
}

#[test]
fn tiers_that_serve_the_same_are_not_delivered() {
    let cells = falsification();
    let mut plan = planned(&cells, Primary::StratifiedPermutation);
    plan.tiers = Some(tiers(&[
        ("5", Some(5), -1),
        ("15", Some(15), 0),
        ("full", None, 1),
    ]));
    let outcome = |scenario: &str, arm: &str, _: Option<&str>, block: u32| {
        total(&cells, scenario, arm, block)
    };
    let same = ledger(&plan, outcome, delivered);
    let found = analysis(plan.clone(), &same);
    assert!(!found.manipulation.passed);
    let told: Vec<&str> = found
        .manipulation
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.what.as_str())
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let apart = ledger(&plan, outcome, |arm, tier, _| match (arm, tier) {
        (CONTROL, _) => Vec::new(),
        (_, Some("5")) => vec!["pm-5"],
        (_, Some("15")) => vec!["pm-15"],
        _ => vec!["pm-all"],
    });
    let found = analysis(plan, &apart);
    assert!(found.manipulation.passed, "{:?}", found.manipulation.checks);
    // The decision rests on the tier with the most past; the others are exploratory.
    let order: Vec<_> = found
        .comparisons
        .iter()
        .map(|one| one.tier.as_deref())
        .collect();
    assert_eq!(order, [Some("full"), Some("15"), Some("5")]);
    assert_eq!(
        found
            .comparisons
            .iter()
            .map(|one| one.primary)
            .collect::<Vec<_>>(),
        [true, false, false]
    );
    let contrast = found.tiers.unwrap();
    assert_eq!((contrast.codes.len(), contrast.treatment.len()), (3, 3));
    close(contrast.estimate, 0.0);
}

#[test]
fn excluded_runs_are_counted_bounded_and_may_make_a_verdict_fragile() {
    let cells = vec![published("n40/replicas-zero", "replicas")];
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let entries = ledger(
        &plan,
        |scenario, arm, _, block| match (arm, block) {
            (TREATMENT, 0..5) => Run::Failed(FrameworkCode::ClusterUnreachable),
            _ => total(&cells, scenario, arm, block),
        },
        delivered,
    );
    let found = analysis(plan.clone(), &entries);
    let primary = &found.comparisons[0];
    let row = &primary.exclusions.rows[0];
    assert_eq!((row.treatment, row.control), ((5, 35), (0, 40)));
    assert!(row.p.unwrap() < 0.06);
    let bounds = row.bounds.unwrap();
    assert!(bounds.low < -0.1 && bounds.high > 0.01, "{bounds:?}");
    let one = &primary.scenarios[0];
    assert_eq!(one.verdict, Verdict::Equivalent);
    assert!(one.fragile.contains(&Fragility::Exclusions));
    let flow = found
        .flow
        .iter()
        .find(|row| row.arm.as_str() == TREATMENT)
        .unwrap();
    assert_eq!((flow.planned, flow.analysed), (40, 35));
    assert_eq!(flow.excluded["cluster-unreachable"], 5);
    // Beyond the registered share, nothing is said at all.
    let mut strict = plan;
    strict.exclusions.cap = agent_breakage::ids::MicroPoints(50_000);
    let found = analysis(strict, &entries);
    assert_eq!(found.comparisons[0].scenarios[0].verdict, Verdict::Invalid);
    assert_eq!(found.decision.row, None);
}

#[test]
fn a_scenario_without_runs_in_one_arm_is_given_to_no_other() {
    let cells = falsification();
    let mut plan = planned(&cells, Primary::StratifiedPermutation);
    plan.exclusions.cap = agent_breakage::ids::MicroPoints(1_000_000);
    let entries = ledger(
        &plan,
        |scenario, arm, _, block| match (scenario, arm) {
            ("cpu", TREATMENT) => Run::Failed(FrameworkCode::FaultVanished),
            _ => total(&cells, scenario, arm, block),
        },
        delivered,
    );
    let found = analysis(plan, &entries);
    let primary = &found.comparisons[0];
    assert_eq!(primary.scenarios[1].verdict, Verdict::Invalid);
    assert!(primary.pooled.is_none());
    assert!(
        primary
            .pooled_missing
            .as_ref()
            .unwrap()
            .starts_with("cpu has fewer than two runs")
    );
    assert_eq!(found.decision.row, None);
}

#[test]
fn an_unplanned_look_an_unsealing_and_an_early_end_make_it_exploratory() {
    let cells = falsification();
    let plan = planned(&cells, Primary::PairedSignFlip);
    let whole = entries(&plan, &cells);
    for (event, words) in [
        (
            Event::Looked {
                what: "analyze".to_owned(),
                planned: false,
            },
            "unplanned look",
        ),
        (
            Event::Unsealed {
                command: "runs show".to_owned(),
            },
            "unsealed by `runs show`",
        ),
        (
            Event::Finished {
                reason: Some("the budget ended".to_owned()),
            },
            "stopped before its last block: the budget ended",
        ),
    ] {
        let mut events: Vec<Event> = whole.iter().map(|entry| entry.event.clone()).collect();
        let last = events.len() - 1;
        events.insert(last, event);
        let found = analysis(plan.clone(), &chained(events));
        assert!(!found.standing.confirmatory);
        let told = found.standing.exploratory_because.join("; ");
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn the_order_of_runs_changes_no_test_and_equal_ledgers_give_equal_bytes() {
    let cells = falsification();
    let plan = planned(&cells, Primary::StratifiedPermutation);
    let one = analysis(plan.clone(), &entries(&plan, &cells));
    let two = analysis(plan.clone(), &entries(&plan, &cells));
    assert_eq!(
        serde_json::to_string(&one).unwrap(),
        serde_json::to_string(&two).unwrap()
    );
    let reversed: Vec<Cell> = cells
        .iter()
        .map(|(id, x, y)| {
            let turned = |of: &Vec<u32>| of.iter().rev().copied().collect::<Vec<u32>>();
            (*id, turned(x), turned(y))
        })
        .collect();
    let three = analysis(plan.clone(), &entries(&plan, &reversed));
    let p = |of: &Analysis| of.comparisons[0].pooled.as_ref().unwrap().p;
    assert_eq!(p(&one), p(&three));
}

#[test]
fn swapping_the_arms_negates_the_difference_and_keeps_p() {
    let cells = falsification();
    let swapped: Vec<Cell> = cells
        .iter()
        .map(|(id, x, y)| (*id, y.clone(), x.clone()))
        .collect();
    for primary in [Primary::PairedSignFlip, Primary::StratifiedPermutation] {
        let plan = planned(&cells, primary);
        let one = analysis(plan.clone(), &entries(&plan, &cells));
        let two = analysis(plan.clone(), &entries(&plan, &swapped));
        let pooled = |of: &Analysis| of.comparisons[0].pooled.clone().unwrap();
        close(pooled(&one).estimate, -pooled(&two).estimate);
        close(pooled(&one).p, pooled(&two).p);
    }
}

#[test]
fn a_look_reads_complete_blocks_only_and_spends_less_than_all_of_alpha() {
    let strong: Vec<u32> = (0..20)
        .map(|b| if b % 10 < 9 { 910_000 } else { 700_000 })
        .collect();
    let weak: Vec<u32> = (0..20)
        .map(|b| if b % 10 < 2 { 910_000 } else { 700_000 })
        .collect();
    let cells: Vec<Cell> = ["a", "b"]
        .map(|id| (id, strong.clone(), weak.clone()))
        .to_vec();
    let mut plan = planned(&cells, Primary::PairedSignFlip);
    plan.looks = vec![10];
    let whole = entries(&plan, &cells);
    // Four cells a block: ten blocks, and two runs of the eleventh.
    let mut events: Vec<Event> = whole[..1 + 42]
        .iter()
        .map(|entry| entry.event.clone())
        .collect();
    events.push(Event::Looked {
        what: "look after block 10".to_owned(),
        planned: true,
    });
    let found = analysis(plan, &chained(events));
    assert!(
        found.standing.confirmatory,
        "{:?}",
        found.standing.exploratory_because
    );
    assert_eq!(found.standing.complete_blocks, 10);
    assert_eq!(found.comparisons[0].scenarios[0].treatment.n, 10);
    assert!(found.flow.iter().all(|row| row.analysed == 10));
}

#[test]
fn an_a_a_design_without_retrieval_needs_no_exposure() {
    let cells = falsification();
    let mut plan = planned(&cells, Primary::PairedSignFlip);
    plan.arms[1].retrieval = Retrieval::Off;
    let entries = ledger(
        &plan,
        |scenario, arm, _, block| total(&cells, scenario, arm, block),
        |_, _, _| Vec::new(),
    );
    assert!(analysis(plan, &entries).manipulation.passed);
}

#[test]
fn a_blinded_plan_gives_no_arm_away_and_the_same_numbers_but_for_the_sign() {
    use agent_breakage::experiment::analysis::blind::{analyze_blinded, is_blinded};
    let cells = falsification();
    let mut plan = planned(&cells, Primary::StratifiedPermutation);
    plan.blinded = true;
    let entries = entries(&plan, &cells);
    let registration = registration(plan);
    assert!(is_blinded(&registration, &entries));
    let open = analyze(&hash(), &registration, &entries).unwrap();
    let blinded = analyze_blinded(&hash(), &registration, &entries).unwrap();
    let text = serde_json::to_string(&blinded).unwrap();
    for word in [CONTROL, TREATMENT] {
        // As a value; the fields of a comparison are called so whatever the arms are.
        assert!(!text.contains(&format!(":\"{word}\"")), "{word}");
    }
    assert!(!text.contains("pm-1"));
    assert_eq!(blinded.decision.row, None);
    let pooled = |of: &Analysis| of.comparisons[0].pooled.clone().unwrap();
    close(
        pooled(&open).estimate.abs(),
        pooled(&blinded).estimate.abs(),
    );
    close(pooled(&open).p, pooled(&blinded).p);
    let mut events: Vec<Event> = entries.iter().map(|entry| entry.event.clone()).collect();
    events.push(Event::Unblinded {
        command: "experiment report".to_owned(),
    });
    assert!(!is_blinded(&registration, &chained(events)));
}

#[test]
fn a_look_at_which_no_boundary_was_crossed_decides_nothing() {
    // Nothing differs, and after ten of twenty blocks the interval is narrow.
    let even: Vec<u32> = (0..40)
        .map(|b| if b % 10 < 9 { 910_000 } else { 805_000 })
        .collect();
    let odd: Vec<u32> = (0..40)
        .map(|b| if b % 10 > 0 { 910_000 } else { 805_000 })
        .collect();
    let cells: Vec<Cell> = ["a", "b"]
        .map(|id| (id, even.clone(), odd.clone()))
        .to_vec();
    let mut plan = planned(&cells, Primary::PairedSignFlip);
    plan.looks = vec![20];
    let whole = entries(&plan, &cells);
    let finished = analysis(plan.clone(), &whole);
    assert_eq!(finished.decision.row.as_deref(), Some("pivot"));
    let mut events: Vec<Event> = whole[..=80]
        .iter()
        .map(|entry| entry.event.clone())
        .collect();
    events.push(Event::Looked {
        what: "the first 20 blocks".to_owned(),
        planned: true,
    });
    let looked = analysis(plan, &chained(events));
    assert_eq!(looked.standing.complete_blocks, 20);
    assert_eq!(
        (looked.decision.row, looked.decision.decision.as_str()),
        (None, "go on")
    );
    let pooled = looked.comparisons[0].pooled.as_ref().unwrap();
    assert_eq!(pooled.verdict, Verdict::Inconclusive);
    assert!(
        looked
            .registration
            .primary_test
            .contains("here at level 0.00")
    );
}

#[test]
fn an_amended_plan_says_so_and_is_exploratory_only_after_scores_were_read() {
    let cells = falsification();
    let plan = planned(&cells, Primary::PairedSignFlip);
    let whole = entries(&plan, &cells);
    for scores_read in [false, true] {
        let mut events: Vec<Event> = whole.iter().map(|entry| entry.event.clone()).collect();
        events.insert(
            1,
            Event::Amends {
                from: hash(),
                reason: "the budget grew".to_owned(),
                runs_before: 14,
                scores_read,
            },
        );
        let found = analysis(plan.clone(), &chained(events));
        assert!(found.standing.amendments[0].contains("the budget grew; the 14 runs"));
        assert_eq!(found.standing.confirmatory, !scores_read);
    }
}

#[test]
fn differences_of_few_runs_have_intervals_within_the_scale() {
    let cells: Vec<Cell> = vec![("a", vec![910_000, 400_000], vec![400_000, 910_000])];
    let plan = planned(&cells, Primary::PairedSignFlip);
    let entries = entries(&plan, &cells);
    let found = analysis(plan, &entries);
    let one = &found.comparisons[0].scenarios[0];
    let interval = one.ci_simultaneous.unwrap();
    assert_eq!((interval.low, interval.high), (-1.0, 1.0));
}
