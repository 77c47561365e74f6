//! Built-in agents, and what every agent inside the process is given to work with.
//!
//! An agent sees [`crate::scenario::model::Task`] only. Ground truth, injector, rubric, arm and experience base are out
//! of its reach in types: it holds a client whose requests are recorded, a retrieval handle and a notebook.

pub mod account;
pub mod cheat;
pub mod choice;
pub mod coin;
pub mod diagnose;
pub mod evidence;
pub mod finding;
pub mod hands;
pub mod noop;
pub mod pace;
pub mod repair;
pub mod rules;
pub mod script;
pub mod simulated;
pub mod verify;

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::agent::choice::Choice;
use crate::ids::{CategoryId, Seed};
use crate::record::{Exemplar, Postmortem};
use crate::scenario::model::{Category, Task};

/// What an agent finds on its desk.
pub struct Desk {
    pub task: Task,
    /// Every request through it is recorded as the agent's action.
    pub client: kube::Client,
    /// Past incidents, as the run's arm serves them.
    pub past: Rc<dyn PastIncidents>,
    pub notes: Notebook,
    /// The categories that an agent may name, with their descriptions.
    pub vocabulary: Rc<Vec<Category>>,
    /// For agents that need randomness.
    pub seed: Seed,
}

/// Retrieval over past postmortems. The arm decides policy and snapshot; the agent only asks.
pub trait PastIncidents {
    /// The nearest past incidents to a text; empty when none is near enough or retrieval is off.
    fn similar_to(&self, text: &str) -> Vec<Exemplar>;
}

/// Where an agent writes what it thinks and, once, its account. Times are put by the framework.
#[derive(Clone, Default)]
pub struct Notebook {
    inner: Rc<RefCell<Notes>>,
}

/// Hypotheses that are kept. An investigation has a handful; what is beyond is counted, and the newest always stays,
/// for it is the one that a postmortem is compared with.
pub const MAX_HYPOTHESES: usize = 500;
/// Longest reasoning of a hypothesis; what is beyond is cut off, and marked.
pub const MAX_REASONING_BYTES: usize = 16 << 10;
/// Categories that one hypothesis may name beside its first, and the length of a name: the vocabulary has a few dozen.
const MAX_SECONDARY: usize = 100;
const MAX_CATEGORY_BYTES: usize = 128;
/// Stands where a text was cut.
const CUT: &str = " … [cut]";

#[derive(Default)]
struct Notes {
    hypotheses: Vec<(tokio::time::Instant, StatedHypothesis)>,
    not_kept: u64,
    postmortem: Option<(tokio::time::Instant, Postmortem)>,
}

/// A hypothesis as an agent states it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedHypothesis {
    pub primary_category: CategoryId,
    pub secondary_categories: Vec<CategoryId>,
    /// 0 to 1.
    pub confidence: f64,
    pub reasoning: String,
}

impl StatedHypothesis {
    /// Without what is longer than any account needs.
    fn bounded(mut self) -> StatedHypothesis {
        self.secondary_categories.truncate(MAX_SECONDARY);
        for category in std::iter::once(&mut self.primary_category)
            .chain(&mut self.secondary_categories)
            .filter(|category| category.as_str().len() > MAX_CATEGORY_BYTES)
        {
            *category = CategoryId::new(cut(category.as_str(), MAX_CATEGORY_BYTES));
        }
        if self.reasoning.len() > MAX_REASONING_BYTES {
            self.reasoning = cut(&self.reasoning, MAX_REASONING_BYTES);
        }
        self
    }
}

/// The first bytes of a text, at a character's border, with the mark.
fn cut(text: &str, bytes: usize) -> String {
    format!("{}{CUT}", &text[..text.floor_char_boundary(bytes)])
}

impl Notebook {
    pub fn hypothesis(&self, stated: StatedHypothesis) {
        let now = tokio::time::Instant::now();
        let mut notes = self.inner.borrow_mut();
        if notes.hypotheses.len() >= MAX_HYPOTHESES {
            notes.hypotheses.pop();
            notes.not_kept += 1;
        }
        notes.hypotheses.push((now, stated.bounded()));
    }

    /// Hypotheses that did not fit.
    pub fn not_kept(&self) -> u64 {
        self.inner.borrow().not_kept
    }

    /// The first postmortem wins; later ones are ignored. True when this one was taken.
    pub fn postmortem(&self, postmortem: Postmortem) -> bool {
        let mut notes = self.inner.borrow_mut();
        if notes.postmortem.is_some() {
            return false;
        }
        notes.postmortem = Some((tokio::time::Instant::now(), postmortem));
        true
    }

    pub fn has_postmortem(&self) -> bool {
        self.inner.borrow().postmortem.is_some()
    }

    pub fn hypotheses(&self) -> Vec<(tokio::time::Instant, StatedHypothesis)> {
        self.inner.borrow().hypotheses.clone()
    }

    pub fn taken_postmortem(&self) -> Option<(tokio::time::Instant, Postmortem)> {
        self.inner.borrow().postmortem.clone()
    }
}

/// An agent inside the process.
pub trait Agent {
    /// The name on the command line and in records.
    fn name(&self) -> &str;

    /// Another one whenever its behaviour is another, so that records of different behaviour are told apart.
    fn version(&self) -> &str;

    /// Whether it only plays an agent: what it earns says nothing about real ones.
    fn is_simulation(&self) -> bool {
        false
    }

    /// Works on the incident until it has written its postmortem or gives up. Dropped when the budget ends.
    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>>;
}

/// The agent itself failed; this counts as its failure, not as ours.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the cluster did not answer the agent")]
    Cluster(#[source] Box<kube::Error>),
    #[error("{0}")]
    GaveUp(String),
}

/// A built-in agent by its name.
pub fn by_name(name: &str) -> Option<Box<dyn Agent>> {
    Choice::parse(name).ok().map(|choice| choice.make())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_of_hypotheses_is_counted_cut_and_keeps_the_newest() {
        let notes = Notebook::default();
        for number in 0..MAX_HYPOTHESES + 7 {
            notes.hypothesis(StatedHypothesis {
                primary_category: CategoryId::new(format!("c-{number}")),
                secondary_categories: vec![CategoryId::new("x".repeat(1000)); 1000],
                confidence: 0.5,
                reasoning: "é".repeat(MAX_REASONING_BYTES),
            });
        }
        let kept = notes.hypotheses();
        assert_eq!((kept.len(), notes.not_kept()), (MAX_HYPOTHESES, 7));
        let (_, newest) = kept.last().unwrap();
        assert_eq!(
            newest.primary_category.as_str(),
            format!("c-{}", MAX_HYPOTHESES + 6)
        );
        assert!(newest.reasoning.len() <= MAX_REASONING_BYTES + CUT.len());
        assert!(newest.reasoning.ends_with(CUT));
        assert_eq!(newest.secondary_categories.len(), MAX_SECONDARY);
        assert!(newest.secondary_categories[0].as_str().len() < 200);
    }
}
