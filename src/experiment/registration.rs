//! What is locked: a plan together with everything it names, resolved to contents and hashes.

use serde::{Deserialize, Serialize};

use crate::experiment::canonical::{self, CanonicalError};
use crate::experiment::plan::Plan;
use crate::ids::{ArmId, EmbedderId, MicroPoints, RegistrationHash, RubricId, ScenarioId};

/// Version of a registration's JSON.
pub const FORMAT: u32 = 1;

/// A locked plan. Its hash names the experiment. No time and no place is in it, so that the same plan over the same
/// contents has the same hash anywhere; when it was locked, and at which commit, the ledger's first entry says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    pub format: u32,
    pub plan: Plan,
    pub breakage_version: String,
    pub scenarios: Vec<LockedScenario>,
    pub rubric: LockedRubric,
    pub vocabulary_sha256: String,
    pub arms: Vec<LockedArm>,
    pub corpus: LockedCorpus,
    /// What the matrix would decide under known truths at the planned size, as it was printed when the plan was locked.
    #[serde(default)]
    pub operating: Vec<Operating>,
    /// The hash of the registration that this one amends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<String>,
}

impl Registration {
    /// The canonical JSON: what is kept and hashed.
    ///
    /// # Errors
    /// A number beyond what canonical JSON keeps; a loaded plan has none.
    pub fn canonical(&self) -> Result<String, CanonicalError> {
        canonical::to_string(self)
    }

    /// SHA-256 of the canonical JSON.
    ///
    /// # Errors
    /// As [`Registration::canonical`].
    pub fn hash(&self) -> Result<RegistrationHash, CanonicalError> {
        let text = self.canonical()?;
        Ok(RegistrationHash::new(canonical::sha256_hex(&text)))
    }

    /// The operating characteristics as reports print them: pattern, row, probability.
    pub fn operating_rows(&self) -> Vec<(String, String, f64)> {
        let rows = self.operating.iter();
        rows.map(|one| {
            let probability = one.probability.as_f64();
            (one.pattern.clone(), one.row.clone(), probability)
        })
        .collect()
    }
}

/// How often a row of the matrix comes out under a known truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operating {
    /// Such as `m everywhere`.
    pub pattern: String,
    /// The row's id; `none` for no decision.
    pub row: String,
    pub probability: MicroPoints,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedScenario {
    pub id: ScenarioId,
    pub sha256: String,
    /// The file's text itself.
    pub text: String,
    pub fixture_sha256: String,
    pub qualified: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedRubric {
    pub id: RubricId,
    pub sha256: String,
    pub text: String,
    /// What a near miss and an exact primary earn of the diagnosis axis.
    pub near_miss: MicroPoints,
    pub exact_primary: MicroPoints,
}

/// An arm's agent as it is made from the plan's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedArm {
    pub id: ArmId,
    pub agent: String,
    pub agent_version: String,
    /// The agent is a model of one.
    pub simulation: bool,
}

/// The frozen corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedCorpus {
    pub embedder: EmbedderId,
    /// `Snapshot::content_hash`.
    pub sha256: String,
    pub entries: usize,
}
