//! One postmortem as the experience base keeps it: the account, and what the framework knows about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::experience::learner::Lesson;
use crate::ids::{CategoryId, MechanismId, PostmortemId, RunId, ScenarioId, is_kebab_case};
use crate::record::{Outcome, Postmortem, Source};

/// Longest text field. An incident's account fits in a hundredth of it.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// Longest list. An agent with more actions keeps the run's record for the rest.
pub const MAX_ITEMS: usize = 2_000;
/// Longest id, category or tool name.
pub const MAX_NAME_BYTES: usize = 128;

/// A postmortem with its label and provenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub id: PostmortemId,
    pub source: Source,
    pub outcome: Outcome,
    pub postmortem: Postmortem,
    /// What truly happened, for analysis. Never shown to an agent and never embedded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<MechanismId>,
    /// The scenario that it came from; excluded on request, so that no run is handed its own answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario_id: Option<ScenarioId>,
    /// The run that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// RFC 3339; for display, never for judgement.
    pub recorded_at: String,
    /// Kept, but not served until it is let out.
    #[serde(default)]
    pub quarantined: bool,
    /// A person should look at it before trusting it.
    #[serde(default)]
    pub review: bool,
}

/// What a postmortem may not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{field} is empty")]
    Empty { field: &'static str },
    #[error("{field} has {found} bytes, at most {limit} are kept")]
    TooLong {
        field: &'static str,
        found: usize,
        limit: usize,
    },
    #[error("{field} has {found} items, at most {MAX_ITEMS} are kept")]
    TooMany { field: &'static str, found: usize },
    #[error("{field} is {found}, expected {expected}")]
    OutOfRange {
        field: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("{field} {found:?} may hold letters, digits, '.', '_' and '-' only")]
    BadName { field: &'static str, found: String },
    #[error("{field} {found:?} is not kebab-case")]
    NotKebab { field: &'static str, found: String },
}

impl Entry {
    /// What is embedded: final diagnosis, categories, tool sequence, what did not work, outcome, one line each.
    pub fn key_text(&self) -> String {
        key_text(&self.postmortem, self.outcome)
    }

    /// Tool names of its actions, in order.
    pub fn tools(&self) -> Vec<String> {
        self.postmortem
            .actions_taken
            .iter()
            .map(|action| action.tool.clone())
            .collect()
    }

    /// Checks bounds and shapes. Unknown categories are kept as they are: they were the agent's words.
    pub fn check(&self) -> Result<(), Invalid> {
        name("id", self.id.as_str())?;
        if let Some(mechanism) = &self.mechanism {
            kebab("mechanism", mechanism.as_str())?;
        }
        if let Some(scenario) = &self.scenario_id {
            kebab("scenario_id", scenario.as_str())?;
        }
        if let Some(run) = &self.run_id {
            text("run_id", run.as_str(), MAX_NAME_BYTES)?;
        }
        text("recorded_at", &self.recorded_at, MAX_NAME_BYTES)?;
        if !is_rfc_3339(&self.recorded_at) {
            return Err(Invalid::OutOfRange {
                field: "recorded_at",
                found: format!("{:?}", self.recorded_at),
                expected: "a time as RFC 3339 writes it, such as 2031-02-03T04:05:06Z",
            });
        }
        check_postmortem(&self.postmortem)
    }
}

/// An account that was learnt, under the id that follows from it.
pub(super) fn learned(lesson: Lesson) -> Entry {
    Entry {
        id: derived_id(&lesson.postmortem, lesson.outcome, lesson.source),
        source: lesson.source,
        outcome: lesson.outcome,
        postmortem: lesson.postmortem,
        mechanism: lesson.mechanism,
        scenario_id: lesson.scenario_id,
        run_id: lesson.run_id,
        recorded_at: lesson.recorded_at,
        quarantined: lesson.quarantined,
        review: lesson.review,
    }
}

/// An id that follows from what is embedded and where it came from: the same account twice is one entry.
pub(super) fn derived_id(
    postmortem: &Postmortem,
    outcome: Outcome,
    source: Source,
) -> PostmortemId {
    let source = match source {
        Source::IncidentLog => "incident-log",
        Source::Scenario => "scenario",
        Source::Production => "production",
    };
    let mut hash = Sha256::new();
    hash.update(source);
    hash.update([0]);
    hash.update(key_text(postmortem, outcome));
    let digest = hex::encode(hash.finalize());
    PostmortemId::new(format!("pm-{}", &digest[..16]))
}

fn key_text(postmortem: &Postmortem, outcome: Outcome) -> String {
    let categories: Vec<&str> = std::iter::once(&postmortem.primary_category)
        .chain(&postmortem.secondary_categories)
        .map(CategoryId::as_str)
        .collect();
    let tools: Vec<&str> = postmortem
        .actions_taken
        .iter()
        .map(|action| action.tool.as_str())
        .collect();
    let outcome = match outcome {
        Outcome::Resolved => "resolved",
        Outcome::Regressed => "regressed",
        Outcome::Inconclusive => "inconclusive",
    };
    [
        postmortem.final_diagnosis.as_str(),
        &categories.join(" "),
        &tools.join(" "),
        &postmortem.what_did_not_work.join("; "),
        outcome,
    ]
    .join("\n")
}

/// Bounds and ranges of an account, as an agent handed it in.
pub fn check_postmortem(postmortem: &Postmortem) -> Result<(), Invalid> {
    if postmortem.final_diagnosis.trim().is_empty() {
        return Err(Invalid::Empty {
            field: "final_diagnosis",
        });
    }
    text(
        "final_diagnosis",
        &postmortem.final_diagnosis,
        MAX_TEXT_BYTES,
    )?;
    text("fix_applied", &postmortem.fix_applied, MAX_TEXT_BYTES)?;
    if postmortem.primary_category.as_str().trim().is_empty() {
        return Err(Invalid::Empty {
            field: "primary_category",
        });
    }
    text(
        "primary_category",
        postmortem.primary_category.as_str(),
        MAX_NAME_BYTES,
    )?;
    count(
        "secondary_categories",
        postmortem.secondary_categories.len(),
    )?;
    for category in &postmortem.secondary_categories {
        text("secondary_categories", category.as_str(), MAX_NAME_BYTES)?;
    }
    for (field, texts) in [
        ("what_did_not_work", &postmortem.what_did_not_work),
        ("side_effects_observed", &postmortem.side_effects_observed),
    ] {
        count(field, texts.len())?;
        for one in texts {
            text(field, one, MAX_TEXT_BYTES)?;
        }
    }
    check_numbers(postmortem)?;
    count("actions_taken", postmortem.actions_taken.len())?;
    for action in &postmortem.actions_taken {
        text("actions_taken.tool", &action.tool, MAX_NAME_BYTES)?;
        text("actions_taken.at", &action.at, MAX_NAME_BYTES)?;
        text(
            "actions_taken.input_summary",
            &action.input_summary,
            MAX_TEXT_BYTES,
        )?;
        let reason = action.revert_reason_mechanical.as_deref().unwrap_or("");
        text(
            "actions_taken.revert_reason_mechanical",
            reason,
            MAX_TEXT_BYTES,
        )?;
        fraction("actions_taken.reversibility", action.reversibility)?;
    }
    Ok(())
}

fn check_numbers(postmortem: &Postmortem) -> Result<(), Invalid> {
    fraction("confidence", postmortem.confidence)?;
    for (field, seconds) in [
        ("time_to_diagnose_s", postmortem.time_to_diagnose_s),
        ("time_to_fix_s", postmortem.time_to_fix_s),
    ] {
        if !(seconds.is_finite() && seconds >= 0.0) {
            return Err(Invalid::OutOfRange {
                field,
                found: seconds.to_string(),
                expected: "a number of seconds from 0 on",
            });
        }
    }
    Ok(())
}

fn fraction(field: &'static str, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(Invalid::OutOfRange {
            field,
            found: value.to_string(),
            expected: "0 to 1",
        })
    }
}

/// A real date and time with seconds and an offset. The parser alone would take shorter forms as well.
fn is_rfc_3339(value: &str) -> bool {
    let bytes = value.as_bytes();
    let Some(third_last) = bytes.len().checked_sub(3).and_then(|at| bytes.get(at)) else {
        return false;
    };
    matches!(bytes.get(10), Some(b'T' | b't' | b' '))
        && bytes.get(16) == Some(&b':')
        && (value.ends_with(['Z', 'z']) || *third_last == b':')
        && value.parse::<jiff::Timestamp>().is_ok()
}

fn text(field: &'static str, value: &str, limit: usize) -> Result<(), Invalid> {
    if value.len() > limit {
        return Err(Invalid::TooLong {
            field,
            found: value.len(),
            limit,
        });
    }
    Ok(())
}

fn count(field: &'static str, found: usize) -> Result<(), Invalid> {
    if found > MAX_ITEMS {
        return Err(Invalid::TooMany { field, found });
    }
    Ok(())
}

fn name(field: &'static str, value: &str) -> Result<(), Invalid> {
    if value.is_empty() {
        return Err(Invalid::Empty { field });
    }
    text(field, value, MAX_NAME_BYTES)?;
    let clean = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if clean {
        Ok(())
    } else {
        Err(Invalid::BadName {
            field,
            found: value.to_owned(),
        })
    }
}

fn kebab(field: &'static str, value: &str) -> Result<(), Invalid> {
    text(field, value, MAX_NAME_BYTES)?;
    if is_kebab_case(value) {
        Ok(())
    } else {
        Err(Invalid::NotKebab {
            field,
            found: value.to_owned(),
        })
    }
}

/// For each entry whose embedded text an earlier one has too: its id and the earlier one's.
pub fn duplicates(entries: &[Entry]) -> Vec<(PostmortemId, PostmortemId)> {
    let mut first_of: BTreeMap<String, &PostmortemId> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries {
        match first_of.get(&entry.key_text()) {
            Some(first) => found.push((entry.id.clone(), (*first).clone())),
            None => {
                first_of.insert(entry.key_text(), &entry.id);
            }
        }
    }
    found
}
