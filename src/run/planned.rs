//! What a command set out to do, on disk before its first request, so that every planned run ends in exactly one record.
//!
//! One plan stands for all repetitions of a command: it holds the first run's blank record, from which the others
//! follow, for they differ by their seed alone. A run's record and its end in the plan are one commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, Seed};
use crate::inject::journal::Place;
use crate::record::{FrameworkCode, Record, RunState};
use crate::run::identity;
use crate::store::{Batch, Store, StoreError};

/// Version of a plan's JSON.
const FORMAT: u32 = 1;

/// Runs of one scenario that count their seeds up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub format: u32,
    pub place: Place,
    /// What the record of the first run would be, had nothing happened in it.
    pub record: Record,
    pub count: u64,
    /// The runs before this one have come to their end, except those that are missing.
    pub ended: u64,
    /// Runs whose record could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u64>,
    /// Whether its runs leave records.
    #[serde(default, skip_serializing_if = "Keeping::is_records")]
    pub keeping: Keeping,
    /// The run that is under way. Noted only for clusters that outlive the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<u64>,
}

/// What runs of a plan leave in the store once they have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// A record each, and postmortems.
    #[default]
    Records,
    /// Nothing: they are evidence for a qualification, which is kept by itself.
    Nothing,
}

impl Keeping {
    fn is_records(&self) -> bool {
        *self == Keeping::Records
    }
}

impl Planned {
    pub fn new(place: Place, record: Record, count: u64) -> Planned {
        Planned {
            format: FORMAT,
            place,
            record,
            count,
            ended: 0,
            missing: Vec::new(),
            keeping: Keeping::Records,
            begun: None,
        }
    }

    /// With its first run under way from the moment that the plan is on disk, wherever it takes place.
    pub fn begun_at_once(mut self) -> Planned {
        self.begun = Some(0);
        self
    }

    pub fn keeping(mut self, keeping: Keeping) -> Planned {
        self.keeping = keeping;
        self
    }

    /// The first run's id and how many there are.
    pub fn id(&self) -> String {
        format!("{}+{}", self.record.run_id, self.count)
    }

    fn seed(&self, index: u64) -> Seed {
        identity::repetition_seed(self.record.seed, index)
    }

    /// The id of a run of the plan.
    pub fn run_id(&self, index: u64) -> RunId {
        identity::with_seed(
            &self.record.run_id,
            &self.record.scenario_id,
            self.seed(index),
        )
    }

    /// The runs without a record, with whether they may have been begun.
    pub fn open(&self) -> impl Iterator<Item = (u64, bool)> {
        let missing = self.missing.iter().map(|index| (*index, true));
        missing.chain((self.ended..self.count).map(|index| (index, self.begun == Some(index))))
    }

    /// The record of a run that was cut off.
    pub fn crashed(&self, index: u64, ran_at: Option<String>, message: &str) -> Record {
        let mut record = self.blank(index, ran_at);
        record.state = RunState::FrameworkError {
            code: FrameworkCode::Crashed,
            message: message.to_owned(),
        };
        record
    }

    /// The record of a run that never began. It leaves the scenario's text out: there is nothing to be scored.
    pub fn not_run(&self, index: u64, ran_at: Option<String>, reason: &str) -> Record {
        let mut record = self.blank(index, ran_at);
        record.scenario_text.clear();
        record.state = RunState::NotRun {
            reason: reason.to_owned(),
        };
        record
    }

    fn blank(&self, index: u64, ran_at: Option<String>) -> Record {
        let mut record = self.record.clone();
        record.seed = self.seed(index);
        record.run_id = self.run_id(index);
        record.incident_id = identity::incident_id(&record.scenario_id, record.seed);
        if let Some(ran_at) = ran_at {
            record.ran_at = ran_at;
        }
        record
    }

    /// The plan once a run of it has its record; nothing when it was the last.
    fn after(&self, index: u64) -> Option<Planned> {
        let mut next = self.clone();
        next.missing.retain(|missing| *missing != index);
        if index >= next.ended {
            next.missing.extend(next.ended..index);
            next.ended = index + 1;
        }
        next.begun = None;
        (next.ended < next.count || !next.missing.is_empty()).then_some(next)
    }

    /// Every plan that has not come to its end.
    pub fn all(store: &Store) -> Result<Vec<Planned>, StoreError> {
        let plans = store.planned::<Planned>()?;
        Ok(plans.into_iter().map(|(_, plan)| plan).collect())
    }
}

/// A plan while it is carried out.
pub struct Undertaking {
    store: Arc<Store>,
    id: String,
    /// Nothing once every run has its record.
    plan: Mutex<Option<Planned>>,
}

impl Undertaking {
    /// Puts the plan on disk.
    pub fn begin(store: Arc<Store>, plan: Planned) -> Result<Undertaking, StoreError> {
        let id = plan.id();
        store.put_planned(&id, &plan)?;
        Ok(Undertaking {
            store,
            id,
            plan: Mutex::new(Some(plan)),
        })
    }

    /// What its runs leave.
    pub fn keeping(&self) -> Keeping {
        self.plan()
            .as_ref()
            .map_or_else(Keeping::default, |plan| plan.keeping)
    }

    /// Notes that a run begins, where that must outlive the process.
    pub fn begun(&self, index: u64) -> Result<(), StoreError> {
        let mut plan = self.plan();
        let Some(plan) = plan.as_mut().filter(|plan| !plan.place.ends_with_process) else {
            return Ok(());
        };
        let mut next = plan.clone();
        next.begun = Some(index);
        self.store.put_planned(&self.id, &next)?;
        *plan = next;
        Ok(())
    }

    /// Writes a batch that holds a run's record, and with it the run's end.
    pub fn end(&self, index: u64, mut batch: Batch) -> Result<(), StoreError> {
        let mut plan = self.plan();
        let next = plan.as_ref().and_then(|plan| plan.after(index));
        self.put(&next, &mut batch)?;
        self.store.write(&batch)?;
        *plan = next;
        Ok(())
    }

    /// Gives every run that never began its record. Answers how many there were.
    pub fn close(
        &self,
        ran_at: impl Fn(Seed) -> Option<String>,
        reason: &str,
    ) -> Result<u64, StoreError> {
        let mut plan = self.plan();
        let Some(open) = plan.as_ref() else {
            return Ok(0);
        };
        let mut batch = Batch::default();
        if open.keeping == Keeping::Records {
            for index in open.ended..open.count {
                batch.record(&open.not_run(index, ran_at(open.seed(index)), reason))?;
            }
        }
        let left = open.count - open.ended;
        let mut next = open.clone();
        next.ended = next.count;
        let next = (!next.missing.is_empty()).then_some(next);
        self.put(&next, &mut batch)?;
        self.store.write(&batch)?;
        *plan = next;
        Ok(left)
    }

    fn put(&self, next: &Option<Planned>, batch: &mut Batch) -> Result<(), StoreError> {
        match next {
            Some(next) => batch.put_planned(&self.id, next),
            None => {
                batch.erase_planned(&self.id);
                Ok(())
            }
        }
    }

    fn plan(&self) -> MutexGuard<'_, Option<Planned>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
