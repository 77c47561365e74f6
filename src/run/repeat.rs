//! Repetitions: on embedded clusters one fresh cluster and one runtime with paused time per run, in several threads; on
//! a cluster that outlives the process one after another.
//!
//! All are planned in one commit. Runs finish in any order and each is determined by its own seed alone. They are kept and handed on in the order of
//! their repetition, so that the store does not depend on the number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use crate::agent::Agent;
use crate::cluster::target::{self, Target};
use crate::ids::Seed;
use crate::inject::journal::Place;
use crate::record::ClusterFacts;
use crate::run::event::Event;
use crate::run::identity::repetition_seed;
use crate::run::planned::{Keeping, Planned, Undertaking};
use crate::run::stage::blank_record;
use crate::run::turns::{Turn, Turns};
use crate::run::{Finished, Order, RunKind, Setting, Watching, keep, one_of, unkept};
use crate::scenario::model::Scenario;
use crate::store::{Batch, StoreError};

/// What is to be repeated, and how.
pub struct Repetitions<'a> {
    pub scenario: Arc<Scenario>,
    pub qualified: bool,
    pub kind: RunKind,
    pub watching: Watching,
    /// The seed of the first; the others count up.
    pub base: Seed,
    pub count: u64,
    /// Threads, at least one.
    pub jobs: usize,
    /// Makes the agent; called once per run, on its thread.
    pub agent: &'a (dyn Fn() -> Box<dyn Agent> + Sync),
}

#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    #[error("no runtime for a run")]
    Runtime(#[source] std::io::Error),
    #[error("nothing was begun: the plan could not be noted")]
    NotPlanned(#[source] StoreError),
    #[error("the record of run {} could not be kept", finished.record.run_id)]
    NotKept {
        /// What would have been kept.
        finished: Box<Finished>,
        #[source]
        source: StoreError,
    },
}

/// What repetitions tell while they go on.
pub enum Progress {
    Event {
        index: u64,
        event: Event,
    },
    Done {
        index: u64,
        outcome: Box<Result<Finished, RepeatError>>,
    },
}

impl Repetitions<'_> {
    fn order(&self, index: u64) -> Order {
        Order {
            scenario: self.scenario.clone(),
            seed: repetition_seed(self.base, index),
            qualified: self.qualified,
            kind: self.kind,
            watching: self.watching,
            part: None,
        }
    }

    /// Notes all of them before the first request.
    fn plan(
        &self,
        setting: &Setting,
        (place, cluster): (Place, ClusterFacts),
        ran_at: String,
        keeping: Keeping,
    ) -> Result<Undertaking, RepeatError> {
        let agent = (self.agent)();
        let order = self.order(0);
        let record = blank_record(setting, &order, agent.as_ref(), &place, cluster, ran_at);
        let plan = Planned::new(place, record, self.count).keeping(keeping);
        Undertaking::begin(setting.store.clone(), plan).map_err(RepeatError::NotPlanned)
    }
}

/// Why runs that were planned did not begin.
const STOPPED: &str = "the command ended before it began";

/// Runs all of them; after an interruption, or once a record could not be kept, no further one is begun. `tell` is
/// called on this thread. Answers how many were not begun; each of these has a record that says so.
pub fn repeat(
    setting: &Setting,
    repetitions: &Repetitions<'_>,
    mut tell: impl FnMut(Progress),
) -> u64 {
    let ran_at = target::embedded_start_text(repetitions.base);
    let at = (Place::passing(), target::embedded_facts());
    let undertaking = match repetitions.plan(setting, at, ran_at, Keeping::Records) {
        Ok(undertaking) => undertaking,
        Err(error) => {
            let outcome = Box::new(Err(error));
            tell(Progress::Done { index: 0, outcome });
            return repetitions.count;
        }
    };
    let next = AtomicU64::new(0);
    let broken = AtomicBool::new(false);
    let turns = Turns::default();
    let threads = u64::try_from(repetitions.jobs.max(1)).unwrap_or(1);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(repetitions.count) {
            let sender = sender.clone();
            let (next, broken, turns, undertaking) = (&next, &broken, &turns, &undertaking);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let turn = turns.of(index);
                    let stop = *setting.interrupted.borrow() || broken.load(Ordering::Relaxed);
                    if index >= repetitions.count || stop {
                        return;
                    }
                    let outcome = one(setting, repetitions, undertaking, &turn, &sender);
                    if outcome.is_err() {
                        broken.store(true, Ordering::Relaxed);
                    }
                    let outcome = Box::new(outcome);
                    // The receiver lives as long as the scope.
                    let _ = sender.send(Progress::Done { index, outcome });
                }
            });
        }
        drop(sender);
        for progress in receiver {
            tell(progress);
        }
    });
    let began = |seed| Some(target::embedded_start_text(seed));
    // Where not even this can be written the plan stays, and the next start does it.
    undertaking.close(began, STOPPED).unwrap_or(0)
}

/// Runs all of them one after another on a cluster that outlives the process; otherwise as [`repeat`]. Must be called
/// inside the runtime in which the target was made.
pub async fn in_turn(
    setting: &Setting,
    repetitions: &Repetitions<'_>,
    target: &Target,
    tell: impl FnMut(Progress),
) -> u64 {
    in_turn_keeping(Keeping::Records, setting, repetitions, target, tell).await
}

/// As [`in_turn`], where the runs may leave nothing but a cluster that is as it was.
pub async fn in_turn_keeping(
    keeping: Keeping,
    setting: &Setting,
    repetitions: &Repetitions<'_>,
    target: &Target,
    mut tell: impl FnMut(Progress),
) -> u64 {
    let at = (Place::of(target), target.facts());
    let planned = repetitions.plan(setting, at, target.now_text(), keeping);
    let undertaking = match planned {
        Ok(undertaking) => undertaking,
        Err(error) => {
            let outcome = Box::new(Err(error));
            tell(Progress::Done { index: 0, outcome });
            return repetitions.count;
        }
    };
    let mut reason = STOPPED;
    for index in 0..repetitions.count {
        if *setting.interrupted.borrow() {
            break;
        }
        let agent = (repetitions.agent)();
        let order = repetitions.order(index);
        let mut emit = |event| tell(Progress::Event { index, event });
        let whom = (agent.as_ref(), target);
        let outcome = one_of(setting, &undertaking, index, &order, whom, &mut emit).await;
        let closed = outcome
            .as_ref()
            .is_ok_and(|finished| finished.record.undo.quarantined);
        let outcome =
            outcome.map_err(|(source, finished)| RepeatError::NotKept { finished, source });
        let broken = outcome.is_err();
        let outcome = Box::new(outcome);
        tell(Progress::Done { index, outcome });
        if closed {
            reason = "the run before it left the cluster closed";
        }
        if closed || broken {
            break;
        }
    }
    undertaking
        .close(|_| Some(target.now_text()), reason)
        .unwrap_or(0)
}

fn one(
    setting: &Setting,
    repetitions: &Repetitions<'_>,
    undertaking: &Undertaking,
    turn: &Turn<'_>,
    sender: &mpsc::Sender<Progress>,
) -> Result<Finished, RepeatError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(RepeatError::Runtime)?;
    let index = turn.index();
    let order = repetitions.order(index);
    let agent = (repetitions.agent)();
    let (finished, proven) = runtime.block_on(async {
        let target = Target::embedded(order.seed);
        let mut emit = |event| {
            let _ = sender.send(Progress::Event { index, event });
        };
        unkept(setting, &order, agent.as_ref(), &target, &mut emit).await
    });
    turn.wait();
    let batch = Batch::default();
    match keep(
        setting,
        undertaking,
        index,
        &order,
        (&finished, proven),
        batch,
    ) {
        Ok(()) => Ok(finished),
        Err(source) => Err(RepeatError::NotKept {
            finished: Box::new(finished),
            source,
        }),
    }
}
