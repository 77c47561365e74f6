//! The parts of an analysis that are put in plainly.

use std::collections::BTreeMap;

use agent_breakage::experiment::analysis::model::*;
use agent_breakage::experiment::plan::{Direction, Row};
use agent_breakage::ids::{ArmId, ExperimentId, RegistrationHash, RubricId, ScenarioId};

use super::analyses::{SCENARIOS, SESOI};

type Cell = (ScenarioId, ArmId, Option<String>);

pub fn flow(cells: &[Cell], blocks: u32) -> Vec<FlowRow> {
    cells
        .iter()
        .map(|(scenario, arm, tier)| FlowRow {
            scenario: scenario.clone(),
            arm: arm.clone(),
            tier: tier.clone(),
            planned: blocks,
            started: blocks,
            retried: u32::from(arm.as_str() == "control"),
            excluded: BTreeMap::new(),
            not_run: 0,
            timeouts: 1,
            analysed: blocks,
        })
        .collect()
}

pub fn rates() -> Vec<RateRow> {
    vec![RateRow {
        scenario: ScenarioId::new(SCENARIOS[0]),
        what: "primary cause named".to_owned(),
        treatment: (17, 20),
        control: (11, 20),
        difference: Some((
            0.3,
            Interval {
                low: 0.015,
                high: 0.53,
            },
        )),
    }]
}

pub fn drift() -> Vec<DriftRow> {
    ["control", "treatment"]
        .iter()
        .map(|arm| DriftRow {
            arm: ArmId::new(*arm),
            tier: None,
            n: 60,
            slope: Some(-0.00012),
            slope_p: Some(0.41),
            lag1: Some(0.04),
            after_treatment: Some(0.011),
            after_treatment_p: Some(0.62),
        })
        .collect()
}

pub fn calibration() -> CalibrationNote {
    CalibrationNote {
        breakage_version: "0.1.0".to_owned(),
        at: "2026-11-28T09:30:00Z".to_owned(),
        aa_rejected: 31,
        aa_datasets: 1000,
        aa_ci99: Interval {
            low: 0.0189,
            high: 0.0478,
        },
        planted: Some(0.1),
        planted_found: 187,
        planted_datasets: 200,
    }
}

pub fn note(blocks: u32) -> RegistrationNote {
    let arm = |id: &str, retrieval: &str| ArmNote {
        id: ArmId::new(id),
        agent: "simulated:0.7".to_owned(),
        agent_version: "1".to_owned(),
        simulation: true,
        context: None,
        retrieval: retrieval.to_owned(),
    };
    RegistrationNote {
        hash: RegistrationHash::new(
            "4b1f0d2c9e77a3568f12c0de5a9b44e1037d66c2f8a90b1e5d3c7f2a4e6b8d90",
        ),
        id: ExperimentId::new("falsification"),
        title: "Does retrieval of past incidents help an agent that repairs a cluster?".to_owned(),
        authors: vec!["A. Author".to_owned(), "B. Author".to_owned()],
        hypotheses: vec![HypothesisNote {
            id: "h1".to_owned(),
            text: "Runs that may retrieve past incidents score higher on average.".to_owned(),
            direction: Direction::Higher,
        }],
        prior_data: "The published summary statistics".to_owned(),
        sesoi: SESOI,
        alpha: 0.05,
        primary_test: "stratified permutation".to_owned(),
        rubric: RubricId::new("v0.1"),
        control: ArmId::new("control"),
        arms: vec![
            arm("control", "control vectors, k 3"),
            arm("treatment", "on, k 3"),
        ],
        scenarios: SCENARIOS.iter().map(|id| ScenarioId::new(*id)).collect(),
        blocks,
        locked_at: "2026-12-01T10:00:00Z".to_owned(),
        git_commit: Some("9c2ac0912ab34".to_owned()),
        breakage_version: "0.1.0".to_owned(),
        corpus_sha256: "77aa12f09b".repeat(6),
        corpus_entries: 27,
        embedder: "lexical-1".to_owned(),
        simulation: true,
    }
}

pub fn standing(planned: u64, blocks: u32) -> Standing {
    Standing {
        confirmatory: true,
        exploratory_because: Vec::new(),
        looks_registered: Vec::new(),
        looks_taken: Vec::new(),
        deviations: Vec::new(),
        amendments: Vec::new(),
        complete: true,
        planned_runs: planned,
        ended_runs: planned,
        complete_blocks: blocks,
        ledger_head: "c0ffee11d2".repeat(6),
        reanalysis: "breakage experiment analyze 4b1f0d2c --json".to_owned(),
    }
}

pub fn decision(pooled: Option<Verdict>) -> Decision {
    let row = |id: &str, when: &str, decision: &str, next: Option<&str>| Row {
        id: id.to_owned(),
        decision: decision.to_owned(),
        when: when.to_owned(),
        next: next.map(str::to_owned),
        ships: id == "ship",
    };
    Decision {
        row: Some("extend".to_owned()),
        decision: "run 20 more blocks once".to_owned(),
        because: "one scenario has a benefit and two are inconclusive".to_owned(),
        rows: vec![
            row("ship", "pooled == benefit and harm == 0", "continue", None),
            row("harm", "harm >= 1", "stop and look into it", None),
            row(
                "extend",
                "pooled == inconclusive or benefit in 1..2",
                "run 20 more blocks once",
                Some("20 blocks, 120 runs; then ship or stop"),
            ),
            row("stop", "otherwise", "stop, undecided", None),
        ],
        no_decision: "no decision".to_owned(),
        verdicts: VerdictCounts {
            pooled,
            benefit: 1,
            inconclusive: 2,
            ..VerdictCounts::default()
        },
        operating: Vec::new(),
    }
}

pub fn manipulation(cells: &[Cell], blocks: u32) -> Manipulation {
    let check = |what: &str, required: &str, observed: &str| Check {
        what: what.to_owned(),
        required: required.to_owned(),
        observed: observed.to_owned(),
        passed: true,
    };
    Manipulation {
        passed: true,
        checks: vec![
            check("control runs that were served anything", "0", "0 of 60"),
            check(
                "treatment runs that were served something",
                "at least 90.0 %",
                "100.0 %",
            ),
        ],
        exposure: cells
            .iter()
            .map(|(scenario, arm, tier)| {
                let served = arm.as_str() == "treatment";
                ExposureRow {
                    scenario: scenario.clone(),
                    arm: arm.clone(),
                    tier: tier.clone(),
                    runs: blocks,
                    exposed: if served { blocks } else { 0 },
                    mean_served: if served { 2.6 } else { 0.0 },
                    distance: served.then_some(Range {
                        low: 0.31,
                        mean: 0.44,
                        high: 0.52,
                    }),
                    distinct_sets: if served { 4 } else { 0 },
                }
            })
            .collect(),
    }
}

pub fn axes() -> Vec<AxisRow> {
    let mut rows = Vec::new();
    for scenario in SCENARIOS {
        for (axis, dead) in [
            ("detected", true),
            ("diagnosed", false),
            ("fixed", false),
            ("no regressions", true),
        ] {
            rows.push(AxisRow {
                scenario: ScenarioId::new(scenario),
                axis: axis.to_owned(),
                treatment: Some(0.28),
                control: Some(if dead { 0.28 } else { 0.24 }),
                distinct_values: if dead { 1 } else { 3 },
                variance_share: (!dead).then_some(0.5),
                dead,
            });
        }
    }
    rows
}
