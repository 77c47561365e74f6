//! The audit of the published benchmark: what its faults did on a real cluster, and what they do here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::ScenarioId;
use crate::qualify::alone::{self, LeftAlone};
use crate::qualify::{Materials, QualifyError};
use crate::scenario::model::Scenario;

/// Measured on a real cluster; the file names the source.
const MEASURED: &str = include_str!("../../data/published-measured.json");

/// How far the times of two clusters may lie apart: two real runs differ by up to three seconds, and each detector
/// reads every two.
pub const TOLERANCE_S: u64 = 6;

/// The measured table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Measured {
    pub source: String,
    /// How long each fault was watched.
    pub watched_s: u64,
    pub rows: Vec<Row>,
}

/// One published fault on the real cluster, nobody repairing anything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Row {
    pub scenario: ScenarioId,
    /// Seconds until it counted as fixed; nothing where it bites.
    pub fixed_after_s: Option<u64>,
    /// Why it heals.
    #[serde(default)]
    pub why: String,
}

/// The same fault on both clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub scenario: ScenarioId,
    pub real_fixed_after_s: Option<u64>,
    pub here_fixed_after_s: Option<u64>,
    /// Both heal within [`TOLERANCE_S`] of each other, or neither heals.
    pub agrees: bool,
    /// Why the fault could not be written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The measured table of this build.
///
/// # Errors
/// A file that is no such table: a defect of the build.
pub fn measured() -> Result<Measured, serde_json::Error> {
    serde_json::from_str(MEASURED)
}

/// Leaves one published fault alone here, as long as it was left alone there.
///
/// # Errors
/// The runtime.
pub fn compare(
    materials: &Materials,
    scenario: &Scenario,
    row: &Row,
    watched_s: u64,
) -> Result<Compared, QualifyError> {
    let outcome = alone::watch(materials, scenario, Duration::from_secs(watched_s))?;
    let (here, failed) = match outcome {
        Ok(LeftAlone::FixedAfter(seconds)) => (Some(seconds), None),
        Ok(LeftAlone::NotFixed) => (None, None),
        Err(why) => (None, Some(why)),
    };
    let agrees = failed.is_none()
        && match (row.fixed_after_s, here) {
            (Some(real), Some(here)) => real.abs_diff(here) <= TOLERANCE_S,
            (None, None) => true,
            _ => false,
        };
    Ok(Compared {
        scenario: scenario.id.clone(),
        real_fixed_after_s: row.fixed_after_s,
        here_fixed_after_s: here,
        agrees,
        failed,
    })
}
