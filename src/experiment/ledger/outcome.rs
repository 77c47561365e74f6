//! What a ledger keeps of a record and its score.

use crate::experiment::ledger::{AxisLine, Exposure, RunEntry, RunOutcome, ScoreLine};
use crate::experiment::plan::Cell;
use crate::ids::MicroPoints;
use crate::record::{FrameworkCode, Record, RunState};
use crate::score::{Axis, Score};

/// Distances are kept in millionths, and an embedder's are whole ones.
const DISTANCE_PARTS: f64 = 1e6;

/// The part of an entry that follows from the run itself.
pub struct Ran<'a> {
    pub record: &'a Record,
    pub record_sha256: String,
    pub score: Option<&'a Score>,
    pub cell: Cell,
}

impl Ran<'_> {
    /// The run's entry; nothing where the record tells of no place in an experiment.
    pub fn entry(self, actual: Option<u64>, is_final: bool) -> Option<RunEntry> {
        let record = self.record;
        let place = record.experiment.as_ref()?;
        Some(RunEntry {
            planned: place.planned,
            actual,
            block: place.block,
            cell: self.cell,
            attempt: place.attempt,
            run_id: record.run_id.clone(),
            record_sha256: self.record_sha256,
            outcome: outcome(record, self.score),
            is_final,
            exposure: exposure(record),
            state_hash_before: record.state_hash_before.clone(),
            state_hash_after: record.state_hash_after.clone(),
            virtual_ms: record.virtual_ms,
        })
    }
}

/// How a run ended. A run that should have a score and has none is our failure.
pub fn outcome(record: &Record, score: Option<&Score>) -> RunOutcome {
    let scored = |wrap: fn(ScoreLine) -> RunOutcome| match score {
        Some(score) => wrap(line(score)),
        None => RunOutcome::FrameworkError {
            code: FrameworkCode::Scorer,
            message: "the run has no score".to_owned(),
        },
    };
    match &record.state {
        RunState::Scored => scored(|score| RunOutcome::Scored { score }),
        RunState::Timeout => scored(|score| RunOutcome::Timeout { score }),
        RunState::FrameworkError { code, message } => RunOutcome::FrameworkError {
            code: *code,
            message: message.clone(),
        },
        RunState::NotRun { reason } => RunOutcome::NotRun {
            reason: reason.clone(),
        },
    }
}

pub fn line(score: &Score) -> ScoreLine {
    let axis = |axis: &Axis| AxisLine {
        earned: axis.earned,
        possible: axis.possible,
    };
    ScoreLine {
        total: score.total,
        detected: axis(&score.axes.detected),
        diagnosed: axis(&score.axes.diagnosed),
        fixed: axis(&score.axes.fixed),
        no_regressions: axis(&score.axes.no_regressions),
        diagnosis: score.diagnosis,
        correct_secondaries: score.correct_secondaries,
    }
}

/// What a run was served, each incident once.
pub fn exposure(record: &Record) -> Exposure {
    let mut served: Vec<(crate::ids::PostmortemId, u32)> = Vec::new();
    for one in record.retrievals.iter().flat_map(|one| &one.served) {
        if served.iter().all(|(id, _)| *id != one.id) {
            served.push((one.id.clone(), millionths(one.distance)));
        }
    }
    let place = record.experiment.as_ref();
    Exposure {
        queries: u32::try_from(record.retrievals.len()).unwrap_or(u32::MAX),
        served,
        placebo: place.is_some_and(|place| place.placebo),
        control_nearest: place.and_then(|place| place.control_nearest),
    }
}

/// A distance, 0 to 2, in millionths.
pub fn millionths(distance: f64) -> u32 {
    // In range, so the cast cannot wrap.
    (distance.clamp(0.0, 2.0) * DISTANCE_PARTS).round() as u32
}

impl RunOutcome {
    pub fn score(&self) -> Option<&ScoreLine> {
        match self {
            RunOutcome::Scored { score } | RunOutcome::Timeout { score } => Some(score),
            RunOutcome::FrameworkError { .. } | RunOutcome::NotRun { .. } => None,
        }
    }

    /// The code of a failure of ours.
    pub fn code(&self) -> Option<FrameworkCode> {
        match self {
            RunOutcome::FrameworkError { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// As records and reports call it.
    pub fn state(&self) -> &'static str {
        match self {
            RunOutcome::Scored { .. } => "scored",
            RunOutcome::Timeout { .. } => "timeout",
            RunOutcome::FrameworkError { .. } => "framework_error",
            RunOutcome::NotRun { .. } => "not_run",
        }
    }

    /// Whether the failure uses up one of the registered retries. A process that was killed or stopped says nothing about
    /// the run, and a person may stop and go on as often as they like.
    pub fn uses_up_a_retry(&self) -> bool {
        self.code().is_some_and(|code| {
            !matches!(code, FrameworkCode::Crashed | FrameworkCode::Interrupted)
        })
    }
}

/// The sum of an entry's axes, which its total must be.
pub fn sum(score: &ScoreLine) -> MicroPoints {
    let axes = [
        score.detected,
        score.diagnosed,
        score.fixed,
        score.no_regressions,
    ];
    MicroPoints(axes.iter().map(|axis| axis.earned.0).sum())
}
