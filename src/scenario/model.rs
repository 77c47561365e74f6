//! The types of a scenario file, a vocabulary and a rubric, after checking.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::detect::condition::Condition;
use crate::ids::{CategoryId, FixtureId, MechanismId, MicroPoints, RubricId, ScenarioId};

/// A scenario: a known fault, how to see it, how to see it repaired, what is true about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub id: ScenarioId,
    pub plane: Plane,
    pub symptom_class: String,
    /// A real incident id, or `synthetic:<reason>`.
    pub origin: String,
    /// easy, medium, hard.
    pub difficulty: String,
    pub tier: Tier,
    pub status: Status,
    pub source_tranche: Option<String>,
    pub injector: Injector,
    pub detector: Detector,
    pub scorer: Scorer,
    pub ground_truth: GroundTruth,
    pub mechanism: Option<MechanismId>,
    /// Never empty: taken from the target's namespace when the file names none.
    pub fixture: Vec<FixtureId>,
    /// What the pager said: symptom and service, never the cause. A neutral one is made when the file has none.
    pub alert: String,
    /// When the fault shows; empty means "every fixed_when condition is false".
    pub manifest_when: Vec<Condition>,
    pub protected: Vec<ProtectedField>,
    pub reference_repair: Vec<RepairStep>,
    /// The file's text; records keep it, so that they can be scored when the file is gone or changed.
    pub text: String,
    /// SHA-256 of the file's text, hex.
    pub sha256: String,
    /// The file came from a path or the workspace, not from those compiled in.
    pub is_override: bool,
    /// What the file waits for and cannot run without here (such as `flagd` or `prometheus`), for messages.
    pub needs: Vec<String>,
}

impl Scenario {
    /// What an agent may see.
    pub fn task(&self) -> Task {
        Task {
            alert: self.alert.clone(),
            namespaces: self.scorer.scope.clone(),
            time_budget_s: self.scorer.time_budget_s,
        }
    }
}

/// The part of a scenario that an agent may see: no id, category, mechanism, injector or truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    pub alert: String,
    /// Namespaces that the agent is responsible for.
    pub namespaces: Vec<String>,
    pub time_budget_s: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Plane {
    Infra,
    Config,
    App,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Anchor,
    Coverage,
    Retired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Active,
    RegressionWatch,
    Stable,
    Retired,
}

/// The fault, by injector type.
#[derive(Clone, Debug, PartialEq)]
pub enum Injector {
    DeploymentPatch {
        namespace: String,
        deployment: String,
        mutation: Mutation,
    },
    ConfigmapPatch {
        namespace: String,
        configmap: String,
        mutation: Mutation,
        restart_workloads: Vec<WorkloadRef>,
    },
    SecretContent {
        namespace: String,
        secret: String,
        /// Key to plain text; an empty text deletes the key. In file order.
        values: Vec<(String, String)>,
        /// A JSON Patch list, the other published form.
        ops: Vec<Value>,
        restart_workloads: Vec<WorkloadRef>,
    },
    NetworkPolicy {
        namespace: String,
        spec: Value,
        restart_workloads: Vec<WorkloadRef>,
    },
    PodEvict {
        namespace: String,
        victims: EvictTarget,
        how_many: EvictCount,
    },
    FlagdFlag {
        namespace: String,
        configmap: String,
        flag: String,
        variant: String,
        config_key: String,
        restart_workloads: Vec<WorkloadRef>,
    },
}

impl Injector {
    /// The `type` of the file.
    pub fn type_name(&self) -> &'static str {
        match self {
            Injector::DeploymentPatch { .. } => "deployment-patch",
            Injector::ConfigmapPatch { .. } => "configmap-patch",
            Injector::SecretContent { .. } => "secret-content",
            Injector::NetworkPolicy { .. } => "network-policy",
            Injector::PodEvict { .. } => "pod-evict",
            Injector::FlagdFlag { .. } => "flagd-flag",
        }
    }

    /// Workloads that are restarted once the fault is written, so that they meet it.
    pub fn restart_workloads(&self) -> &[WorkloadRef] {
        match self {
            Injector::ConfigmapPatch {
                restart_workloads, ..
            }
            | Injector::SecretContent {
                restart_workloads, ..
            }
            | Injector::NetworkPolicy {
                restart_workloads, ..
            }
            | Injector::FlagdFlag {
                restart_workloads, ..
            } => restart_workloads,
            Injector::DeploymentPatch { .. } | Injector::PodEvict { .. } => &[],
        }
    }

    pub fn namespace(&self) -> &str {
        match self {
            Injector::DeploymentPatch { namespace, .. }
            | Injector::ConfigmapPatch { namespace, .. }
            | Injector::SecretContent { namespace, .. }
            | Injector::NetworkPolicy { namespace, .. }
            | Injector::PodEvict { namespace, .. }
            | Injector::FlagdFlag { namespace, .. } => namespace,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRef {
    /// `Deployment` or `StatefulSet`.
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictTarget {
    Deployment(String),
    StatefulSet(String),
    Selector(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictCount {
    Percentage(u8),
    Count(u32),
}

/// One or more assignments `path = value` on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    pub assignments: Vec<Assignment>,
}

/// `path = value`. Where the mutation's text gives several lines or `;`-separated parts, each is one assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub path: Vec<PathStep>,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(String),
    Index(usize),
    /// `[name=api]`: the list's element whose `name` is this, found in the live object.
    Named(String),
}

impl Assignment {
    /// The path as written: `spec.template.spec.containers[0].image`.
    pub fn dotted(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                PathStep::Key(key) if !is_bare_key(key) => {
                    text.push_str(&format!("[{}]", Value::from(key.as_str())));
                }
                PathStep::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(key);
                }
                PathStep::Index(index) => text.push_str(&format!("[{index}]")),
                PathStep::Named(name) => text.push_str(&format!("[name={name}]")),
            }
        }
        text
    }
}

/// Whether a key can stand in a dotted path without quotes.
pub fn is_bare_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$'))
}

#[derive(Clone, Debug, PartialEq)]
pub struct Detector {
    /// Never empty.
    pub fixed_when: Vec<Condition>,
    pub regressed_when: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scorer {
    /// 60..=7200.
    pub time_budget_s: u32,
    /// Namespaces; holds the target's.
    pub scope: Vec<String>,
    pub credits: Credits,
}

/// The axis weights; they sum to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Credits {
    pub detected: MicroPoints,
    pub diagnosed: MicroPoints,
    pub fixed: MicroPoints,
    pub no_regressions: MicroPoints,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroundTruth {
    pub primary_category: CategoryId,
    pub secondary_categories: Vec<CategoryId>,
}

/// A field (or, with an empty path, an object) that a repair must leave as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedField {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub path: String,
}

/// A step of the narrowest true repair.
#[derive(Clone, Debug, PartialEq)]
pub enum RepairStep {
    Patch {
        kind: String,
        namespace: String,
        name: String,
        /// merge, strategic or json.
        patch_type: String,
        body: Value,
    },
    Restart {
        kind: String,
        namespace: String,
        name: String,
    },
}

/// The controlled vocabulary of root causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    pub version: String,
    pub categories: Vec<Category>,
    pub mechanisms: Vec<Mechanism>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Category {
    pub id: CategoryId,
    pub description: String,
    pub example_incidents: Vec<String>,
    pub example_symptoms: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mechanism {
    pub id: MechanismId,
    pub description: String,
    /// Categories that a fault of this mechanism may truthfully carry.
    pub categories: Vec<CategoryId>,
}

/// The category reserved for our own failures; never a truth.
pub const FRAMEWORK_ERROR: &str = "framework-error";

/// How a record is turned into points. Fractions are of the axis' weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rubric {
    pub id: RubricId,
    pub description: String,
    pub exact_primary: MicroPoints,
    pub near_miss: MicroPoints,
    pub secondary_bonus: MicroPoints,
    pub secondary_bonus_max: MicroPoints,
    /// A longer list of secondaries earns neither near miss nor bonus.
    pub max_secondaries: usize,
    /// Whether state changes outside the repair count as regressions.
    pub default_regressions: bool,
    pub basis: Basis,
}

/// What a rubric takes for looking, for damage and for an alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// As published: any request detects, a category counts however it was come by.
    #[default]
    Published,
    /// Only what the action log shows: a read that could have shown the fault, and every write.
    Observed,
}
