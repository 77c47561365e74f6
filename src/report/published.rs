//! The published results as data, recomputed: what the paper's tables print, what our core makes of them, and what was
//! computed for them by other means.

mod check;
pub mod claims;
mod density;
mod design;
mod rubric;

pub use check::{Check, check};

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::published::check::Checks;
use crate::stats::multiplicity::{bh, holm};
use crate::stats::permutation::{Permutation, Stratum, stratified as permuted, two_sample};
use crate::stats::sample::{Sample, Summary};
use crate::stats::stratified::{self, Pair, Pooled};
use crate::stats::welch::{Welch, welch};

/// Compiled in, so that they can be reproduced anywhere.
const TEXT: &str = include_str!("../../data/published-results.json");

/// Half a unit of the last printed digit of means and standard deviations.
pub const ROUNDING: f64 = 0.0005;
/// The margin of the equivalence tests, in points.
pub const MARGIN: f64 = 0.05;

/// The published cells with everything that was recomputed from them.
#[derive(Debug, Deserialize)]
pub struct Published {
    pub reference_rule: ReferenceRule,
    pub cells: Vec<Cell>,
    pub pooled: Vec<PooledRow>,
    #[serde(flatten)]
    rest: Value,
}

/// How the paper decided: two critical values for all degrees of freedom.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ReferenceRule {
    pub t_crit_05: f64,
    pub t_crit_01: f64,
}

impl ReferenceRule {
    pub fn label(&self, t: f64) -> &'static str {
        label(t.abs() > self.t_crit_05, t.abs() > self.t_crit_01)
    }
}

/// The label that p earns.
pub fn true_label(p: f64) -> &'static str {
    label(p < 0.05, p < 0.01)
}

fn label(below_05: bool, below_01: bool) -> &'static str {
    match (below_05, below_01) {
        (_, true) => "p<0.01",
        (true, false) => "p<0.05",
        (false, false) => "ns",
    }
}

/// One scenario of one published experiment.
#[derive(Debug, Deserialize)]
pub struct Cell {
    pub id: String,
    pub scenario: String,
    pub density: String,
    pub input: Printed,
    pub published: Claim,
    expected: Value,
    rounding_envelope: Value,
    tost_margin_0_05: Value,
    from_reconstructed_scores: Reconstructed,
    pub note: Option<String>,
}

/// All scenarios of an experiment thrown together, as published.
#[derive(Debug, Deserialize)]
pub struct PooledRow {
    pub id: String,
    pub input: Printed,
    pub published: Claim,
    pub members: Vec<String>,
    expected: Value,
    rounding_envelope: Value,
    naive_from_reconstructed_scores: Value,
    stratified_equal_weights_from_printed_summaries: Value,
    stratified_equal_weights: Value,
    stratified_inverse_variance: Value,
    stratified_permutation_exact: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Printed {
    pub n_t: u64,
    pub mean_t: f64,
    pub sd_t: f64,
    pub n_c: u64,
    pub mean_c: f64,
    pub sd_c: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    pub delta: f64,
    pub t: f64,
    pub label: String,
}

/// Counts of the score levels that print the published summaries.
#[derive(Debug, Deserialize)]
struct Reconstructed {
    values: Vec<f64>,
    counts_t: Vec<u32>,
    counts_c: Vec<u32>,
    #[serde(flatten)]
    computed: Value,
}

static BUILT_IN: LazyLock<Published> =
    LazyLock::new(|| serde_json::from_str(TEXT).expect("a test reads the compiled-in text"));

impl Printed {
    pub fn summaries(&self) -> Pair {
        (
            Summary {
                n: self.n_t,
                mean: self.mean_t,
                sd: self.sd_t,
            },
            Summary {
                n: self.n_c,
                mean: self.mean_c,
                sd: self.sd_c,
            },
        )
    }
}

/// Between what t and p can lie, given that means and standard deviations were rounded when printed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Envelope {
    pub t_min: f64,
    pub t_max: f64,
    pub p_min: f64,
    pub p_max: f64,
}

/// t and p are monotone in each of the four rounded numbers on either side of a difference of 0, so that they are
/// extreme where all four are. Nothing where no corner has a t.
pub fn envelope((x, y): &Pair, half_unit: f64) -> Option<Envelope> {
    let shifted = |arm: &Summary, mean: f64, sd: f64| Summary {
        mean: arm.mean + mean * half_unit,
        sd: (arm.sd + sd * half_unit).max(0.0),
        ..*arm
    };
    const SIGNS: [f64; 2] = [-1.0, 1.0];
    let mut corners = Vec::new();
    for mean_x in SIGNS {
        for sd_x in SIGNS {
            for mean_y in SIGNS {
                for sd_y in SIGNS {
                    corners.extend(welch(&shifted(x, mean_x, sd_x), &shifted(y, mean_y, sd_y)));
                }
            }
        }
    }
    let first = corners.first()?;
    let p = first.p_two_sided();
    let mut found = Envelope {
        t_min: first.t,
        t_max: first.t,
        p_min: p,
        p_max: p,
    };
    for corner in &corners {
        let p = corner.p_two_sided();
        found.t_min = found.t_min.min(corner.t);
        found.t_max = found.t_max.max(corner.t);
        found.p_min = found.p_min.min(p);
        found.p_max = found.p_max.max(p);
    }
    if found.t_min <= 0.0 && found.t_max >= 0.0 {
        found.p_max = 1.0;
    }
    Some(found)
}

impl Reconstructed {
    fn arm(&self, counts: &[u32]) -> Sample {
        let levels = self.values.iter().zip(counts);
        Sample::new(levels.flat_map(|(value, count)| {
            let micro = (value * 1e6).round() as i64;
            (0..*count).map(move |_| micro)
        }))
    }

    fn samples(&self) -> (Sample, Sample) {
        (self.arm(&self.counts_t), self.arm(&self.counts_c))
    }
}

impl Cell {
    /// Treatment and control, reconstructed. An inference, not the authors' data.
    pub fn samples(&self) -> (Sample, Sample) {
        self.from_reconstructed_scores.samples()
    }

    /// The exact permutation test of the reconstructed scores.
    pub fn permutation(&self) -> Permutation {
        let (x, y) = self.samples();
        two_sample(&x, &y)
    }

    /// Of the printed summaries. Every published cell has a variance.
    pub fn welch(&self) -> Option<Welch> {
        let (x, y) = self.input.summaries();
        welch(&x, &y).ok()
    }
}

impl Published {
    pub fn built_in() -> &'static Published {
        &BUILT_IN
    }

    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// A pooled row as it should be: compared within scenarios, with the same weight for each, and its exact p.
    pub fn stratified(&self, row: &PooledRow) -> Option<(Pooled, Permutation)> {
        let samples: Vec<(Sample, Sample)> = row
            .members
            .iter()
            .map(|id| Some(self.cell(id)?.samples()))
            .collect::<Option<_>>()?;
        let pairs: Vec<Pair> = samples
            .iter()
            .map(|(x, y)| Summary::of(x).zip(Summary::of(y)))
            .collect::<Option<_>>()?;
        let strata: Vec<Stratum> = samples
            .iter()
            .map(|(x, y)| Stratum { x, y, weight: 1 })
            .collect();
        let found = stratified::pooled(&pairs, &stratified::equal(pairs.len())).ok()?;
        Some((found, permuted(&strata)))
    }

    /// Families of tests with the ids of their cells.
    pub fn families(&self) -> Vec<Family<'_>> {
        let Some(families) = self.rest.get("families").and_then(Value::as_object) else {
            return Vec::new();
        };
        families
            .iter()
            .map(|(name, golden)| Family {
                name,
                cells: texts(&golden["ids"])
                    .filter_map(|id| self.cell(id))
                    .collect(),
                golden,
            })
            .collect()
    }

    /// Groups of the density sweep with their weights: `codes` over the tiers 5, 15 and full, averaged over scenarios.
    /// Nothing where there are not three codes.
    pub fn tier_groups(&self, codes: &[f64]) -> Option<Vec<(Summary, f64)>> {
        const TIERS: [&str; 3] = ["5", "15", "full"];
        if codes.len() != TIERS.len() {
            return None;
        }
        let sweep = || {
            self.cells
                .iter()
                .filter(|cell| cell.id.starts_with("sweep/"))
        };
        let scenarios = sweep().count() as f64 / TIERS.len() as f64;
        let mut groups = Vec::new();
        for cell in sweep() {
            let code = codes[TIERS.iter().position(|tier| *tier == cell.density)?];
            let (x, y) = cell.samples();
            groups.push((Summary::of(&x)?, code / scenarios));
            groups.push((Summary::of(&y)?, -code / scenarios));
        }
        Some(groups)
    }
}

/// Tests whose p are adjusted together.
pub struct Family<'a> {
    pub name: &'a str,
    pub cells: Vec<&'a Cell>,
    golden: &'a Value,
}

impl Family<'_> {
    /// By exact permutation of the reconstructed scores, else by Welch from the printed summaries.
    pub fn is_of_permutations(&self) -> bool {
        self.name.ends_with("_permutation")
    }

    pub fn p(&self) -> Vec<f64> {
        let p = |cell: &&Cell| {
            if self.is_of_permutations() {
                cell.permutation().p_two_sided
            } else {
                cell.welch().map_or(f64::NAN, |welch| welch.p_two_sided())
            }
        };
        self.cells.iter().map(p).collect()
    }

    fn check(&self, checks: &mut Checks) {
        let p = self.p();
        let lists = [("holm", holm(&p)), ("bh", bh(&p)), ("p", p)];
        for (key, ours) in &lists {
            checks.list(
                &format!("families/{}/{key}", self.name),
                &self.golden[*key],
                ours,
            );
        }
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}
