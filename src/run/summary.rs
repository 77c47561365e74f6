//! One run as JSON: the published run summary, field by field, and what we add to it.

use serde::Serialize;

use crate::ids::{EmbedderId, PostmortemId, RubricId, RunId, ScenarioId, Seed};
use crate::record::{Action, Hypothesis, Postmortem, Record, RunState, StageEntry};
use crate::score::Score;

/// The answer of `run --json` and of `runs show --json`. None of the published fields may go.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    pub run_id: &'a RunId,
    pub scenario_id: &'a ScenarioId,
    pub incident_id: &'a str,
    pub ran_at: &'a str,
    /// scored, timeout, framework_error or not_run.
    pub state: &'static str,
    /// The framework error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_code: Option<&'static str>,
    pub seed: Seed,
    pub rubric: &'a RubricId,
    pub agent: &'a str,
    pub agent_version: &'a str,
    /// The agent is a model of one, and what it earns is no evidence about real ones.
    pub agent_simulation: bool,
    pub embedder: &'a EmbedderId,
    pub qualified: bool,
    /// True for a control run without a fault.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub healthy: bool,
    pub injected: bool,
    pub detector: Detector<'a>,
    pub retrieval: Retrieval<'a>,
    /// Absent for framework errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<&'a Score>,
    pub hypotheses: &'a [Hypothesis],
    pub postmortem: Option<&'a Postmortem>,
    pub actions: Vec<ShownAction<'a>>,
    pub stages: &'a [StageEntry],
    pub undo: Undo<'a>,
    pub state_hash_before: Option<&'a str>,
    pub state_hash_after: Option<&'a str>,
    /// From the start of `prepare` to the end of `clean`, on the run's clock.
    pub virtual_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Detector<'a> {
    pub fixed: bool,
    pub regressions: &'a [String],
    pub elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_at_ms: Option<u64>,
    /// Protected fields that are not as before; a fault gone at their cost is not fixed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub violated: &'a [String],
    /// For control runs: conditions that were false for a moment.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub lapses: &'a [String],
    pub unmet: &'a [String],
    pub skipped: &'a [String],
}

#[derive(Clone, Debug, Serialize)]
pub struct Retrieval<'a> {
    pub k: usize,
    /// Scenarios whose postmortems were not served, as a rule the run's own.
    pub excluded_scenarios: &'a [ScenarioId],
    /// Ids served, in the order in which they first were.
    pub consulted: Vec<&'a PostmortemId>,
    pub used: &'a [PostmortemId],
}

/// An observed request, with its reversibility as a decimal from 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct ShownAction<'a> {
    at_ms: u64,
    tool: &'a str,
    verb: &'a str,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    tier: u8,
    reversibility: f64,
    status: u16,
    changed_something: bool,
    summary: &'a str,
}

impl<'a> ShownAction<'a> {
    fn of(action: &'a Action) -> ShownAction<'a> {
        ShownAction {
            at_ms: action.at_ms,
            tool: &action.tool,
            verb: &action.verb,
            resource: &action.resource,
            namespace: &action.namespace,
            name: &action.name,
            tier: action.tier,
            reversibility: action.reversibility.as_f64(),
            status: action.status,
            changed_something: action.changed_something,
            summary: &action.summary,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Undo<'a> {
    pub attempted: bool,
    pub succeeded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    pub kept: &'a [String],
    pub quarantined: bool,
}

impl<'a> Summary<'a> {
    /// A record with its score under some rubric.
    pub fn of(record: &'a Record, score: Option<&'a Score>) -> Summary<'a> {
        let (state, state_code, error) = state_of(&record.state);
        Summary {
            run_id: &record.run_id,
            scenario_id: &record.scenario_id,
            incident_id: &record.incident_id,
            ran_at: &record.ran_at,
            state,
            state_code,
            seed: record.seed,
            rubric: score.map_or(&record.rubric, |score| &score.rubric),
            agent: &record.agent.name,
            agent_version: &record.agent.version,
            agent_simulation: record.agent.simulation,
            embedder: &record.retrieval.embedder,
            qualified: record.qualified,
            healthy: record.healthy,
            injected: record.injected,
            detector: Detector {
                fixed: record.detector.is_repaired(),
                violated: &record.detector.violated,
                lapses: &record.detector.lapses,
                regressions: &record.detector.regressions,
                elapsed_ms: record.detector.elapsed_ms,
                fixed_at_ms: record.detector.fixed_at_ms,
                unmet: &record.detector.unmet,
                skipped: &record.detector.skipped,
            },
            retrieval: Retrieval {
                k: record.retrieval.k,
                excluded_scenarios: &record.retrieval.excluded_scenarios,
                consulted: consulted(record),
                used: score.map_or(&[], |score| &score.retrieval_used),
            },
            score,
            hypotheses: &record.hypotheses,
            postmortem: record.postmortem.as_ref(),
            actions: record.actions.iter().map(ShownAction::of).collect(),
            stages: &record.stages,
            undo: Undo {
                attempted: record.undo.attempted,
                succeeded: record.undo.succeeded,
                error: record.undo.error.as_deref(),
                kept: &record.undo.kept,
                quarantined: record.undo.quarantined,
            },
            state_hash_before: record.state_hash_before.as_deref(),
            state_hash_after: record.state_hash_after.as_deref(),
            virtual_ms: record.virtual_ms,
            error,
        }
    }
}

/// A state's word, its code and its message.
pub fn state_of(state: &RunState) -> (&'static str, Option<&'static str>, Option<&str>) {
    match state {
        RunState::Scored => ("scored", None, None),
        RunState::Timeout => ("timeout", None, None),
        RunState::FrameworkError { code, message } => {
            ("framework_error", Some(code.as_str()), Some(message))
        }
        RunState::NotRun { reason } => ("not_run", None, Some(reason)),
    }
}

/// Ids that were served in a run, each once, in the order in which they first were.
pub fn consulted(record: &Record) -> Vec<&PostmortemId> {
    let mut ids: Vec<&PostmortemId> = Vec::new();
    for served in record.retrievals.iter().flat_map(|r| &r.served) {
        if !ids.contains(&&served.id) {
            ids.push(&served.id);
        }
    }
    ids
}
