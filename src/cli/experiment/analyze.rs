//! `breakage experiment analyze`: what the ledger says, in short. `report` has everything.

use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Context;
use crate::cli::experiment::{find, now_text, reading};
use crate::cli::failure::Failure;
use crate::config::Workspace;
use crate::experiment::analysis::blind::{analyze_blinded, is_blinded};
use crate::experiment::analysis::model::Analysis;
use crate::experiment::analysis::{AnalysisError, analyze};
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain::{self, Ledger};
use crate::experiment::locked::Locked;
use crate::experiment::seal::{self, Seal, SealError};
use crate::report::experiment;
use crate::store::Store;

/// Compute what an experiment says from its registration and its ledger, and nothing else
///
/// The same ledger gives the same bytes. Scores are sealed until the last run has ended, or a registered look is due.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment analyze my-experiment
  breakage experiment analyze 4b1f0d2c --json > analysis.json
  breakage experiment report 4b1f0d2c --format html --open      everything, with plots")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// Print everything as JSON, unrounded
    #[arg(long)]
    pub json: bool,
    /// Read the scores before the end; the ledger says so for ever, and whatever is reported is exploratory
    #[arg(long)]
    pub unseal: bool,
    /// Name the arms of a blinded plan; the ledger says so for ever
    #[arg(long)]
    pub unblind: bool,
}

/// What a reader asks for beyond what is open to everybody.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cli) struct Asked {
    pub unseal: bool,
    pub unblind: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let asked = Asked {
        unseal: args.unseal,
        unblind: args.unblind,
    };
    let analysis = analysis(context, &args.experiment, "experiment analyze", asked)?;
    let text = match args.json {
        true => experiment::json(&analysis),
        false => experiment::summary(&analysis),
    };
    context.output.print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Analyses an experiment as far as its seal allows. `command` is what the ledger calls the reader.
pub(in crate::cli) fn analysis(
    context: &Context,
    experiment: &str,
    command: &str,
    asked: Asked,
) -> Result<Analysis, Failure> {
    let store = reading(context)?;
    let locked = find(&store, experiment)?;
    let entries = chain::read(&store, &locked.hash).map_err(Failure::input)?;
    let blinded = is_blinded(&locked.registration, &entries);
    let seal = seal::seal(&store, &locked.registration.plan, &entries).map_err(Failure::input)?;
    let store = match seal {
        // Nothing is written, so that a report of a finished experiment needs no right to.
        Seal::Open if !(asked.unblind && blinded) => store,
        Seal::Closed if !asked.unseal => store,
        Seal::Open | Seal::Look { .. } | Seal::Closed => {
            drop(store);
            writing(context)?
        }
    };
    let mut ledger =
        Ledger::open(store, locked.hash.clone()).map_err(|error| damaged(error.into(), &locked))?;
    let opened = seal::open(&mut ledger, &locked, command, asked.unseal, now_text)
        .map_err(|error| damaged(error, &locked))?;
    let (hash, registration) = (&locked.hash, &locked.registration);
    let found = if !blinded {
        analyze(hash, registration, &opened.entries)
    } else if asked.unblind {
        let command = command.to_owned();
        ledger
            .append(now_text(), Event::Unblinded { command })
            .map_err(|error| damaged(error.into(), &locked))?;
        let mut entries = opened.entries;
        entries.extend(ledger.entries().last().cloned());
        analyze(hash, registration, &entries)
    } else {
        analyze_blinded(hash, registration, &opened.entries)
    };
    found.map_err(|error| {
        let hint = match error {
            AnalysisError::NoBlock => format!("breakage experiment run {}", locked.short()),
            AnalysisError::NoTreatment(_) => {
                "add a second arm to the plan and lock it again".to_owned()
            }
        };
        Failure::input(error).hint(hint)
    })
}

/// A store that the ledger can be added to.
fn writing(context: &Context) -> Result<Arc<Store>, Failure> {
    if let Some(held) = &context.held {
        return Ok(held.clone());
    }
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    Ok(Arc::new(workspace.store().map_err(Failure::input)?))
}

fn damaged(error: SealError, locked: &Locked) -> Failure {
    let hint = match &error {
        SealError::Sealed { .. } => format!(
            "breakage experiment run {} goes on with it; --unseal shows the scores now, which the ledger then tells \
             for ever and which makes the report exploratory",
            locked.short()
        ),
        SealError::Ledger(_) => format!(
            "breakage experiment verify {} names what is wrong",
            locked.short()
        ),
    };
    Failure::input(error).hint(hint)
}
