//! `breakage experiment list`: what is locked in the workspace.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::Context;
use crate::cli::experiment::reading;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::experiment::ledger::chain;
use crate::experiment::locked::{Locked, short};
use crate::experiment::status::Progress;

/// List the locked experiments of the workspace
#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn list(context: &Context, args: &ListArgs) -> Result<ExitCode, Failure> {
    let store = reading(context)?;
    let mut rows = Vec::new();
    for (hash, text) in store.registrations().map_err(Failure::input)? {
        rows.push(match Locked::read(&hash, &text) {
            Ok(locked) => {
                let entries = chain::read(&store, &locked.hash);
                let plan = &locked.registration.plan;
                let progress = entries.ok().map(|entries| Progress::of(plan, &entries));
                (hash, plan.id.to_string(), plan.title.clone(), progress)
            }
            Err(error) => (hash, "?".to_owned(), error.to_string(), None),
        });
    }
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(hash, id, title, progress)| {
                json!({"registration": hash, "id": id, "title": title, "progress": progress})
            })
            .collect();
        context.output.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        context.output.print(
            "No experiments yet. Start with: breakage experiment init falsification > my.yaml",
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Output::table_keeping(&["hash", "id", "runs", "state", "title"], &[0, 1]);
    for (hash, id, title, progress) in &rows {
        let (runs, state) = match progress {
            Some(progress) => (
                format!("{} of {}", progress.ended, progress.planned),
                state(progress),
            ),
            None => ("-".to_owned(), "damaged"),
        };
        table.add_row([&short(hash), id, &runs, state, title]);
    }
    context.output.print(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Where an experiment stands, in a word.
pub(super) fn state(progress: &Progress) -> &'static str {
    if progress.amended_to.is_some() {
        "amended"
    } else if progress.finished {
        "finished"
    } else if progress.ended > 0 {
        "begun"
    } else {
        "locked"
    }
}
