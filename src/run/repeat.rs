//! Repetitions on embedded clusters: one fresh cluster and one runtime with paused time per run, several threads.
//!
//! Runs finish in any order and each is determined by its own seed alone. They are kept and handed on in the order of
//! their repetition, so that the store does not depend on the number of threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use crate::agent::Agent;
use crate::cluster::target::Target;
use crate::ids::Seed;
use crate::run::event::Event;
use crate::run::identity::repetition_seed;
use crate::run::{Finished, Order, RunKind, Setting, Watching, keep, unkept};
use crate::scenario::model::Scenario;
use crate::store::StoreError;

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
    #[error("the record of run {run} could not be kept")]
    NotKept {
        run: String,
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

/// Runs all of them; after an interruption no further one is begun. `tell` is called on this thread.
pub fn repeat(setting: &Setting, repetitions: &Repetitions<'_>, mut tell: impl FnMut(Progress)) {
    let next = AtomicU64::new(0);
    let turns = Turns::default();
    let threads = u64::try_from(repetitions.jobs.max(1)).unwrap_or(1);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(repetitions.count) {
            let sender = sender.clone();
            let (next, turns) = (&next, &turns);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let turn = turns.of(index);
                    if index >= repetitions.count || *setting.interrupted.borrow() {
                        return;
                    }
                    let outcome = Box::new(one(setting, repetitions, &turn, &sender));
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
}

fn one(
    setting: &Setting,
    repetitions: &Repetitions<'_>,
    turn: &Turn<'_>,
    sender: &mpsc::Sender<Progress>,
) -> Result<Finished, RepeatError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(RepeatError::Runtime)?;
    let index = turn.index;
    let seed = repetition_seed(repetitions.base, index);
    let order = Order {
        scenario: repetitions.scenario.clone(),
        seed,
        qualified: repetitions.qualified,
        kind: repetitions.kind,
        watching: repetitions.watching,
    };
    let agent = (repetitions.agent)();
    let (finished, proven) = runtime.block_on(async {
        let target = Target::embedded(seed);
        let mut emit = |event| {
            let _ = sender.send(Progress::Event { index, event });
        };
        unkept(setting, &order, agent.as_ref(), &target, &mut emit).await
    });
    turn.wait();
    match keep(setting, &order, &finished, proven) {
        Ok(()) => Ok(finished),
        Err(source) => Err(RepeatError::NotKept {
            run: finished.record.run_id.to_string(),
            source,
        }),
    }
}

/// Whose turn it is to be kept: repetitions are taken up in order, so the one that is waited for is always under way.
#[derive(Default)]
struct Turns {
    next: Mutex<u64>,
    moved: Condvar,
}

impl Turns {
    fn of(&self, index: u64) -> Turn<'_> {
        Turn { turns: self, index }
    }
}

/// The place of one repetition. It is given on when dropped, however its run ended.
struct Turn<'a> {
    turns: &'a Turns,
    index: u64,
}

impl Turn<'_> {
    fn wait(&self) {
        let next = self.turns.next.lock();
        let next = next.unwrap_or_else(PoisonError::into_inner);
        drop(self.turns.moved.wait_while(next, |next| *next < self.index));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.wait();
        let next = self.turns.next.lock();
        *next.unwrap_or_else(PoisonError::into_inner) = self.index + 1;
        self.turns.moved.notify_all();
    }
}
