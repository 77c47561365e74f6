//! What a scenario needs and this build, or the embedded cluster, does not have.

use std::collections::BTreeSet;

use crate::detect::expression::Needs;
use crate::scenario::model::Scenario;

/// Capabilities that are missing, sorted; empty when the scenario can be run.
pub fn for_what(scenario: &Scenario) -> Vec<String> {
    if !scenario.needs.is_empty() {
        // Said by the loader; what else is missing follows from it.
        return scenario.needs.clone();
    }
    let mut missing = BTreeSet::new();
    let detector = &scenario.detector;
    let unanswerable = detector
        .fixed_when
        .iter()
        .chain(&detector.regressed_when)
        .chain(&scenario.manifest_when)
        .any(|condition| {
            Needs::of([&condition.expression]).prometheus && !condition.skip_if_unevaluable
        });
    if unanswerable {
        missing.insert("prometheus".to_owned());
    }
    missing.into_iter().collect()
}
