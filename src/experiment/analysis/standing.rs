//! Whether the result may be called confirmatory, and every departure from the plan.

use std::collections::BTreeSet;

use crate::experiment::analysis::model::Standing;
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::plan::Plan;
use crate::ids::RegistrationHash;

/// Digits of a hash that a person types.
const HASH_DIGITS: usize = 12;

pub(super) fn standing(hash: &RegistrationHash, plan: &Plan, entries: &[Entry]) -> Standing {
    let told = Told::by(entries);
    let (ended_runs, complete_blocks) = ended(plan, entries);
    let planned_runs = plan.cells().len() as u64 * u64::from(plan.blocks);
    let mut because = told.because;
    let at_a_look = plan.looks.contains(&complete_blocks) && !told.looks.is_empty();
    if told.complete && ended_runs < planned_runs {
        because.push(format!(
            "{ended_runs} of {planned_runs} planned runs have an end"
        ));
    } else if !told.complete && !at_a_look {
        because.push(format!(
            "the experiment goes on: {ended_runs} of {planned_runs} runs have ended"
        ));
    }
    let short: String = hash.as_str().chars().take(HASH_DIGITS).collect();
    Standing {
        confirmatory: because.is_empty(),
        exploratory_because: because,
        looks_registered: plan.looks.clone(),
        looks_taken: told.looks,
        deviations: told.deviations,
        amendments: told.amendments,
        complete: told.complete,
        planned_runs,
        ended_runs,
        complete_blocks,
        ledger_head: entries
            .last()
            .map_or_else(String::new, |entry| entry.hash.clone()),
        reanalysis: format!("breakage experiment analyze {short} --json"),
    }
}

/// What the ledger tells beside its runs.
#[derive(Default)]
struct Told {
    because: Vec<String>,
    looks: Vec<String>,
    deviations: Vec<String>,
    amendments: Vec<String>,
    complete: bool,
}

impl Told {
    fn by(entries: &[Entry]) -> Told {
        let mut told = Told::default();
        for entry in entries {
            told.take(&entry.event, &entry.at);
        }
        told
    }

    /// A departure from the plan that the result is not confirmatory with.
    fn depart(&mut self, what: String) {
        self.deviations.push(what.clone());
        self.because.push(what);
    }

    fn take(&mut self, event: &Event, at: &str) {
        match event {
            Event::Looked { what, planned } => {
                self.looks.push(format!("{what} ({at})"));
                if !planned {
                    self.depart(format!("an unplanned look at the scores: {what} ({at})"));
                }
            }
            Event::Unsealed { command } => {
                self.looks.push(format!("{command} ({at})"));
                self.depart(format!("the scores were unsealed by `{command}` ({at})"));
            }
            Event::Deviation { text } => self.deviations.push(format!("{text} ({at})")),
            Event::Amended { to, reason } => {
                self.amendments
                    .push(format!("{at} amended to {to}: {reason}"));
                self.because.push(format!(
                    "the plan was amended ({at}): {reason}; what came before and after is not joined"
                ));
            }
            Event::Amends {
                from,
                reason,
                runs_before,
                scores_read,
            } => {
                self.amendments.push(format!(
                    "{at} this plan took over from {from}: {reason}; the {runs_before} runs before it are no part of the result"
                ));
                if *scores_read {
                    self.because.push(format!(
                        "the plan was amended ({at}) after scores of the earlier one had been read"
                    ));
                }
            }
            Event::Finished { reason } => {
                self.complete = true;
                if let Some(reason) = reason {
                    self.depart(format!(
                        "the experiment was stopped before its last block: {reason}"
                    ));
                }
            }
            Event::Unblinded { command } => {
                self.looks.push(format!("arms named by `{command}` ({at})"));
            }
            Event::Locked { .. } | Event::Started { .. } | Event::Ran(_) => {}
        }
    }
}

/// Planned runs that have an end, and how many blocks from the first on are complete.
fn ended(plan: &Plan, entries: &[Entry]) -> (u64, u32) {
    let ended: BTreeSet<u64> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Ran(run) if run.is_final => Some(run.planned),
            _ => None,
        })
        .collect();
    let cells = plan.cells().len() as u64;
    let complete = (0..u64::from(plan.blocks))
        .take_while(|block| (block * cells..(block + 1) * cells).all(|run| ended.contains(&run)))
        .count();
    (
        ended.len() as u64,
        u32::try_from(complete).unwrap_or(u32::MAX),
    )
}
