//! `breakage experiment`: registered experiments, from the plan to the report.

mod amend;
mod analyze;
mod finish;
mod init;
mod lock;
mod plan_file;
mod plan_text;
mod power;
mod report;
mod run;
mod show;
mod status;
mod transfer;
mod verify;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

pub(in crate::cli) use crate::cli::experiment::report::write as write_report;
pub(in crate::cli) use crate::cli::experiment::status::FOLDER;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::config::Workspace;
use crate::experiment::locked::{FindError, Locked};
use crate::store::Store;

/// Lock, run, analyse and verify registered experiments
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Init(init::Args),
    Power(power::Args),
    Lock(lock::Args),
    Amend(amend::Args),
    Run(run::Args),
    Finish(finish::Args),
    List(show::ListArgs),
    Show(view::Args),
    Status(status::Args),
    Verify(verify::Args),
    Analyze(analyze::Args),
    Report(report::Args),
    Export(transfer::ExportArgs),
    Import(transfer::ImportArgs),
}

impl Args {
    /// Whether the command leaves the store as it is, but for a look or a broken seal. A bundle is read by whoever has its
    /// file, and reports are written where they are asked for.
    pub fn only_reads(&self) -> bool {
        match &self.command {
            Command::List(_) | Command::Show(_) | Command::Status(_) | Command::Analyze(_) => true,
            Command::Verify(args) => !args.names_a_file(),
            _ => false,
        }
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Init(args) => init::run(context, args),
        Command::Power(args) => power::run(context, args),
        Command::Lock(args) => lock::run(context, args),
        Command::Amend(args) => amend::run(context, args),
        Command::Run(args) => run::run(context, args),
        Command::Finish(args) => finish::run(context, args),
        Command::List(args) => show::list(context, args),
        Command::Show(args) => view::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Analyze(args) => analyze::run(context, args),
        Command::Report(args) => report::run(context, args),
        Command::Export(args) => transfer::export(context, args),
        Command::Import(args) => transfer::import(context, args),
    }
}

/// The store of a command that only reads; without one there is no experiment.
pub(in crate::cli) fn reading(context: &Context) -> Result<Arc<Store>, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    context.existing_store(&workspace)?.ok_or_else(|| {
        Failure::input(anyhow::anyhow!(
            "{} holds no experiments yet",
            workspace.folder().display()
        ))
        .hint("breakage experiment lock PLAN.yaml")
    })
}

/// The registration that a person means.
pub(in crate::cli) fn find(store: &Store, text: &str) -> Result<Locked, Failure> {
    Locked::find(store, text).map_err(|error| {
        let hint = match &error {
            FindError::Altered(hash) => {
                format!("breakage experiment verify {hash} names what was altered")
            }
            FindError::Ambiguous { .. } => "name more of the hash".to_owned(),
            FindError::Unreadable { .. } => {
                "a newer breakage may have locked it; use that one".to_owned()
            }
            FindError::Unknown(_) | FindError::Store(_) => {
                "breakage experiment list shows what is locked".to_owned()
            }
        };
        Failure::input(error).hint(hint)
    })
}

/// The wall clock's time, for display only.
pub(in crate::cli) fn now_text() -> String {
    let second = jiff::Timestamp::now().as_second();
    jiff::Timestamp::from_second(second).map_or_else(|_| String::new(), |now| now.to_string())
}
