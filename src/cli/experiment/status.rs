//! `breakage experiment status`: how far an experiment has come, and the file that says so while it runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;

use crate::cli::Context;
use crate::cli::experiment::{find, reading, show};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::experiment::ledger::chain;
use crate::experiment::locked::{Locked, short};
use crate::experiment::status::Progress;
use crate::ids::{ExperimentId, RegistrationHash};

/// The folder of a workspace in which experiments leave files.
pub(in crate::cli) const FOLDER: &str = "experiments";

/// Tell how far an experiment has come: counts and our own failures, never a score
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment status my-experiment
  breakage experiment status 3f2a --json")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What the file and `--json` hold.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Status<'a> {
    pub registration: &'a RegistrationHash,
    pub id: &'a ExperimentId,
    pub progress: &'a Progress,
    /// The process that runs it, while one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where its runs take place, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<&'a str>,
    /// Seconds of wall time that the rest will take at the pace so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<u64>,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let store = reading(context)?;
    let locked = find(&store, &args.experiment)?;
    let entries = chain::read(&store, &locked.hash).map_err(Failure::input)?;
    let progress = Progress::of(&locked.registration.plan, &entries);
    if args.json {
        context.output.json(&Status {
            registration: &locked.hash,
            id: &locked.registration.plan.id,
            progress: &progress,
            pid: None,
            cluster: None,
            eta_s: None,
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    context.output.print(&text(&locked, &progress))?;
    Ok(ExitCode::SUCCESS)
}

/// An account of the progress for a person.
pub(super) fn text(locked: &Locked, progress: &Progress) -> String {
    let plan = &locked.registration.plan;
    let mut table = Output::table(&[]);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("experiment", format!("{} ({})", plan.id, plan.title));
    row("registration", locked.hash.to_string());
    row("state", show::state(progress).to_owned());
    row(
        "runs",
        format!("{} of {}", progress.ended, progress.planned),
    );
    row(
        "blocks",
        format!(
            "{} of {} complete",
            progress.blocks_complete, progress.blocks
        ),
    );
    for (state, count) in &progress.states {
        row(state, count.to_string());
    }
    for (code, count) in &progress.repeated {
        row(&format!("repeated after {code}"), count.to_string());
    }
    row("looks", progress.looks.to_string());
    row("seal broken", progress.unsealed.to_string());
    row("deviations", progress.deviations.to_string());
    if let Some(to) = &progress.amended_to {
        row("amended to", to.clone());
    }
    table.to_string()
}

/// The status file of a running experiment.
pub(super) struct StatusFile {
    path: PathBuf,
    cluster: String,
    began: Instant,
    /// Ended runs when this process took it up.
    before: u64,
}

impl StatusFile {
    pub(super) fn new(workspace: &Path, locked: &Locked, cluster: &str, before: u64) -> StatusFile {
        let folder = workspace.join(FOLDER).join(short(locked.hash.as_str()));
        StatusFile {
            path: folder.join("status.json"),
            cluster: cluster.to_owned(),
            began: Instant::now(),
            before,
        }
    }

    /// Seconds that the rest will take at the pace so far.
    pub(super) fn eta_s(&self, progress: &Progress) -> Option<u64> {
        let done = progress.ended.checked_sub(self.before).filter(|n| *n > 0)?;
        let left = progress.planned.saturating_sub(progress.ended);
        let each = self.began.elapsed().as_secs_f64() / done as f64;
        // A number of seconds far below what a u64 holds.
        Some((each * left as f64).ceil() as u64)
    }

    /// Writes the file whole or not at all. It is for people who look on: failing to write it fails nothing.
    pub(super) fn write(&self, locked: &Locked, progress: &Progress, running: bool) {
        let status = Status {
            registration: &locked.hash,
            id: &locked.registration.plan.id,
            progress,
            pid: running.then(std::process::id),
            cluster: running.then_some(self.cluster.as_str()),
            eta_s: self.eta_s(progress).filter(|_| running),
        };
        let _ = self.replace(&status);
    }

    fn replace(&self, status: &Status<'_>) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut draft = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(draft.as_file_mut(), status)?;
        draft.persist(&self.path)?;
        Ok(())
    }
}
