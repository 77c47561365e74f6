//! The experience base at one moment: immutable, shared by threads, searched exactly.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::embed::{EmbedError, Embedder, UnitVector};
use crate::experience::entry::{Entry, MAX_TEXT_BYTES};
use crate::experience::policy::Policy;
use crate::experience::{ExperienceError, Origin};
use crate::ids::{EmbedderId, PostmortemId};
use crate::record::{Exemplar, Served};

/// Postmortems with their vectors under one embedder, fixed.
pub struct Snapshot {
    embedder: EmbedderId,
    origin: Origin,
    /// By id.
    pub(super) rows: Vec<Row>,
    pub(super) without_vector: Vec<PostmortemId>,
    hash: String,
}

#[derive(Clone)]
pub(super) struct Row {
    pub(super) entry: Entry,
    pub(super) vector: UnitVector,
}

/// A postmortem found for a text.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    pub entry: &'a Entry,
    /// Cosine distance, 0 to 2.
    pub distance: f64,
}

impl Hit<'_> {
    /// What an agent is shown: no mechanism, no scenario.
    pub fn exemplar(&self) -> Exemplar {
        let postmortem = &self.entry.postmortem;
        Exemplar {
            id: self.entry.id.clone(),
            distance: self.distance,
            outcome: self.entry.outcome,
            source: self.entry.source,
            primary_category: postmortem.primary_category.clone(),
            final_diagnosis: postmortem.final_diagnosis.clone(),
            fix_applied: postmortem.fix_applied.clone(),
            what_did_not_work: postmortem.what_did_not_work.clone(),
        }
    }

    /// What the run's record keeps for the scorer.
    pub fn served(&self) -> Served {
        Served {
            id: self.entry.id.clone(),
            distance: self.distance,
            tools: self.entry.tools(),
        }
    }
}

impl Snapshot {
    /// Joins entries with their vectors; vectors of another dimension count as missing.
    pub(super) fn new(
        embedder: &dyn Embedder,
        entries: Vec<Entry>,
        origin: Origin,
        vectors: Vec<(PostmortemId, Vec<f32>)>,
    ) -> Result<Snapshot, ExperienceError> {
        let mut vectors: BTreeMap<PostmortemId, Vec<f32>> = vectors.into_iter().collect();
        let total = entries.len();
        let (mut rows, mut without_vector) = (Vec::with_capacity(total), Vec::new());
        for entry in entries {
            let vector = vectors
                .remove(&entry.id)
                .and_then(|numbers| UnitVector::from_stored(numbers, embedder.dimension()));
            match vector {
                Some(vector) => rows.push(Row { entry, vector }),
                None => without_vector.push(entry.id),
            }
        }
        if rows.is_empty() && total > 0 {
            return Err(ExperienceError::NotEmbedded {
                entries: total,
                embedder: embedder.identity(),
            });
        }
        Ok(Snapshot {
            without_vector,
            ..Snapshot::of(embedder.identity(), origin, rows)
        })
    }

    pub(super) fn of(embedder: EmbedderId, origin: Origin, mut rows: Vec<Row>) -> Snapshot {
        rows.sort_by(|a, b| a.entry.id.cmp(&b.entry.id));
        let hash = content_hash(&embedder, &rows);
        Snapshot {
            embedder,
            origin,
            rows,
            without_vector: Vec::new(),
            hash,
        }
    }

    pub fn embedder(&self) -> &EmbedderId {
        &self.embedder
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// SHA-256 over embedder, postmortems and vectors, hex: equal hashes serve equal answers.
    pub fn content_hash(&self) -> &str {
        &self.hash
    }

    /// SHA-256 over what a policy could serve, hex: what is in quarantine or excluded does not count.
    pub fn eligible_hash(&self, policy: &Policy) -> String {
        let rows = self.rows.iter().filter(|row| policy.admits(&row.entry));
        content_hash(&self.embedder, rows)
    }

    /// Postmortems that are kept but cannot be found until they are embedded again.
    pub fn without_vector(&self) -> &[PostmortemId] {
        &self.without_vector
    }

    /// How many postmortems could be served under a policy, were they near enough.
    pub fn eligible(&self, policy: &Policy) -> usize {
        self.rows
            .iter()
            .filter(|row| policy.admits(&row.entry))
            .count()
    }

    /// The postmortems that resemble a text, nearest first, as the policy allows. `embedder` must be the snapshot's.
    /// A text with nothing to embed resembles nothing.
    pub fn similar_to(
        &self,
        embedder: &dyn Embedder,
        text: &str,
        policy: &Policy,
    ) -> Result<Vec<Hit<'_>>, ExperienceError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(ExperienceError::QueryTooLong {
                found: text.len(),
                limit: MAX_TEXT_BYTES,
            });
        }
        if embedder.identity() != self.embedder {
            return Err(ExperienceError::NotEmbedded {
                entries: self.rows.len(),
                embedder: embedder.identity(),
            });
        }
        match embedder.embed(text) {
            Ok(query) => Ok(self.nearest(&query, policy)),
            Err(EmbedError::NothingToEmbed) => Ok(Vec::new()),
            Err(error) => Err(ExperienceError::Query(error)),
        }
    }

    /// Filters first, then the pool of the nearest, then the distance, then the first k. Equal distances go by id.
    pub fn nearest(&self, query: &UnitVector, policy: &Policy) -> Vec<Hit<'_>> {
        let mut hits: Vec<Hit<'_>> = self
            .rows
            .iter()
            .filter(|row| policy.admits(&row.entry))
            .map(|row| Hit {
                entry: &row.entry,
                distance: query.distance(&row.vector),
            })
            .collect();
        // Rows are in the order of ids and the sort is stable.
        hits.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        hits.truncate(policy.pool());
        hits.retain(|hit| hit.distance <= policy.max_distance);
        hits.truncate(policy.k);
        hits
    }
}

fn content_hash<'a>(embedder: &EmbedderId, rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut hash = Sha256::new();
    hash.update(embedder.as_str());
    for row in rows {
        // Entries were read from JSON and checked, so that they always have a JSON form again.
        let json = serde_json::to_string(&row.entry).unwrap_or_default();
        hash.update([0]);
        hash.update(json);
        for number in row.vector.as_slice() {
            hash.update(number.to_le_bytes());
        }
    }
    hex::encode(hash.finalize())
}
