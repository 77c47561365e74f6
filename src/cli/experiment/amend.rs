//! `breakage experiment amend`: another plan in the place of a locked one, dated and with a reason.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::experiment::{find, lock, plan_file};
use crate::cli::failure::Failure;
use crate::cli::printable;
use crate::experiment::amend;
use crate::experiment::locked::short;

/// Amend a locked plan: the change is dated with its reason, and the data are split at it
///
/// Runs up to here stay with the old registration and are never pooled with those of the new one, which begins at its first
/// block.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:
  breakage experiment amend 3f2a my.yaml --reason \"readiness scenario replaced: its fixture changed\"")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// The new plan, with the same id
    #[arg(value_name = "PLAN.yaml")]
    pub plan: PathBuf,
    /// Why; it is printed with every report
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let (loaded, library) = plan_file::open(context, &args.plan)?;
    let place = plan_file::place(context)?;
    let old = find(&place.store, &args.experiment)?;
    let mut resolved = plan_file::resolve(context, &place, &loaded, &library)?;
    let provenance = plan_file::provenance(&place.workspace);
    let amended = amend::amend(&place.store, &old, &resolved, &args.reason, &provenance)
        .map_err(|error| plan_file::failure(error, Some(&args.plan)))?;
    resolved.registration.amends = Some(old.hash.to_string());
    let note = format!(
        "amends {} ({} run(s) stay with it):\n  {}\nlocked",
        short(old.hash.as_str()),
        amended.runs_before,
        amended
            .differences
            .iter()
            .map(|one| printable::line(one))
            .collect::<Vec<_>>()
            .join("\n  ")
    );
    lock::told(
        context,
        &place,
        &resolved,
        &amended.locked,
        &note,
        args.json,
    )?;
    Ok(ExitCode::SUCCESS)
}
