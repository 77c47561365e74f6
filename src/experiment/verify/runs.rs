//! The runs of a ledger against plan, allocation and records.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::experiment::allocation::Slot;
use crate::experiment::canonical;
use crate::experiment::ledger::outcome::Ran;
use crate::experiment::ledger::{Entry, Event, RunEntry, RunOutcome};
use crate::experiment::plan::{Plan, Retrieval};
use crate::experiment::registration::Registration;
use crate::experiment::verify::{Source, Verification, is_locked_vocabulary};
use crate::ids::ScenarioId;
use crate::record::{FrameworkCode, Record};
use crate::scenario::load;
use crate::scenario::model::{Rubric, Scenario};
use crate::score::{self, Score};

/// What records are scored again with.
struct Scoring {
    rubric: Rubric,
    scenarios: BTreeMap<ScenarioId, Scenario>,
}

pub(super) fn check(
    source: &Source<'_>,
    registration: &Registration,
    slots: &[Slot],
    entries: &[Entry],
    found: &mut Verification,
) {
    let scoring = scoring(source, registration);
    if scoring.is_some() {
        found.rescored = Some(0);
    } else {
        found.notes.push(
            "records were not scored again: the vocabulary or rubric here is not the locked one"
                .to_owned(),
        );
    }
    let plan = &registration.plan;
    let mut attempts: BTreeMap<u64, Vec<&RunEntry>> = BTreeMap::new();
    let mut ended_at: Option<u64> = None;
    for entry in entries {
        match &entry.event {
            Event::Ran(run) => {
                let place = format!("ledger entry {} (run {})", entry.seq, run.run_id);
                if let Some(end) = ended_at {
                    found.found(&place, format!("a run after the end in entry {end}"));
                }
                planned(&place, run, slots, found);
                let earlier = attempts.entry(run.planned).or_default();
                for why in attempt(plan, run, earlier) {
                    found.found(&place, why);
                }
                exposed(plan, &place, run, found);
                if let Some(slot) = slots.get(run.planned as usize) {
                    record(source, scoring.as_ref(), (&place, run, slot), found);
                }
                earlier.push(run);
            }
            Event::Finished { .. } => ended_at = Some(entry.seq),
            _ => {}
        }
    }
    complete(entries, slots, &attempts, found);
    order(entries, found);
}

fn scoring(source: &Source<'_>, registration: &Registration) -> Option<Scoring> {
    if !is_locked_vocabulary(registration, source.vocabulary) {
        return None;
    }
    let mut scenarios = BTreeMap::new();
    for locked in &registration.scenarios {
        let loaded = load::scenario(&locked.text, locked.id.as_str(), source.vocabulary).ok()?;
        scenarios.insert(locked.id.clone(), loaded.scenario);
    }
    Some(Scoring {
        rubric: serde_json::from_str(&registration.rubric.text).ok()?,
        scenarios,
    })
}

/// The place that allocation gives to the run.
fn planned(place: &str, run: &RunEntry, slots: &[Slot], found: &mut Verification) {
    let Some(slot) = slots.get(run.planned as usize) else {
        found.found(
            place,
            format!("field planned is {}, beyond the plan", run.planned),
        );
        return;
    };
    if run.block != slot.block {
        found.found(
            place,
            format!("field block is {}, allocated {}", run.block, slot.block),
        );
    }
    if run.cell != slot.cell {
        let why = format!(
            "field cell is {}, allocated {}",
            run.cell.id(),
            slot.cell.id()
        );
        found.found(place, why);
    }
}

/// Whether an attempt may be the outcome, or may not.
fn attempt(plan: &Plan, run: &RunEntry, earlier: &[&RunEntry]) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.attempt as usize != earlier.len() {
        wrong.push(format!(
            "field attempt is {}, expected {}",
            run.attempt,
            earlier.len()
        ));
    }
    if earlier.iter().any(|one| one.is_final) {
        wrong.push(format!(
            "planned run {} had its outcome already",
            run.planned
        ));
    }
    if !run.is_final {
        // Only our own failures may be repeated: anything else would exclude a run by what came of it.
        match &run.outcome {
            RunOutcome::Scored { .. } | RunOutcome::Timeout { .. } => wrong.push(format!(
                "a {} run is set aside (is_final is false): only failures of ours may be repeated",
                run.outcome.state()
            )),
            RunOutcome::FrameworkError { .. } | RunOutcome::NotRun { .. } => {}
        }
    }
    if let Some(code) = run.outcome.code() {
        let used = earlier
            .iter()
            .filter(|one| one.outcome.uses_up_a_retry())
            .count();
        let retries = plan.exclusions.retries as usize;
        let counts = run.outcome.uses_up_a_retry();
        if run.is_final && (!counts || used < retries) {
            wrong.push(format!(
                "a run that failed with {} is excluded after {used} of {retries} registered retries",
                code.as_str()
            ));
        }
        if !run.is_final && counts && used >= retries {
            wrong.push(format!(
                "it is repeated beyond the {retries} registered retries"
            ));
        }
    }
    wrong
}

/// A control run that was served anything must be a failure of ours.
fn exposed(plan: &Plan, place: &str, run: &RunEntry, found: &mut Verification) {
    let retrieval = plan.arm(&run.cell.arm).map(|arm| &arm.retrieval);
    let is_control = matches!(
        retrieval,
        Some(Retrieval::Off | Retrieval::DeterministicControl(_))
    );
    let told = run.outcome.code() == Some(FrameworkCode::ControlExposed);
    if is_control && !run.exposure.served.is_empty() && !told {
        let why = format!(
            "a run of arm {}, which must be served nothing, was served {}",
            run.cell.arm, run.exposure.served[0].0
        );
        found.found(place, why);
    }
}

/// The record is the one that was kept, and says what the entry says.
fn record(
    source: &Source<'_>,
    scoring: Option<&Scoring>,
    (place, run, slot): (&str, &RunEntry, &Slot),
    found: &mut Verification,
) {
    let name = format!("record of run {}", run.run_id);
    let (record, sha256) = match as_kept(source, run) {
        Ok(kept) => kept,
        Err(why) => {
            found.found(&name, why);
            return;
        }
    };
    found.records += 1;
    if record.seed != slot.seed {
        found.found(
            &name,
            format!("field seed is {}, allocated {}", record.seed, slot.seed),
        );
    }
    let agent_seed = record.experiment.as_ref().map(|place| place.agent_seed);
    if agent_seed != Some(slot.agent_seed) {
        found.found(
            &name,
            "field experiment.agent_seed is not the allocated one",
        );
    }
    let again = scoring.and_then(|scoring| rescored(source, scoring, run, &record));
    let ran = Ran {
        record: &record,
        record_sha256: sha256,
        score: again.as_ref(),
        cell: run.cell.clone(),
    };
    let Some(mut expected) = ran.entry(run.actual, run.is_final) else {
        found.found(&name, "field experiment is missing");
        return;
    };
    if scoring.is_none() {
        expected.outcome = run.outcome.clone();
    }
    match difference(&expected, run) {
        Some(field) => {
            let why = format!("field {field} is not what the record says");
            found.found(place, why);
        }
        None if again.is_some() => {
            found.rescored = found.rescored.map(|rescored| rescored + 1);
        }
        None => {}
    }
}

/// The record that the ledger means, with its SHA-256, or what is wrong with it.
fn as_kept(source: &Source<'_>, run: &RunEntry) -> Result<(Record, String), String> {
    let text = (source.record)(&run.run_id)?.ok_or("it is missing")?;
    let sha256 = canonical::sha256_hex(&text);
    if sha256 != run.record_sha256 {
        return Err(format!(
            "its SHA-256 is {sha256}, the ledger has {}",
            run.record_sha256
        ));
    }
    match serde_json::from_str(&text) {
        Ok(record) => Ok((record, sha256)),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}

fn rescored(
    source: &Source<'_>,
    scoring: &Scoring,
    run: &RunEntry,
    record: &Record,
) -> Option<Score> {
    let scenario = scoring.scenarios.get(&run.cell.scenario)?;
    score::score(scenario, record, &scoring.rubric, source.vocabulary).ok()
}

/// The first field, by its path, in which two entries differ.
fn difference(expected: &RunEntry, found: &RunEntry) -> Option<String> {
    let expected = serde_json::to_value(expected).ok()?;
    let found = serde_json::to_value(found).ok()?;
    differs(&expected, &found, String::new())
}

fn differs(expected: &Value, found: &Value, path: String) -> Option<String> {
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.filter_map(|key| {
                let at = match path.as_str() {
                    "" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                let nothing = Value::Null;
                let (left, right) = (left.get(key), right.get(key));
                differs(left.unwrap_or(&nothing), right.unwrap_or(&nothing), at)
            })
            .next()
        }
        (left, right) => (left != right).then_some(path),
    }
}

/// Every planned run exactly once, where the ledger says that it has ended.
fn complete(
    entries: &[Entry],
    slots: &[Slot],
    attempts: &BTreeMap<u64, Vec<&RunEntry>>,
    found: &mut Verification,
) {
    let whole = entries
        .iter()
        .any(|entry| matches!(entry.event, Event::Finished { reason: None }));
    for slot in slots.iter().filter(|_| whole) {
        let runs = attempts.get(&slot.planned);
        let ended = runs.is_some_and(|runs| runs.iter().any(|run| run.is_final));
        if !ended {
            found.found(
                "ledger",
                format!(
                    "planned run {} ({}) has no outcome",
                    slot.planned,
                    slot.cell.id()
                ),
            );
        }
    }
}

/// The order in which runs were begun counts up without gaps; where it is not that of the plan, that is told.
fn order(entries: &[Entry], found: &mut Verification) {
    let mut expected = 0;
    let mut highest: Option<u64> = None;
    let mut out_of_order = 0;
    for entry in entries {
        let Event::Ran(run) = &entry.event else {
            continue;
        };
        if let Some(actual) = run.actual {
            if actual != expected {
                let place = format!("ledger entry {} (run {})", entry.seq, run.run_id);
                found.found(
                    place,
                    format!("field actual is {actual}, expected {expected}"),
                );
            }
            expected = actual + 1;
        }
        if highest.is_some_and(|highest| run.planned < highest) {
            out_of_order += 1;
        }
        highest = highest.max(Some(run.planned));
    }
    if out_of_order > 0 {
        found.notes.push(format!(
            "{out_of_order} runs were kept after a later one of the plan, because they were cut off or stopped first"
        ));
    }
}
