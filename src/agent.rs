//! Built-in agents, and what every agent inside the process is given to work with.
//!
//! An agent sees [`crate::scenario::model::Task`] only. Ground truth, injector, rubric, arm and experience base are out
//! of its reach in types: it holds a client whose requests are recorded, a retrieval handle and a notebook.

pub mod account;
pub mod cheat;
pub mod choice;
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

#[derive(Default)]
struct Notes {
    hypotheses: Vec<(tokio::time::Instant, StatedHypothesis)>,
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

impl Notebook {
    pub fn hypothesis(&self, stated: StatedHypothesis) {
        let now = tokio::time::Instant::now();
        self.inner.borrow_mut().hypotheses.push((now, stated));
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
