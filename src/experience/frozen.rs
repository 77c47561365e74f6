//! A snapshot as a text: what an experiment retrieves from is kept with it, and is the same wherever it is read again.
//!
//! Smaller and other forms of a snapshot are made here too: without what is in quarantine, a nested subset of it, the same
//! postmortems under another embedder, and with what earlier blocks of an experiment learned.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::embed::{Embedder, UnitVector};
use crate::experience::entry::{self, Entry};
use crate::experience::learner::Lesson;
use crate::experience::snapshot::{Row, Snapshot};
use crate::experience::{ExperienceError, Origin};
use crate::ids::{EmbedderId, PostmortemId, RegistrationHash};

/// Version of a frozen snapshot's JSON.
const FORMAT: u32 = 1;

/// A snapshot's whole contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    pub format: u32,
    pub embedder: EmbedderId,
    /// [`Snapshot::content_hash`].
    pub sha256: String,
    pub rows: Vec<FrozenRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenRow {
    pub entry: Entry,
    /// f32, little-endian, one after the other, in base64.
    pub vector: String,
}

/// Why a frozen snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ThawError {
    #[error("the frozen corpus is no JSON of its form")]
    Form(#[source] serde_json::Error),
    #[error("the frozen corpus has format {0}, this breakage knows {FORMAT}")]
    Format(u32),
    #[error("the frozen corpus was embedded with {found}, not with {expected}")]
    Embedder {
        found: EmbedderId,
        expected: EmbedderId,
    },
    #[error("the vector of postmortem {0} in the frozen corpus is none of its embedder's")]
    Vector(PostmortemId),
    #[error("the frozen corpus has the hash {found}, expected {expected}")]
    Changed { found: String, expected: String },
}

impl Snapshot {
    /// Without what is in quarantine: what an experiment may be locked with.
    pub fn without_quarantined(&self) -> Snapshot {
        self.of_rows(|entry| !entry.quarantined)
    }

    /// Without some: what may not be shown.
    pub fn without(&self, left_out: impl Fn(&Entry) -> bool) -> Snapshot {
        let mut shown = self.of_rows(|entry| !left_out(entry));
        shown.without_vector = self.without_vector().to_vec();
        shown
    }

    /// The first `size` entries by SHA-256 of `<registration>:<postmortem id>`: of two sizes of one registration the
    /// smaller subset lies in the larger.
    pub fn nested_subset(&self, registration: &RegistrationHash, size: usize) -> Snapshot {
        let place = |entry: &Entry| -> [u8; 32] {
            Sha256::digest(format!("{registration}:{}", entry.id)).into()
        };
        let mut places: Vec<[u8; 32]> = self.rows.iter().map(|row| place(&row.entry)).collect();
        places.sort_unstable();
        match places.get(size) {
            Some(first_out) => self.of_rows(|entry| place(entry) < *first_out),
            None => self.of_rows(|_| true),
        }
    }

    /// The same postmortems with another embedder's vectors; those that it cannot embed are left out.
    pub fn embedded_with(&self, embedder: &dyn Embedder) -> Snapshot {
        let rows = self.rows.iter().filter_map(|row| {
            let vector = embedder.embed(&row.entry.key_text()).ok()?;
            let entry = row.entry.clone();
            Some(Row { entry, vector })
        });
        Snapshot::of(embedder.identity(), self.origin(), rows.collect())
    }

    /// With the lessons of earlier blocks. An account that is there already is not added again.
    pub fn with_lessons(&self, embedder: &dyn Embedder, lessons: Vec<Lesson>) -> Snapshot {
        let mut rows: Vec<Row> = self.rows.clone();
        for lesson in lessons {
            let entry = entry::learned(lesson);
            let known = rows.iter().any(|row| row.entry.id == entry.id);
            if let (false, Ok(vector)) = (known, embedder.embed(&entry.key_text())) {
                rows.push(Row { entry, vector });
            }
        }
        Snapshot::of(self.embedder().clone(), self.origin(), rows)
    }

    /// Distance of the entry that is nearest to a vector under a policy's filters, whatever its pool and threshold.
    pub fn nearest_distance(
        &self,
        query: &UnitVector,
        admits: impl Fn(&Entry) -> bool,
    ) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| admits(&row.entry));
        rows.map(|row| query.distance(&row.vector))
            .min_by(f64::total_cmp)
    }

    /// How many postmortems can be found in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn freeze(&self) -> Frozen {
        let rows = self.rows.iter().map(|row| {
            let numbers = row.vector.as_slice().iter();
            let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
            FrozenRow {
                entry: row.entry.clone(),
                vector: STANDARD.encode(bytes),
            }
        });
        Frozen {
            format: FORMAT,
            embedder: self.embedder().clone(),
            sha256: self.content_hash().to_owned(),
            rows: rows.collect(),
        }
    }

    fn of_rows(&self, keeps: impl Fn(&Entry) -> bool) -> Snapshot {
        let rows = self.rows.iter().filter(|row| keeps(&row.entry));
        Snapshot::of(
            self.embedder().clone(),
            self.origin(),
            rows.cloned().collect(),
        )
    }
}

impl Frozen {
    /// Reads what [`Snapshot::freeze`] gave, after it was written as JSON.
    ///
    /// # Errors
    /// Another form, another embedder, or contents that do not have the hash that they claim.
    pub fn thaw(text: &str, embedder: &dyn Embedder) -> Result<Snapshot, ThawError> {
        let frozen: Frozen = serde_json::from_str(text).map_err(ThawError::Form)?;
        if frozen.format != FORMAT {
            return Err(ThawError::Format(frozen.format));
        }
        if frozen.embedder != embedder.identity() {
            return Err(ThawError::Embedder {
                found: frozen.embedder,
                expected: embedder.identity(),
            });
        }
        let mut rows = Vec::with_capacity(frozen.rows.len());
        for FrozenRow { entry, vector } in frozen.rows {
            let bytes = STANDARD.decode(&vector).unwrap_or_default();
            let (chunks, rest) = bytes.as_chunks::<4>();
            let numbers = chunks
                .iter()
                .map(|chunk| f32::from_le_bytes(*chunk))
                .collect();
            let vector = UnitVector::from_stored(numbers, embedder.dimension());
            match vector.filter(|_| rest.is_empty()) {
                Some(vector) => rows.push(Row { entry, vector }),
                None => return Err(ThawError::Vector(entry.id)),
            }
        }
        let snapshot = Snapshot::of(frozen.embedder, Origin::Stored, rows);
        if snapshot.content_hash() == frozen.sha256 {
            Ok(snapshot)
        } else {
            Err(ThawError::Changed {
                found: snapshot.content_hash().to_owned(),
                expected: frozen.sha256,
            })
        }
    }

    /// As it is kept: one line of JSON.
    ///
    /// # Errors
    /// A number that is not finite, which no checked entry holds.
    pub fn to_json(&self) -> Result<String, ExperienceError> {
        serde_json::to_string(self).map_err(|source| ExperienceError::Unwritable {
            id: PostmortemId::new("of a frozen corpus"),
            source,
        })
    }
}
