//! The wire form of a plan file, from which `docs/experiment.schema.json` is generated for editors.
//!
//! The schema knows names, words and ranges; what needs more than one field, or the library, is known to `load` alone.
//! Nothing decodes through these types; tests keep both in agreement.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

/// The JSON Schema of plan files.
pub fn schema() -> Schema {
    schema_for!(PlanFile)
}

/// A registered experiment: hypotheses, arms, scenarios, size, tests, exclusions and the decision matrix.
#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
#[schemars(title = "breakage experiment plan")]
pub struct PlanFile {
    /// Kebab-case; names the experiment in the workspace.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"))]
    pub id: String,
    /// One line that says what is tested.
    pub title: String,
    pub authors: Vec<String>,
    /// What you have seen already of data on the question, or that it is none.
    pub prior_data: String,
    pub hypotheses: Vec<Hypothesis>,
    /// The smallest difference of mean totals that matters.
    #[schemars(range(min = 0.000_001, max = 0.5))]
    pub sesoi: f64,
    #[serde(default)]
    pub rubric: Option<String>,
    /// The id of the arm that is the control.
    pub control: String,
    pub arms: Vec<Arm>,
    pub scenarios: Vec<ScenarioEntry>,
    #[serde(default)]
    pub tiers: Option<Tiers>,
    /// Complete blocks, which is runs per cell.
    #[schemars(range(min = 2, max = 10_000))]
    pub blocks: u32,
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: Option<u64>,
    #[serde(default)]
    pub corpus: Option<Corpus>,
    #[serde(default)]
    pub tests: Option<Tests>,
    #[serde(default)]
    pub exclusions: Option<Exclusions>,
    #[serde(default)]
    pub power: Option<Power>,
    /// After how many complete blocks scores are looked at before the end.
    #[serde(default)]
    pub looks: Option<Vec<u32>>,
    #[serde(default)]
    pub manipulation: Option<Manipulation>,
    pub matrix: Matrix,
    #[serde(default)]
    pub multiverse: Option<Multiverse>,
    /// Reports before unblinding show permuted arm labels.
    #[serde(default)]
    pub blinded: Option<bool>,
    #[serde(default)]
    pub deviations: Option<String>,
    #[serde(default)]
    pub stopping: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hypothesis {
    pub id: String,
    pub text: String,
    pub direction: Direction,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Higher,
    Lower,
    Either,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    pub id: String,
    /// As `breakage run --agent` takes it.
    pub agent: String,
    /// A kubeconfig context; the embedded cluster where not given.
    #[serde(default)]
    pub context: Option<String>,
    pub retrieval: RetrievalEntry,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum RetrievalEntry {
    Mode(Mode),
    Full(Retrieval),
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Off,
    On,
    DeterministicControl,
    Placebo,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    pub mode: Mode,
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub k: Option<u32>,
    /// Cosine distance.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub max_distance: Option<f64>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    pub pool_cap: Option<u32>,
    #[serde(default)]
    pub sources: Option<Vec<Source>>,
    #[serde(default)]
    pub same_scenario: Option<bool>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    IncidentLog,
    Scenario,
    Production,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum ScenarioEntry {
    Id(String),
    Full(Scenario),
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// An id of the library, or the path of a file.
    pub id: String,
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: Option<u32>,
    #[serde(default)]
    pub unqualified_because: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    pub kind: TierKind,
    pub tiers: Vec<Tier>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierKind {
    Corpus,
    PoolCap,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    pub id: Name,
    pub size: Size,
    #[schemars(range(min = -1000, max = 1000))]
    pub code: i32,
}

/// `5` is a name here, quoted or not.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Name {
    Text(String),
    Number(u32),
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Size {
    Number(u32),
    Full(Full),
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Full {
    Full,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    #[serde(default)]
    pub embedder: Option<String>,
    #[serde(default)]
    pub writes: Option<Writes>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    Frozen,
    Growing,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tests {
    #[serde(default)]
    pub primary: Option<Primary>,
    #[serde(default)]
    #[schemars(range(min = 0.000_001, max = 0.2))]
    pub alpha: Option<f64>,
    #[serde(default)]
    pub co_primary: Option<bool>,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Primary {
    PairedSignFlip,
    StratifiedPermutation,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusions {
    #[serde(default)]
    #[schemars(range(min = 0, max = 5))]
    pub retries: Option<u32>,
    #[serde(default)]
    #[schemars(range(min = 0, max = 0.5))]
    pub cap: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Standard deviation of a total within one cell.
    #[serde(default)]
    #[schemars(range(min = 0.000_001, max = 0.5))]
    pub sigma: Option<f64>,
    #[serde(default)]
    pub sigma_source: Option<String>,
    #[serde(default)]
    #[schemars(range(min = 2, max = 100_000))]
    pub sigma_runs: Option<u32>,
    #[serde(default)]
    #[schemars(range(min = 0, max = 0.99))]
    pub rho: Option<f64>,
    #[serde(default)]
    #[schemars(range(min = 0.5, max = 0.999))]
    pub target: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manipulation {
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub min_exposed: Option<f64>,
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub min_tier_difference: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    pub rows: Vec<Row>,
    /// What happens where there is no verdict.
    pub no_decision: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub id: String,
    pub decision: String,
    /// An expression over `pooled` and the counts of verdicts.
    pub when: String,
    /// The decision puts the treatment to use: then no verdict of harm may match.
    pub ships: bool,
    #[serde(default)]
    pub next: Option<String>,
}

#[derive(JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Multiverse {
    #[serde(default)]
    pub near_miss: Option<Vec<f64>>,
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000))]
    pub weight_vectors: Option<u32>,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::experiment::load::{HYPOTHESIS_KEYS, KEYS, PLAN_KEYS};

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/experiment.schema.json");
        let generated = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == generated,
            "run `UPDATE_SCHEMA=1 cargo test --lib experiment::schema`"
        );
    }

    fn keys(schema: &Value) -> Vec<String> {
        let mut keys: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_schema_and_the_loader_know_the_same_keys() {
        let schema = serde_json::to_value(schema()).unwrap();
        let known = |list: &[&str]| {
            let mut list: Vec<String> = list.iter().map(|key| (*key).to_owned()).collect();
            list.sort_unstable();
            list
        };
        assert_eq!(keys(&schema), known(&PLAN_KEYS));
        assert_eq!(
            keys(&schema["$defs"]["Hypothesis"]),
            known(&HYPOTHESIS_KEYS)
        );
        for (name, list) in KEYS {
            assert_eq!(keys(&schema["$defs"][name]), known(list), "{name}");
        }
    }
}
