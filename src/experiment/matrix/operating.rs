//! Operating characteristics: how often each row of a matrix comes out under known truths, at the planned size.
//!
//! Runs are taken as normal with the planned sigma and, where the primary test is paired, the planned correlation. Mean
//! and standard deviation of a cell are then drawn by themselves, without single runs. The verdicts follow by the rule of the
//! analysis, with the p of the t forms in the place of the exact ones: what the exact tests decide on scores of few levels is somewhat more cautious.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::experiment::analysis::model::{Verdict, VerdictCounts};
use crate::experiment::analysis::verdict::{Estimate, Question};
use crate::experiment::canonical::{self, CanonicalError};
use crate::experiment::matrix::{self, ParsedRow, tally};
use crate::experiment::plan::{Plan, Primary};
use crate::experiment::registration::Operating;
use crate::ids::MicroPoints;
use crate::stats::distribution::t_two_sided;
use crate::stats::multiplicity::holm;

/// A probability of one half is then known to 1.1 points (one standard error).
const DRAWS: u32 = 2000;
/// Up to here a chi-squared variable is drawn as the sum of squares that it is; beyond, by Wilson and Hilferty's cube, whose
/// error is then under a thousandth.
const EXACT_DF: u32 = 60;
/// The row of patterns in which no row was met; a checked matrix never has it.
const NO_ROW: &str = "none";

/// A true effect in every scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub name: String,
    /// One per scenario, scale 0 to 1.
    pub deltas: Vec<f64>,
}

/// The truths that are tried: 0, m and 2m in every scenario, and 2m in every other scenario.
pub fn patterns(plan: &Plan) -> Vec<Pattern> {
    let count = plan.scenarios.len();
    let m = plan.sesoi.as_f64();
    let everywhere = |name: &str, delta: f64| Pattern {
        name: name.to_owned(),
        deltas: vec![delta; count],
    };
    let mut all = vec![
        everywhere("0 everywhere", 0.0),
        everywhere("m everywhere", m),
        everywhere("2m everywhere", 2.0 * m),
    ];
    if count > 1 {
        let deltas = (0..count).map(|at| if at % 2 == 0 { 2.0 * m } else { 0.0 });
        all.push(Pattern {
            name: "mixed: 2m and 0 by turns".to_owned(),
            deltas: deltas.collect(),
        });
    }
    all
}

/// The probability of every row under every pattern. The same plan gives the same numbers.
///
/// # Errors
/// A plan with a number beyond what canonical JSON keeps; a loaded one has none.
pub fn characteristics(plan: &Plan) -> Result<Vec<Operating>, CanonicalError> {
    let rows = matrix::parse(&plan.matrix).unwrap_or_default();
    let mut found = Vec::new();
    for pattern in patterns(plan) {
        let counts = simulated(plan, &rows, &pattern)?;
        let named = rows.iter().map(|row| row.id.as_str()).chain([NO_ROW]);
        for (row, count) in named.zip(counts) {
            // A row `none` that nothing landed in says nothing.
            if row == NO_ROW && count == 0 {
                continue;
            }
            found.push(Operating {
                pattern: pattern.name.clone(),
                row: row.to_owned(),
                probability: MicroPoints(count * (MicroPoints::ONE.0 / DRAWS)),
            });
        }
    }
    Ok(found)
}

/// How many draws landed in each row; the last number is of those that landed in none.
fn simulated(
    plan: &Plan,
    rows: &[ParsedRow],
    pattern: &Pattern,
) -> Result<Vec<u32>, CanonicalError> {
    let text = format!("operating:{}:{}", pattern.name, canonical::to_string(plan)?);
    let digest = canonical::sha256_hex(&text);
    let seed = u64::from_str_radix(&digest[..16], 16)
        .expect("a SHA-256 in hex begins with sixteen hex digits");
    let mut normals = Normals::new(seed);
    let model = Model::of(plan);
    let mut landed = vec![0; rows.len() + 1];
    for _ in 0..DRAWS {
        let verdicts = model.draw(&pattern.deltas, &mut normals);
        let row = matrix::landed(rows, &verdicts).unwrap_or(rows.len());
        landed[row] += 1;
    }
    Ok(landed)
}

/// What a draw needs of a plan.
struct Model {
    sigma: f64,
    rho: f64,
    paired: bool,
    blocks: u32,
    /// Summing to 1.
    weights: Vec<f64>,
    m: f64,
    /// Of each family.
    level: f64,
    co_primary: bool,
}

impl Model {
    fn of(plan: &Plan) -> Model {
        let total: u32 = plan.scenarios.iter().map(|scenario| scenario.weight).sum();
        let weight = |weight: u32| f64::from(weight) / f64::from(total.max(1));
        Model {
            sigma: plan.power.sigma.as_f64(),
            rho: plan.power.rho.as_f64(),
            paired: plan.tests.primary == Primary::PairedSignFlip,
            blocks: plan.blocks,
            weights: plan
                .scenarios
                .iter()
                .map(|scenario| weight(scenario.weight))
                .collect(),
            m: plan.sesoi.as_f64(),
            level: if plan.tests.co_primary {
                plan.tests.alpha.as_f64() / 2.0
            } else {
                plan.tests.alpha.as_f64()
            },
            co_primary: plan.tests.co_primary,
        }
    }

    fn draw(&self, deltas: &[f64], normals: &mut Normals) -> VerdictCounts {
        let drawn: Vec<Drawn> = deltas
            .iter()
            .map(|delta| self.scenario(*delta, normals))
            .collect();
        let pooled = self.pooled(&drawn);
        let pooled_p = p_by_t(&pooled);
        let is_open = self.co_primary || pooled_p <= self.level;
        let raw: Vec<f64> = drawn.iter().map(|one| p_by_t(&one.estimate)).collect();
        let mut counts = VerdictCounts {
            pooled: Some(self.verdict(pooled, 1, pooled_p, pooled_p)),
            ..VerdictCounts::default()
        };
        for ((one, raw), adjusted) in drawn.iter().zip(&raw).zip(holm(&raw)) {
            let found = self.verdict(one.estimate, deltas.len(), *raw, adjusted);
            // As in the analysis: a benefit needs the pooled test before it, harm is a veto of its own.
            let closed = !is_open && found == Verdict::Benefit;
            let told = if closed { Verdict::Inconclusive } else { found };
            tally(&mut counts, told);
        }
        counts
    }

    fn verdict(&self, estimate: Estimate, intervals: usize, p: f64, adjusted: f64) -> Verdict {
        let question = Question {
            estimate,
            alpha: self.level,
            intervals,
            p_adjusted: adjusted,
            p_of_tests: vec![p],
            sesoi: self.m,
        };
        question.answer().verdict
    }

    fn scenario(&self, delta: f64, normals: &mut Normals) -> Drawn {
        let n = f64::from(self.blocks);
        let df = self.blocks - 1;
        let parts: Vec<(f64, f64)> = if self.paired {
            let sd = self.sigma * (2.0 * (1.0 - self.rho)).sqrt();
            vec![(normals.variance(sd, df) / n, f64::from(df))]
        } else {
            let arm = |normals: &mut Normals| normals.variance(self.sigma, df) / n;
            vec![(arm(normals), f64::from(df)), (arm(normals), f64::from(df))]
        };
        let true_se = if self.paired {
            self.sigma * (2.0 * (1.0 - self.rho) / n).sqrt()
        } else {
            self.sigma * (2.0 / n).sqrt()
        };
        let delta = delta + true_se * normals.next();
        Drawn {
            estimate: estimate(delta, &parts),
            parts,
        }
    }

    /// The weighted mean with Satterthwaite's degrees of freedom.
    fn pooled(&self, drawn: &[Drawn]) -> Estimate {
        let weighted = drawn.iter().zip(&self.weights);
        let delta = weighted
            .clone()
            .map(|(one, weight)| weight * one.estimate.delta)
            .sum();
        let parts: Vec<(f64, f64)> = weighted
            .flat_map(|(one, weight)| {
                let scaled = one.parts.iter();
                scaled.map(move |(variance, df)| (weight * weight * variance, *df))
            })
            .collect();
        estimate(delta, &parts)
    }
}

struct Drawn {
    estimate: Estimate,
    /// Squared errors with their degrees of freedom.
    parts: Vec<(f64, f64)>,
}

fn estimate(delta: f64, parts: &[(f64, f64)]) -> Estimate {
    let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let spread: f64 = parts
        .iter()
        .map(|(variance, df)| variance * variance / df)
        .sum();
    Estimate {
        delta,
        se: variance.sqrt(),
        df: variance * variance / spread,
    }
}

fn p_by_t(estimate: &Estimate) -> f64 {
    t_two_sided(estimate.delta / estimate.se, estimate.df)
}

/// Standard normal numbers, two at a time by Box and Muller.
struct Normals {
    rng: ChaCha20Rng,
    spare: Option<f64>,
}

impl Normals {
    fn new(seed: u64) -> Normals {
        Normals {
            rng: ChaCha20Rng::seed_from_u64(seed),
            spare: None,
        }
    }

    fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Above 0 and at most 1, in steps of 2^-53.
    fn uniform(&mut self) -> f64 {
        const STEPS: f64 = (1u64 << 53) as f64;
        ((self.rng.next_u64() >> 11) as f64 + 1.0) / STEPS
    }

    /// An estimated variance with so many degrees of freedom.
    fn variance(&mut self, sd: f64, df: u32) -> f64 {
        let wide = f64::from(df);
        let chi_squared = if df <= EXACT_DF {
            (0..df)
                .map(|_| {
                    let z = self.next();
                    z * z
                })
                .sum()
        } else {
            let spread = 2.0 / (9.0 * wide);
            wide * (1.0 - spread + self.next() * spread.sqrt()).powi(3)
        };
        sd * sd * chi_squared / wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::load;
    use crate::experiment::templates::template;
    use crate::scenario::library::Library;
    use crate::stats::power;

    fn falsification() -> Plan {
        let library = Library::open(None).unwrap();
        let text = template("falsification").unwrap().text;
        load::plan(text, "falsification.yaml", &library)
            .unwrap()
            .plan
    }

    fn share(found: &[Operating], pattern: &str, rows: &[&str]) -> f64 {
        let of = found
            .iter()
            .filter(|one| one.pattern.starts_with(pattern) && rows.contains(&one.row.as_str()));
        of.map(|one| one.probability.as_f64()).sum()
    }

    /// Five standard errors of a share of one half.
    const TOLERANCE: f64 = 0.056;

    #[test]
    fn the_rows_of_a_pattern_sum_to_one_and_come_out_the_same_again() {
        let plan = falsification();
        let found = characteristics(&plan).unwrap();
        for pattern in patterns(&plan) {
            let of = found.iter().filter(|one| one.pattern == pattern.name);
            let total: u32 = of.map(|one| one.probability.0).sum();
            assert_eq!(total, 1_000_000, "{}", pattern.name);
        }
        assert_eq!(found, characteristics(&plan).unwrap());
    }

    #[test]
    fn a_row_for_the_pooled_benefit_comes_out_as_often_as_the_exact_power_says() {
        let mut plan = falsification();
        plan.matrix.rows[0].when = "pooled == benefit".to_owned();
        plan.matrix.rows[1].when = "pooled == harm".to_owned();
        plan.matrix.rows[2].when = "pooled not in (benefit, harm)".to_owned();
        plan.matrix.rows.truncate(3);
        for (primary, blocks) in [
            (Primary::PairedSignFlip, 20),
            (Primary::StratifiedPermutation, 36),
            (Primary::StratifiedPermutation, 80),
        ] {
            (plan.tests.primary, plan.blocks) = (primary, blocks);
            let found = characteristics(&plan).unwrap();
            for (pattern, delta) in [("m every", 0.05), ("2m every", 0.10)] {
                let n = u64::from(blocks);
                let exact = match primary {
                    Primary::PairedSignFlip => {
                        power::paired_stratified_power(delta, 0.13, 0.0, n, 3, 0.05)
                    }
                    Primary::StratifiedPermutation => {
                        power::stratified_power(delta, 0.13, n, 3, 0.05)
                    }
                };
                let simulated = share(&found, pattern, &["harm", "continue"]);
                assert!(
                    (simulated - exact).abs() < TOLERANCE,
                    "{primary:?} {blocks} {pattern}: {simulated} against {exact}"
                );
            }
            let false_alarm = share(&found, "0 every", &["harm", "continue"]);
            assert!((false_alarm - 0.05).abs() < 0.025, "{false_alarm}");
        }
    }

    #[test]
    fn a_larger_effect_ships_more_often_and_none_hardly_ever() {
        let found = characteristics(&falsification()).unwrap();
        let ships = ["continue", "mixed"];
        let [none, m, twice] =
            ["0 every", "m every", "2m every"].map(|pattern| share(&found, pattern, &ships));
        assert!(none < 0.05 && none < m && m < twice, "{none} {m} {twice}");
    }
}
