//! Carrying out what was locked: the planned runs in their order, each kept with its ledger entry in one commit.
//!
//! What has ended is never run again. What was cut off, or failed on our side, is repeated in place with the same seeds, so
//! that order and seeds are those of the unbroken experiment. Nothing here reads a score.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::watch;

use crate::agent::choice::{Choice, ChoiceError};
use crate::cluster::fixture::Fixtures;
use crate::cluster::target::Target;
use crate::experience::learner::Lesson;
use crate::experiment::adopt::{self, AdoptError};
use crate::experiment::allocation::{Slot, slots};
use crate::experiment::arms::{ArmError, ArmSetting, Corpus};
use crate::experiment::canonical;
use crate::experiment::inputs::{self, Changed};
use crate::experiment::ledger::chain::{Ledger, LedgerError};
use crate::experiment::ledger::outcome::Ran;
use crate::experiment::ledger::{Entry, Event, RunEntry};
use crate::experiment::locked::Locked;
use crate::experiment::plan::{Plan, Writes};
use crate::experiment::status::runs;
use crate::ids::{ArmId, RunId, ScenarioId};
use crate::qualify::keep;
use crate::record::{FrameworkCode, Membership, Record, RunState, Source};
use crate::run::part::{self, Attempted, Part, Serving};
use crate::run::turns::{Turn, Turns};
use crate::run::{Order, RunKind, Setting, Watching};
use crate::scenario::library::{Library, LibraryError};
use crate::scenario::model::{Rubric, Scenario, Vocabulary};
use crate::score::{self, Review};
use crate::store::{Batch, Store, StoreError, record_text};

/// The wall clock's time as RFC 3339, for display.
pub type Now = dyn Fn() -> String + Send + Sync;

/// What an experiment is carried out with.
pub struct Materials<'a> {
    pub store: Arc<Store>,
    pub library: &'a Library,
    pub fixtures: Arc<Fixtures>,
    /// Turns true when the user wants to stop.
    pub interrupted: watch::Receiver<bool>,
    pub now: Arc<Now>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Changed(#[from] Changed),
    #[error(transparent)]
    Arm(#[from] ArmError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    #[error("the rubric cannot be used")]
    Rubric(#[from] LibraryError),
    #[error("the agent of arm {arm} cannot be made")]
    Agent {
        arm: ArmId,
        #[source]
        source: Box<ChoiceError>,
    },
    #[error("the experiment was amended: registration {0} goes on")]
    Amended(String),
    #[error("the plan names {0}, which the registration does not hold")]
    Incomplete(String),
    #[error("no runtime for a run")]
    Runtime(#[source] std::io::Error),
    #[error("the store cannot be written")]
    Store(#[from] StoreError),
    /// A record of an earlier block, from which a growing corpus learns.
    #[error("the record of run {0} is not in the store")]
    NoRecord(RunId),
    #[error("run {0} left the cluster of context {1} closed")]
    Closed(RunId, String),
}

/// An experiment that is being carried out.
pub struct Execution {
    pub locked: Locked,
    slots: Vec<Slot>,
    scenarios: BTreeMap<ScenarioId, (Arc<Scenario>, bool)>,
    agents: BTreeMap<ArmId, Choice>,
    corpus: Corpus,
    /// What its runs share; embedder, snapshot and policy are each arm's own.
    base: Setting,
    now: Arc<Now>,
    ledger: Mutex<Ledger>,
}

/// A kept attempt.
#[derive(Clone, Debug)]
pub struct Told {
    pub run: RunEntry,
    /// Set where the whole block has come to its end with it.
    pub block_complete: Option<u32>,
}

/// Slots that follow one another in the same kind of place.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The kubeconfig context; nothing for embedded clusters.
    pub context: Option<String>,
    pub slots: Vec<Slot>,
}

/// What became of an attempt.
enum After {
    /// The planned run has ended.
    Ended,
    Again,
    /// It is to be done by a later start.
    Stopped,
}

impl Execution {
    /// Checks that everything is what was locked, and takes in what a crash left.
    pub fn prepare(materials: &Materials<'_>, locked: Locked) -> Result<Execution, ExecuteError> {
        let registration = &locked.registration;
        let plan = &registration.plan;
        let mut ledger = Ledger::open(materials.store.clone(), locked.hash.clone())?;
        for entry in ledger.entries() {
            if let Event::Amended { to, .. } = &entry.event {
                return Err(ExecuteError::Amended(to.to_string()));
            }
        }
        let found = inputs::unchanged(registration, materials.library, &materials.fixtures)?;
        let mut scenarios = BTreeMap::new();
        for (locked, scenario) in registration.scenarios.iter().zip(found) {
            let known = (Arc::new(scenario), locked.qualified);
            scenarios.insert(locked.id.clone(), known);
        }
        for planned in &plan.scenarios {
            if !scenarios.contains_key(&planned.id) {
                return Err(ExecuteError::Incomplete(format!("scenario {}", planned.id)));
            }
        }
        let mut agents = BTreeMap::new();
        for arm in &plan.arms {
            let choice = Choice::parse(&arm.agent).map_err(|source| ExecuteError::Agent {
                arm: arm.id.clone(),
                source: Box::new(source),
            })?;
            agents.insert(arm.id.clone(), choice);
        }
        let corpus = Corpus::open(&materials.store, registration, &locked.hash)?;
        let base = base(materials, plan, &corpus, registration.rubric.id.as_str())?;
        let slots = slots(&locked.hash, plan);
        adopt::cut_off(
            &materials.store,
            &mut ledger,
            &slots,
            materials.now.as_ref(),
        )?;
        Ok(Execution {
            slots,
            scenarios,
            agents,
            corpus,
            base,
            now: materials.now.clone(),
            ledger: Mutex::new(ledger),
            locked,
        })
    }

    fn plan(&self) -> &Plan {
        &self.locked.registration.plan
    }

    /// Notes that this process takes the experiment up.
    pub fn start(&self) -> Result<(), ExecuteError> {
        let breakage_version = env!("CARGO_PKG_VERSION").to_owned();
        let event = Event::Started { breakage_version };
        let mut ledger = self.ledger();
        ledger.refresh()?;
        Ok(ledger.append((self.now)(), event)?)
    }

    /// The ledger as it stands.
    pub fn entries(&self) -> Vec<Entry> {
        self.ledger().entries().to_vec()
    }

    /// Planned runs that have not come to their end, in order, by where they take place. A growing corpus is another in
    /// every block, so that no segment reaches beyond one.
    pub fn segments(&self) -> Vec<Segment> {
        let over = |entry: &Entry| matches!(entry.event, Event::Finished { .. });
        if self.ledger().entries().iter().any(over) {
            return Vec::new();
        }
        let ended: std::collections::BTreeSet<u64> = runs(self.ledger().entries())
            .filter(|run| run.is_final)
            .map(|run| run.planned)
            .collect();
        let growing = self.plan().corpus.writes == Writes::Growing;
        let mut segments: Vec<Segment> = Vec::new();
        for slot in self
            .slots
            .iter()
            .filter(|slot| !ended.contains(&slot.planned))
        {
            let arm = self.plan().arm(&slot.cell.arm);
            let context = arm.and_then(|arm| arm.context.clone());
            let context = context.filter(|name| name != "embedded");
            match segments.last_mut() {
                Some(last)
                    if last.context == context
                        && (!growing || last.slots.iter().all(|one| one.block == slot.block)) =>
                {
                    last.slots.push(slot.clone());
                }
                _ => segments.push(Segment {
                    context,
                    slots: vec![slot.clone()],
                }),
            }
        }
        segments
    }

    /// Ends the ledger once every planned run has ended. Answers whether it has.
    pub fn finish(&self) -> Result<bool, ExecuteError> {
        let mut ledger = self.ledger();
        ledger.refresh()?;
        let finished = |entry: &Entry| matches!(entry.event, Event::Finished { .. });
        if ledger.entries().iter().any(finished) {
            return Ok(true);
        }
        let ended = runs(ledger.entries()).filter(|run| run.is_final).count();
        if ended < self.slots.len() {
            return Ok(false);
        }
        ledger.append((self.now)(), Event::Finished { reason: None })?;
        Ok(true)
    }

    /// Runs on embedded clusters, `jobs` at a time. `tell` is called on this thread, in the order of the plan.
    pub fn embedded(
        &self,
        segment: &Segment,
        jobs: usize,
        mut tell: impl FnMut(Told),
    ) -> Result<(), ExecuteError> {
        let arms = self.arms_of(segment)?;
        let next = AtomicU64::new(0);
        let broken = AtomicBool::new(false);
        let failure: Mutex<Option<ExecuteError>> = Mutex::new(None);
        let turns = Turns::default();
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1).min(segment.slots.len()) {
                let sender = sender.clone();
                let (next, broken, failure) = (&next, &broken, &failure);
                let (turns, arms) = (&turns, &arms);
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let turn = turns.of(index);
                        let stop = self.is_interrupted() || broken.load(Ordering::Relaxed);
                        let slot = usize::try_from(index).ok();
                        let slot = slot.and_then(|index| segment.slots.get(index));
                        let Some(slot) = slot.filter(|_| !stop) else {
                            return;
                        };
                        if let Err(error) = self.one_embedded(arms, slot, &turn, &sender) {
                            broken.store(true, Ordering::Relaxed);
                            let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
                            first.get_or_insert(error);
                        }
                    }
                });
            }
            drop(sender);
            for told in receiver {
                tell(told);
            }
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }

    /// A planned run with its retries. Its first attempt goes on beside other runs; retries are rare, and have the turn.
    fn one_embedded(
        &self,
        arms: &[ArmSetting],
        slot: &Slot,
        turn: &Turn<'_>,
        sender: &mpsc::Sender<Told>,
    ) -> Result<(), ExecuteError> {
        loop {
            let (setting, order) = self.order(arms, slot)?;
            let agent = self.agents[&slot.cell.arm].make();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .map_err(ExecuteError::Runtime)?;
            let attempted = runtime.block_on(async {
                let target = Target::embedded(order.seed);
                let whom = (agent.as_ref(), &target);
                part::attempt(&setting, &order, whom, &mut |_| ()).await
            })?;
            turn.wait();
            let (told, after) = self.keep(&setting, &order, slot, &attempted)?;
            // The receiver lives as long as the scope.
            let _ = sender.send(told);
            match after {
                After::Again => {}
                After::Ended | After::Stopped => return Ok(()),
            }
        }
    }

    /// Runs one after another on a cluster that outlives the process. Must be called inside the runtime in which the
    /// target was made. Ends early when the user wants to stop.
    pub async fn in_turn(
        &self,
        segment: &Segment,
        target: &Target,
        mut tell: impl FnMut(Told),
    ) -> Result<(), ExecuteError> {
        let arms = self.arms_of(segment)?;
        for slot in &segment.slots {
            loop {
                if self.is_interrupted() {
                    return Ok(());
                }
                let (setting, mut order) = self.order(&arms, slot)?;
                let facts = target.facts();
                order.qualified =
                    keep::is_qualified(&setting.store, &order.scenario, &setting.fixtures, &facts)?;
                let agent = self.agents[&slot.cell.arm].make();
                let whom = (agent.as_ref(), target);
                let attempted = part::attempt(&setting, &order, whom, &mut |_| ()).await?;
                let (told, after) = self.keep(&setting, &order, slot, &attempted)?;
                tell(told);
                let record = &attempted.finished.record;
                if record.undo.quarantined {
                    let context = segment.context.clone().unwrap_or_default();
                    return Err(ExecuteError::Closed(record.run_id.clone(), context));
                }
                match after {
                    After::Again => {}
                    After::Ended => break,
                    After::Stopped => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// Record, ledger entry and the end of the note that the run was under way, in one commit.
    fn keep(
        &self,
        setting: &Setting,
        order: &Order,
        slot: &Slot,
        attempted: &Attempted,
    ) -> Result<(Told, After), ExecuteError> {
        let record = &attempted.finished.record;
        let mut ledger = self.ledger();
        let ran = Ran {
            record,
            record_sha256: canonical::sha256_hex(&record_text(record)?),
            score: attempted.finished.score.as_ref(),
            cell: slot.cell.clone(),
        };
        let actual = adopt::next_actual(&ledger);
        let place = || ExecuteError::Incomplete(format!("the place of run {}", record.run_id));
        let mut run = ran.entry(Some(actual), true).ok_or_else(place)?;
        let after = self.after(ledger.entries(), &run);
        run.is_final = matches!(after, After::Ended);
        loop {
            let mut batch = Batch::default();
            let event = Event::Ran(Box::new(run.clone()));
            let entry = ledger
                .prepare(&mut batch, (self.now)(), event)
                .map_err(LedgerError::Canonical)?;
            match attempted.keep(setting, order, batch) {
                Ok(()) => {
                    ledger.kept(entry);
                    break;
                }
                // Somebody looked meanwhile, and the ledger tells of it; nothing of the batch was written.
                Err(StoreError::NotNext { .. }) => ledger.refresh()?,
                Err(error) => return Err(error.into()),
            }
        }
        let block_complete = run.is_final && self.is_complete(ledger.entries(), run.block);
        let block_complete = block_complete.then_some(run.block);
        Ok((
            Told {
                run,
                block_complete,
            },
            after,
        ))
    }

    /// Whether an attempt is the outcome of its planned run: every one that the agent had its say in, and a failure of ours
    /// once the registered retries are used up.
    fn after(&self, entries: &[Entry], run: &RunEntry) -> After {
        match run.outcome.code() {
            None => After::Ended,
            Some(FrameworkCode::Interrupted) => After::Stopped,
            Some(_) => {
                let earlier = runs(entries).filter(|one| one.planned == run.planned);
                let failed = earlier.filter(|one| one.outcome.uses_up_a_retry()).count();
                match failed < self.plan().exclusions.retries as usize {
                    true => After::Again,
                    false => After::Ended,
                }
            }
        }
    }

    fn is_complete(&self, entries: &[Entry], block: u32) -> bool {
        let ended = runs(entries).filter(|run| run.block == block && run.is_final);
        ended.count() == self.plan().cells().len()
    }

    fn is_interrupted(&self) -> bool {
        *self.base.interrupted.borrow()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next attempt at a planned run is run with.
    fn order(&self, arms: &[ArmSetting], slot: &Slot) -> Result<(Setting, Order), ExecuteError> {
        let cell = &slot.cell;
        let missing = || ExecuteError::Incomplete(format!("cell {}", cell.id()));
        let mut wanted = arms.iter();
        let arm = wanted
            .find(|arm| arm.arm == cell.arm && arm.tier == cell.tier)
            .ok_or_else(missing)?;
        let (scenario, qualified) = self.scenarios.get(&cell.scenario).ok_or_else(missing)?;
        let attempt = {
            let ledger = self.ledger();
            let earlier = runs(ledger.entries()).filter(|run| run.planned == slot.planned);
            earlier.map(|run| run.attempt + 1).max().unwrap_or(0)
        };
        let setting = Setting {
            embedder: arm.embedder.clone(),
            policy: arm.policy(scenario),
            snapshot: arm.snapshot.clone(),
            ..self.base.clone()
        };
        let membership = Membership {
            registration: self.locked.hash.clone(),
            planned: slot.planned,
            block: slot.block,
            arm: cell.arm.clone(),
            tier: cell.tier.clone(),
            attempt,
            agent_seed: slot.agent_seed,
            placebo: arm.serving == Serving::Placebo,
            control_nearest: arm.control_nearest(scenario),
        };
        let order = Order {
            scenario: scenario.clone(),
            seed: slot.seed,
            qualified: *qualified,
            kind: RunKind::Incident,
            watching: Watching::AsNeeded,
            part: Some(Part {
                membership,
                serving: arm.serving,
            }),
        };
        Ok((setting, order))
    }

    /// The arms of a segment's runs: of the frozen corpus, or with what earlier blocks learned.
    fn arms_of(&self, segment: &Segment) -> Result<Vec<ArmSetting>, ExecuteError> {
        let plan = self.plan();
        let block = segment.slots.first().map_or(0, |slot| slot.block);
        if plan.corpus.writes == Writes::Frozen || block == 0 {
            return Ok(self.corpus.arms(plan)?);
        }
        Ok(self.corpus.grown(self.lessons(block)?).arms(plan)?)
    }

    /// What the runs of earlier blocks learned, in the order of the plan.
    fn lessons(&self, before: u32) -> Result<Vec<Lesson>, ExecuteError> {
        let mut earlier: Vec<(u64, RunId)> = runs(self.ledger().entries())
            .filter(|run| run.is_final && run.block < before)
            .map(|run| (run.planned, run.run_id.clone()))
            .collect();
        earlier.sort();
        let mut lessons = Vec::new();
        for (planned, run) in earlier {
            let missing = || ExecuteError::NoRecord(run.clone());
            let record = self.base.store.record(&run)?.ok_or_else(missing)?;
            let slot = self.slots.iter().find(|slot| slot.planned == planned);
            let scenario = slot.and_then(|slot| self.scenarios.get(&slot.cell.scenario));
            if let Some((scenario, _)) = scenario {
                lessons.extend(lesson(&self.base, scenario, record));
            }
        }
        Ok(lessons)
    }
}

/// What a run's record teaches, as a run outside an experiment would with `--learn`.
fn lesson(base: &Setting, scenario: &Scenario, record: Record) -> Option<Lesson> {
    let scored = score::score(scenario, &record, &base.rubric, &base.vocabulary).ok()?;
    if record.state != RunState::Scored {
        return None;
    }
    Some(Lesson {
        postmortem: record.postmortem?,
        source: Source::Scenario,
        outcome: scored.outcome,
        mechanism: scenario.mechanism.clone(),
        scenario_id: Some(record.scenario_id),
        run_id: Some(record.run_id),
        recorded_at: record.ran_at,
        quarantined: false,
        review: scored.review.contains(&Review::ChannelDisagreement),
    })
}

fn base(
    materials: &Materials<'_>,
    plan: &Plan,
    corpus: &Corpus,
    rubric: &str,
) -> Result<Setting, ExecuteError> {
    let rubric: Rubric = materials.library.rubric(rubric)?.clone();
    let vocabulary: Vocabulary = materials.library.vocabulary().clone();
    let arms = corpus.arms(plan)?;
    let nothing = || ExecuteError::Incomplete("no arm".to_owned());
    let any = arms.first().ok_or_else(nothing)?;
    Ok(Setting {
        store: materials.store.clone(),
        vocabulary: Arc::new(vocabulary),
        fixtures: materials.fixtures.clone(),
        rubric,
        embedder: any.embedder.clone(),
        policy: crate::experience::policy::Policy::off(any.embedder.as_ref()),
        snapshot: any.snapshot.clone(),
        // New postmortems are kept in quarantine; a growing corpus reads them from the records.
        learn: false,
        prometheus: None,
        interrupted: materials.interrupted.clone(),
    })
}
