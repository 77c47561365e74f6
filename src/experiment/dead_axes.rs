//! Axes of the score that cannot show a difference, told before a run is spent on them.

use serde::Serialize;

use crate::ids::{MicroPoints, ScenarioId};
use crate::scenario::model::{Basis, Rubric, Scenario};

/// An axis that is constant, or next to it, whatever the arms do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadAxis {
    pub scenario: ScenarioId,
    pub axis: &'static str,
    /// Of the total, which this axis takes from what can move.
    pub weight: MicroPoints,
    pub because: String,
}

/// The dead axes of a scenario under a rubric.
pub fn of(scenario: &Scenario, rubric: &Rubric) -> Vec<DeadAxis> {
    let credits = &scenario.scorer.credits;
    let axes = [
        ("detected", credits.detected),
        ("diagnosed", credits.diagnosed),
        ("fixed", credits.fixed),
        ("no_regressions", credits.no_regressions),
    ];
    let mut dead = Vec::new();
    for (axis, weight) in axes {
        let because = if weight.0 == 0 {
            Some("has no weight in this scenario".to_owned())
        } else {
            constant(axis, scenario, rubric)
        };
        if let Some(because) = because {
            dead.push(DeadAxis {
                scenario: scenario.id.clone(),
                axis,
                weight,
                because,
            });
        }
    }
    dead
}

fn constant(axis: &str, scenario: &Scenario, rubric: &Rubric) -> Option<String> {
    match axis {
        "no_regressions" => {
            let watches = !scenario.detector.regressed_when.is_empty();
            (!watches && !rubric.default_regressions).then(|| {
                format!(
                    "no regressed_when, and rubric {} counts no other damage: always the full weight",
                    rubric.id
                )
            })
        }
        "detected" if rubric.basis == Basis::Published => Some(format!(
            "under rubric {} the first request of any kind detects: constant for agents that look at all",
            rubric.id
        )),
        _ => None,
    }
}

/// What of the total is left to move in a scenario.
pub fn live_weight(dead: &[DeadAxis], scenario: &ScenarioId) -> MicroPoints {
    let of = dead.iter().filter(|one| one.scenario == *scenario);
    let lost: u32 = of.map(|one| one.weight.0).sum();
    MicroPoints(MicroPoints::ONE.0.saturating_sub(lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::library::Library;

    fn dead(scenario: &str, rubric: &str) -> Vec<&'static str> {
        let library = Library::open(None).unwrap();
        let scenario = library.scenario(scenario).unwrap();
        let found = of(&scenario, library.rubric(rubric).unwrap());
        found.iter().map(|one| one.axis).collect()
    }

    #[test]
    fn an_axis_without_a_condition_or_a_default_is_dead() {
        let library = Library::open(None).unwrap();
        let mut scenario = library.scenario("secret-missing-key-advocate").unwrap();
        scenario.detector.regressed_when.clear();
        let rubric = library.rubric("v0.1").unwrap();
        assert!(!rubric.default_regressions);
        let found = of(&scenario, rubric);
        assert!(found.iter().any(|one| one.axis == "no_regressions"));
        let left = live_weight(&found, &scenario.id);
        let lost: u32 = found.iter().map(|one| one.weight.0).sum();
        assert_eq!(left.0 + lost, 1_000_000);
        let mut lenient = rubric.clone();
        lenient.default_regressions = true;
        assert!(
            of(&scenario, &lenient)
                .iter()
                .all(|one| one.axis != "no_regressions")
        );
    }

    #[test]
    fn an_axis_without_weight_is_dead_under_any_rubric() {
        let library = Library::open(None).unwrap();
        let mut scenario = library.scenario("secret-missing-key-advocate").unwrap();
        scenario.scorer.credits.diagnosed = MicroPoints(0);
        let rubric = library.rubric("observed").unwrap();
        let found = of(&scenario, rubric);
        assert!(
            found
                .iter()
                .any(|one| one.axis == "diagnosed" && one.because.contains("no weight"))
        );
    }

    #[test]
    fn the_observed_rubric_keeps_detection_alive() {
        assert!(!dead("secret-missing-key-advocate", "observed").contains(&"detected"));
        assert!(dead("secret-missing-key-advocate", "v0.1").contains(&"detected"));
    }
}
