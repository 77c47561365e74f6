//! The command line: one file per command, one place for failures and one for output.
//!
//! Commands parse flags into domain types and call the library; nothing here computes a verdict.

pub mod calibrate;
pub mod cluster;
pub mod completions;
pub mod context;
pub mod corpus;
pub mod demo;
pub mod destination;
pub mod doctor;
pub mod experiment;
pub mod failure;
pub mod fixture;
pub mod health;
pub mod init;
pub mod interrupt;
pub mod output;
mod owner;
pub mod pitfalls;
// Commands print what people and agents wrote by the same rules as reports.
pub use crate::report::printable;
pub mod prometheus;
pub mod recovery;
pub mod reproduce;
pub mod run;
pub mod runs;
pub mod scenario;
pub mod scorecard;
pub mod stats;
pub mod vocab;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::TypedValueParser;
use clap::{Parser, Subcommand};

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::config::Workspace;
use crate::store::Store;

/// Break a Kubernetes cluster in a known way, let an agent respond, score it against the truth.
///
/// Without a cluster, a model or a key:  breakage demo
/// One fault, one agent, one score:       breakage run secret-missing-key-advocate
#[derive(Parser, Debug)]
#[command(
    name = "breakage",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done; 1 wrong usage or input; 2 finished, but not as it should be (below a threshold, a check of qualify, verify, calibrate or reproduce); \
                  3 runs that do not count (framework errors) or no cluster; 70 a defect of breakage; 130 interrupted (Ctrl-C or SIGTERM; \
                  the fault is undone first)."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(clap::Args, Debug, Clone)]
pub struct Global {
    /// Folder with the experience base, records and overriding files
    /// [default: the nearest .breakage/ upwards, else the user's data folder]
    // An empty variable counts as unset, so the parser lets an empty text through to `Workspace::locate`.
    #[arg(
        long,
        global = true,
        env = "BREAKAGE_WORKSPACE",
        value_name = "DIR",
        value_parser = clap::builder::OsStringValueParser::new().map(PathBuf::from)
    )]
    pub workspace: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Create a workspace and write the built-in files into it to edit
    Init(init::Args),
    Calibrate(calibrate::Args),
    Cluster(cluster::Args),
    Corpus(corpus::Args),
    Experiment(experiment::Args),
    Demo(demo::Args),
    Fixture(fixture::Args),
    Doctor(doctor::Args),
    Run(Box<run::Args>),
    Runs(runs::Args),
    Scorecard(scorecard::Args),
    Pitfalls(pitfalls::Args),
    Health(health::Args),
    Reproduce(reproduce::Args),
    /// List, show, validate, qualify and begin scenarios
    Scenario(scenario::Args),
    Stats(stats::Args),
    /// List the vocabulary of root causes
    Vocab(vocab::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// What commands need from their surroundings.
pub struct Context {
    pub global: Global,
    pub output: Output,
    /// The store that this process has open already, for commands that it answers for another one.
    pub held: Option<Arc<Store>>,
}

impl Context {
    /// The workspace's store for a command that only reads; nothing when there is none.
    pub fn existing_store(&self, workspace: &Workspace) -> Result<Option<Arc<Store>>, Failure> {
        if let Some(held) = &self.held {
            return Ok(Some(held.clone()));
        }
        let store = workspace.existing_store().map_err(Failure::input)?;
        Ok(store.map(Arc::new))
    }
}

/// Parses the arguments, runs the command, prints a failure, answers the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors; clap prints them to stdout itself.
            let code = if error.use_stderr() {
                failure::USAGE
            } else {
                0
            };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    if let Some(code) = owner::answered(&cli) {
        return code;
    }
    let context = Context {
        global: cli.global,
        output: Output::detect(),
        held: None,
    };
    match dispatch(&context, cli.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(context: &Context, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Init(args) => init::run(context, &args),
        Command::Calibrate(args) => calibrate::run(context, &args),
        Command::Cluster(args) => cluster::run(context, &args),
        Command::Corpus(args) => corpus::run(context, &args),
        Command::Experiment(args) => experiment::run(context, &args),
        Command::Demo(args) => demo::run(context, &args),
        Command::Fixture(args) => fixture::run(context, &args),
        Command::Doctor(args) => doctor::run(context, &args),
        Command::Run(args) => run::run(context, &args),
        Command::Runs(args) => runs::run(context, &args),
        Command::Scorecard(args) => scorecard::run(context, &args),
        Command::Pitfalls(args) => pitfalls::run(context, &args),
        Command::Health(args) => health::run(context, &args),
        Command::Reproduce(args) => reproduce::run(context, &args),
        Command::Scenario(args) => scenario::run(context, &args),
        Command::Stats(args) => stats::run(context, &args),
        Command::Vocab(args) => vocab::run(context, &args),
        Command::Completions(args) => completions::run(context, &args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
