//! Qualification: the instrument proves a scenario before anything is measured with it.
//!
//! Per scenario a handful of ordinary runs, each with an agent whose score is known beforehand: none at all, the one
//! that looks at nothing, the one that knows the truth, those that cheat. What they earn says whether the scenario
//! bites, lasts, can be repaired, cannot be gamed and gives nothing away. The runs go through the same stage machine as
//! every other and are kept nowhere; the qualification is.

pub mod alone;
pub mod cheating;
pub mod check;
pub mod in_turn;
pub mod judge;
pub mod keep;
pub mod leak;
pub mod probe;
pub mod published;
pub mod reader;
pub mod repairer;
pub mod stand;
pub mod waiting;
pub mod wrecker;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::agent::cheat::TRICKS;
use crate::cluster::fixture::Fixtures;
use crate::embed::{BuiltIn, Embedder};
use crate::experience::snapshot::Snapshot;
use crate::experience::{ExperienceError, Reader};
use crate::ids::{ScenarioId, Seed};
use crate::observe::prometheus::Prometheus;
use crate::qualify::check::{CHEAT, Qualification};
use crate::qualify::probe::{Evidence, Probe};
use crate::run::repeat::RepeatError;
use crate::scenario::library::{DEFAULT_RUBRIC, Library, LibraryError};
use crate::scenario::model::{Rubric, Scenario, Vocabulary};
use crate::store::StoreError;

/// The seed of every qualifying run. A fixed one, so that a qualification can be repeated to the byte.
pub const SEED: Seed = Seed(1);

/// A qualification that could not be carried out; a scenario that fails its checks is no error.
#[derive(Debug, thiserror::Error)]
pub enum QualifyError {
    #[error("the built-in past incidents cannot be read")]
    Experience(#[from] ExperienceError),
    #[error("the rubrics cannot be used")]
    Library(#[from] LibraryError),
    #[error("a store in memory cannot be made")]
    Store(#[from] StoreError),
    #[error("a run could not be carried out")]
    Run(#[from] RepeatError),
    #[error("no runtime for a cluster")]
    Runtime(#[source] std::io::Error),
    #[error("interrupted; nothing of this qualification is kept")]
    Interrupted,
    #[error("the cluster is closed to runs: {reason}")]
    Closed { reason: String },
    #[error("{probe} of {scenario} says nothing about the scenario: {reason}")]
    NoEvidence {
        scenario: ScenarioId,
        probe: String,
        reason: String,
    },
}

/// What every qualifying run shares.
pub struct Materials {
    pub vocabulary: Arc<Vocabulary>,
    pub fixtures: Arc<Fixtures>,
    /// The rubric that the checks speak of.
    pub rubric: Rubric,
    /// Every rubric, for the checks that hold under several.
    pub rubrics: Vec<Rubric>,
    pub embedder: Arc<dyn Embedder>,
    /// The past incidents compiled in, whatever the workspace has learned: what agents may copy from.
    pub snapshot: Arc<Snapshot>,
    /// What conditions on metrics ask; none for embedded clusters.
    pub prometheus: Option<Prometheus>,
    /// Turns true when the user wants to stop.
    pub interrupted: watch::Receiver<bool>,
}

impl Materials {
    /// From a library and its fixtures.
    ///
    /// # Errors
    /// A library without the rubric of the checks, or built-in past incidents that do not load.
    pub fn new(
        library: &Library,
        fixtures: Fixtures,
        interrupted: watch::Receiver<bool>,
    ) -> Result<Materials, QualifyError> {
        let embedder = BuiltIn::Lexical.embedder();
        Ok(Materials {
            vocabulary: Arc::new(library.vocabulary().clone()),
            fixtures: Arc::new(fixtures),
            rubric: library.rubric(DEFAULT_RUBRIC)?.clone(),
            rubrics: library.rubrics().cloned().collect(),
            snapshot: Arc::new(Reader::new(None).snapshot(embedder.as_ref())?),
            embedder,
            prometheus: None,
            interrupted,
        })
    }
}

/// How much is asked of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Everything.
    #[default]
    Whole,
    /// Whether the baseline is quiet, whether the fault shows and lasts, and whether its repair counts.
    Repair,
    /// Whether the baseline is quiet, and whether the fault shows and lasts.
    Fault,
}

impl Depth {
    pub fn is_whole(&self) -> bool {
        *self == Depth::Whole
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Depth::Whole => "whole",
            Depth::Repair => "repair",
            Depth::Fault => "fault",
        }
    }

    fn probes(self) -> Vec<Probe> {
        let cheats = cheats().map(Probe::Cheat);
        match self {
            Depth::Whole => Probe::BEFORE_CHEATS.iter().copied().chain(cheats).collect(),
            Depth::Repair => vec![Probe::Control, Probe::LeftAlone, Probe::Reference],
            Depth::Fault => vec![Probe::Control, Probe::LeftAlone],
        }
    }
}

/// Names of the built-in cheats, without their prefix.
fn cheats() -> impl Iterator<Item = &'static str> {
    TRICKS
        .iter()
        .filter_map(|(_, name, _)| name.strip_prefix(CHEAT))
}

/// How many runs qualifying the scenarios takes, for progress.
pub fn runs_of(scenarios: &[Arc<Scenario>], depth: Depth) -> usize {
    let asked = scenarios
        .iter()
        .filter(|scenario| waiting::for_what(scenario, false).is_empty());
    asked.count() * depth.probes().len()
}

/// Qualifies scenarios on embedded clusters, several runs at the same time. The answers are in the order of the
/// scenarios. `told` is called after every run, on any thread.
///
/// # Errors
/// The first run that could not be carried out, or an interruption.
pub fn qualify(
    materials: &Materials,
    scenarios: &[Arc<Scenario>],
    depth: Depth,
    jobs: NonZeroUsize,
    told: &(dyn Fn() + Sync),
) -> Result<Vec<Qualification>, QualifyError> {
    let waits: Vec<Vec<String>> = scenarios
        .iter()
        .map(|scenario| waiting::for_what(scenario, false))
        .collect();
    let mut work: Vec<(usize, Probe)> = Vec::new();
    for (index, waits) in waits.iter().enumerate() {
        if waits.is_empty() {
            work.extend(depth.probes().into_iter().map(|probe| (index, probe)));
        }
    }
    let done: Mutex<Vec<Option<Result<Evidence, QualifyError>>>> =
        Mutex::new(work.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(work.len()) {
            scope.spawn(|| {
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some((index, probe)) = work.get(turn) else {
                        return;
                    };
                    if *materials.interrupted.borrow() {
                        return;
                    }
                    let evidence = probe.take(materials, &scenarios[*index]);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done[turn] = Some(evidence);
                    drop(done);
                    told();
                }
            });
        }
    });
    if *materials.interrupted.borrow() {
        return Err(QualifyError::Interrupted);
    }
    let mut evidence: Vec<Vec<Evidence>> = scenarios.iter().map(|_| Vec::new()).collect();
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    for ((index, _), outcome) in work.into_iter().zip(done) {
        // Without an interruption every turn was taken.
        evidence[index].push(outcome.ok_or(QualifyError::Interrupted)??);
    }
    let all = scenarios.iter().zip(waits).zip(evidence);
    Ok(all
        .map(|((scenario, waits), evidence)| {
            let asked = (&keep::embedded(), depth);
            judge::qualification(materials, scenario, asked, waits, &evidence)
        })
        .collect())
}
