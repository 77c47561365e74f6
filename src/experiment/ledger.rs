//! What happened in an experiment: events, append-only, each chained to the one before by SHA-256.
//!
//! The first entry's `prev` is the registration's hash. An entry's hash is the SHA-256 of the canonical JSON of
//! `{seq, at, event, prev}`, hex.

pub mod chain;
pub mod outcome;

use serde::{Deserialize, Serialize};

use crate::experiment::plan::Cell;
use crate::ids::{MicroPoints, PostmortemId, RegistrationHash, RunId};
use crate::record::FrameworkCode;

pub use crate::score::DiagnosisMatch;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// From 0.
    pub seq: u64,
    /// RFC 3339, UTC, by the wall clock of whoever wrote it: for display, nothing is computed from it.
    pub at: String,
    pub event: Event,
    pub prev: String,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Event {
    Locked {
        breakage_version: String,
        /// The workspace's commit, where it lies in a git repository; with whether anything was uncommitted.
        git_commit: Option<String>,
        git_dirty: bool,
    },
    /// A process took the experiment up.
    Started {
        breakage_version: String,
    },
    Ran(Box<RunEntry>),
    /// Scores were read before the end.
    Looked {
        what: String,
        planned: bool,
    },
    /// The seal was broken on purpose.
    Unsealed {
        command: String,
    },
    /// The arms' names were shown, of a plan that keeps them back.
    Unblinded {
        command: String,
    },
    /// From here on the runs are those of another registration.
    Amended {
        to: RegistrationHash,
        reason: String,
    },
    /// This registration took over from another, whose runs are no part of it.
    Amends {
        from: RegistrationHash,
        reason: String,
        /// Planned runs that had ended under the other.
        runs_before: u64,
        /// Scores of the other had been read by then.
        scores_read: bool,
    },
    /// A departure from the plan that somebody noted, or that the tool saw.
    Deviation {
        text: String,
    },
    /// No further run comes. `reason` is nothing when every planned run has ended.
    Finished {
        reason: Option<String>,
    },
}

/// One attempt at a planned run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// From 0: the place in the planned order of the whole experiment.
    pub planned: u64,
    /// From 0: the place in the order in which runs were begun, retries counted. Runs that never began have none.
    pub actual: Option<u64>,
    /// From 0.
    pub block: u32,
    pub cell: Cell,
    /// From 0; more than 0 for a retry.
    pub attempt: u32,
    pub run_id: RunId,
    /// SHA-256 of the record's JSON as the store keeps it.
    pub record_sha256: String,
    pub outcome: RunOutcome,
    /// False when a retry follows: then it is no outcome of the planned run.
    pub is_final: bool,
    pub exposure: Exposure,
    pub state_hash_before: Option<String>,
    pub state_hash_after: Option<String>,
    pub virtual_ms: u64,
}

/// How a run ended; a planned run's final attempt has exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunOutcome {
    Scored {
        score: ScoreLine,
    },
    /// A reasoning outcome, scored by rule.
    Timeout {
        score: ScoreLine,
    },
    FrameworkError {
        code: FrameworkCode,
        message: String,
    },
    NotRun {
        reason: String,
    },
}

/// Axis states and points: enough to score the run again under another near-miss credit or other weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScoreLine {
    pub total: MicroPoints,
    pub detected: AxisLine,
    pub diagnosed: AxisLine,
    pub fixed: AxisLine,
    pub no_regressions: AxisLine,
    pub diagnosis: DiagnosisMatch,
    pub correct_secondaries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisLine {
    pub earned: MicroPoints,
    pub possible: MicroPoints,
}

/// What a run was served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    pub queries: u32,
    /// Ids served, each once, in the order in which they first were, with their distance in millionths.
    pub served: Vec<(PostmortemId, u32)>,
    /// Exemplars shown in the place of those served, for a placebo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub placebo: bool,
    /// Distance of the nearest incident to the task's own text under the control's vectors, checked before the run, in
    /// millionths. Only for the deterministic control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_nearest: Option<u32>,
}
