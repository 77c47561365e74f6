//! Where qualifying runs take place: on embedded clusters of their own, or one after another in a cluster that outlives
//! the process, through the same journal and recovery as every run there.

use std::sync::Arc;

use crate::agent::Agent;
use crate::cluster::target::Target;
use crate::experience::policy::Policy;
use crate::ids::Seed;
use crate::qualify::{Materials, QualifyError, SEED};
use crate::record::ClusterFacts;
use crate::run::planned::Keeping;
use crate::run::repeat::{Progress, Repetitions, in_turn_keeping, repeat};
use crate::run::{Finished, RunKind, Setting, Watching};
use crate::scenario::model::Scenario;
use crate::store::Store;

/// See the module.
pub enum Stand<'a> {
    Embedded,
    Lasting {
        target: &'a Target,
        /// The workspace's: it holds what a crash must not lose. Records are not kept in it.
        store: &'a Arc<Store>,
    },
}

/// What one qualifying run is.
pub struct Trial<'a> {
    pub scenario: &'a Arc<Scenario>,
    pub kind: RunKind,
    pub watching: Watching,
    pub seed: Seed,
    pub agent: &'a (dyn Fn() -> Box<dyn Agent> + Sync),
}

impl Stand<'_> {
    pub fn facts(&self) -> ClusterFacts {
        match self {
            Stand::Embedded => super::keep::embedded(),
            Stand::Lasting { target, .. } => target.facts(),
        }
    }

    /// One run that leaves no record. On embedded clusters it never waits for this runtime.
    ///
    /// # Errors
    /// A run that could not be begun. One that ends as a framework error is evidence.
    pub async fn run(
        &self,
        materials: &Materials,
        trial: &Trial<'_>,
    ) -> Result<Finished, QualifyError> {
        let mut policy = match trial.seed {
            SEED => Policy::default_for(materials.embedder.as_ref()),
            _ => Policy::off(materials.embedder.as_ref()),
        };
        policy.excluded_scenarios.insert(trial.scenario.id.clone());
        let store = match self {
            Stand::Embedded => Arc::new(Store::in_memory()?),
            Stand::Lasting { store, .. } => (*store).clone(),
        };
        let setting = Setting {
            store,
            vocabulary: materials.vocabulary.clone(),
            fixtures: materials.fixtures.clone(),
            rubric: materials.rubric.clone(),
            embedder: materials.embedder.clone(),
            policy,
            snapshot: materials.snapshot.clone(),
            learn: false,
            prometheus: materials.prometheus.clone(),
            interrupted: materials.interrupted.clone(),
        };
        let once = Repetitions {
            scenario: trial.scenario.clone(),
            qualified: false,
            kind: trial.kind,
            watching: trial.watching,
            base: trial.seed,
            count: 1,
            jobs: 1,
            agent: trial.agent,
        };
        let mut outcome = None;
        let tell = |progress| {
            if let Progress::Done { outcome: done, .. } = progress {
                outcome = Some(*done);
            }
        };
        match self {
            Stand::Embedded => repeat(&setting, &once, tell),
            Stand::Lasting { target, .. } => {
                in_turn_keeping(Keeping::Nothing, &setting, &once, target, tell).await
            }
        };
        Ok(outcome.ok_or(QualifyError::Interrupted)??)
    }
}
