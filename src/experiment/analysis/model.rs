//! The result of an analysis, as rows and numbers. Differences are treatment minus control, on the scale 0 to 1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::plan::{Direction, Row};
use crate::ids::{ArmId, ExperimentId, MicroPoints, RegistrationHash, RubricId, ScenarioId};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    pub registration: RegistrationNote,
    pub standing: Standing,
    pub decision: Decision,
    pub manipulation: Manipulation,
    /// By scenario, arm and tier as the plan lists them.
    pub flow: Vec<FlowRow>,
    /// Treatment against control: by treatment arm and tier as the plan lists them. The first is the primary one.
    pub comparisons: Vec<Comparison>,
    pub tiers: Option<TierContrast>,
    pub axes: Vec<AxisRow>,
    pub rates: Vec<RateRow>,
    pub drift: Vec<DriftRow>,
    /// Every run that counts, in the order in which they were begun, for the run-order plot.
    pub runs: Vec<RunPoint>,
    /// What the tool was last seen to do where there is no effect, and where there is a known one.
    pub calibration: Option<CalibrationNote>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegistrationNote {
    pub hash: RegistrationHash,
    pub id: ExperimentId,
    pub title: String,
    pub authors: Vec<String>,
    pub hypotheses: Vec<HypothesisNote>,
    pub prior_data: String,
    pub sesoi: f64,
    pub alpha: f64,
    /// In words, such as `paired sign-flip`.
    pub primary_test: String,
    pub rubric: RubricId,
    pub control: ArmId,
    pub arms: Vec<ArmNote>,
    pub scenarios: Vec<ScenarioId>,
    pub blocks: u32,
    pub locked_at: String,
    pub git_commit: Option<String>,
    pub breakage_version: String,
    pub corpus_sha256: String,
    pub corpus_entries: usize,
    pub embedder: String,
    /// At least one arm's agent only plays an agent.
    pub simulation: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HypothesisNote {
    pub id: String,
    pub text: String,
    pub direction: Direction,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmNote {
    pub id: ArmId,
    pub agent: String,
    pub agent_version: String,
    pub simulation: bool,
    pub context: Option<String>,
    /// In words, such as `on, k 3` or `off`.
    pub retrieval: String,
}

/// Whether the results may be called confirmatory, and everything that departs from the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub confirmatory: bool,
    /// Why not; empty when confirmatory.
    pub exploratory_because: Vec<String>,
    pub looks_registered: Vec<u32>,
    /// What was read before the end, in order.
    pub looks_taken: Vec<String>,
    pub deviations: Vec<String>,
    pub amendments: Vec<String>,
    pub complete: bool,
    pub planned_runs: u64,
    pub ended_runs: u64,
    pub complete_blocks: u32,
    /// SHA-256 of the ledger's last entry.
    pub ledger_head: String,
    /// What re-computes this report from the raw ledger.
    pub reanalysis: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The row that the data landed in; nothing when there is no decision.
    pub row: Option<String>,
    /// Such as `continue`.
    pub decision: String,
    /// The reason in a sentence.
    pub because: String,
    /// The rows as registered.
    pub rows: Vec<Row>,
    pub no_decision: String,
    pub verdicts: VerdictCounts,
    /// Probability of each row under true effects of 0, m, 2m in every scenario and one mixed pattern, at the planned
    /// size: `(pattern, row, probability)`. Row `none` for no decision.
    pub operating: Vec<(String, String, f64)>,
}

/// The verdict of the pooled test, and how many scenarios got which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    pub pooled: Option<Verdict>,
    pub benefit: u32,
    pub harm: u32,
    pub equivalent: u32,
    pub no_benefit: u32,
    pub inconclusive: u32,
    pub degenerate: u32,
    pub invalid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval lies above 0 and the adjusted exact p is at most alpha.
    Benefit,
    Harm,
    /// The 90 % interval lies within plus and minus the smallest effect of interest.
    Equivalent,
    /// An effect as large as the smallest of interest is excluded.
    NoBenefit,
    Inconclusive,
    /// No variation, or complete separation without variation.
    Degenerate,
    Invalid,
}

/// What makes a verdict hang on a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragility {
    /// Interval and exact test, or Welch, permutation and Brunner-Munzel, fall on different sides of alpha.
    Test,
    /// The verdict changes inside the bounds of what the excluded runs could have been.
    Exclusions,
    /// Kept by less than 90 % of the rubrics of the registered grid.
    Rubric,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manipulation {
    /// False: the treatment was not delivered, and there is no verdict.
    pub passed: bool,
    pub checks: Vec<Check>,
    pub exposure: Vec<ExposureRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    pub what: String,
    pub required: String,
    pub observed: String,
    pub passed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExposureRow {
    pub scenario: ScenarioId,
    pub arm: ArmId,
    pub tier: Option<String>,
    pub runs: u32,
    /// Runs that were served anything.
    pub exposed: u32,
    pub mean_served: f64,
    /// Cosine distances of what was served.
    pub distance: Option<Range>,
    /// Different sets of ids among the runs.
    pub distinct_sets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    pub low: f64,
    pub mean: f64,
    pub high: f64,
}

/// CONSORT: what became of every planned run of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    pub scenario: ScenarioId,
    pub arm: ArmId,
    pub tier: Option<String>,
    pub planned: u32,
    pub started: u32,
    /// Attempts beyond the first.
    pub retried: u32,
    /// Final outcomes that are framework errors, by code.
    pub excluded: BTreeMap<String, u32>,
    pub not_run: u32,
    /// Among the analysed.
    pub timeouts: u32,
    pub analysed: u32,
}

/// One treatment arm (at one tier) against the control.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub treatment: ArmId,
    pub control: ArmId,
    pub tier: Option<String>,
    /// False: it was not registered as a test that the matrix reads, and is exploratory.
    pub primary: bool,
    pub scenarios: Vec<ScenarioResult>,
    pub pooled: Option<Pooled>,
    /// Why there is no pooled estimate.
    pub pooled_missing: Option<String>,
    pub exclusions: Exclusions,
    pub multiverse: Option<Multiverse>,
    pub precision: Option<Precision>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmSummary {
    pub n: u32,
    pub mean: Option<f64>,
    /// With n - 1.
    pub sd: Option<f64>,
    /// Score levels with their counts, lowest first.
    pub levels: Vec<(MicroPoints, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioResult {
    pub scenario: ScenarioId,
    pub treatment: ArmSummary,
    pub control: ArmSummary,
    pub delta: Option<f64>,
    pub welch: Option<WelchNote>,
    /// 95 % by the registered design: of the paired differences, or Welch's.
    pub ci95: Option<Interval>,
    /// Simultaneous over the scenarios (Bonferroni); what the verdict goes by.
    pub ci_simultaneous: Option<Interval>,
    pub permutation: Option<PermutationNote>,
    pub paired: Option<PairedNote>,
    /// Of the registered test, unadjusted and by Holm over the scenarios.
    pub p: Option<f64>,
    pub p_adjusted: Option<f64>,
    pub brunner_munzel: Option<BrunnerMunzelNote>,
    /// Hedges' g with its 95 % interval.
    pub hedges_g: Option<(f64, Interval)>,
    pub tost: Option<TostNote>,
    /// Bias-corrected and accelerated, 95 %: a sensitivity row.
    pub bca: Option<Interval>,
    /// Where nothing varied: what share of deviating runs is not excluded (rule of three, one-sided 95 %).
    pub rule_of_three: Option<f64>,
    pub verdict: Verdict,
    /// The test found a benefit, but the pooled test, which comes first, did not: it may not be claimed.
    pub gated: bool,
    /// The interval clears the smallest effect of interest.
    pub material: bool,
    pub fragile: Vec<Fragility>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WelchNote {
    pub se: f64,
    pub t: f64,
    pub df: f64,
    pub p: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PermutationNote {
    pub p: f64,
    pub mid_p: Option<f64>,
    /// `exact` or `Monte Carlo, 9999 draws`.
    pub method: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedNote {
    pub pairs: u32,
    /// Runs whose partner is missing.
    pub unpaired: u32,
    pub mean: f64,
    pub ci95: Option<Interval>,
    pub t: Option<f64>,
    pub p_t: Option<f64>,
    pub p_sign_flip: f64,
    /// Correlation of the pairs' scores.
    pub rho: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BrunnerMunzelNote {
    /// P(X > Y) + P(X = Y) / 2.
    pub p_hat: f64,
    pub ci95: Option<Interval>,
    pub p: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TostNote {
    pub p: f64,
    pub ci90: Interval,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// By scenario, summing to 1.
    pub weights: Vec<(ScenarioId, f64)>,
    pub estimate: f64,
    pub se: f64,
    pub t: Option<f64>,
    pub df: Option<f64>,
    pub ci95: Option<Interval>,
    pub tost: Option<TostNote>,
    /// Of Welch's form.
    pub p_t: Option<f64>,
    /// Of the registered primary test.
    pub p: f64,
    pub method: String,
    pub cochran_q: Option<Heterogeneity>,
    /// The scenarios differ by more than chance explains: the pooled number is an average of unlike effects.
    pub unlike_effects: bool,
    pub verdict: Verdict,
    pub material: bool,
    pub fragile: Vec<Fragility>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Heterogeneity {
    pub q: f64,
    pub df: u32,
    pub p: f64,
    pub i2: f64,
}

/// Whether runs were excluded unevenly, and what they could have changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exclusions {
    pub share: f64,
    pub cap: f64,
    pub rows: Vec<ExclusionRow>,
    /// Fisher's exact p over all scenarios together.
    pub p: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExclusionRow {
    pub scenario: ScenarioId,
    /// Excluded and kept.
    pub treatment: (u32, u32),
    pub control: (u32, u32),
    pub p: Option<f64>,
    /// Of the difference, were the excluded runs as bad or as good as they can be.
    pub bounds: Option<Interval>,
}

/// The result under other rubrics, tests and credits than the registered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Multiverse {
    pub variants: u32,
    pub same_sign: f64,
    pub same_verdict: f64,
    /// Estimates from the lowest to the highest.
    pub range: Interval,
    pub worst: String,
    /// The nearest variant whose verdict differs, if any does.
    pub nearest_flip: Option<String>,
    /// `(near-miss credit, estimate, verdict)` with all else as registered.
    pub near_miss: Vec<(f64, f64, Verdict)>,
}

/// What was achieved against what was planned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Precision {
    pub half_width_planned: f64,
    pub half_width: f64,
    pub sigma_planned: f64,
    pub sigma: f64,
    /// Smallest true effect found with the registered power at this size and spread.
    pub mde: f64,
    /// The largest effect that the 95 % interval does not exclude, in size.
    pub excluded_beyond: f64,
}

/// One contrast of the treatment effect over the ordered tiers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TierContrast {
    /// `(tier, code)`.
    pub codes: Vec<(String, i32)>,
    pub estimate: f64,
    pub se: f64,
    pub t: Option<f64>,
    pub df: Option<f64>,
    pub p: Option<f64>,
    /// Mean total of each tier over the scenarios by the plan's weights, with its standard error; the shared control's.
    pub treatment: Vec<(String, f64, f64)>,
    pub control: (f64, f64),
}

/// One axis of one scenario, both arms of the primary comparison together and apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AxisRow {
    pub scenario: ScenarioId,
    pub axis: String,
    pub treatment: Option<f64>,
    pub control: Option<f64>,
    pub distinct_values: u32,
    /// Of the variance of the total.
    pub variance_share: Option<f64>,
    /// Constant over both arms: it cannot show an effect.
    pub dead: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRow {
    pub scenario: ScenarioId,
    /// `time-out` or `primary cause named`.
    pub what: String,
    /// k of n.
    pub treatment: (u32, u32),
    pub control: (u32, u32),
    /// Newcombe's 95 % interval of the difference.
    pub difference: Option<(f64, Interval)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftRow {
    pub arm: ArmId,
    pub tier: Option<String>,
    pub n: u32,
    /// Score per run, in the order in which they were begun.
    pub slope: Option<f64>,
    pub slope_p: Option<f64>,
    pub lag1: Option<f64>,
    /// Mean after a treatment run minus mean after a control run.
    pub after_treatment: Option<f64>,
    pub after_treatment_p: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunPoint {
    /// From 0.
    pub order: u64,
    pub block: u32,
    pub scenario: ScenarioId,
    pub arm: ArmId,
    pub tier: Option<String>,
    pub total: MicroPoints,
    pub timeout: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationNote {
    pub breakage_version: String,
    pub at: String,
    pub aa_rejected: u32,
    pub aa_datasets: u32,
    pub aa_ci99: Interval,
    pub planted: Option<f64>,
    pub planted_found: u32,
    pub planted_datasets: u32,
}
