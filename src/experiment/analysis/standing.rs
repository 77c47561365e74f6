//! Whether the result may be called confirmatory, and every departure from the plan.

use std::collections::BTreeSet;

use crate::experiment::analysis::model::Standing;
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::plan::Plan;
use crate::ids::RegistrationHash;

pub(super) fn standing(hash: &RegistrationHash, plan: &Plan, entries: &[Entry]) -> Standing {
    let mut because = Vec::new();
    let (mut looks, mut deviations, mut amendments) = (Vec::new(), Vec::new(), Vec::new());
    let mut complete = false;
    for entry in entries {
        match &entry.event {
            Event::Looked { what, planned } => {
                looks.push(format!("{what} ({})", entry.at));
                if !planned {
                    because.push(format!(
                        "an unplanned look at the scores: {what} ({})",
                        entry.at
                    ));
                }
            }
            Event::Unsealed { command } => {
                looks.push(format!("{command} ({})", entry.at));
                because.push(format!(
                    "the scores were unsealed by `{command}` ({})",
                    entry.at
                ));
            }
            Event::Deviation { text } => deviations.push(format!("{text} ({})", entry.at)),
            Event::Amended { to, reason } => {
                amendments.push(format!("{} amended to {to}: {reason}", entry.at));
                because.push(format!(
                    "the plan was amended ({}): {reason}; what came before and after is not joined",
                    entry.at
                ));
            }
            Event::Finished { reason } => {
                complete = true;
                if let Some(reason) = reason {
                    because.push(format!(
                        "the experiment was stopped before its last block: {reason}"
                    ));
                }
            }
            Event::Unblinded { command } => {
                looks.push(format!("arms named by `{command}` ({})", entry.at));
            }
            Event::Locked { .. } | Event::Started { .. } | Event::Ran(_) => {}
        }
    }
    let (ended_runs, complete_blocks) = ended(plan, entries);
    let planned_runs = plan.cells().len() as u64 * u64::from(plan.blocks);
    if !complete {
        let planned = looks.len();
        let registered = plan.looks.contains(&complete_blocks);
        if !registered || planned == 0 {
            because.push(format!(
                "the experiment goes on: {ended_runs} of {planned_runs} runs have ended"
            ));
        }
    } else if ended_runs < planned_runs {
        because.push(format!(
            "{ended_runs} of {planned_runs} planned runs have an end"
        ));
    }
    let short: String = hash.as_str().chars().take(12).collect();
    Standing {
        confirmatory: because.is_empty(),
        exploratory_because: because,
        looks_registered: plan.looks.clone(),
        looks_taken: looks,
        deviations,
        amendments,
        complete,
        planned_runs,
        ended_runs,
        complete_blocks,
        ledger_head: entries
            .last()
            .map_or_else(String::new, |entry| entry.hash.clone()),
        reanalysis: format!("breakage experiment analyze {short} --json"),
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
