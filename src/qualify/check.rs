//! The result of a qualification: checks with stable ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::ScenarioId;
use crate::qualify::Depth;

/// What was proven about one scenario on one kind of cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Qualification {
    pub scenario: ScenarioId,
    /// SHA-256 of the scenario file's text, hex.
    pub scenario_sha256: String,
    /// Names of the fixtures, joined by `+`.
    pub fixture: String,
    /// SHA-256 of the fixture's manifests, hex; empty when the fixture does not exist here.
    pub fixture_sha256: String,
    /// The kind: `embedded`, `served` or `kubernetes`.
    pub cluster: String,
    /// The context that led there, where the cluster outlives the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The cluster's Kubernetes version.
    pub version: String,
    pub breakage_version: String,
    /// Capabilities that this build or cluster lacks; the checks were not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Conditions that could not be evaluated here and say that they may be skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// How much was asked. Nothing less than the whole qualifies.
    #[serde(default, skip_serializing_if = "Depth::is_whole")]
    pub depth: Depth,
    /// In the order in which they build on each other.
    pub checks: Vec<Check>,
    /// What the agents of the checks earned, 0 to 1: `noop`, `reference-repair`, each cheat.
    #[serde(default)]
    pub totals: BTreeMap<String, f64>,
}

/// One thing that had to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable: `control-silent`, `fault-lasts`, `cheat:scale-to-zero` and so on.
    pub id: String,
    /// Nothing where it was not asked because an earlier check, on which it builds, failed.
    pub pass: Option<bool>,
    pub observed: String,
    pub required: String,
}

impl Check {
    pub fn new(
        id: impl Into<String>,
        pass: bool,
        observed: impl Into<String>,
        required: impl Into<String>,
    ) -> Check {
        Check {
            id: id.into(),
            pass: Some(pass),
            observed: observed.into(),
            required: required.into(),
        }
    }

    /// A check that was not asked, and why.
    pub fn not_asked(
        id: impl Into<String>,
        why: impl Into<String>,
        required: impl Into<String>,
    ) -> Check {
        Check {
            id: id.into(),
            pass: None,
            observed: why.into(),
            required: required.into(),
        }
    }
}

/// Where a scenario stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Qualified,
    /// A check failed.
    Missed,
    /// It loads, and waits for something that this build does not have.
    Waits,
}

impl Qualification {
    pub fn standing(&self) -> Standing {
        if !self.waits_for.is_empty() {
            Standing::Waits
        } else if !self.checks.is_empty() && self.checks.iter().all(|c| c.pass == Some(true)) {
            Standing::Qualified
        } else {
            Standing::Missed
        }
    }

    /// The first check that failed.
    pub fn first_miss(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.pass == Some(false))
    }

    /// A check by id.
    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    pub fn passed(&self) -> usize {
        self.checks
            .iter()
            .filter(|check| check.pass == Some(true))
            .count()
    }

    /// The cheat that earned most, and what; the first of equals.
    pub fn worst_cheat(&self) -> Option<(&str, f64)> {
        let mut worst: Option<(&str, f64)> = None;
        for (name, total) in &self.totals {
            if let Some(cheat) = name.strip_prefix(CHEAT)
                && worst.is_none_or(|(_, most)| *total > most)
            {
                worst = Some((cheat, *total));
            }
        }
        worst
    }

    /// Whether the fault shows and goes on showing while nobody does anything.
    pub fn bites(&self) -> bool {
        [FAULT_MANIFESTS, FAULT_LASTS]
            .iter()
            .all(|id| self.check(id).is_some_and(|check| check.pass == Some(true)))
    }
}

/// Without a fault nothing is reported for the whole budget.
pub const CONTROL_SILENT: &str = "control-silent";
/// The fault shows in time.
pub const FAULT_MANIFESTS: &str = "fault-manifests";
/// Left alone it is never repaired.
pub const FAULT_LASTS: &str = "fault-lasts";
/// Doing nothing earns exactly the floor.
pub const NOOP_FLOOR: &str = "noop-floor";
/// The reference repair with the true account earns the maximum.
pub const REFERENCE_REPAIR: &str = "reference-repair";
/// The fault is taken back after every run.
pub const UNDO_PROVEN: &str = "undo-proven";
/// The cluster is as before after every run.
pub const STATE_HASH_EQUAL: &str = "state-hash-equal";
/// A repair that destroys does not keep its credit.
pub const DESTRUCTIVE_REPAIR: &str = "destructive-repair";
/// Nothing that an agent can read gives the fault away.
pub const LEAK_LINT: &str = "leak-lint";
/// Before the name of a cheat.
pub const CHEAT: &str = "cheat:";
