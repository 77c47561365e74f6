//! The experience base: postmortems with their outcome, and finding the ones that resemble a text.
//!
//! Reading and learning are different types: what holds a [`Reader`] or a [`Snapshot`] cannot write. A run retrieves from a
//! snapshot fixed at its start, so that nothing learnt meanwhile reaches it. Agents never see a mechanism or a scenario.

pub mod calibration;
pub mod entry;
pub mod frozen;
pub mod learner;
pub mod placebo;
pub mod policy;
pub mod seeds;
pub mod snapshot;
pub mod transfer;

use std::sync::Arc;

use crate::embed::{EmbedError, Embedder};
use crate::experience::entry::{Entry, Invalid};
use crate::experience::snapshot::Snapshot;
use crate::ids::{EmbedderId, PostmortemId};
use crate::store::{MENDING, Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum ExperienceError {
    #[error("the experience base cannot be used")]
    Store(#[from] StoreError),
    #[error("postmortem {id} is not acceptable")]
    Invalid {
        id: PostmortemId,
        #[source]
        source: Invalid,
    },
    #[error(
        "postmortem {id} in {store} is unreadable; if a newer breakage wrote it, use that one, else {MENDING}"
    )]
    Unreadable {
        id: PostmortemId,
        /// The file.
        store: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("postmortem {id} has no JSON form")]
    Unwritable {
        id: PostmortemId,
        #[source]
        source: serde_json::Error,
    },
    #[error(
        "none of the {entries} postmortems has a vector of embedder {embedder}; `breakage corpus reembed` computes them"
    )]
    NotEmbedded {
        entries: usize,
        embedder: EmbedderId,
    },
    #[error("the query has {found} bytes, at most {limit} are embedded")]
    QueryTooLong { found: usize, limit: usize },
    #[error("the query cannot be embedded")]
    Query(#[source] EmbedError),
    #[error("postmortem {id} is known with other contents; nothing was imported")]
    Conflict { id: PostmortemId },
}

/// The read handle. Without a store, or with an empty one, the compiled-in seed postmortems answer.
#[derive(Clone)]
pub struct Reader {
    store: Option<Arc<Store>>,
    /// What serves while the store holds nothing.
    seeds: Vec<Entry>,
}

/// Where the postmortems of a base come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Stored,
    /// The store holds none yet; those compiled in serve.
    CompiledIn,
}

impl Reader {
    pub fn new(store: Option<Arc<Store>>) -> Reader {
        Reader {
            store,
            seeds: seeds::entries(),
        }
    }

    /// The same with other seeds than those compiled in.
    pub fn with_seeds(self, seeds: Vec<Entry>) -> Reader {
        Reader { seeds, ..self }
    }

    /// What is read from; nothing where there is no workspace yet.
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// Every postmortem, by id, and where they come from.
    pub fn entries(&self) -> Result<(Vec<Entry>, Origin), ExperienceError> {
        let stored = match &self.store {
            Some(store) => stored_entries(store)?,
            None => Vec::new(),
        };
        if stored.is_empty() {
            Ok((self.seeds.clone(), Origin::CompiledIn))
        } else {
            Ok((stored, Origin::Stored))
        }
    }

    pub fn entry(&self, id: &PostmortemId) -> Result<Option<Entry>, ExperienceError> {
        let (entries, _) = self.entries()?;
        Ok(entries.into_iter().find(|entry| entry.id == *id))
    }

    /// What can be retrieved at this moment, never to change again.
    pub fn snapshot(&self, embedder: &dyn Embedder) -> Result<Snapshot, ExperienceError> {
        let (entries, origin) = self.entries()?;
        let vectors = match (&self.store, origin) {
            (Some(store), Origin::Stored) => store.vectors(&embedder.identity())?,
            _ => embedded(&entries, embedder),
        };
        Snapshot::new(embedder, entries, origin, vectors)
    }
}

fn stored_entries(store: &Store) -> Result<Vec<Entry>, ExperienceError> {
    store
        .postmortems()?
        .into_iter()
        .map(|(id, json)| decode(store, id, &json))
        .collect()
}

fn decode(store: &Store, id: PostmortemId, json: &str) -> Result<Entry, ExperienceError> {
    serde_json::from_str(json).map_err(|source| ExperienceError::Unreadable {
        id,
        store: store.name(),
        source,
    })
}

/// Vectors of the entries that can be embedded.
fn embedded(entries: &[Entry], embedder: &dyn Embedder) -> Vec<(PostmortemId, Vec<f32>)> {
    entries
        .iter()
        .filter_map(|entry| {
            let vector = embedder.embed(&entry.key_text()).ok()?;
            Some((entry.id.clone(), vector.as_slice().to_vec()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
