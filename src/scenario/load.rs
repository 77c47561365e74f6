//! Strict loading: a file's text becomes the types of `model`, or every problem of the file with its place.
//!
//! The same functions serve `validate` and `run`, so their verdicts cannot differ. Nothing here reads files.

mod detector;
mod header;
mod injector;
mod repair;
mod vocabulary;

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::detect::condition::Condition;
use crate::detect::expression::{Needs, Test};
use crate::ids::FixtureId;
use crate::scenario::decode::Fields;
use crate::scenario::model::{Injector, Scenario, Vocabulary};
use crate::scenario::problem::{Notes, Problem, Problems};
use crate::scenario::yaml;

pub use crate::scenario::load::injector::{INJECTOR_KEYS, INJECTOR_TYPES};
pub use crate::scenario::load::vocabulary::{categories, mechanisms, rubric, vocabulary};
pub use crate::scenario::yaml::from_bytes;

/// The keys of a scenario file.
pub const SCENARIO_KEYS: [&str; 18] = [
    "id",
    "plane",
    "symptom_class",
    "origin",
    "difficulty",
    "tier",
    "status",
    "source_tranche",
    "injector",
    "detector",
    "scorer",
    "ground_truth",
    "mechanism",
    "fixture",
    "alert",
    "manifest_when",
    "protected",
    "reference_repair",
];

/// A scenario that may run, and what its author should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub scenario: Scenario,
    pub warnings: Vec<Problem>,
}

/// Loads a scenario file. `file` is its name for messages; its stem should equal the id.
///
/// # Errors
/// Every problem of the file.
pub fn scenario(text: &str, file: &str, vocabulary: &Vocabulary) -> Result<Loaded, Problems> {
    let mut notes = Notes::default();
    let scenario = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        decode(&fields, text, file, vocabulary, &mut notes)
    });
    let (scenario, warnings) = notes.finish(file, scenario)?;
    Ok(Loaded { scenario, warnings })
}

fn decode(
    fields: &Fields<'_>,
    text: &str,
    file: &str,
    vocabulary: &Vocabulary,
    notes: &mut Notes,
) -> Option<Scenario> {
    fields.known(&SCENARIO_KEYS, notes);
    // Everything is decoded before the first failure counts, so that all problems are reported.
    let header = header::header(fields, notes);
    let injector = injector::injector(fields, notes);
    let detector = detector::detector(fields, notes);
    let manifest_when = detector::conditions(fields, "manifest_when", notes);
    let namespace = injector
        .as_ref()
        .map(|injector| injector.namespace().to_owned());
    let scorer = header::scorer(fields, namespace.as_deref(), notes);
    let truth = header::ground_truth(fields, vocabulary, notes);
    let mechanism = header::mechanism(fields, vocabulary, truth.as_ref(), notes);
    let fixture = header::fixture(fields, namespace.as_deref(), notes);
    let alert = fields.opt_text("alert", notes);
    let protected = repair::protected(fields, notes);
    let reference_repair = repair::reference_repair(fields, notes);
    let (header, injector, detector) = (header?, injector?, detector?);
    let (scorer, ground_truth) = (scorer?, truth?);
    if let Some(id) = fields.entry("id") {
        warn_about_file_name(header.id.as_str(), id.value.at, file, notes);
    }
    let manifest_when = manifest_when?;
    detector::check_against_scorer(fields, &detector, &manifest_when, &scorer, notes);
    let fixture = fixture?;
    Some(Scenario {
        id: header.id,
        plane: header.plane,
        symptom_class: header.symptom_class,
        origin: header.origin,
        difficulty: header.difficulty,
        tier: header.tier,
        status: header.status,
        source_tranche: header.source_tranche,
        alert: alert.unwrap_or_else(|| neutral_alert(&detector.fixed_when, injector.namespace())),
        needs: needs(&injector, &detector.fixed_when, &fixture),
        injector,
        detector,
        scorer,
        ground_truth,
        mechanism,
        fixture,
        manifest_when,
        protected: protected?,
        reference_repair: reference_repair?,
        text: text.to_owned(),
        sha256: hex::encode(Sha256::digest(text.as_bytes())),
        is_override: false,
    })
}

fn warn_about_file_name(
    id: &str,
    at: crate::scenario::problem::Position,
    file: &str,
    notes: &mut Notes,
) {
    let path = Path::new(file);
    let is_yaml = path
        .extension()
        .is_some_and(|ending| ending == "yaml" || ending == "yml");
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    if let (true, Some(stem)) = (is_yaml, stem)
        && stem != id
    {
        let message = format!("the id `{id}` differs from the file's name `{stem}`");
        notes.warning(at, "id", message);
    }
}

/// An alert without a cause: the first workload that the detector looks at, never the injector's target.
fn neutral_alert(fixed_when: &[Condition], namespace: &str) -> String {
    let service = fixed_when
        .iter()
        .find_map(|condition| match &condition.expression.test {
            Test::Workload { object, .. } | Test::PodPhase { object, .. } => Some(object),
            _ => None,
        });
    match service {
        Some(object) => format!("{} in {} is degraded", object.name, object.namespace),
        None => format!("services in {namespace} are degraded"),
    }
}

/// What the embedded cluster does not have and the scenario cannot do without.
fn needs(injector: &Injector, fixed_when: &[Condition], fixture: &[FixtureId]) -> Vec<String> {
    let mut needs = Vec::new();
    if matches!(injector, Injector::FlagdFlag { .. }) {
        needs.push("flagd".to_owned());
    }
    let foreign = fixture
        .iter()
        .filter(|fixture| fixture.as_str() == OTEL_FIXTURE);
    needs.extend(foreign.map(ToString::to_string));
    let needed = fixed_when
        .iter()
        .filter(|condition| !condition.skip_if_unevaluable);
    if Needs::of(needed.map(|condition| &condition.expression)).prometheus {
        needs.push(PROMETHEUS.to_owned());
    }
    needs
}

/// What a scenario needs whose conditions query metrics.
pub const PROMETHEUS: &str = "prometheus";

/// The OpenTelemetry demo: too large for the embedded cluster.
const OTEL_FIXTURE: &str = "otel-demo";

#[cfg(test)]
mod tests;
