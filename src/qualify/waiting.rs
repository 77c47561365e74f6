//! What a scenario needs and this build, or the embedded cluster, does not have.

use std::collections::BTreeSet;

use crate::scenario::load::PROMETHEUS;
use crate::scenario::model::Scenario;

/// Capabilities that are missing, sorted; empty when the scenario can be run.
pub fn for_what(scenario: &Scenario, has_prometheus: bool) -> Vec<String> {
    let given = |need: &&String| has_prometheus && *need == PROMETHEUS;
    let needs: Vec<String> = scenario
        .needs
        .iter()
        .filter(|need| !given(need))
        .cloned()
        .collect();
    if !needs.is_empty() {
        // Said by the loader; what else is missing follows from it.
        return needs;
    }
    let mut missing = BTreeSet::new();
    let detector = &scenario.detector;
    let unanswerable = detector
        .fixed_when
        .iter()
        .chain(&detector.regressed_when)
        .chain(&scenario.manifest_when)
        .any(|condition| {
            !condition.expression.is_answerable(has_prometheus) && !condition.skip_if_unevaluable
        });
    if unanswerable {
        missing.insert(PROMETHEUS.to_owned());
    }
    missing.into_iter().collect()
}
