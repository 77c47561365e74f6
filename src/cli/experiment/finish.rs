//! `breakage experiment finish`: no further run comes, although not every planned one has ended.

use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Context;
use crate::cli::experiment::{find, now_text};
use crate::cli::failure::Failure;
use crate::config::Workspace;
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain::Ledger;
use crate::experiment::status::Progress;

/// End an experiment before its last run, for its budget or for safety and never for an effect
///
/// The scores are read after it, and the report says how many runs are missing and why. There is no way back.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:
  breakage experiment finish my-experiment --reason \"the budget of 200 runs is used up\"")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// Why, for the ledger and the report
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!("--reason is empty")));
    }
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = Arc::new(workspace.store().map_err(Failure::input)?);
    let locked = find(&store, &args.experiment)?;
    let mut ledger = Ledger::open(store, locked.hash.clone()).map_err(Failure::input)?;
    let progress = Progress::of(&locked.registration.plan, ledger.entries());
    let gone = match &progress.amended_to {
        _ if progress.finished => Some("finished already"),
        Some(_) => Some("amended: its amendment goes on"),
        None => None,
    };
    if let Some(gone) = gone {
        return Err(Failure::input(anyhow::anyhow!(
            "experiment {} is {gone}",
            locked.registration.plan.id
        )));
    }
    let event = Event::Finished {
        reason: Some(reason.to_owned()),
    };
    ledger.append(now_text(), event).map_err(Failure::input)?;
    context.output.note(&format!(
        "finished with {} of {} runs; breakage experiment report {} shows what they say",
        progress.ended,
        progress.planned,
        locked.short()
    ));
    Ok(ExitCode::SUCCESS)
}
