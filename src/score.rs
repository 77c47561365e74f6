//! Turns evidence into points: a pure function of scenario, record, rubric and vocabulary.
//!
//! It believes observed requests, detectors and served exemplars, never what an agent says it did. It does not know the
//! experience base, so a score is the same with or without memory. `docs/scoring.md` states every rule in words.

mod axes;
mod diagnosis;
mod observed;
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
    /// What the postmortem's primary category was worth; `absent` also for control runs, which have nothing to diagnose.
    #[serde(default)]
    pub diagnosis: DiagnosisMatch,
    /// Secondary categories that are right and were not lost to a miss or to too long a list.
    #[serde(default)]
    pub correct_secondaries: u32,
    /// Served exemplars that the agent's observed requests follow, in the order in which they were first served.
    pub retrieval_used: Vec<PostmortemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_disagreement: Option<ChannelDisagreement>,
    /// From the start of the agent's clock to the first read that could have shown the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_relevant_read_ms: Option<u64>,
    /// For control runs: what the agent claimed or changed although nothing was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_alarm: Option<FalseAlarm>,
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

/// What a postmortem's primary category was worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosisMatch {
    Exact,
    NearMiss,
    /// Also a category that cannot be named, and under observation a guess.
    Miss,
    /// No diagnosis came in.
    #[default]
    Absent,
}

/// An alarm in a run in which nothing was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalseAlarm {
    /// The cause that the agent named, if any: the postmortem's, else the last hypothesis'.
    pub named: Option<CategoryId>,
    /// Requests that changed something.
    pub changes: usize,
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
    /// The postmortem names a cause although nothing was read that could have shown the fault.
    UnseenDiagnosis,
    /// The symptom is gone, but what the scenario protects is not as it was.
    RepairedAtACost,
    /// The agent claimed or changed something although nothing was wrong.
    FalseAlarm,
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
    scorable(record)?;
    let credits = scenario.scorer.credits;
    let regressions = axes::regressions(scenario, record, rubric);
    let relevant = observed::first_relevant_read(scenario, record);
    let (axes, named, mut review) = if record.healthy {
        let nothing_wrong = axes::nothing_wrong(record, rubric, &regressions, credits);
        (nothing_wrong, (DiagnosisMatch::Absent, 0), Vec::new())
    } else {
        let diagnosis = diagnosis::judge(scenario, record, rubric, vocabulary);
        let axes = Axes {
            detected: axes::detected(record, rubric, relevant, credits.detected),
            diagnosed: Axis {
                earned: credits.diagnosed.scaled(diagnosis.fraction),
                possible: credits.diagnosed,
                detail: diagnosis.detail,
            },
            fixed: axes::fixed(record, credits.fixed),
            no_regressions: axes::no_regressions(
                record,
                rubric,
                &regressions,
                credits.no_regressions,
            ),
        };
        let named = (diagnosis.matched, diagnosis.correct_secondaries);
        (axes, named, diagnosis.review)
    };
    let false_alarm = observed::false_alarm(record);
    let channel_disagreement = channel_disagreement(record);
    let flags = [
        (channel_disagreement.is_some(), Review::ChannelDisagreement),
        (
            !regressions.is_empty() && record.actions.is_empty(),
            Review::RegressionWithoutAction,
        ),
        (
            record.detector.fixed && !record.detector.is_repaired(),
            Review::RepairedAtACost,
        ),
        (false_alarm.is_some(), Review::FalseAlarm),
    ];
    review.extend(
        flags
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, flag)| flag),
    );
    review.sort_unstable();
    Ok(Score {
        rubric: rubric.id.clone(),
        total: axes.sum(),
        retrieval_used: retrieval::used(record),
        outcome: outcome(record, &regressions, channel_disagreement.is_some()),
        channel_disagreement,
        first_relevant_read_ms: relevant.map(|read| observed::into_work_ms(record, read.at_ms)),
        false_alarm,
        axes,
        diagnosis: named.0,
        correct_secondaries: named.1,
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

/// Whether there is anything of the agent's to score.
fn scorable(record: &Record) -> Result<(), NotScorable> {
    match &record.state {
        RunState::Scored | RunState::Timeout => Ok(()),
        RunState::FrameworkError { code, .. } => Err(NotScorable::FrameworkError {
            run: record.run_id.to_string(),
            code: *code,
        }),
        RunState::NotRun { .. } => Err(NotScorable::NotRun {
            run: record.run_id.to_string(),
        }),
    }
}

impl Score {
    /// What the whole could have earned: 1, or in a control run the weight of leaving things alone.
    pub fn possible(&self) -> MicroPoints {
        let Axes {
            detected,
            diagnosed,
            fixed,
            no_regressions,
        } = &self.axes;
        let axes = [detected, diagnosed, fixed, no_regressions];
        MicroPoints(axes.iter().map(|axis| axis.possible.0).sum())
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
    } else if record.detector.is_repaired() && !record.healthy {
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
