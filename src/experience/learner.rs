//! The write handle: learning postmortems, letting them out of quarantine, embedding them again.

use std::sync::Arc;

use crate::embed::Embedder;
use crate::experience::entry::{self, Entry};
use crate::experience::{ExperienceError, decode, stored_entries};
use crate::ids::{MechanismId, PostmortemId, RunId, ScenarioId};
use crate::record::{Outcome, Postmortem, Source};
use crate::store::{Batch, Store};

/// Entries in one commit while embedding again: enough that commits cost nothing, few enough that an interrupted one
/// loses seconds.
const REEMBED_BATCH: usize = 200;

/// An account to be learnt, with what the framework knows about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    pub postmortem: Postmortem,
    pub source: Source,
    pub outcome: Outcome,
    pub mechanism: Option<MechanismId>,
    pub scenario_id: Option<ScenarioId>,
    pub run_id: Option<RunId>,
    pub recorded_at: String,
    /// True unless the user asked to learn from this run.
    pub quarantined: bool,
    pub review: bool,
}

/// What became of a lesson.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learnt {
    pub id: PostmortemId,
    /// False when the same account is kept already.
    pub new: bool,
    /// False when embedding failed; the account is kept and `corpus reembed` mends it.
    pub embedded: bool,
}

/// What embedding again did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reembedded {
    pub embedded: usize,
    /// Those that could not be embedded, with the reason.
    pub failed: Vec<(PostmortemId, String)>,
}

/// The only way to change an experience base.
pub struct Learner {
    pub(super) store: Arc<Store>,
    pub(super) embedder: Arc<dyn Embedder>,
}

impl Learner {
    pub fn new(store: Arc<Store>, embedder: Arc<dyn Embedder>) -> Learner {
        Learner { store, embedder }
    }

    /// Keeps an account. The same account from the same kind of source is one entry, however often it comes; learning it
    /// openly lets it out of quarantine, and nothing puts it back.
    pub fn learn(&self, lesson: Lesson) -> Result<Learnt, ExperienceError> {
        let mut batch = Batch::default();
        let learnt = self.learn_into(lesson, &mut batch)?;
        self.store.write(&batch)?;
        Ok(learnt)
    }

    /// Like [`Learner::learn`], but as part of a batch that the caller commits.
    pub fn learn_into(&self, lesson: Lesson, batch: &mut Batch) -> Result<Learnt, ExperienceError> {
        let id = entry::derived_id(&lesson.postmortem, lesson.outcome, lesson.source);
        let known = match self.store.postmortem(&id)? {
            Some(json) => Some(decode(&self.store, id.clone(), &json)?),
            None => None,
        };
        if let Some(mut known) = known {
            if known.quarantined && !lesson.quarantined {
                known.quarantined = false;
                put(&known, batch)?;
            }
            return Ok(Learnt {
                id,
                new: false,
                embedded: true,
            });
        }
        let entry = entry::learned(lesson);
        let embedded = self.add(&entry, batch)?;
        Ok(Learnt {
            id,
            new: true,
            embedded,
        })
    }

    /// Computes every vector of this embedder anew; `done` is told how many entries are finished.
    pub fn reembed(&self, mut done: impl FnMut(usize)) -> Result<Reembedded, ExperienceError> {
        let entries = stored_entries(&self.store)?;
        let identity = self.embedder.identity();
        let mut result = Reembedded::default();
        let mut batch = Batch::default();
        batch.erase_vectors(&identity);
        for (index, entry) in entries.iter().enumerate() {
            match self.embedder.embed(&entry.key_text()) {
                Ok(vector) => {
                    batch.vector(&identity, &entry.id, vector.as_slice());
                    result.embedded += 1;
                }
                Err(error) => result.failed.push((entry.id.clone(), error.to_string())),
            }
            if batch.len() >= REEMBED_BATCH {
                self.store.write(&batch)?;
                batch = Batch::default();
                done(index + 1);
            }
        }
        self.store.write(&batch)?;
        done(entries.len());
        Ok(result)
    }

    /// Adds a checked entry and its vector; false when only the entry could be added.
    pub(super) fn add(&self, entry: &Entry, batch: &mut Batch) -> Result<bool, ExperienceError> {
        put(entry, batch)?;
        match self.embedder.embed(&entry.key_text()) {
            Ok(vector) => {
                batch.vector(&self.embedder.identity(), &entry.id, vector.as_slice());
                Ok(true)
            }
            Err(_) => Ok(false),
        }
    }
}

fn put(entry: &Entry, batch: &mut Batch) -> Result<(), ExperienceError> {
    entry.check().map_err(|source| ExperienceError::Invalid {
        id: entry.id.clone(),
        source,
    })?;
    let json = serde_json::to_string(entry).map_err(|source| ExperienceError::Unwritable {
        id: entry.id.clone(),
        source,
    })?;
    batch.postmortem(&entry.id, json);
    Ok(())
}
