//! What one run leaves behind: stages, observations, actions, hypotheses, postmortem, retrieval, undo.
//!
//! Evidence only. No score: scoring is a pure function of scenario, record and rubric (`score`).

pub mod observation;

use serde::{Deserialize, Serialize};

use crate::ids::{
    ArmId, CategoryId, EmbedderId, PostmortemId, RegistrationHash, RubricId, RunId, ScenarioId,
    Seed,
};

/// Version of the record's JSON; raised when a field changes its meaning.
pub const RECORD_FORMAT: u32 = 1;

/// One run, whatever happened in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub format: u32,
    pub run_id: RunId,
    /// `<scenario>-<uuid>`, as the reference prints it.
    pub incident_id: String,
    pub scenario_id: ScenarioId,
    /// SHA-256 of the scenario file's text, hex.
    pub scenario_sha256: String,
    /// The file's text itself: what the record is scored against, whatever becomes of the file.
    #[serde(default)]
    pub scenario_text: String,
    /// True when the scenario came from a file and not from those compiled in.
    pub scenario_override: bool,
    /// The rubric that the run was asked to be scored under; any other may be applied later.
    pub rubric: RubricId,
    pub seed: Seed,
    pub cluster: ClusterFacts,
    pub agent: AgentFacts,
    pub retrieval: RetrievalFacts,
    /// Whether a valid qualification of this scenario on this kind of cluster is known.
    pub qualified: bool,
    /// RFC 3339; virtual time on the embedded cluster.
    pub ran_at: String,
    pub stages: Vec<StageEntry>,
    pub state: RunState,
    /// True for a control run: the agent was called to a healthy cluster, and no fault was ever written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub healthy: bool,
    /// Whether the fault was written and seen to manifest.
    pub injected: bool,
    pub detector: DetectorOutcome,
    /// What differed between the namespaces before the fault and at the end of the settling time, the fault
    /// itself and its repair left out. Input of rubrics with `default_regressions`.
    pub state_changes: Vec<StateChange>,
    pub actions: Vec<Action>,
    pub hypotheses: Vec<Hypothesis>,
    pub postmortem: Option<Postmortem>,
    pub retrievals: Vec<Retrieval>,
    pub undo: UndoOutcome,
    /// SHA-256 state hashes before the fault and after the clean stage, hex.
    pub state_hash_before: Option<String>,
    pub state_hash_after: Option<String>,
    /// From the start of `prepare` to the end of `clean`, on the run's clock.
    pub virtual_ms: u64,
    pub breakage_version: String,
    /// The run's place in a registered experiment, if it has one. Agents never see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
}

/// A run's place in a registered experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub registration: RegistrationHash,
    /// From 0: the place in the planned order of the whole experiment.
    pub planned: u64,
    /// From 0.
    pub block: u32,
    pub arm: ArmId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// From 0; more than 0 where an earlier attempt at the planned run failed on our side.
    pub attempt: u32,
    /// The agent's random stream: its own in every cell, where the world's seed is shared.
    pub agent_seed: Seed,
    /// What was shown stands in the place of what would have been served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub placebo: bool,
    /// For the deterministic control: the distance of the incident that is nearest to the task's own text, in
    /// millionths, computed before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_nearest: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterFacts {
    /// `embedded` or the kubeconfig context's name.
    pub name: String,
    #[serde(default)]
    pub kind: ClusterKind,
    /// As `/version` answers, such as `v1.34.4`.
    pub version: String,
}

/// What stands behind a cluster's API. What is proven about a scenario on one kind is not proven on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterKind {
    /// The embedded cluster, made for one run inside the process.
    Embedded,
    /// The embedded cluster behind a socket (`breakage cluster serve`).
    Served,
    /// Nodes that run containers.
    Kubernetes,
    /// A record from before the kind was noted.
    #[default]
    Unknown,
}

impl ClusterKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ClusterKind::Embedded => "embedded",
            ClusterKind::Served => "served",
            ClusterKind::Kubernetes => "kubernetes",
            ClusterKind::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    pub name: String,
    pub version: String,
    /// The agent is a model of one, and what it earns is no evidence about real ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulation: bool,
}

impl AgentFacts {
    /// The name as a person is shown it: a simulation is never shown without the word.
    pub fn label(&self) -> String {
        if self.simulation {
            format!("{} (a simulation)", self.name)
        } else {
            self.name.clone()
        }
    }
}

/// The retrieval policy of the run's arm and the snapshot that served it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalFacts {
    pub embedder: EmbedderId,
    pub k: usize,
    pub max_distance: f64,
    pub pool_cap: Option<usize>,
    /// Scenarios whose postmortems were not served, as a rule the run's own.
    #[serde(default)]
    pub excluded_scenarios: Vec<ScenarioId>,
    /// Postmortems in the snapshot that could have been served.
    pub corpus_size: usize,
}

/// The stages of one run, in order. See `run` for what each does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageName {
    Prepare,
    Healthy,
    Inject,
    Manifest,
    Work,
    Settle,
    Undo,
    Clean,
}

/// One stage's time on the run's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageEntry {
    pub stage: StageName,
    pub started_ms: u64,
    pub ended_ms: u64,
    /// What a reader should know, such as how the work stage ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a planned run ended. `NotRun` belongs to experiments' ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// A postmortem came in and the run can be scored.
    Scored,
    /// No postmortem by the end of the budget; scored by rule with diagnosed 0.
    Timeout,
    /// Our side failed. Never scored, never counted as the agent's.
    FrameworkError {
        code: FrameworkCode,
        message: String,
    },
    NotRun {
        reason: String,
    },
}

/// The closed list of our own failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameworkCode {
    /// The fixture could not be applied or the namespaces could not be reset before the run.
    ResetNotProven,
    /// `fixed_when` did not hold, or `regressed_when` did, before the fault.
    BaselineUnhealthy,
    /// The API server refused the fault.
    InjectionRefused,
    /// The fault would change nothing, or its target is not there.
    InjectionWithoutEffect,
    /// The fault was written but did not show by the manifest deadline.
    FaultNotManifest,
    /// The fault went away and no action of the agent explains it.
    FaultVanished,
    /// The cluster stopped answering.
    ClusterUnreachable,
    /// Somebody else, or a failing node, changed the cluster under the run so that it says nothing about the agent.
    ClusterChanged,
    /// A detector condition could not be evaluated and may not be skipped.
    DetectorUnevaluable,
    /// The experience base could not be read.
    ExperienceUnavailable,
    /// The store could not be written.
    StoreUnavailable,
    /// A control run of an experiment was served a past incident.
    ControlExposed,
    /// The finished run could not be scored.
    Scorer,
    /// Interrupted by the user; the fault was undone.
    Interrupted,
    /// The process was cut off; a later one found the run unfinished and restored its cluster.
    Crashed,
    /// A defect of ours.
    Internal,
}

impl FrameworkCode {
    pub fn as_str(self) -> &'static str {
        match self {
            FrameworkCode::ResetNotProven => "reset-not-proven",
            FrameworkCode::BaselineUnhealthy => "baseline-unhealthy",
            FrameworkCode::InjectionRefused => "injection-refused",
            FrameworkCode::InjectionWithoutEffect => "injection-without-effect",
            FrameworkCode::FaultNotManifest => "fault-not-manifest",
            FrameworkCode::FaultVanished => "fault-vanished",
            FrameworkCode::ClusterUnreachable => "cluster-unreachable",
            FrameworkCode::ClusterChanged => "cluster-changed",
            FrameworkCode::DetectorUnevaluable => "detector-unevaluable",
            FrameworkCode::ExperienceUnavailable => "experience-unavailable",
            FrameworkCode::StoreUnavailable => "store-unavailable",
            FrameworkCode::ControlExposed => "control-exposed",
            FrameworkCode::Scorer => "scorer",
            FrameworkCode::Interrupted => "interrupted",
            FrameworkCode::Crashed => "crashed",
            FrameworkCode::Internal => "internal",
        }
    }
}

/// What the detectors concluded at the end of the settling time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorOutcome {
    /// All `fixed_when` conditions held together for their windows and still held after settling.
    pub fixed: bool,
    /// Start of the stretch that counted, on the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_at_ms: Option<u64>,
    /// The `regressed_when` expressions that tripped, with what was observed.
    pub regressions: Vec<String>,
    /// One line per condition that did not hold at the end, with what was observed.
    pub unmet: Vec<String>,
    /// Protected fields that were not as before at the end. A fault that is gone at their cost is not repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<String>,
    /// For control runs: `fixed_when` conditions that were false at some moment although nothing was broken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapses: Vec<String>,
    /// Conditions passed over because they could not be evaluated and said `skip_if_unevaluable`.
    pub skipped: Vec<String>,
    /// From the start of the work stage to the verdict.
    pub elapsed_ms: u64,
    /// Readings without an answer, counted.
    pub unknown_readings: u32,
}

impl DetectorOutcome {
    /// Whether the fault is repaired: it is gone, and not at the cost of what the scenario protects.
    pub fn is_repaired(&self) -> bool {
        self.fixed && self.violated.is_empty()
    }
}

/// A difference between two states of the owned and guarded namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateChange {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub what: StateChangeKind,
    /// Dotted path for `field-changed`, empty otherwise. Values are never recorded (they may be secrets).
    pub path: String,
    /// Whether the object lies in the scenario's scope.
    pub in_scope: bool,
    /// Whether the scenario protects the field (or the whole object).
    pub protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateChangeKind {
    Created,
    Deleted,
    Recreated,
    FieldChanged,
}

/// One observed request of the agent, as the recording layer saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// On the run's clock.
    pub at_ms: u64,
    /// The tool name of the one table in `gateway`, such as `kubectl_get`.
    pub tool: String,
    /// HTTP-level verb of the API: get, list, watch, create, update, patch, delete, evict, log.
    pub verb: String,
    /// Plural resource with subresource, such as `deployments/scale`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// 1 read-only, 2 reversible mutation, 3 needs approval.
    pub tier: u8,
    /// 0 read-only, 0.3 restorable, 0.7 with effort, 1 not. In micro-points.
    pub reversibility: crate::ids::MicroPoints,
    /// HTTP status that the server answered.
    pub status: u16,
    /// A dry run or a refused request changes nothing.
    pub changed_something: bool,
    /// Short, redacted: which fields a write touched.
    pub summary: String,
}

/// A hypothesis emitted while investigating.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hypothesis {
    pub at_ms: u64,
    pub primary_category: CategoryId,
    #[serde(default)]
    pub secondary_categories: Vec<CategoryId>,
    pub confidence: f64,
    pub reasoning: String,
}

/// The agent's own account of the incident. Field names are the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Postmortem {
    pub final_diagnosis: String,
    pub primary_category: CategoryId,
    #[serde(default)]
    pub secondary_categories: Vec<CategoryId>,
    /// 0 to 1.
    pub confidence: f64,
    #[serde(default)]
    pub actions_taken: Vec<ActionTaken>,
    #[serde(default)]
    pub fix_applied: String,
    #[serde(default)]
    pub what_did_not_work: Vec<String>,
    #[serde(default)]
    pub time_to_diagnose_s: f64,
    #[serde(default)]
    pub time_to_fix_s: f64,
    #[serde(default)]
    pub side_effects_observed: Vec<String>,
}

/// One step as told by a postmortem; for runs of ours filled from the observed actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionTaken {
    pub tool: String,
    /// 0 to 1, from our table, never from the agent.
    #[serde(default)]
    pub reversibility: f64,
    #[serde(default)]
    pub input_summary: String,
    #[serde(default)]
    pub at: String,
    #[serde(default)]
    pub reverted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert_reason_mechanical: Option<String>,
}

/// How an incident ended, as the framework judged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Resolved,
    Regressed,
    Inconclusive,
}

/// Where a postmortem came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    IncidentLog,
    Scenario,
    Production,
}

/// A past incident as it is served to an agent. Field names are the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exemplar {
    pub id: PostmortemId,
    /// Cosine distance, 0 to 2.
    pub distance: f64,
    pub outcome: Outcome,
    pub source: Source,
    pub primary_category: CategoryId,
    pub final_diagnosis: String,
    pub fix_applied: String,
    pub what_did_not_work: Vec<String>,
}

/// One retrieval and what it served. The scorer judges use against this and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    pub at_ms: u64,
    pub query: String,
    pub served: Vec<Served>,
    /// Set when retrieval could not be done; the agent then saw an empty answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One served exemplar with what the scorer needs of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    pub id: PostmortemId,
    pub distance: f64,
    /// Tool names of the exemplar's actions, in order.
    pub tools: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOutcome {
    pub attempted: bool,
    pub succeeded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Fields kept because somebody else had changed them.
    #[serde(default)]
    pub kept: Vec<String>,
    /// True when the cluster could not be proven clean afterwards and is closed to further runs.
    #[serde(default)]
    pub quarantined: bool,
}
