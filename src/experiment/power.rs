//! What a plan's size can show: power, the smallest effect that is found, how far an estimate that was found misleads, and
//! what would be needed.

use serde::Serialize;

use crate::experiment::plan::{Plan, Primary};
use crate::stats::distribution::{t_critical, t_sf};
use crate::stats::power;

/// Where sigma was estimated from few runs, its upper limit at this one-sided level is planned with.
const SIGMA_LEVEL: f64 = 0.8;
/// Level of the intervals whose half-widths are told.
const INTERVAL_LEVEL: f64 = 0.95;
/// One-sided level of each of the two tests of equivalence.
const EQUIVALENCE_ALPHA: f64 = 0.05;
/// Correlations of pairs for which the gain is told.
const RHO_GRID: [f64; 4] = [0.0, 0.3, 0.5, 0.7];
/// An estimate that overstates by half again is told.
const LOUD_EXAGGERATION: f64 = 1.5;

/// What a plan can show. Effects are on the scale 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Runs per cell.
    pub blocks: u32,
    pub scenarios: usize,
    pub runs: u64,
    pub primary: Primary,
    pub alpha: f64,
    pub sesoi: f64,
    pub target: f64,
    /// As the plan says.
    pub sigma: f64,
    /// What is planned with: the upper limit where sigma was estimated from few runs.
    pub sigma_planned: f64,
    pub sigma_runs: Option<u32>,
    pub rho: f64,
    pub pooled: Test,
    /// One scenario alone at alpha, as Holm tests the last of them.
    pub scenario: Test,
    /// One scenario alone at alpha over the number of scenarios, as Holm tests the first of them.
    pub scenario_first: Test,
    /// Pairs per scenario for an effect of m with the target's power, by correlation.
    pub pairs: Vec<PairGain>,
    pub warnings: Vec<String>,
}

/// What one test can show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    pub alpha: f64,
    /// At m and 2m.
    pub effects: Vec<Effect>,
    /// Found with the target's power; nothing where no effect is.
    pub mde: Option<f64>,
    /// Of the 95 % interval.
    pub half_width: f64,
    /// Probability that equivalence within plus and minus m is shown where the truth is 0.
    pub equivalence: f64,
    /// Blocks for an effect of m with the target's power.
    pub blocks_needed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub delta: f64,
    pub power: f64,
    /// Of the estimates that are found, the share with the wrong sign.
    pub type_s: Option<f64>,
    /// By what factor they overstate on average.
    pub type_m: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairGain {
    pub rho: f64,
    pub pairs_pooled: Option<u64>,
    pub pairs_scenario: Option<u64>,
}

/// A test of so many scenarios together: sd of one run, correlation of pairs where they count.
struct Design {
    paired: bool,
    sd: f64,
    rho: f64,
    strata: u64,
    alpha: f64,
}

impl Design {
    fn power(&self, delta: f64, n: u64) -> f64 {
        let Design {
            sd, rho, strata, ..
        } = *self;
        if self.paired {
            power::paired_stratified_power(delta, sd, rho, n, strata, self.alpha)
        } else {
            power::stratified_power(delta, sd, n, strata, self.alpha)
        }
    }

    fn mde(&self, n: u64, target: f64) -> Option<f64> {
        let Design {
            sd, rho, strata, ..
        } = *self;
        if self.paired {
            power::paired_mde(n, strata, sd, rho, target, self.alpha)
        } else {
            power::stratified_mde(n, strata, sd, target, self.alpha)
        }
    }

    /// Standard error and degrees of freedom of the difference.
    fn error(&self, n: u64) -> (f64, f64) {
        let kept = if self.paired { 1.0 - self.rho } else { 1.0 };
        let se = self.sd * (2.0 * kept / (n * self.strata) as f64).sqrt();
        let each = if self.paired { n - 1 } else { 2 * n - 2 };
        (se, (self.strata * each) as f64)
    }

    fn needed(&self, delta: f64, target: f64) -> Option<u64> {
        // Two blocks are the fewest with a spread.
        power::smallest(2, target, |n| self.power(delta, n))
    }

    /// P(both one-sided tests reject) where the truth is 0, with the error as planned.
    fn equivalence(&self, m: f64, n: u64) -> f64 {
        let (se, df) = self.error(n);
        let room = m / se - t_critical(1.0 - 2.0 * EQUIVALENCE_ALPHA, df);
        if room <= 0.0 {
            0.0
        } else {
            1.0 - 2.0 * t_sf(room, df)
        }
    }

    fn test(&self, plan: &Plan) -> Test {
        let n = u64::from(plan.blocks);
        let (m, target) = (plan.sesoi.as_f64(), plan.power.target.as_f64());
        let (se, df) = self.error(n);
        let effects = [m, 2.0 * m].map(|delta| {
            // As a two-sample test of all runs together with the same error.
            let kept = if self.paired { 1.0 - self.rho } else { 1.0 };
            let misleads =
                power::type_s_m(delta, self.sd * kept.sqrt(), n * self.strata, self.alpha);
            Effect {
                delta,
                power: self.power(delta, n),
                type_s: misleads.map(|(sign, _)| sign),
                type_m: misleads.map(|(_, magnitude)| magnitude),
            }
        });
        Test {
            alpha: self.alpha,
            effects: effects.to_vec(),
            mde: self.mde(n, target),
            half_width: t_critical(INTERVAL_LEVEL, df) * se,
            equivalence: self.equivalence(m, n),
            blocks_needed: self.needed(m, target),
        }
    }
}

/// What the plan can show.
pub fn forecast(plan: &Plan) -> Forecast {
    let sigma = plan.power.sigma.as_f64();
    let upper = plan
        .power
        .sigma_runs
        .and_then(|runs| power::upper_sd(sigma, u64::from(runs), SIGMA_LEVEL));
    let sigma_planned = upper.unwrap_or(sigma);
    let strata = plan.scenarios.len() as u64;
    let alpha = plan.tests.alpha.as_f64();
    let family = if plan.tests.co_primary {
        alpha / 2.0
    } else {
        alpha
    };
    let (paired, rho) = (
        plan.tests.primary == Primary::PairedSignFlip,
        plan.power.rho.as_f64(),
    );
    let design = |strata: u64, sd: f64, rho: f64, alpha: f64| Design {
        paired,
        sd,
        rho,
        strata,
        alpha,
    };
    let pooled_sd = sigma_planned * unevenness(plan);
    let (m, target) = (plan.sesoi.as_f64(), plan.power.target.as_f64());
    let pairs = RHO_GRID.map(|rho| PairGain {
        rho,
        pairs_pooled: Design {
            paired: true,
            ..design(strata, pooled_sd, rho, family)
        }
        .needed(m, target),
        pairs_scenario: Design {
            paired: true,
            ..design(1, sigma_planned, rho, family)
        }
        .needed(m, target),
    });
    let mut forecast = Forecast {
        blocks: plan.blocks,
        scenarios: plan.scenarios.len(),
        runs: plan.runs(),
        primary: plan.tests.primary,
        alpha,
        sesoi: m,
        target,
        sigma,
        sigma_planned,
        sigma_runs: plan.power.sigma_runs,
        rho,
        pooled: design(strata, pooled_sd, rho, family).test(plan),
        scenario: design(1, sigma_planned, rho, family).test(plan),
        scenario_first: design(1, sigma_planned, rho, family / strata as f64).test(plan),
        pairs: pairs.to_vec(),
        warnings: Vec::new(),
    };
    forecast.warnings = warnings(&forecast);
    forecast
}

/// By what the error of a mean with unequal weights exceeds that of one with equal weights.
fn unevenness(plan: &Plan) -> f64 {
    let weights = plan.scenarios.iter().map(|one| f64::from(one.weight));
    let total: f64 = weights.clone().sum();
    let squares: f64 = weights.map(|weight| (weight / total).powi(2)).sum();
    (squares * plan.scenarios.len() as f64).sqrt()
}

fn warnings(forecast: &Forecast) -> Vec<String> {
    let mut warnings = Vec::new();
    let m = forecast.sesoi;
    let pooled = &forecast.pooled;
    let at_m = &pooled.effects[0];
    if at_m.power < forecast.target {
        let needed = pooled.blocks_needed.map_or_else(
            || "no size within reach would do".to_owned(),
            |blocks| format!("{blocks} blocks would be needed"),
        );
        let found = pooled.mde.map_or_else(
            || "nothing".to_owned(),
            |mde| format!("an effect of {mde:.3} or more"),
        );
        warnings.push(format!(
            "underpowered: an effect of m = {m:.3} is found with probability {:.2}, asked for is {:.2}; {needed}. At this \
             size the pooled test can claim {found}; that nothing was found will say little",
            at_m.power, forecast.target
        ));
    }
    if let Some(factor) = at_m.type_m.filter(|factor| *factor > LOUD_EXAGGERATION) {
        warnings.push(format!(
            "an estimate that is found where the truth is m overstates it by a factor of {factor:.1} on average"
        ));
    }
    if pooled.equivalence < forecast.target {
        warnings.push(format!(
            "where the truth is 0, equivalence within {m:.3} is shown with probability {:.2}: a row that needs \
             `equivalent` will rarely come out",
            pooled.equivalence
        ));
    }
    let single = &forecast.scenario_first;
    if single.effects[0].power < forecast.target {
        warnings.push(format!(
            "one scenario alone shows an effect of m with probability {:.2} (first step of Holm) to {:.2} (last): read the \
             scenarios as a description",
            single.effects[0].power, forecast.scenario.effects[0].power
        ));
    }
    if let Some(runs) = forecast.sigma_runs {
        warnings.push(format!(
            "sigma was estimated from {runs} runs: planned with {:.3}, its upper 80 % limit, in the place of {:.3}",
            forecast.sigma_planned, forecast.sigma
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::load;
    use crate::experiment::templates::template;
    use crate::ids::MicroPoints;
    use crate::scenario::library::Library;

    fn falsification() -> Plan {
        let library = Library::open(None).unwrap();
        let text = template("falsification").unwrap().text;
        load::plan(text, "falsification.yaml", &library)
            .unwrap()
            .plan
    }

    fn unpaired(blocks: u32) -> Plan {
        let mut plan = falsification();
        plan.tests.primary = Primary::StratifiedPermutation;
        plan.blocks = blocks;
        plan
    }

    #[test]
    fn the_published_size_has_the_power_that_was_recomputed_for_it() {
        let forecast = forecast(&unpaired(20));
        assert!((forecast.scenario.effects[0].power - 0.220_203).abs() < 1e-5);
        assert!((forecast.scenario.effects[1].power - 0.659_373).abs() < 1e-5);
        assert!((forecast.pooled.effects[0].power - 0.55).abs() < 0.01);
        assert!((forecast.scenario.effects[0].type_m.unwrap() - 2.08).abs() < 0.01);
        assert_eq!(forecast.scenario.blocks_needed, Some(108));
        assert_eq!(forecast.pooled.blocks_needed, Some(36));
        assert!(forecast.warnings[0].starts_with("underpowered"));
        assert!(forecast.warnings[0].contains("36 blocks would be needed"));
    }

    #[test]
    fn equivalence_needs_the_size_that_is_known_for_it() {
        // 40 runs per arm and scenario for three scenarios, 116 for one: power 0.81 and 0.80.
        assert!((forecast(&unpaired(40)).pooled.equivalence - 0.81).abs() < 0.015);
        assert!((forecast(&unpaired(116)).scenario.equivalence - 0.80).abs() < 0.015);
    }

    #[test]
    fn pairs_gain_by_their_correlation() {
        let pairs = forecast(&falsification()).pairs;
        let alone: Vec<u64> = pairs.iter().filter_map(|one| one.pairs_scenario).collect();
        // The normal forms give 107, 75, 54 and 32; the t needs one or two more.
        for (found, normal) in alone.iter().zip([107, 75, 54, 32]) {
            assert!((normal..=normal + 3).contains(found), "{alone:?}");
        }
    }

    #[test]
    fn a_sigma_from_few_runs_is_planned_with_its_upper_limit() {
        let mut plan = falsification();
        plan.power.sigma_runs = Some(10);
        let forecast = forecast(&plan);
        let factor = forecast.sigma_planned / forecast.sigma;
        assert!((factor - 1.29).abs() < 0.01, "{factor}");
        assert!(forecast.warnings.iter().any(|one| one.contains("10 runs")));
    }

    #[test]
    fn a_plan_of_enough_blocks_is_not_warned_about() {
        let mut plan = unpaired(200);
        plan.power.rho = MicroPoints(0);
        assert_eq!(forecast(&plan).warnings, Vec::<String>::new());
    }

    #[test]
    fn unequal_weights_cost_power() {
        let mut plan = unpaired(36);
        let equal = forecast(&plan).pooled.effects[0].power;
        plan.scenarios[0].weight = 10;
        let unequal = forecast(&plan).pooled.effects[0].power;
        assert!(unequal < equal - 0.1, "{unequal} {equal}");
    }
}
