//! Locking a plan: everything that it names is resolved to contents and hashes, and the result is kept under its hash.
//!
//! Registration, first ledger entry and frozen corpus are one commit, so that there is never one without the others. A
//! plan that is locked already is not locked twice, and an id stands for one registration unless it is amended.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::choice::{Choice, ChoiceError};
use crate::cluster::ClusterError;
use crate::cluster::fixture::Fixtures;
use crate::experience::ExperienceError;
use crate::experience::frozen::Frozen;
use crate::experience::snapshot::Snapshot;
use crate::experiment::canonical::{self, CanonicalError};
use crate::experiment::dead_axes::{self, DeadAxis};
use crate::experiment::inputs::{rubric_text, vocabulary_sha256};
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain::{self, LedgerError};
use crate::experiment::load::Loaded;
use crate::experiment::locked::{self, FindError, short};
use crate::experiment::matrix::operating;
use crate::experiment::registration::{
    FORMAT, LockedArm, LockedCorpus, LockedRubric, LockedScenario, Registration,
};
use crate::ids::{ArmId, ExperimentId, RegistrationHash, ScenarioId};
use crate::qualify::keep;
use crate::record::ClusterFacts;
use crate::scenario::library::Library;
use crate::scenario::model::Scenario;
use crate::store::{Batch, Store, StoreError};

/// Differences that are told one by one; of more the rest is counted.
const MAX_DIFFERENCES: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("the workspace's store cannot be used")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the registration has no canonical JSON")]
    Canonical(#[from] CanonicalError),
    #[error("the corpus cannot be frozen")]
    Corpus(#[from] ExperienceError),
    #[error("the fixture of scenario {scenario} cannot be used")]
    Fixture {
        scenario: ScenarioId,
        #[source]
        source: ClusterError,
    },
    #[error("the agent of arm {arm} cannot be used")]
    Agent {
        arm: ArmId,
        #[source]
        source: ChoiceError,
    },
    #[error("not qualified: {}", .0.join("; "))]
    Unqualified(Vec<String>),
    #[error(
        "experiment {id} is locked already as {}, with other contents:\n  {}",
        short(.hash.as_str()),
        .differences.join("\n  ")
    )]
    Taken {
        id: ExperimentId,
        hash: RegistrationHash,
        differences: Vec<String>,
    },
    #[error("experiment {} has the id {expected}, the plan has {found}", short(.hash.as_str()))]
    OtherId {
        hash: RegistrationHash,
        expected: ExperimentId,
        found: ExperimentId,
    },
    #[error("nothing differs from experiment {}", short(.0.as_str()))]
    NothingAmended(RegistrationHash),
    #[error("experiment {} is finished: its runs stay what they are", short(.0.as_str()))]
    Finished(RegistrationHash),
    #[error("experiment {} was amended already, to {}", short(.hash.as_str()), short(.to.as_str()))]
    AmendedAlready {
        hash: RegistrationHash,
        to: RegistrationHash,
    },
    #[error("an amendment needs a reason that says something")]
    NoReason,
}

/// What a plan is resolved against.
pub struct Materials<'a> {
    pub library: &'a Library,
    pub fixtures: &'a Fixtures,
    pub store: &'a Store,
    /// What the experiment will retrieve from, without quarantined postmortems.
    pub snapshot: Snapshot,
    /// The clusters of the plan's arms, by context; nothing for the embedded one.
    pub clusters: BTreeMap<Option<String>, ClusterFacts>,
}

/// A plan with everything that it names.
pub struct Resolved {
    pub registration: Registration,
    pub frozen: Frozen,
    pub dead: Vec<DeadAxis>,
    /// Scenarios that take part unqualified, with the plan's reason.
    pub exceptions: Vec<(ScenarioId, String)>,
}

/// When and from where a plan was locked: in the ledger, not in the hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// RFC 3339, UTC.
    pub at: String,
    pub git_commit: Option<String>,
    pub git_dirty: bool,
}

/// What locking did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub hash: RegistrationHash,
    /// False: it was there, and nothing was written.
    pub is_new: bool,
}

/// Resolves a plan.
///
/// # Errors
/// Scenarios that nobody qualified and for which the plan gives no reason, all at once; an agent or fixture that cannot be
/// used; a corpus that cannot be frozen.
pub fn resolve(loaded: &Loaded, materials: &Materials<'_>) -> Result<Resolved, LockError> {
    let plan = &loaded.plan;
    let mut exceptions = Vec::new();
    let scenarios = scenarios(loaded, materials, &mut exceptions)?;
    let arms = plan.arms.iter().map(|arm| {
        let choice = Choice::parse(&arm.agent).map_err(|source| LockError::Agent {
            arm: arm.id.clone(),
            source,
        })?;
        let agent = choice.make();
        Ok(LockedArm {
            id: arm.id.clone(),
            agent: arm.agent.clone(),
            agent_version: agent.version().to_owned(),
            simulation: agent.is_simulation(),
        })
    });
    let rubric = &loaded.rubric;
    let text = rubric_text(rubric)?;
    let frozen = materials.snapshot.freeze();
    let registration = Registration {
        format: FORMAT,
        plan: plan.clone(),
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        scenarios,
        rubric: LockedRubric {
            id: rubric.id.clone(),
            sha256: canonical::sha256_hex(&text),
            text,
            near_miss: rubric.near_miss,
            exact_primary: rubric.exact_primary,
        },
        vocabulary_sha256: vocabulary_sha256(materials.library.vocabulary())?,
        arms: arms.collect::<Result<_, LockError>>()?,
        corpus: LockedCorpus {
            embedder: frozen.embedder.clone(),
            sha256: frozen.sha256.clone(),
            entries: frozen.rows.len(),
        },
        operating: operating::characteristics(plan)?,
        amends: None,
    };
    let dead = loaded
        .scenarios
        .iter()
        .flat_map(|scenario| dead_axes::of(scenario, rubric))
        .collect();
    Ok(Resolved {
        registration,
        frozen,
        dead,
        exceptions,
    })
}

fn scenarios(
    loaded: &Loaded,
    materials: &Materials<'_>,
    exceptions: &mut Vec<(ScenarioId, String)>,
) -> Result<Vec<LockedScenario>, LockError> {
    let mut locked = Vec::new();
    let mut unqualified = Vec::new();
    for (planned, scenario) in loaded.plan.scenarios.iter().zip(&loaded.scenarios) {
        let fixture = materials
            .fixtures
            .load(&scenario.fixture)
            .map_err(|source| LockError::Fixture {
                scenario: scenario.id.clone(),
                source,
            })?;
        let missing = unqualified_on(scenario, materials)?;
        if !missing.is_empty() {
            match &planned.unqualified_because {
                Some(reason) => exceptions.push((scenario.id.clone(), reason.clone())),
                None => unqualified.push(format!("{} on {}", scenario.id, missing.join(", "))),
            }
        }
        locked.push(LockedScenario {
            id: scenario.id.clone(),
            sha256: scenario.sha256.clone(),
            text: scenario.text.clone(),
            fixture_sha256: fixture.sha256,
            qualified: missing.is_empty(),
        });
    }
    if unqualified.is_empty() {
        Ok(locked)
    } else {
        Err(LockError::Unqualified(unqualified))
    }
}

/// The plan's clusters on which nobody has qualified a scenario.
fn unqualified_on(
    scenario: &Scenario,
    materials: &Materials<'_>,
) -> Result<Vec<String>, LockError> {
    let mut missing = Vec::new();
    for (context, facts) in &materials.clusters {
        if !keep::is_qualified(materials.store, scenario, materials.fixtures, facts)? {
            missing.push(match context {
                Some(context) => format!("context {context}"),
                None => "the embedded cluster".to_owned(),
            });
        }
    }
    Ok(missing)
}

/// Keeps a resolved plan under its hash. The same contents a second time change nothing.
///
/// # Errors
/// The plan's id stands for other contents already.
pub fn lock(
    store: &Store,
    resolved: &Resolved,
    provenance: &Provenance,
) -> Result<Outcome, LockError> {
    let registration = &resolved.registration;
    let mut of_id = Vec::new();
    for (hash, text) in store.registrations()? {
        let kept = locked::Locked::read(&hash, &text)?;
        if kept.registration.plan.id == registration.plan.id {
            of_id.push((kept.hash, kept.registration));
        }
    }
    for (hash, kept) in &of_id {
        if is_same(kept, registration) {
            return Ok(Outcome {
                hash: hash.clone(),
                is_new: false,
            });
        }
    }
    if let Some((hash, kept)) = last(&of_id) {
        return Err(LockError::Taken {
            id: registration.plan.id.clone(),
            hash: hash.clone(),
            differences: differences(kept, registration)?,
        });
    }
    let mut batch = Batch::default();
    let hash = put(&mut batch, registration, &resolved.frozen, provenance, None)?;
    store.write(&batch)?;
    Ok(Outcome { hash, is_new: true })
}

/// Of registrations with one id the one that no other amends.
fn last(of_id: &[(RegistrationHash, Registration)]) -> Option<&(RegistrationHash, Registration)> {
    of_id.iter().find(|(hash, _)| {
        !of_id
            .iter()
            .any(|(_, other)| other.amends.as_deref() == Some(hash.as_str()))
    })
}

/// Equal but for what it amends.
pub(super) fn is_same(kept: &Registration, new: &Registration) -> bool {
    let bare = |registration: &Registration| Registration {
        amends: None,
        ..registration.clone()
    };
    bare(kept) == bare(new)
}

/// Adds a registration, its corpus and its ledger's first entry to a commit.
pub(super) fn put(
    batch: &mut Batch,
    registration: &Registration,
    frozen: &Frozen,
    provenance: &Provenance,
    amends: Option<Event>,
) -> Result<RegistrationHash, LockError> {
    let text = registration.canonical()?;
    let hash = registration.hash()?;
    let event = Event::Locked {
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: provenance.git_commit.clone(),
        git_dirty: provenance.git_dirty,
    };
    batch.registration(hash.as_str(), text);
    batch.experiment_corpus(&frozen.sha256, frozen.to_json()?);
    let events = std::iter::once(event).chain(amends);
    chain::begin(batch, &hash, &provenance.at, events)?;
    Ok(hash)
}

/// Every field in which two registrations differ, `path: old -> new`.
pub(super) fn differences(
    old: &Registration,
    new: &Registration,
) -> Result<Vec<String>, LockError> {
    let value = |registration: &Registration| {
        let bare = Registration {
            amends: None,
            ..registration.clone()
        };
        serde_json::to_value(bare).map_err(CanonicalError::NoJson)
    };
    let mut found = Vec::new();
    compare("", &value(old)?, &value(new)?, &mut found);
    let rest = found.len().saturating_sub(MAX_DIFFERENCES);
    found.truncate(MAX_DIFFERENCES);
    if rest > 0 {
        found.push(format!("and {rest} more"));
    }
    Ok(found)
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    // Follows from the plan, which is compared by itself.
    if path == "operating" {
        return;
    }
    let join = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let missing = Value::Null;
                let (old, new) = (
                    old.get(key).unwrap_or(&missing),
                    new.get(key).unwrap_or(&missing),
                );
                compare(&join(key), old, new, found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), old, new, found);
            }
        }
        (old, new) if old != new => {
            found.push(format!("{path}: {} -> {}", brief(old), brief(new)));
        }
        _ => {}
    }
}

fn brief(value: &Value) -> String {
    const MAX_CHARS: usize = 40;
    let text = match value {
        Value::Array(items) => format!("{} entries", items.len()),
        other => other.to_string(),
    };
    if text.chars().count() <= MAX_CHARS {
        return text;
    }
    let start: String = text.chars().take(MAX_CHARS).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests;
