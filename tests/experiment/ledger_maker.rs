//! Registrations and ledgers made from lists of totals, for tests of the analysis.

use agent_breakage::experiment::allocation::slots;
use agent_breakage::experiment::ledger::{
    AxisLine, DiagnosisMatch, Entry, Event, Exposure, RunEntry, RunOutcome, ScoreLine,
};
use agent_breakage::experiment::plan::{
    Arm, Corpus, Exclusions, Manipulation, Matrix, Multiverse, Plan, PlannedScenario, PowerPlan,
    Primary, Retrieval, Row, Serving, Tests, Tiers, Writes,
};
use agent_breakage::experiment::registration::{
    LockedArm, LockedCorpus, LockedRubric, Registration,
};
use agent_breakage::ids::{
    ArmId, EmbedderId, ExperimentId, MicroPoints, PostmortemId, RegistrationHash, RubricId, RunId,
    ScenarioId,
};
use agent_breakage::record::FrameworkCode;

pub const CONTROL: &str = "control";
pub const TREATMENT: &str = "treatment";

/// What became of one run: a total in micro-points, or a failure of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Run {
    Total(u32),
    Failed(FrameworkCode),
}

pub fn hash() -> RegistrationHash {
    RegistrationHash::new("c0ffee".repeat(11).chars().take(64).collect::<String>())
}

pub fn plan(scenarios: &[&str], blocks: u32, primary: Primary) -> Plan {
    let serving = Serving {
        k: 3,
        max_distance: None,
        pool_cap: None,
        sources: Vec::new(),
        same_scenario: false,
    };
    let planned = |id: &&str| PlannedScenario {
        id: ScenarioId::new(*id),
        weight: 1,
        unqualified_because: None,
    };
    Plan {
        id: ExperimentId::new("made"),
        title: "Made for a test".to_owned(),
        authors: vec!["a test".to_owned()],
        prior_data: "none".to_owned(),
        hypotheses: Vec::new(),
        sesoi: MicroPoints(50_000),
        rubric: RubricId::new("v0.1"),
        control: ArmId::new(CONTROL),
        arms: vec![
            arm(CONTROL, Retrieval::Off),
            arm(TREATMENT, Retrieval::On(serving)),
        ],
        scenarios: scenarios.iter().map(planned).collect(),
        tiers: None,
        blocks,
        seed: 1,
        corpus: Corpus {
            embedder: "lexical".to_owned(),
            writes: Writes::Frozen,
        },
        tests: Tests {
            primary,
            alpha: MicroPoints(50_000),
            co_primary: false,
        },
        exclusions: Exclusions {
            retries: 1,
            cap: MicroPoints(200_000),
        },
        power: power(),
        looks: Vec::new(),
        manipulation: Manipulation {
            min_exposed: MicroPoints(800_000),
            min_tier_difference: MicroPoints(500_000),
        },
        matrix: matrix(),
        multiverse: Multiverse {
            near_miss: [0, 175_000, 350_000, 525_000, 700_000]
                .map(MicroPoints)
                .to_vec(),
            weight_vectors: 50,
        },
        blinded: false,
        deviations: String::new(),
        stopping: String::new(),
    }
}

fn arm(id: &str, retrieval: Retrieval) -> Arm {
    Arm {
        id: ArmId::new(id),
        agent: "simulated".to_owned(),
        context: None,
        retrieval,
    }
}

fn power() -> PowerPlan {
    PowerPlan {
        sigma: MicroPoints(130_000),
        sigma_source: "a test".to_owned(),
        sigma_runs: None,
        rho: MicroPoints(0),
        target: MicroPoints(800_000),
    }
}

fn matrix() -> Matrix {
    let row = |id: &str, when: &str| Row {
        id: id.to_owned(),
        decision: id.to_owned(),
        when: when.to_owned(),
        ships: id == "continue",
        next: None,
    };
    Matrix {
        rows: vec![
            row("stop", "harm > 0 or pooled == harm"),
            row("continue", "harm == 0 and pooled == benefit"),
            row(
                "pivot",
                "harm == 0 and (pooled == equivalent or pooled == no_benefit)",
            ),
            row(
                "undecided",
                "harm == 0 and not (pooled == benefit or pooled == harm or pooled == equivalent or pooled == no_benefit)",
            ),
        ],
        no_decision: "no decision".to_owned(),
    }
}

pub fn registration(plan: Plan) -> Registration {
    Registration {
        format: agent_breakage::experiment::registration::FORMAT,
        breakage_version: "0.1.0".to_owned(),
        scenarios: Vec::new(),
        rubric: LockedRubric {
            id: plan.rubric.clone(),
            sha256: String::new(),
            text: String::new(),
            near_miss: MicroPoints(350_000),
            exact_primary: MicroPoints(700_000),
        },
        vocabulary_sha256: String::new(),
        arms: plan
            .arms
            .iter()
            .map(|arm| LockedArm {
                id: arm.id.clone(),
                agent: arm.agent.clone(),
                agent_version: "1".to_owned(),
                simulation: true,
            })
            .collect(),
        corpus: LockedCorpus {
            embedder: EmbedderId::new("lexical"),
            sha256: String::new(),
            entries: 41,
        },
        operating: Vec::new(),
        amends: None,
        plan,
    }
}

pub fn tiers(of: &[(&str, Option<usize>, i32)]) -> Tiers {
    use agent_breakage::experiment::plan::{Tier, TierKind};
    Tiers {
        kind: TierKind::Corpus,
        tiers: of
            .iter()
            .map(|(id, size, code)| Tier {
                id: (*id).to_owned(),
                size: *size,
                code: *code,
            })
            .collect(),
    }
}

/// Runs in the allocated order; `outcome` says what became of the run of a block, by scenario, arm and tier.
pub fn ledger(
    plan: &Plan,
    outcome: impl Fn(&str, &str, Option<&str>, u32) -> Run,
    served: impl Fn(&str, Option<&str>, u32) -> Vec<&'static str>,
) -> Vec<Entry> {
    let mut events = vec![Event::Locked {
        breakage_version: "0.1.0".to_owned(),
        git_commit: None,
        git_dirty: false,
    }];
    for slot in slots(&hash(), plan) {
        let cell = &slot.cell;
        let tier = cell.tier.as_deref();
        let ids = served(cell.arm.as_str(), tier, slot.block);
        let run = outcome(cell.scenario.as_str(), cell.arm.as_str(), tier, slot.block);
        events.push(Event::Ran(Box::new(RunEntry {
            planned: slot.planned,
            actual: Some(slot.planned),
            block: slot.block,
            cell: slot.cell.clone(),
            attempt: 0,
            run_id: RunId::new(format!("run-{}", slot.planned)),
            record_sha256: String::new(),
            outcome: ended(run),
            is_final: true,
            exposure: Exposure {
                queries: 1,
                served: ids
                    .into_iter()
                    .map(|id| (PostmortemId::new(id), 300_000))
                    .collect(),
                ..Exposure::default()
            },
            state_hash_before: None,
            state_hash_after: None,
            virtual_ms: 0,
        })));
    }
    events.push(Event::Finished { reason: None });
    chained(events)
}

/// The chain is not what the analysis reads; the hashes only have to be there.
pub fn chained(events: Vec<Event>) -> Vec<Entry> {
    let number = |seq: usize| format!("{seq:064}");
    events
        .into_iter()
        .enumerate()
        .map(|(seq, event)| Entry {
            seq: seq as u64,
            at: "2026-01-01T00:00:00Z".to_owned(),
            event,
            prev: number(seq),
            hash: number(seq + 1),
        })
        .collect()
}

fn ended(run: Run) -> RunOutcome {
    match run {
        // The published time-out: nothing seen, nothing named, the fault gone by itself.
        Run::Total(500_000) => RunOutcome::Timeout {
            score: score(500_000),
        },
        Run::Total(total) => RunOutcome::Scored {
            score: score(total),
        },
        Run::Failed(code) => RunOutcome::FrameworkError {
            code,
            message: "a test".to_owned(),
        },
    }
}

fn score(total: u32) -> ScoreLine {
    let axis = |earned: u32, possible: u32| AxisLine {
        earned: MicroPoints(earned),
        possible: MicroPoints(possible),
    };
    let (detected, diagnosed, diagnosis) = match total {
        500_000 => (0, 0, DiagnosisMatch::Absent),
        _ if total >= 910_000 => (200_000, total - 700_000, DiagnosisMatch::Exact),
        805_000 => (200_000, 105_000, DiagnosisMatch::NearMiss),
        _ => (200_000, total.saturating_sub(700_000), DiagnosisMatch::Miss),
    };
    let rest = total - detected - diagnosed;
    ScoreLine {
        total: MicroPoints(total),
        detected: axis(detected, 200_000),
        diagnosed: axis(diagnosed, 300_000),
        fixed: axis(rest.min(300_000), 300_000),
        no_regressions: axis(rest.saturating_sub(300_000), 200_000),
        diagnosis,
        correct_secondaries: 0,
    }
}
