//! What a registration pins of the workspace: how it is hashed, and whether it still is what was locked.

use crate::agent::choice::Choice;
use crate::cluster::fixture::Fixtures;
use crate::embed::BuiltIn;
use crate::experiment::canonical::{self, CanonicalError};
use crate::experiment::registration::{LockedArm, LockedScenario, Registration};
use crate::scenario::library::{Library, LibraryError};
use crate::scenario::load;
use crate::scenario::model::{Rubric, Scenario, Vocabulary};

/// An input that is not what was locked. Nothing is run with it.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not what was locked: {why}")]
pub struct Changed {
    /// Such as `scenario oom-advocate-api`.
    pub what: String,
    pub why: String,
}

/// A rubric's canonical JSON: what a registration keeps of it.
///
/// # Errors
/// Never for a rubric that was loaded: all of it are texts, flags and small numbers.
pub fn rubric_text(rubric: &Rubric) -> Result<String, CanonicalError> {
    canonical::to_string(rubric)
}

/// SHA-256 of the canonical JSON of `{version, categories, mechanisms}`.
///
/// # Errors
/// Never for a vocabulary that was loaded.
pub fn vocabulary_sha256(vocabulary: &Vocabulary) -> Result<String, CanonicalError> {
    let Vocabulary {
        version,
        categories,
        mechanisms,
    } = vocabulary;
    let value = serde_json::json!({
        "version": version, "categories": categories, "mechanisms": mechanisms,
    });
    Ok(canonical::sha256_hex(&canonical::to_string(&value)?))
}

/// Compares everything that a registration pins with what is here, and answers its scenarios in the plan's order.
///
/// # Errors
/// The first input that differs, by name, with what was locked and what is here.
pub fn unchanged(
    registration: &Registration,
    library: &Library,
    fixtures: &Fixtures,
) -> Result<Vec<Scenario>, Changed> {
    let version = env!("CARGO_PKG_VERSION");
    differ("breakage itself", &registration.breakage_version, version)?;
    let vocabulary =
        vocabulary_sha256(library.vocabulary()).map_err(unreadable("the vocabulary"))?;
    differ(
        "the vocabulary",
        &registration.vocabulary_sha256,
        &vocabulary,
    )?;
    let locked = &registration.rubric;
    let what = format!("rubric {}", locked.id);
    let rubric = library
        .rubric(locked.id.as_str())
        .map_err(unreadable(&what))?;
    let text = rubric_text(rubric).map_err(unreadable(&what))?;
    differ(&what, &locked.sha256, &canonical::sha256_hex(&text))?;
    for arm in &registration.arms {
        same_agent(arm)?;
    }
    let name = &registration.plan.corpus.embedder;
    let what = format!("embedder {name}");
    let embedder: BuiltIn = name.parse().map_err(unreadable(&what))?;
    let identity = embedder.embedder().identity();
    differ(
        &what,
        registration.corpus.embedder.as_str(),
        identity.as_str(),
    )?;
    let scenarios = registration.scenarios.iter();
    scenarios
        .map(|locked| same_scenario(locked, library, fixtures))
        .collect()
}

fn same_scenario(
    locked: &LockedScenario,
    library: &Library,
    fixtures: &Fixtures,
) -> Result<Scenario, Changed> {
    let what = format!("scenario {}", locked.id);
    let scenario = match library.scenario(locked.id.as_str()) {
        // Named by its path when it was locked: what runs is the text that was kept.
        Err(LibraryError::NotFound { .. }) => {
            load::scenario(&locked.text, locked.id.as_str(), library.vocabulary())
                .map_err(unreadable(&what))?
                .scenario
        }
        found => found.map_err(unreadable(&what))?,
    };
    differ(&what, &locked.sha256, &scenario.sha256)?;
    let what = format!("the fixture of scenario {}", locked.id);
    let fixture = fixtures
        .load(&scenario.fixture)
        .map_err(unreadable(&what))?;
    differ(&what, &locked.fixture_sha256, &fixture.sha256)?;
    Ok(scenario)
}

fn same_agent(locked: &LockedArm) -> Result<(), Changed> {
    let what = format!("the agent of arm {} ({})", locked.id, locked.agent);
    let agent = Choice::parse(&locked.agent).map_err(unreadable(&what))?;
    differ(&what, &locked.agent_version, agent.make().version())
}

fn differ(what: &str, locked: &str, here: &str) -> Result<(), Changed> {
    if locked == here {
        return Ok(());
    }
    Err(Changed {
        what: what.to_owned(),
        why: format!("locked {locked}, here {here}"),
    })
}

fn unreadable<E: std::error::Error>(what: &str) -> impl FnOnce(E) -> Changed {
    let what = what.to_owned();
    move |error| Changed {
        what,
        why: error.to_string(),
    }
}
