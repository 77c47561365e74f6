//! What an experiment says: a pure function of registration and ledger. The same ledger gives the same bytes.
//!
//! [`model::Analysis`] is everything that any report shows; reports format it and compute nothing. The order of things is
//! fixed: the manipulation first, for without it there is no verdict; then the primary comparison, scenario by scenario
//! and pooled; then the row of the matrix; then everything that a sceptic would ask.

mod axes;
pub mod blind;
mod compare;
mod data;
mod drift;
mod exclusions;
mod manipulation;
mod measure;
pub mod model;
mod multiverse;
mod pooled;
mod precision;
mod standing;
mod tiers;
pub mod verdict;

use crate::experiment::analysis::compare::Levels;
use crate::experiment::analysis::data::{Data, Side};
use crate::experiment::analysis::model::{
    Analysis, ArmNote, Comparison, Decision, FlowRow, HypothesisNote, Manipulation,
    RegistrationNote, Standing, Verdict, VerdictCounts,
};
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::matrix;
use crate::experiment::plan::{Plan, Primary, Retrieval};
use crate::experiment::registration::Registration;
use crate::ids::RegistrationHash;
use crate::stats::distribution::normal_sf;
use crate::stats::sequential::{Spending, boundaries};

/// Why a ledger says nothing.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    #[error("the plan has no treatment arm beside its control {0}")]
    NoTreatment(String),
    #[error("no block of the experiment is complete yet")]
    NoBlock,
}

/// See the module. `hash` is the registration's.
pub fn analyze(
    hash: &RegistrationHash,
    registration: &Registration,
    entries: &[Entry],
) -> Result<Analysis, AnalysisError> {
    let plan = &registration.plan;
    let standing = standing::standing(hash, plan, entries);
    let blocks = if standing.complete {
        plan.blocks
    } else {
        standing.complete_blocks
    };
    if blocks == 0 {
        return Err(AnalysisError::NoBlock);
    }
    let data = Data::read(registration, entries, blocks);
    let sides = sides(plan);
    let Some(((treatment, control), others)) = sides.split_first() else {
        return Err(AnalysisError::NoTreatment(plan.control.to_string()));
    };
    let level = level(plan, &standing);
    let levels = Levels::of(&data, level);
    let manipulation = manipulation::manipulation(&data);
    let mut primary = compare::primary(&data, (treatment, control), levels);
    if !manipulation.passed {
        without_verdicts(&mut primary);
    }
    if !standing.complete {
        boundaries_only(&mut primary);
    }
    let decision = decision(registration, (&standing, &manipulation), &primary);
    let mut comparisons = vec![primary];
    let mut others = compare::others(&data, others, levels);
    if !manipulation.passed {
        others.iter_mut().for_each(without_verdicts);
    }
    comparisons.extend(others);
    let runs = drift::points(&data);
    Ok(Analysis {
        registration: registration_note(hash, registration, entries, level),
        decision,
        manipulation,
        flow: flow(&data),
        comparisons,
        tiers: tiers::contrast(&data, &treatment.arm),
        axes: axes::axes(&data, treatment, control),
        rates: axes::rates(&data, treatment, control),
        drift: drift::rows(&data, &runs),
        runs,
        calibration: None,
        standing,
    })
}

/// Treatments against the control. The first is what the decision rests on: the first arm that is not the control, at its
/// last tier, which is the one with the most past to retrieve from.
fn sides(plan: &Plan) -> Vec<(Side, Side)> {
    let control = Side {
        arm: plan.control.clone(),
        tier: None,
    };
    let tiers: Vec<Option<String>> = match &plan.tiers {
        Some(tiers) => tiers
            .tiers
            .iter()
            .rev()
            .map(|tier| Some(tier.id.clone()))
            .collect(),
        None => vec![None],
    };
    let arms = plan.arms.iter().filter(|arm| arm.id != plan.control);
    arms.flat_map(|arm| tiers.iter().map(move |tier| (arm, tier)))
        .map(|(arm, tier)| {
            let treatment = Side {
                arm: arm.id.clone(),
                tier: tier.clone(),
            };
            (treatment, control.clone())
        })
        .collect()
}

/// The level that is left for this analysis: all of alpha, or what the registered looks spend of it up to here.
fn level(plan: &Plan, standing: &Standing) -> f64 {
    let alpha = plan.tests.alpha.as_f64();
    if plan.looks.is_empty() {
        return alpha;
    }
    let blocks = f64::from(plan.blocks);
    let mut fractions: Vec<f64> = plan
        .looks
        .iter()
        .map(|look| f64::from(*look) / blocks)
        .collect();
    fractions.push(1.0);
    let boundaries = boundaries(Spending::Obf, alpha, &fractions).unwrap_or_default();
    let index = if standing.complete {
        plan.looks.len()
    } else {
        let taken = plan
            .looks
            .iter()
            .filter(|look| **look <= standing.complete_blocks);
        taken.count().saturating_sub(1)
    };
    let boundary = boundaries.get(index);
    boundary.map_or(alpha, |z| 2.0 * normal_sf(*z))
}

/// What the arms scored says nothing about a treatment that was not delivered.
fn without_verdicts(comparison: &mut Comparison) {
    for one in &mut comparison.scenarios {
        one.verdict = Verdict::Invalid;
        one.material = false;
    }
    if let Some(pooled) = &mut comparison.pooled {
        pooled.verdict = Verdict::Invalid;
        pooled.material = false;
    }
}

/// Before the end only a boundary that was crossed is a verdict: looks spend alpha on these, and on nothing else.
fn boundaries_only(comparison: &mut Comparison) {
    let crossed = |verdict| match verdict {
        Verdict::Equivalent | Verdict::NoBenefit => Verdict::Inconclusive,
        other => other,
    };
    for one in &mut comparison.scenarios {
        one.verdict = crossed(one.verdict);
    }
    if let Some(pooled) = &mut comparison.pooled {
        pooled.verdict = crossed(pooled.verdict);
    }
}

/// What is decided at a look at which no boundary was crossed, and before the end in general.
const GO_ON: &str = "go on";

fn decision(
    registration: &Registration,
    (standing, manipulation): (&Standing, &Manipulation),
    primary: &Comparison,
) -> Decision {
    let matrix = &registration.plan.matrix;
    let verdicts = counts(primary);
    let found =
        matches!(verdicts.pooled, Some(Verdict::Benefit | Verdict::Harm)) || verdicts.harm > 0;
    let goes_on = !standing.complete && manipulation.passed && !found;
    let undecided = if goes_on {
        Some(format!(
            "no boundary was crossed after {} of {} blocks",
            standing.complete_blocks, registration.plan.blocks
        ))
    } else if !manipulation.passed {
        Some("the treatment was not delivered as registered: treatment_not_delivered".to_owned())
    } else if primary.exclusions.share > primary.exclusions.cap {
        Some(format!(
            "{:.1} % of the runs were excluded, more than the registered {:.1} %: invalid",
            primary.exclusions.share * 100.0,
            primary.exclusions.cap * 100.0
        ))
    } else {
        primary.pooled_missing.clone()
    };
    let row = match &undecided {
        Some(_) => None,
        None => matrix::decide(matrix, &verdicts),
    };
    Decision {
        row: row.map(|row| row.id.clone()),
        decision: match row {
            Some(row) => row.decision.clone(),
            None if goes_on => GO_ON.to_owned(),
            None => matrix.no_decision.clone(),
        },
        because: match (undecided, row) {
            (Some(why), _) => why,
            (None, Some(row)) => row.when.clone(),
            (None, None) => "no row of the matrix matches".to_owned(),
        },
        rows: matrix.rows.clone(),
        no_decision: matrix.no_decision.clone(),
        verdicts,
        operating: registration.operating_rows(),
    }
}

fn counts(primary: &Comparison) -> VerdictCounts {
    let of = |verdict| {
        let scenarios = primary.scenarios.iter();
        measure::count(scenarios.filter(|one| one.verdict == verdict).count())
    };
    VerdictCounts {
        pooled: primary.pooled.as_ref().map(|pooled| pooled.verdict),
        benefit: of(Verdict::Benefit),
        harm: of(Verdict::Harm),
        equivalent: of(Verdict::Equivalent),
        no_benefit: of(Verdict::NoBenefit),
        inconclusive: of(Verdict::Inconclusive),
        degenerate: of(Verdict::Degenerate),
        invalid: of(Verdict::Invalid),
    }
}

fn flow(data: &Data<'_>) -> Vec<FlowRow> {
    data.cells()
        .map(|(cell, of)| {
            let mut excluded = std::collections::BTreeMap::new();
            for code in of.excluded.values() {
                *excluded.entry(code.clone()).or_insert(0) += 1;
            }
            FlowRow {
                scenario: cell.scenario,
                arm: cell.arm,
                tier: cell.tier,
                planned: data.plan.blocks,
                started: of.started,
                retried: of.retried,
                excluded,
                not_run: of.not_run,
                timeouts: measure::count(of.counted.values().filter(|run| run.timeout).count()),
                analysed: measure::count(of.counted.len()),
            }
        })
        .collect()
}

fn registration_note(
    hash: &RegistrationHash,
    registration: &Registration,
    entries: &[Entry],
    level: f64,
) -> RegistrationNote {
    let plan = &registration.plan;
    let locked = entries.iter().find_map(|entry| match &entry.event {
        Event::Locked { git_commit, .. } => Some((entry.at.clone(), git_commit.clone())),
        _ => None,
    });
    let (locked_at, git_commit) = locked.unwrap_or_default();
    RegistrationNote {
        hash: hash.clone(),
        id: plan.id.clone(),
        title: plan.title.clone(),
        authors: plan.authors.clone(),
        hypotheses: plan
            .hypotheses
            .iter()
            .map(|one| HypothesisNote {
                id: one.id.clone(),
                text: one.text.clone(),
                direction: one.direction,
            })
            .collect(),
        prior_data: plan.prior_data.clone(),
        sesoi: plan.sesoi.as_f64(),
        alpha: plan.tests.alpha.as_f64(),
        primary_test: primary_test(plan, level),
        rubric: plan.rubric.clone(),
        control: plan.control.clone(),
        arms: arm_notes(registration),
        scenarios: plan.scenarios.iter().map(|one| one.id.clone()).collect(),
        blocks: plan.blocks,
        locked_at,
        git_commit,
        breakage_version: registration.breakage_version.clone(),
        corpus_sha256: registration.corpus.sha256.clone(),
        corpus_entries: registration.corpus.entries,
        embedder: registration.corpus.embedder.to_string(),
        simulation: registration.arms.iter().any(|arm| arm.simulation),
    }
}

/// In words, with the level that the looks leave for this analysis.
fn primary_test(plan: &Plan, level: f64) -> String {
    let test = match plan.tests.primary {
        Primary::PairedSignFlip => "paired sign-flip over the scenarios, exact",
        Primary::StratifiedPermutation => "permutation inside each scenario, exact",
    };
    if plan.looks.is_empty() {
        return test.to_owned();
    }
    format!(
        "{test}, here at level {level:.6}: alpha is spent over the looks as by O'Brien and Fleming"
    )
}

fn arm_notes(registration: &Registration) -> Vec<ArmNote> {
    let arms = registration.plan.arms.iter();
    arms.map(|arm| {
        let locked = registration.arms.iter().find(|locked| locked.id == arm.id);
        ArmNote {
            id: arm.id.clone(),
            agent: arm.agent.clone(),
            agent_version: locked.map_or_else(String::new, |one| one.agent_version.clone()),
            simulation: locked.is_some_and(|one| one.simulation),
            context: arm.context.clone(),
            retrieval: match &arm.retrieval {
                Retrieval::Off => "off".to_owned(),
                Retrieval::On(serving) => format!("on, k {}", serving.k),
                Retrieval::DeterministicControl(serving) => {
                    format!("deterministic control, k {}", serving.k)
                }
                Retrieval::Placebo(serving) => format!("placebo, k {}", serving.k),
            },
        }
    })
    .collect()
}
