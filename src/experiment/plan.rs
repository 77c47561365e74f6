//! What a person registers: hypotheses, arms, scenarios, size, tests, exclusions, and the decision matrix.
//!
//! Every number is an integer (points and shares in millionths), so that the canonical JSON of a plan has one spelling.

use serde::{Deserialize, Serialize};

use crate::ids::{ArmId, CellId, ExperimentId, MicroPoints, RubricId, ScenarioId};
use crate::record::Source;

/// A whole plan with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub id: ExperimentId,
    pub title: String,
    pub authors: Vec<String>,
    /// What the authors have seen already of data on the question.
    pub prior_data: String,
    pub hypotheses: Vec<Hypothesis>,
    /// The smallest difference of mean totals that matters.
    pub sesoi: MicroPoints,
    pub rubric: RubricId,
    /// One of `arms`. Runs once per block and scenario, and is shared by all tiers.
    pub control: ArmId,
    /// The control among them.
    pub arms: Vec<Arm>,
    pub scenarios: Vec<PlannedScenario>,
    /// Nothing where the treatment arms see the whole corpus.
    pub tiers: Option<Tiers>,
    /// Complete blocks, which is runs per cell.
    pub blocks: u32,
    /// Worlds derive from it.
    pub seed: u64,
    pub corpus: Corpus,
    pub tests: Tests,
    pub exclusions: Exclusions,
    pub power: PowerPlan,
    /// After how many complete blocks scores are looked at before the end. None by default.
    pub looks: Vec<u32>,
    pub manipulation: Manipulation,
    pub matrix: Matrix,
    pub multiverse: Multiverse,
    /// Whether reports before unblinding show permuted arm labels.
    pub blinded: bool,
    /// What is done about departures from the plan, in words.
    pub deviations: String,
    /// When to stop before the last block, in words (budget, safety). Never an effect.
    pub stopping: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hypothesis {
    pub id: String,
    pub text: String,
    pub direction: Direction,
}

/// Which sign of treatment minus control a hypothesis predicts. Tests are two-sided whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Higher,
    Lower,
    Either,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    pub id: ArmId,
    /// As `run --agent` takes it.
    pub agent: String,
    /// A kubeconfig context; nothing for the embedded cluster.
    pub context: Option<String>,
    pub retrieval: Retrieval,
}

/// What an arm's agents are served of past incidents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Retrieval {
    /// Nothing, whatever is asked: the hard control.
    Off,
    /// The nearest past incidents.
    On(Serving),
    /// As published: the agent may ask, and vectors without meaning answer. Must serve nothing, which is checked before
    /// every run and in its record.
    DeterministicControl(Serving),
    /// Irrelevant past incidents of the same number and length as those that `On` would serve.
    Placebo(Serving),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    pub k: usize,
    /// Cosine distance in millionths; the embedder's own where not given.
    pub max_distance: Option<u32>,
    /// Nearest candidates looked at; `k` where not given.
    pub pool_cap: Option<usize>,
    /// Empty lets all in.
    pub sources: Vec<Source>,
    /// Serve also what runs of the same scenario learned.
    pub same_scenario: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedScenario {
    /// The scenario's own id, also where the plan names its file: the registration holds its text.
    pub id: ScenarioId,
    /// Its share in the pooled estimate is this over the sum.
    pub weight: u32,
    /// Why it may take part although nobody has qualified it.
    pub unqualified_because: Option<String>,
}

/// How much past there is to retrieve from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiers {
    pub kind: TierKind,
    pub tiers: Vec<Tier>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierKind {
    /// Nested subsets of the frozen corpus, chosen by hash.
    Corpus,
    /// The published form: only the pool of candidates is capped. With k of one ranking every tier is served the same.
    PoolCap,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    /// Such as `5` or `full`.
    pub id: String,
    /// Nothing for all.
    pub size: Option<usize>,
    /// The contrast's weight; all of them sum to 0.
    pub code: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Corpus {
    /// `lexical` or another embedder that `run --embedder` takes.
    pub embedder: String,
    pub writes: Writes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// New postmortems go to quarantine; every run retrieves from the same snapshot.
    Frozen,
    /// Postmortems of a finished block serve the next. Makes repetitions depend on each other.
    Growing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    pub primary: Primary,
    pub alpha: MicroPoints,
    /// Scenarios stand alone with half of alpha, instead of only after the pooled test.
    pub co_primary: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Primary {
    /// Signs of the differences of runs with the same world are flipped.
    PairedSignFlip,
    /// Labels are permuted inside each scenario.
    StratifiedPermutation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusions {
    /// Times that a run of ours that failed is repeated in place.
    pub retries: u32,
    /// The largest share of excluded runs with which the experiment still says something.
    pub cap: MicroPoints,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerPlan {
    /// Standard deviation of a total within one cell.
    pub sigma: MicroPoints,
    pub sigma_source: String,
    /// Runs that sigma was estimated from; its upper 80 % limit is planned with then.
    pub sigma_runs: Option<u32>,
    /// Correlation of the runs of a pair, in millionths; 0 where unknown.
    pub rho: MicroPoints,
    pub target: MicroPoints,
}

/// What must be seen of the manipulation for the analysis to say anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manipulation {
    /// Share of a treatment cell's runs that must have been served something.
    pub min_exposed: MicroPoints,
    /// Share of the runs in which two tiers must have served different sets.
    pub min_tier_difference: MicroPoints,
}

/// Rows are tried in order; exactly one must match every combination of verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    pub rows: Vec<Row>,
    /// What is decided where there is no verdict: the treatment was not delivered, or the experiment is invalid.
    pub no_decision: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub id: String,
    /// Such as `continue`.
    pub decision: String,
    /// An expression over `pooled` and the counts of verdicts, see `matrix`.
    pub when: String,
    /// The decision puts the treatment to use: then no verdict of harm may match.
    #[serde(default)]
    pub ships: bool,
    /// For a row that decides nothing yet: the evidence that would, and its budget.
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multiverse {
    /// Credits of a near miss.
    pub near_miss: Vec<MicroPoints>,
    /// Weight vectors drawn around the rubric's.
    pub weight_vectors: u32,
}

/// One run's place in every block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    pub scenario: ScenarioId,
    pub arm: ArmId,
    /// The id of a tier; nothing for the control, and where there are no tiers.
    pub tier: Option<String>,
}

impl Cell {
    pub fn id(&self) -> CellId {
        let Cell {
            scenario,
            arm,
            tier,
        } = self;
        CellId::new(match tier {
            Some(tier) => format!("{scenario}/{arm}/{tier}"),
            None => format!("{scenario}/{arm}"),
        })
    }
}

impl Plan {
    /// The cells of a block, by scenario, arm and tier as the plan lists them: the control once per scenario.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for scenario in &self.scenarios {
            for arm in &self.arms {
                let tiers = match &self.tiers {
                    Some(tiers) if arm.id != self.control => tiers
                        .tiers
                        .iter()
                        .map(|tier| Some(tier.id.clone()))
                        .collect(),
                    _ => vec![None],
                };
                cells.extend(tiers.into_iter().map(|tier| Cell {
                    scenario: scenario.id.clone(),
                    arm: arm.id.clone(),
                    tier,
                }));
            }
        }
        cells
    }

    pub fn arm(&self, id: &ArmId) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.id == *id)
    }

    /// Every arm is the control under another name: a trial of the instrument.
    pub fn is_aa(&self) -> bool {
        let Some(control) = self.arm(&self.control) else {
            return false;
        };
        self.arms.iter().all(|arm| {
            (&arm.agent, &arm.context, &arm.retrieval)
                == (&control.agent, &control.context, &control.retrieval)
        })
    }

    /// Arms that are compared with the control, as the plan lists them.
    pub fn treatments(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(|arm| arm.id != self.control)
    }

    /// Planned runs of the whole experiment.
    pub fn runs(&self) -> u64 {
        self.cells().len() as u64 * u64::from(self.blocks)
    }
}

impl Retrieval {
    /// Whether a run of it may be served anything.
    pub fn serves(&self) -> bool {
        matches!(self, Retrieval::On(_) | Retrieval::Placebo(_))
    }
}
