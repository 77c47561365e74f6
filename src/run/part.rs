//! A run as a part of a registered experiment: what it is told apart by, what its arm may be served, and how it is kept.

use sha2::{Digest, Sha256};

use crate::agent::Agent;
use crate::cluster::target::Target;
use crate::experience::placebo::StandIn;
use crate::inject::journal::Place;
use crate::record::Membership;
use crate::run::event::Event;
use crate::run::planned::{Planned, Undertaking};
use crate::run::{Finished, Order, Proven, Setting, blank, keep, unkept};
use crate::scenario::model::Scenario;
use crate::store::{Batch, StoreError};

/// A run's place in an experiment. Nothing of it reaches the agent but what its arm is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub membership: Membership,
    pub serving: Serving,
}

/// What the arm of a run is shown of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// What the policy finds.
    Nearest,
    /// As many and as long as the policy finds, and irrelevant.
    Placebo,
    /// Nothing may be served: a run in which something was is our failure.
    Nothing,
}

impl Part {
    /// What the id of the run covers of its place. The measured distance of the control is evidence and no identity.
    pub(super) fn identity(&self) -> [u8; 32] {
        let Membership {
            registration,
            planned,
            block,
            arm,
            tier,
            attempt,
            agent_seed,
            placebo: _,
            control_nearest: _,
        } = &self.membership;
        let mut hash = Sha256::new();
        let tier = tier.as_deref().unwrap_or_default();
        hash.update(format!("{registration}:{planned}:{block}:{arm}:{tier}:"));
        hash.update(format!("{attempt}:{agent_seed}:{:?}", self.serving));
        hash.finalize().into()
    }

    /// What stands in for what is found, for a placebo.
    pub(super) fn stand_in(&self, scenario: &Scenario) -> Option<StandIn> {
        (self.serving == Serving::Placebo).then(|| StandIn {
            category: scenario.ground_truth.primary_category.clone(),
            mechanism: scenario.mechanism.clone(),
            seed: self.membership.agent_seed,
        })
    }
}

/// A run that has ended and is not kept yet.
pub struct Attempted {
    pub finished: Finished,
    undertaking: Undertaking,
    proven: Proven,
}

/// Notes on disk that the run is under way, and runs it. After a crash the note becomes the record of a run that was cut
/// off, whatever command comes next.
pub async fn attempt(
    setting: &Setting,
    order: &Order,
    (agent, target): (&dyn Agent, &Target),
    emit: &mut dyn FnMut(Event),
) -> Result<Attempted, StoreError> {
    let blank = blank(setting, order, agent, target);
    let planned = Planned::new(Place::of(target), blank, 1).begun_at_once();
    let undertaking = Undertaking::begin(setting.store.clone(), planned)?;
    let (finished, proven) = unkept(setting, order, agent, target, emit).await;
    Ok(Attempted {
        finished,
        undertaking,
        proven,
    })
}

impl Attempted {
    /// Keeps the run's record together with what `batch` holds.
    pub fn keep(&self, setting: &Setting, order: &Order, batch: Batch) -> Result<(), StoreError> {
        let ended = (&self.finished, self.proven);
        keep(setting, &self.undertaking, 0, order, ended, batch)
    }
}
