//! How far an experiment has come: counts, never an effect.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::ledger::{Entry, Event, RunEntry};
use crate::experiment::plan::Plan;

/// What may be told of a sealed experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub planned: u64,
    /// Planned runs that have come to their end.
    pub ended: u64,
    pub blocks: u32,
    /// Blocks of which every run has ended, from the first on without a gap.
    pub blocks_complete: u32,
    /// Ended runs by state, and for our own failures by code.
    pub states: BTreeMap<String, u64>,
    /// Attempts that are no outcome, by code.
    pub repeated: BTreeMap<String, u64>,
    pub virtual_ms: u64,
    pub finished: bool,
    /// The registration that took over, if the experiment was amended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amended_to: Option<String>,
    pub looks: u64,
    pub unsealed: u64,
    pub deviations: u64,
}

impl Progress {
    pub fn of(plan: &Plan, entries: &[Entry]) -> Progress {
        let cells = plan.cells().len() as u64;
        let mut progress = Progress {
            planned: cells * u64::from(plan.blocks),
            blocks: plan.blocks,
            ..Progress::default()
        };
        let mut in_block: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in entries {
            match &entry.event {
                Event::Ran(run) => {
                    progress.add(run);
                    *in_block.entry(run.block).or_default() += u64::from(run.is_final);
                }
                Event::Looked { .. } => progress.looks += 1,
                Event::Unsealed { .. } => progress.unsealed += 1,
                Event::Deviation { .. } => progress.deviations += 1,
                Event::Finished { .. } => progress.finished = true,
                Event::Amended { to, .. } => progress.amended_to = Some(to.to_string()),
                Event::Locked { .. }
                | Event::Started { .. }
                | Event::Amends { .. }
                | Event::Unblinded { .. } => {}
            }
        }
        let complete = (0..plan.blocks).take_while(|block| in_block.get(block) == Some(&cells));
        progress.blocks_complete = complete.count() as u32;
        progress
    }

    /// With one more attempt. Blocks are not counted here.
    pub fn add(&mut self, run: &RunEntry) {
        self.virtual_ms += run.virtual_ms;
        let state = match run.outcome.code() {
            Some(code) => code.as_str(),
            None => run.outcome.state(),
        };
        if run.is_final {
            self.ended += 1;
            *self.states.entry(state.to_owned()).or_default() += 1;
        } else {
            *self.repeated.entry(state.to_owned()).or_default() += 1;
        }
    }
}

/// The runs of a ledger, in its order.
pub fn runs(entries: &[Entry]) -> impl Iterator<Item = &RunEntry> {
    entries.iter().filter_map(|entry| match &entry.event {
        Event::Ran(run) => Some(run.as_ref()),
        _ => None,
    })
}
