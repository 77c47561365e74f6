//! A whole experiment in memory, on embedded clusters: what the demonstration and the calibration are made with. Nothing
//! of it differs from an experiment of a workspace but where it is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::cluster::fixture::Fixtures;
use crate::cluster::target;
use crate::embed::BuiltIn;
use crate::experience::{ExperienceError, Reader};
use crate::experiment::execute::{ExecuteError, Execution, Materials, Now, Told};
use crate::experiment::ledger::{Entry, Event, RunEntry, RunOutcome};
use crate::experiment::load;
use crate::experiment::lock::{self, LockError, Provenance};
use crate::experiment::locked::{FindError, Locked};
use crate::experiment::registration::Registration;
use crate::ids::{ArmId, RegistrationHash};
use crate::scenario::library::Library;
use crate::scenario::problem::Problems;
use crate::store::{Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("the plan cannot be used:\n{0}")]
    Plan(Problems),
    #[error("the plan cannot be locked")]
    Lock(#[from] LockError),
    #[error("the plan was not found after it was locked")]
    Find(#[from] FindError),
    #[error("the experiment cannot be carried out")]
    Execute(#[from] ExecuteError),
    #[error("there is no store in memory")]
    Store(#[from] StoreError),
    #[error("the seed postmortems cannot be used")]
    Experience(#[from] ExperienceError),
}

/// An experiment that is locked and can be run.
pub struct Trial {
    execution: Execution,
    interrupted: watch::Receiver<bool>,
}

impl Trial {
    /// Locks a plan over the seed postmortems in a store in memory. `name` stands for the plan's file in messages.
    ///
    /// # Errors
    /// Everything that `breakage experiment lock` refuses.
    pub fn lock(
        library: &Library,
        (text, name): (&str, &str),
        interrupted: watch::Receiver<bool>,
        now: Arc<Now>,
    ) -> Result<Trial, TrialError> {
        let store = Arc::new(Store::in_memory()?);
        let fixtures = Fixtures::compiled_in();
        let loaded = load::plan(text, name, library).map_err(TrialError::Plan)?;
        let embedder = BuiltIn::Lexical.embedder();
        let snapshot = Reader::new(Some(store.clone())).snapshot(embedder.as_ref())?;
        let resolved = lock::resolve(
            &loaded,
            &lock::Materials {
                library,
                fixtures: &fixtures,
                store: &store,
                snapshot,
                clusters: BTreeMap::from([(None, target::embedded_facts())]),
            },
        )?;
        let provenance = Provenance {
            at: now(),
            git_commit: None,
            git_dirty: false,
        };
        let locked = lock::lock(&store, &resolved, &provenance)?;
        let locked = Locked::find(&store, locked.hash.as_str())?;
        let materials = Materials {
            store,
            library,
            fixtures: Arc::new(fixtures),
            interrupted: interrupted.clone(),
            now,
        };
        Ok(Trial {
            execution: Execution::prepare(&materials, locked)?,
            interrupted,
        })
    }

    pub fn hash(&self) -> &RegistrationHash {
        &self.execution.locked.hash
    }

    pub fn registration(&self) -> &Registration {
        &self.execution.locked.registration
    }

    /// Runs all of it; false when the user stopped it.
    pub fn run(&self, jobs: usize, mut tell: impl FnMut(&Told)) -> Result<bool, TrialError> {
        self.execution.start()?;
        for segment in self.execution.segments() {
            self.execution
                .embedded(&segment, jobs, |told| tell(&told))?;
            if *self.interrupted.borrow() {
                return Ok(false);
            }
        }
        Ok(self.execution.finish()?)
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.execution.entries()
    }

    /// The totals of an arm's runs that count, by block, in micro-points; all of its scenarios and tiers together.
    pub fn totals(&self, arm: &ArmId) -> Vec<i64> {
        let mut totals: Vec<(u64, i64)> = self
            .entries()
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Ran(run) if run.cell.arm == *arm => total(run),
                _ => None,
            })
            .collect();
        totals.sort_unstable();
        totals.into_iter().map(|(_, total)| total).collect()
    }
}

fn total(run: &RunEntry) -> Option<(u64, i64)> {
    match &run.outcome {
        RunOutcome::Scored { score } | RunOutcome::Timeout { score } if run.is_final => {
            Some((u64::from(run.block), i64::from(score.total.0)))
        }
        _ => None,
    }
}
