//! One run: break a cluster in a known way, let an agent respond, watch, take it back, and leave exactly one record.
//!
//! [`once`] drives the stages of `stage`; each stage stands in a file of its own. Nothing in here prints: what happens
//! is told as [`event::Event`]s. Scores are computed from the finished record and never enter it.

pub mod abandon;
pub mod changes;
pub mod event;
pub mod fault;
pub mod identity;
pub mod others;
pub mod paced;
pub mod part;
pub mod past;
pub mod planned;
pub mod prepare;
pub mod recover;
pub mod repeat;
pub mod restore;
pub mod stage;
pub mod standing;
pub mod summary;
pub mod turns;
pub mod verdict;
pub mod work;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::agent::Agent;
use crate::cluster::fixture::Fixtures;
use crate::cluster::target::Target;
use crate::embed::Embedder;
use crate::experience::learner::{Learner, Lesson};
use crate::experience::policy::Policy;
use crate::experience::snapshot::Snapshot;
use crate::ids::Seed;
use crate::inject::journal::{JournalEntry, Place};
use crate::observe::prometheus::Prometheus;
use crate::record::{FrameworkCode, Record, RunState, Source};
use crate::run::event::Event;
use crate::run::part::Part;
use crate::run::planned::{Keeping, Planned, Undertaking};
use crate::scenario::model::{Rubric, Scenario, Vocabulary};
use crate::score::{self, Review, Score};
use crate::store::{Batch, Store, StoreError};

/// How long the healthy state must hold before a fault: two to five probe periods of the usual 2 to 5 s.
pub const HEALTHY_SOAK_S: u32 = 10;
/// How long the healthy state may take to come. The workloads are at rest already; this covers a probe that flickers.
pub const HEALTHY_DEADLINE: Duration = Duration::from_secs(60);
/// How long a fault may take to show. The slowest of the recorded ones (a liveness probe behind a 30 s grace period)
/// shows within 70 s.
pub const MANIFEST_DEADLINE: Duration = Duration::from_secs(120);
/// How long the verdict is checked again after the agent's credential is dead.
pub const SETTLE: Duration = Duration::from_secs(30);
/// How long at least a fault that the agent left untouched is watched, within the budget: as long as a fault may take
/// to show may it take to be seen to heal itself.
pub const QUIET_WATCH: Duration = Duration::from_secs(120);
/// The fixture's age on the embedded cluster when a run begins, so that nothing looks as if made for the occasion.
pub const MIN_AGE: Duration = Duration::from_secs(2 * 86_400);
/// The age varies with the seed by up to this much.
pub const AGE_SPREAD: Duration = Duration::from_secs(6 * 86_400);

/// What runs share. Read-only and shared by threads; the snapshot makes that repetitions never see each other.
#[derive(Clone)]
pub struct Setting {
    pub store: Arc<Store>,
    pub vocabulary: Arc<Vocabulary>,
    pub fixtures: Arc<Fixtures>,
    pub rubric: Rubric,
    pub embedder: Arc<dyn Embedder>,
    pub policy: Policy,
    pub snapshot: Arc<Snapshot>,
    /// Whether postmortems may be served to later runs at once.
    pub learn: bool,
    /// What conditions on metrics ask.
    pub prometheus: Option<Prometheus>,
    /// Turns true when the user wants to stop.
    pub interrupted: watch::Receiver<bool>,
}

/// One run to be done.
#[derive(Clone)]
pub struct Order {
    pub scenario: Arc<Scenario>,
    pub seed: Seed,
    /// Whether a valid qualification of the scenario on this kind of cluster is known.
    pub qualified: bool,
    pub kind: RunKind,
    pub watching: Watching,
    /// The run's place in a registered experiment.
    pub part: Option<Part>,
}

/// Whether there is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunKind {
    /// The fault is injected.
    #[default]
    Incident,
    /// A control run: the agent is called to a cluster in which nothing is wrong.
    Healthy,
}

/// How long the detectors watch after the agent has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// Until the verdict is certain.
    #[default]
    AsNeeded,
    /// To the end of the time budget in any case, for qualification.
    WholeBudget,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub record: Record,
    /// Nothing for framework errors.
    pub score: Option<Score>,
}

/// Plans a run, runs it on a target and keeps the record. The record is in the store when this returns; only a store
/// that cannot be written is an error, and then the finished run comes back with it.
pub async fn once(
    setting: &Setting,
    order: &Order,
    agent: &dyn Agent,
    target: &Target,
    emit: &mut dyn FnMut(Event),
) -> Result<Finished, (StoreError, Box<Finished>)> {
    let blank = blank(setting, order, agent, target);
    let planned = Planned::new(Place::of(target), blank.clone(), 1);
    match Undertaking::begin(setting.store.clone(), planned) {
        Ok(undertaking) => one_of(setting, &undertaking, 0, order, (agent, target), emit).await,
        Err(error) => Err(unbegun(error, blank)),
    }
}

fn blank(setting: &Setting, order: &Order, agent: &dyn Agent, target: &Target) -> Record {
    let (facts, now) = (target.facts(), target.now_text());
    stage::blank_record(setting, order, agent, &Place::of(target), facts, now)
}

/// A run that was not begun because the store could not take note of it.
fn unbegun(error: StoreError, mut record: Record) -> (StoreError, Box<Finished>) {
    record.state = RunState::FrameworkError {
        code: FrameworkCode::StoreUnavailable,
        message: stage::chain(&error),
    };
    (
        error,
        Box::new(Finished {
            record,
            score: None,
        }),
    )
}

/// One run of a plan, from the note that it begins to its record.
async fn one_of(
    setting: &Setting,
    undertaking: &Undertaking,
    index: u64,
    order: &Order,
    (agent, target): (&dyn Agent, &Target),
    emit: &mut dyn FnMut(Event),
) -> Result<Finished, (StoreError, Box<Finished>)> {
    if let Err(error) = undertaking.begun(index) {
        return Err(unbegun(error, blank(setting, order, agent, target)));
    }
    let (finished, proven) = unkept(setting, order, agent, target, emit).await;
    let batch = Batch::default();
    match keep(
        setting,
        undertaking,
        index,
        order,
        (&finished, proven),
        batch,
    ) {
        Ok(()) => Ok(finished),
        Err(error) => Err((error, Box::new(finished))),
    }
}

/// Runs once on a target; the caller has to [`keep`] what comes back.
async fn unkept(
    setting: &Setting,
    order: &Order,
    agent: &dyn Agent,
    target: &Target,
    emit: &mut dyn FnMut(Event),
) -> (Finished, Proven) {
    let (mut record, proven) = stage::drive(setting, order, agent, target, emit).await;
    let (scenario, rubric) = (&order.scenario, &setting.rubric);
    let scoring = || score::score(scenario, &record, rubric, &setting.vocabulary).ok();
    // A run that cannot be scored is our failure, and must not vanish from the count of runs.
    let score = match std::panic::catch_unwind(AssertUnwindSafe(scoring)) {
        Ok(score) => score,
        Err(panic) => {
            record.state = RunState::FrameworkError {
                code: FrameworkCode::Scorer,
                message: stage::panic_text(panic.as_ref()),
            };
            None
        }
    };
    (Finished { record, score }, proven)
}

/// Record, postmortem, the run's end in the plan and the end of the journal entry in one commit: after a crash there is
/// either the entry, and the undo can be done, or the finished run. What `batch` holds already goes with them.
fn keep(
    setting: &Setting,
    undertaking: &Undertaking,
    index: u64,
    order: &Order,
    (finished, proven): (&Finished, Proven),
    mut batch: Batch,
) -> Result<(), StoreError> {
    let record = &finished.record;
    if proven == Proven::Restored {
        batch.journal_erase(record.run_id.as_str());
    }
    if undertaking.keeping() == Keeping::Nothing {
        return undertaking.end(index, batch);
    }
    batch.record(record)?;
    if let (Some(score), Some(postmortem)) = (&finished.score, &record.postmortem)
        && record.state == RunState::Scored
        // An account of a fault that never was is no lesson.
        && !record.healthy
    {
        let lesson = Lesson {
            postmortem: postmortem.clone(),
            source: Source::Scenario,
            outcome: score.outcome,
            mechanism: order.scenario.mechanism.clone(),
            scenario_id: Some(record.scenario_id.clone()),
            run_id: Some(record.run_id.clone()),
            recorded_at: record.ran_at.clone(),
            quarantined: !setting.learn,
            review: score.review.contains(&Review::ChannelDisagreement),
        };
        let learner = Learner::new(setting.store.clone(), setting.embedder.clone());
        // An account that the base does not take stays in the record; the run counts all the same.
        let _ = learner.learn_into(lesson, &mut batch);
    }
    undertaking.end(index, batch)
}

/// Whether the journal entry of a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// There is no entry, or the cluster is proven to be as it was (or is no more).
    Restored,
    /// Something may be left: the entry stays for `recover`.
    Open,
}

/// Puts the entry of a fault on disk before the fault is written.
fn journal(setting: &Setting, entry: &JournalEntry) -> Result<(), StoreError> {
    entry.put(&setting.store)
}
