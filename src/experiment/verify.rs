//! Whether an experiment's registration, ledger and records are what they were, and whether they follow the plan.
//!
//! Everything is recomputed: hashes, allocation, scores. The first place at which something is wrong is named.

mod runs;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::embed::BuiltIn;
use crate::experience::frozen::Frozen;
use crate::experiment::allocation;
use crate::experiment::canonical;
use crate::experiment::inputs;
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::registration::Registration;
use crate::experiment::status::{Progress, runs as runs_of};
use crate::ids::{RegistrationHash, RunId};
use crate::scenario::model::Vocabulary;

/// Places that are named; a file altered everywhere says no more with more of them.
const MAX_BROKEN: usize = 50;

/// An experiment's texts, from a store or a bundle.
pub struct Source<'a> {
    /// The hash under which it is kept.
    pub hash: String,
    pub registration: String,
    /// Texts of entries with the places under which they are kept.
    pub ledger: Vec<(u64, String)>,
    /// A run's record as it is kept.
    pub record: &'a dyn Fn(&RunId) -> Result<Option<String>, String>,
    /// Records of a store that say of themselves that they are of this experiment: each run with
    /// whether a crash cut it off.
    pub kept: Vec<(RunId, bool)>,
    /// The copy of the registration that lies in the workspace, where there is a workspace.
    pub copy: Option<Copy>,
    /// The frozen corpus, where it is at hand.
    pub corpus: Option<String>,
    /// To score records again with; passed over where it is not the one that was locked.
    pub vocabulary: &'a Vocabulary,
}

/// A registration's file, which anybody can hash without this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    pub path: String,
    /// Nothing where there is no such file.
    pub bytes: Option<Vec<u8>>,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verification {
    pub registration: String,
    pub id: String,
    pub intact: bool,
    /// In the order of registration, ledger, runs; the first is where to look.
    pub broken: Vec<Broken>,
    pub entries: usize,
    pub progress: Progress,
    pub records: usize,
    /// Records scored again with the result that the ledger has. Nothing where the vocabulary is another by now.
    pub rescored: Option<usize>,
    /// Departures that are no damage: looks, broken seals, deviations, amendments, and runs out of their planned order.
    pub notes: Vec<String>,
}

/// A place that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Such as `registration`, `ledger entry 12` or `record of run x`.
    pub place: String,
    pub why: String,
}

impl Verification {
    pub(super) fn found(&mut self, place: impl Into<String>, why: impl Into<String>) {
        if self.broken.len() < MAX_BROKEN {
            self.broken.push(Broken {
                place: place.into(),
                why: why.into(),
            });
        }
    }
}

/// Checks everything that can be checked without running anything.
pub fn verify(source: &Source<'_>) -> Verification {
    let mut found = Verification {
        registration: source.hash.clone(),
        entries: source.ledger.len(),
        ..Verification::default()
    };
    let registration = registration(source, &mut found);
    let entries = chain(source, &mut found);
    if let Some(registration) = &registration {
        found.id = registration.plan.id.to_string();
        found.progress = Progress::of(&registration.plan, &entries);
        corpus(source, registration, &mut found);
        let hash = RegistrationHash::new(source.hash.as_str());
        let slots = allocation::slots(&hash, &registration.plan);
        runs::check(source, registration, &slots, &entries, &mut found);
    }
    copy(source, &mut found);
    strangers(source, &entries, &mut found);
    notes(&entries, &mut found);
    found.intact = found.broken.is_empty();
    found
}

fn registration(source: &Source<'_>, found: &mut Verification) -> Option<Registration> {
    let actual = canonical::sha256_hex(&source.registration);
    if actual != source.hash {
        found.found(
            "registration",
            format!(
                "its text has the hash {actual}, not {}: it was edited after the lock",
                source.hash
            ),
        );
    }
    let registration: Registration = match serde_json::from_str(&source.registration) {
        Ok(registration) => registration,
        Err(error) => {
            found.found("registration", format!("it cannot be read: {error}"));
            return None;
        }
    };
    let texts = registration.scenarios.iter();
    let texts = texts.map(|one| (format!("scenario {}", one.id), &one.text, &one.sha256));
    let rubric = &registration.rubric;
    let rubric = (
        format!("rubric {}", rubric.id),
        &rubric.text,
        &rubric.sha256,
    );
    for (what, text, sha256) in texts.chain([rubric]) {
        if canonical::sha256_hex(text) != *sha256 {
            let why = format!("the text of {what} does not have the hash beside it");
            found.found("registration", why);
        }
    }
    Some(registration)
}

/// The chain, link by link. Entries that can be read are answered whatever is wrong with them.
fn chain(source: &Source<'_>, found: &mut Verification) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut prev = source.hash.clone();
    for (place, (key, text)) in (0u64..).zip(&source.ledger) {
        let name = format!("ledger entry {place}");
        if *key != place {
            found.found(&name, format!("it is missing; the next is {key}"));
        }
        let entry: Entry = match serde_json::from_str(text) {
            Ok(entry) => entry,
            Err(error) => {
                found.found(&name, format!("it cannot be read: {error}"));
                prev.clear();
                continue;
            }
        };
        for why in link(&entry, text, place, &prev) {
            found.found(&name, why);
        }
        prev.clone_from(&entry.hash);
        entries.push(entry);
    }
    match entries.first().map(|entry| &entry.event) {
        Some(Event::Locked { .. }) => {}
        Some(_) => found.found("ledger entry 0", "the ledger does not begin with the lock"),
        None => found.found("ledger", "it is empty: the lock itself is missing"),
    }
    entries
}

/// What is wrong with one entry, by field.
fn link(entry: &Entry, text: &str, place: u64, prev: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if entry.seq != place {
        wrong.push(format!("field seq is {}, expected {place}", entry.seq));
    }
    // After an entry that cannot be read nothing is known of what should stand here.
    if entry.prev != prev && !prev.is_empty() {
        wrong.push("field prev is not the hash of the entry before".to_owned());
    }
    match entry.digest() {
        Ok(digest) if digest == entry.hash => {}
        Ok(_) => wrong.push(format!(
            "field hash is not that of its contents ({})",
            kind(&entry.event)
        )),
        Err(error) => wrong.push(error.to_string()),
    }
    if wrong.is_empty() && entry.text().is_ok_and(|written| written != text) {
        wrong.push("it holds more than its fields, or is spelled otherwise".to_owned());
    }
    wrong
}

fn kind(event: &Event) -> String {
    match event {
        Event::Locked { .. } => "the lock".to_owned(),
        Event::Started { .. } => "a start".to_owned(),
        Event::Ran(run) => format!("run {} of {}", run.planned, run.cell.id()),
        Event::Looked { what, .. } => format!("a look at {what}"),
        Event::Unsealed { .. } => "a broken seal".to_owned(),
        Event::Unblinded { .. } => "the unblinding".to_owned(),
        Event::Amended { .. } => "an amendment".to_owned(),
        Event::Amends { .. } => "what it amends".to_owned(),
        Event::Deviation { .. } => "a deviation".to_owned(),
        Event::Finished { .. } => "the end".to_owned(),
    }
}

fn corpus(source: &Source<'_>, registration: &Registration, found: &mut Verification) {
    let locked = &registration.corpus;
    let Some(text) = &source.corpus else {
        found.found(
            "corpus",
            format!("the frozen corpus {} is missing", locked.sha256),
        );
        return;
    };
    let Ok(embedder) = registration.plan.corpus.embedder.parse::<BuiltIn>() else {
        found.notes.push(format!(
            "the corpus was not checked: embedder {} is unknown here",
            registration.plan.corpus.embedder
        ));
        return;
    };
    match Frozen::thaw(text, embedder.embedder().as_ref()) {
        Ok(snapshot) if snapshot.content_hash() == locked.sha256 => {}
        Ok(snapshot) => found.found(
            "corpus",
            format!(
                "it has the hash {}, locked {}",
                snapshot.content_hash(),
                locked.sha256
            ),
        ),
        Err(error) => found.found("corpus", error.to_string()),
    }
}

fn copy(source: &Source<'_>, found: &mut Verification) {
    let Some(copy) = &source.copy else {
        return;
    };
    let Some(bytes) = &copy.bytes else {
        found.notes.push(format!(
            "the copy of the registration is missing: {}",
            copy.path
        ));
        return;
    };
    let actual = canonical::sha256_hex(bytes);
    if actual != source.hash {
        let why = format!("its SHA-256 is {actual}: it is not the registration any more");
        found.found(copy.path.as_str(), why);
    }
}

/// Records that no entry tells of. Cut-off runs are taken in by the next `experiment run`; any other was put there.
fn strangers(source: &Source<'_>, entries: &[Entry], found: &mut Verification) {
    let known: BTreeSet<&RunId> = runs_of(entries).map(|run| &run.run_id).collect();
    let mut cut_off = 0;
    for (run, is_cut_off) in source.kept.iter().filter(|(run, _)| !known.contains(run)) {
        if *is_cut_off {
            cut_off += 1;
            continue;
        }
        let name = format!("record of run {run}");
        found.found(
            name,
            "it names this experiment, and the ledger has no such run",
        );
    }
    if cut_off > 0 {
        found.notes.push(format!(
            "{cut_off} runs that were cut off are not in the ledger yet; the next `experiment run` enters them"
        ));
    }
}

fn notes(entries: &[Entry], found: &mut Verification) {
    for entry in entries {
        let note = match &entry.event {
            Event::Looked {
                what,
                planned: true,
            } => format!("a registered look at {what}"),
            Event::Looked {
                what,
                planned: false,
            } => format!("an unplanned look at {what}"),
            Event::Unsealed { command } => format!("the seal was broken by {command}"),
            Event::Amended { to, reason } => format!("amended to {to}: {reason}"),
            Event::Amends {
                from,
                reason,
                scores_read,
                ..
            } => format!(
                "amends {from}{}: {reason}",
                if *scores_read {
                    ", whose scores had been read"
                } else {
                    ""
                }
            ),
            Event::Deviation { text } => format!("a deviation: {text}"),
            Event::Finished {
                reason: Some(reason),
            } => format!("ended early: {reason}"),
            _ => continue,
        };
        found.notes.push(format!("entry {}: {note}", entry.seq));
    }
}

/// Whether the vocabulary at hand is the one that was locked.
fn is_locked_vocabulary(registration: &Registration, vocabulary: &Vocabulary) -> bool {
    inputs::vocabulary_sha256(vocabulary).is_ok_and(|here| here == registration.vocabulary_sha256)
}
