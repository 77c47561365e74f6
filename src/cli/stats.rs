//! `breakage stats`: the statistics core as small tools, from CSV, from n, mean and standard deviation, or from a file of
//! cases.

mod csv;
mod eval;
mod power;
mod summary;
mod welch;

use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::failure::Failure;

/// Compare arms, plan sizes, summarise scores: the statistics core as small tools
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Welch(welch::Args),
    Power(power::Args),
    Summary(summary::Args),
    Eval(eval::Args),
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Welch(args) => welch::run(context, args),
        Command::Power(args) => power::run(context, args),
        Command::Summary(args) => summary::run(context, args),
        Command::Eval(args) => eval::run(context, args),
    }
}

/// p for a person: never 0, and no digits that nothing rests on.
fn p_text(p: f64) -> String {
    const PRINTED: f64 = 1e-12;
    if p < PRINTED {
        return "< 1e-12".to_owned();
    }
    if p < 1e-4 {
        return format!("{p:.2e}");
    }
    format!("{p:.6}")
}

/// The text of a file, `-` for standard input.
fn read(path: &std::path::Path) -> Result<String, Failure> {
    let read = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| {
        Failure::input(
            anyhow::Error::new(error).context(format!("{} cannot be read", path.display())),
        )
    })
}
