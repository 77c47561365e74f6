//! Retrieval as a run's agent sees it: a snapshot fixed at the start, under the arm's policy, with a log.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::time::Instant;

use crate::agent::PastIncidents;
use crate::embed::Embedder;
use crate::experience::placebo::StandIn;
use crate::experience::policy::Policy;
use crate::experience::snapshot::Snapshot;
use crate::record::{Exemplar, Retrieval};

/// Retrievals of one run that are kept and answered; an agent that asks more often is in a loop. The first beyond is kept
/// too, with the reason why it and all later ones got an empty answer.
pub const MAX_RETRIEVALS: usize = 200;
/// Longest query that is kept; what is beyond is cut off, and only there.
const MAX_QUERY_BYTES: usize = 16 << 10;

/// Serves past incidents and notes what was served.
pub struct ServedPast {
    snapshot: Arc<Snapshot>,
    embedder: Arc<dyn Embedder>,
    policy: Policy,
    started: Instant,
    /// Puts irrelevant incidents in the place of those found.
    stand_in: Option<StandIn>,
    log: RefCell<Vec<Retrieval>>,
}

impl ServedPast {
    /// Times of retrievals count from `started`.
    pub fn new(
        snapshot: Arc<Snapshot>,
        embedder: Arc<dyn Embedder>,
        policy: Policy,
        started: Instant,
    ) -> ServedPast {
        ServedPast {
            snapshot,
            embedder,
            policy,
            started,
            stand_in: None,
            log: RefCell::default(),
        }
    }

    /// Shows irrelevant incidents in the place of those found.
    pub fn standing_in(self, stand_in: Option<StandIn>) -> ServedPast {
        ServedPast { stand_in, ..self }
    }

    /// Every retrieval so far, in order.
    pub fn log(&self) -> Vec<Retrieval> {
        self.log.borrow().clone()
    }
}

impl PastIncidents for ServedPast {
    fn similar_to(&self, text: &str) -> Vec<Exemplar> {
        let kept = text.floor_char_boundary(MAX_QUERY_BYTES);
        let mut entry = Retrieval {
            at_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            query: text[..kept].to_owned(),
            served: Vec::new(),
            error: None,
        };
        let before = self.log.borrow().len();
        if before >= MAX_RETRIEVALS {
            if before == MAX_RETRIEVALS {
                entry.error = Some(format!(
                    "no more than {MAX_RETRIEVALS} retrievals are answered in a run; this one and later ones were not"
                ));
                self.log.borrow_mut().push(entry);
            }
            return Vec::new();
        }
        let found = self
            .snapshot
            .similar_to(self.embedder.as_ref(), text, &self.policy);
        let exemplars = match (found, &self.stand_in) {
            (Ok(hits), Some(stand_in)) => {
                let around = (self.embedder.as_ref(), text);
                let shown = self
                    .snapshot
                    .stand_ins(around, &self.policy, &hits, stand_in);
                if shown.len() < hits.len() {
                    entry.error = Some(format!(
                        "only {} irrelevant incidents could stand for {}",
                        shown.len(),
                        hits.len()
                    ));
                }
                let (exemplars, served) = shown.into_iter().unzip();
                entry.served = served;
                exemplars
            }
            (Ok(hits), None) => {
                entry.served = hits.iter().map(|hit| hit.served()).collect();
                hits.iter().map(|hit| hit.exemplar()).collect()
            }
            (Err(error), _) => {
                entry.error = Some(error.to_string());
                Vec::new()
            }
        };
        self.log.borrow_mut().push(entry);
        exemplars
    }
}
