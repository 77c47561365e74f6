//! Turns evidence into points: a pure function of scenario, record, rubric and vocabulary.
//!
//! It believes observed requests, detectors and served exemplars, never what an agent says it did. It does not know the
//! experience base, so a score is the same with or without memory. `docs/scoring.md` states every rule in words.

mod axes;
mod diagnosis;
mod retrieval;

use serde::{Deserialize, Serialize};

use crate::ids::{CategoryId, MicroPoints, PostmortemId, RubricId};
use crate::record::{FrameworkCode, Outcome, Record, RunState};
use crate::scenario::model::{Rubric, Scenario, Vocabulary};

/// The points of one run under one rubric. JSON carries points as decimals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    pub rubric: RubricId,
    /// The sum of the four axes, 0 to 1.
    #[serde(with = "decimal")]
    pub total: MicroPoints,
    pub axes: Axes,
    /// Served exemplars that the agent's observed requests follow, in the order in which they were first served.
    pub retrieval_used: Vec<PostmortemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_disagreement: Option<ChannelDisagreement>,
    /// How the incident ended, for the postmortem's label.
    pub outcome: Outcome,
    /// Why a person should look at this run; empty for most.
    pub review: Vec<Review>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axes {
    pub detected: Axis,
    pub diagnosed: Axis,
    pub fixed: Axis,
    pub no_regressions: Axis,
}

/// One axis: what was earned of what was possible, and why in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    #[serde(with = "decimal")]
    pub earned: MicroPoints,
    #[serde(with = "decimal")]
    pub possible: MicroPoints,
    pub detail: String,
}

/// The agent's last hypothesis and its postmortem name different causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelDisagreement {
    pub hypothesis: CategoryId,
    pub postmortem: CategoryId,
}

/// What a person should look at. None of these changes the score by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    ChannelDisagreement,
    /// The postmortem's primary category is not one of the vocabulary, or is the reserved one.
    CategoryOutsideVocabulary,
    /// More secondaries than the rubric takes for a diagnosis.
    TooManySecondaries,
    /// Something regressed although no request of the agent was observed.
    RegressionWithoutAction,
}

/// Runs without a score: they are not the agent's doing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotScorable {
    #[error("run {run} ended in our own failure {} and has no score", code.as_str())]
    FrameworkError { run: String, code: FrameworkCode },
    #[error("run {run} was not run and has no score")]
    NotRun { run: String },
}

/// Scores a record. Rescoring the same record gives the same score, whenever and wherever.
pub fn score(
    scenario: &Scenario,
    record: &Record,
    rubric: &Rubric,
    vocabulary: &Vocabulary,
) -> Result<Score, NotScorable> {
    match &record.state {
        RunState::Scored | RunState::Timeout => {}
        RunState::FrameworkError { code, .. } => {
            return Err(NotScorable::FrameworkError {
                run: record.run_id.to_string(),
                code: *code,
            });
        }
        RunState::NotRun { .. } => {
            return Err(NotScorable::NotRun {
                run: record.run_id.to_string(),
            });
        }
    }
    let credits = scenario.scorer.credits;
    let diagnosis = diagnosis::judge(&scenario.ground_truth, record, rubric, vocabulary);
    let regressions = axes::regressions(record, rubric);
    let axes = Axes {
        detected: axes::detected(record, credits.detected),
        diagnosed: Axis {
            earned: credits.diagnosed.scaled(diagnosis.fraction),
            possible: credits.diagnosed,
            detail: diagnosis.detail,
        },
        fixed: axes::fixed(record, credits.fixed),
        no_regressions: axes::no_regressions(record, &regressions, credits.no_regressions),
    };
    let channel_disagreement = channel_disagreement(record);
    let mut review = diagnosis.review;
    if channel_disagreement.is_some() {
        review.push(Review::ChannelDisagreement);
    }
    if !regressions.is_empty() && record.actions.is_empty() {
        review.push(Review::RegressionWithoutAction);
    }
    review.sort_unstable();
    Ok(Score {
        rubric: rubric.id.clone(),
        total: axes.sum(),
        retrieval_used: retrieval::used(record),
        outcome: outcome(record, &regressions, channel_disagreement.is_some()),
        channel_disagreement,
        axes,
        review,
    })
}

impl Axes {
    fn sum(&self) -> MicroPoints {
        let axes = [
            &self.detected,
            &self.diagnosed,
            &self.fixed,
            &self.no_regressions,
        ];
        MicroPoints(axes.iter().map(|axis| axis.earned.0).sum())
    }
}

fn channel_disagreement(record: &Record) -> Option<ChannelDisagreement> {
    let hypothesis = &record.hypotheses.last()?.primary_category;
    let postmortem = &record.postmortem.as_ref()?.primary_category;
    (hypothesis != postmortem).then(|| ChannelDisagreement {
        hypothesis: hypothesis.clone(),
        postmortem: postmortem.clone(),
    })
}

/// An account that contradicts itself is no lesson, however the incident ended.
fn outcome(record: &Record, regressions: &[String], disagreement: bool) -> Outcome {
    if disagreement {
        Outcome::Inconclusive
    } else if !regressions.is_empty() {
        Outcome::Regressed
    } else if record.detector.fixed {
        Outcome::Resolved
    } else {
        Outcome::Inconclusive
    }
}

/// Points as decimals in JSON: 910000 is `0.91`.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::ids::MicroPoints;

    pub(super) fn serialize<S: Serializer>(
        points: &MicroPoints,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(points.as_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<MicroPoints, D::Error> {
        let decimal = f64::deserialize(deserializer)?;
        if !(0.0..=1.0).contains(&decimal) {
            return Err(serde::de::Error::custom("points lie between 0 and 1"));
        }
        // In range, so the cast cannot wrap.
        Ok(MicroPoints((decimal * 1e6).round() as u32))
    }
}

#[cfg(test)]
mod tests;
