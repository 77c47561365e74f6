//! The diagnosis axis: the postmortem's categories against the truth, as a fraction of the axis' weight.

use std::collections::BTreeSet;

use crate::ids::{CategoryId, MicroPoints};
use crate::record::{Postmortem, Record, RunState};
use crate::scenario::model::{Basis, FRAMEWORK_ERROR, GroundTruth, Rubric, Scenario, Vocabulary};
use crate::score::observed::first_relevant_read;
use crate::score::{DiagnosisMatch, Review};

/// What the postmortem's categories are worth.
pub(super) struct Diagnosis {
    /// Of the axis' weight, 0 to 1.
    pub(super) fraction: MicroPoints,
    pub(super) matched: DiagnosisMatch,
    /// That earn a bonus wherever the primary earns anything.
    pub(super) correct_secondaries: u32,
    pub(super) detail: String,
    pub(super) review: Vec<Review>,
}

pub(super) fn judge(
    scenario: &Scenario,
    record: &Record,
    rubric: &Rubric,
    vocabulary: &Vocabulary,
) -> Diagnosis {
    // A postmortem that came in after the time was up is no diagnosis in time.
    let Some(postmortem) = record
        .postmortem
        .as_ref()
        .filter(|_| record.state == RunState::Scored)
    else {
        return Diagnosis {
            fraction: MicroPoints(0),
            matched: DiagnosisMatch::Absent,
            correct_secondaries: 0,
            detail: "no postmortem came in".to_owned(),
            review: Vec::new(),
        };
    };
    let named = &postmortem.primary_category;
    if !is_nameable(named, vocabulary) {
        return Diagnosis {
            fraction: MicroPoints(0),
            matched: DiagnosisMatch::Miss,
            correct_secondaries: 0,
            detail: format!("{named} is not a category that can be named"),
            review: vec![Review::CategoryOutsideVocabulary],
        };
    }
    let mut diagnosis = judge_categories(&scenario.ground_truth, postmortem, rubric);
    if first_relevant_read(scenario, record).is_none() {
        diagnosis.review.push(Review::UnseenDiagnosis);
        if rubric.basis == Basis::Observed {
            diagnosis.fraction = MicroPoints(0);
            diagnosis.matched = DiagnosisMatch::Miss;
            diagnosis.correct_secondaries = 0;
            diagnosis.detail =
                format!("nothing that could show the fault was read: {named} is a guess");
        }
    }
    diagnosis
}

fn judge_categories(truth: &GroundTruth, postmortem: &Postmortem, rubric: &Rubric) -> Diagnosis {
    let named = &postmortem.primary_category;
    // Naming a category twice, or the primary again, adds nothing.
    let secondaries: BTreeSet<&CategoryId> = postmortem
        .secondary_categories
        .iter()
        .filter(|secondary| *secondary != named)
        .collect();
    let too_many = secondaries.len() > rubric.max_secondaries;
    let mut review = Vec::new();
    if too_many {
        review.push(Review::TooManySecondaries);
    }
    let exact = *named == truth.primary_category;
    let near = near_miss(truth, named, &secondaries);
    let matched = match near {
        _ if exact => DiagnosisMatch::Exact,
        Some(_) if !too_many => DiagnosisMatch::NearMiss,
        _ => DiagnosisMatch::Miss,
    };
    let (primary, mut detail) = match near {
        _ if exact => (
            rubric.exact_primary,
            format!("{named} is the primary cause"),
        ),
        Some(why) if !too_many => (rubric.near_miss, why),
        Some(why) => (
            MicroPoints(0),
            format!(
                "{why}, but {} secondary categories are no diagnosis",
                secondaries.len()
            ),
        ),
        None => (MicroPoints(0), format!("{named} is not the cause")),
    };
    let correct = secondaries
        .iter()
        .filter(|secondary| truth.secondary_categories.contains(secondary))
        .count();
    let bonus = if primary.0 == 0 || too_many {
        MicroPoints(0)
    } else {
        bonus(correct, rubric)
    };
    if bonus.0 > 0 {
        detail.push_str(&match correct {
            1 => ", one secondary category is right too".to_owned(),
            _ => format!(", {correct} secondary categories are right too"),
        });
    } else if exact && too_many {
        detail.push_str(", but the list of secondary categories is too long to earn anything");
    }
    let earning = matched != DiagnosisMatch::Miss && !too_many;
    Diagnosis {
        matched,
        correct_secondaries: if earning {
            u32::try_from(correct).unwrap_or(u32::MAX)
        } else {
            0
        },
        fraction: MicroPoints((primary.0 + bonus.0).min(MicroPoints::ONE.0)),
        detail,
        review,
    }
}

/// Why the diagnosis nearly hits, in either direction; nothing when it does not.
fn near_miss(
    truth: &GroundTruth,
    named: &CategoryId,
    secondaries: &BTreeSet<&CategoryId>,
) -> Option<String> {
    if truth.secondary_categories.contains(named) {
        Some(format!("near miss: {named} is a secondary cause"))
    } else if secondaries.contains(&truth.primary_category) {
        Some(format!(
            "near miss: the primary cause {} is among the secondary categories",
            truth.primary_category
        ))
    } else {
        None
    }
}

fn bonus(correct: usize, rubric: &Rubric) -> MicroPoints {
    let correct = u32::try_from(correct).unwrap_or(u32::MAX);
    let earned = rubric.secondary_bonus.0.saturating_mul(correct);
    MicroPoints(earned.min(rubric.secondary_bonus_max.0))
}

fn is_nameable(category: &CategoryId, vocabulary: &Vocabulary) -> bool {
    category.as_str() != FRAMEWORK_ERROR
        && vocabulary
            .categories
            .iter()
            .any(|known| known.id == *category)
}
