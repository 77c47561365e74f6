//! The wire form of a scenario file, from which `docs/scenario.schema.json` is generated for editors.
//!
//! The schema knows names, words and ranges; what needs more than one field (weights that sum to one, a scope that
//! holds the target) is known to `load` alone. Nothing decodes through these types; tests keep both in agreement.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

/// The JSON Schema of scenario files.
pub fn schema() -> Schema {
    schema_for!(ScenarioFile)
}

/// A scenario: a known fault, how to see it, how to see it repaired, what is true about it.
#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
#[schemars(title = "breakage scenario")]
pub struct ScenarioFile {
    /// Kebab-case, equal to the file's name.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"))]
    pub id: String,
    pub plane: Plane,
    /// What shows, in a word: crashloop, not-ready, latency.
    pub symptom_class: String,
    /// An incident's id, or `synthetic:<reason>`.
    pub origin: String,
    pub difficulty: Difficulty,
    pub tier: Tier,
    pub status: Status,
    #[serde(default)]
    pub source_tranche: Option<String>,
    pub injector: Injector,
    pub detector: Detector,
    pub scorer: Scorer,
    pub ground_truth: GroundTruth,
    /// An id of vocab/mechanisms.yaml. Never shown to an agent.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// What the cluster holds; taken from the target's namespace when not given.
    #[serde(default)]
    pub fixture: Option<OneOrMore>,
    /// What the pager says: symptom and service, never the cause.
    #[serde(default)]
    pub alert: Option<String>,
    /// When the fault shows; when not given, once every fixed_when condition is false.
    #[serde(default)]
    pub manifest_when: Vec<Condition>,
    /// What a repair must leave as it was.
    #[serde(default)]
    pub protected: Vec<Protected>,
    /// The narrowest true repair, for qualification.
    #[serde(default)]
    pub reference_repair: Vec<RepairStep>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Plane {
    Infra,
    Config,
    App,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    Easy,
    Medium,
    Hard,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Anchor,
    Coverage,
    Retired,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Active,
    RegressionWatch,
    Stable,
    Retired,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The fault.
#[derive(JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Injector {
    DeploymentPatch {
        target: DeploymentTarget,
        /// `path = value`, one a line.
        mutation: String,
    },
    ConfigmapPatch {
        target: ConfigmapTarget,
        /// `path = value`, one a line.
        mutation: String,
        #[serde(default)]
        restart_workloads: Vec<WorkloadRef>,
    },
    SecretContent {
        target: SecretTarget,
        /// Plain texts; an empty text deletes the key.
        #[serde(default)]
        values: Option<BTreeMap<String, String>>,
        /// The other form: a JSON Patch list.
        #[serde(default)]
        ops: Option<Vec<PatchOp>>,
        #[serde(default)]
        restart_workloads: Vec<WorkloadRef>,
    },
    NetworkPolicy {
        target: NamespaceTarget,
        #[serde(default)]
        spec: Option<BTreeMap<String, Value>>,
        /// The other form: a NetworkPolicy or its spec, as YAML in a text.
        #[serde(default)]
        policy: Option<String>,
        #[serde(default)]
        restart_workloads: Vec<WorkloadRef>,
    },
    PodEvict {
        target: EvictTarget,
        #[serde(default)]
        #[schemars(range(min = 1, max = 100))]
        percentage: Option<u32>,
        #[serde(default)]
        #[schemars(range(min = 1, max = 100))]
        count: Option<u32>,
    },
    FlagdFlag {
        target: ConfigmapTarget,
        flag: Name,
        variant: Name,
        /// demo.flagd.json when not given.
        #[serde(default)]
        config_key: Option<Name>,
        #[serde(default)]
        restart_workloads: Vec<WorkloadRef>,
    },
}

/// A name as it is written, quoted or not: `on`, `10%`, `5`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Name {
    Text(String),
    Number(f64),
    Boolean(bool),
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceTarget {
    pub ns: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentTarget {
    pub ns: String,
    pub deploy: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigmapTarget {
    pub ns: String,
    #[serde(default)]
    pub configmap: Option<String>,
    /// The short spelling of `configmap`.
    #[serde(default)]
    pub cm: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTarget {
    pub ns: String,
    pub secret: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EvictTarget {
    pub ns: String,
    #[serde(default)]
    pub deploy: Option<String>,
    #[serde(default)]
    pub sts: Option<String>,
    #[serde(default)]
    pub selector: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PatchOp {
    pub op: String,
    pub path: String,
    #[serde(default)]
    pub value: Option<Value>,
    #[serde(default)]
    pub from: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRef {
    pub kind: WorkloadKind,
    pub name: String,
}

#[derive(JsonSchema, Serialize)]
pub enum WorkloadKind {
    Deployment,
    StatefulSet,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Detector {
    #[schemars(length(min = 1))]
    pub fixed_when: Vec<Condition>,
    #[serde(default)]
    pub regressed_when: Vec<Condition>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Such as `deployment.<ns>.<name>.readyReplicas == desiredReplicas`.
    pub expression: String,
    #[serde(default)]
    #[schemars(range(max = 7200))]
    pub sustained_for_s: u32,
    /// Pass it over where it cannot be evaluated, and say so.
    #[serde(default)]
    pub skip_if_unevaluable: bool,
    /// Let `0 == 0` count as true.
    #[serde(default)]
    pub allow_zero: bool,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scorer {
    #[schemars(range(min = 60, max = 7200))]
    pub time_budget_s: u32,
    /// Namespaces that the agent is responsible for; holds the target's.
    #[schemars(length(min = 1))]
    pub scope: Vec<String>,
    pub credits: Credits,
}

/// The weights of the axes; they sum to exactly one.
#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Credits {
    #[schemars(range(min = 0, max = 1))]
    pub detected: f64,
    #[schemars(range(min = 0, max = 1))]
    pub diagnosed: f64,
    #[schemars(range(min = 0, max = 1))]
    pub fixed: f64,
    #[schemars(range(min = 0, max = 1))]
    pub no_regressions: f64,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GroundTruth {
    /// An id of the vocabulary, never framework-error.
    pub primary_category: String,
    #[serde(default)]
    pub secondary_categories: Vec<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    pub kind: String,
    pub ns: String,
    pub name: String,
    /// The whole object when not given.
    #[serde(default)]
    pub path: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum RepairStep {
    Patch(Patch),
    Restart(Restart),
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    pub kind: String,
    pub ns: String,
    pub name: String,
    #[serde(rename = "type")]
    pub patch_type: PatchType,
    pub body: Value,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    Merge,
    Strategic,
    Json,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    pub kind: WorkloadKind,
    pub ns: String,
    pub name: String,
}

#[cfg(test)]
mod tests;
