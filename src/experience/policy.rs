//! What an arm of an experiment lets its agents retrieve.

use std::collections::BTreeSet;

use crate::embed::Embedder;
use crate::experience::entry::Entry;
use crate::ids::{CategoryId, ScenarioId};
use crate::record::Source;

/// As published.
pub const DEFAULT_K: usize = 3;
/// More exemplars than anybody reads.
pub const MAX_K: usize = 1_000;

/// How many, how near, and which. An empty set of sources or categories lets all of them in.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// At most [`MAX_K`]; 0 serves nothing.
    pub k: usize,
    /// Cosine distance, 0 to 2, inclusive.
    pub max_distance: f64,
    /// How many of the nearest are looked at before the distance is applied, from 1 on; `k` when not given.
    pub pool_cap: Option<usize>,
    pub sources: BTreeSet<Source>,
    /// Primary categories.
    pub categories: BTreeSet<CategoryId>,
    pub excluded_scenarios: BTreeSet<ScenarioId>,
    pub include_quarantined: bool,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    #[error("k is {0}, at most {MAX_K} exemplars are served")]
    TooMany(usize),
    #[error("the pool cap is 0, expected 1 or more; a k of 0 is what serves nothing")]
    EmptyPool,
    #[error("the maximal distance is {0}, expected 0 to 2")]
    Distance(f64),
}

impl Policy {
    /// The published numbers, with the threshold of the embedder.
    pub fn default_for(embedder: &dyn Embedder) -> Policy {
        Policy {
            k: DEFAULT_K,
            max_distance: embedder.default_max_distance(),
            pool_cap: None,
            sources: BTreeSet::new(),
            categories: BTreeSet::new(),
            excluded_scenarios: BTreeSet::new(),
            include_quarantined: false,
        }
    }

    /// Serves nothing: the arm without retrieval.
    pub fn off(embedder: &dyn Embedder) -> Policy {
        Policy {
            k: 0,
            ..Policy::default_for(embedder)
        }
    }

    pub fn check(&self) -> Result<(), PolicyError> {
        if self.k > MAX_K {
            return Err(PolicyError::TooMany(self.k));
        }
        if self.pool_cap == Some(0) {
            return Err(PolicyError::EmptyPool);
        }
        if !(0.0..=2.0).contains(&self.max_distance) {
            return Err(PolicyError::Distance(self.max_distance));
        }
        Ok(())
    }

    /// Whether an entry may be served at all, however near it is.
    pub fn admits(&self, entry: &Entry) -> bool {
        (self.include_quarantined || !entry.quarantined)
            && (self.sources.is_empty() || self.sources.contains(&entry.source))
            && (self.categories.is_empty()
                || self.categories.contains(&entry.postmortem.primary_category))
            && entry
                .scenario_id
                .as_ref()
                .is_none_or(|scenario| !self.excluded_scenarios.contains(scenario))
    }

    /// How many of the nearest are looked at.
    pub(super) fn pool(&self) -> usize {
        self.pool_cap.unwrap_or(self.k)
    }
}
