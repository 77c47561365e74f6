//! `breakage pitfalls`: how runs do damage.

use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::scorecard::Recorded;
use crate::report::observed;
use crate::report::pitfalls::pitfalls;

/// How agents do damage: what they did around the first harmful write, by category
///
/// Looks through runs that regressed something or repaired at the cost of what the scenario protects. Every pattern
/// stands beside how often runs without damage have it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage pitfalls
  breakage pitfalls --json
  breakage runs show RUN      one of the examples")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let recorded = Recorded::read(context, None)?;
    let found = pitfalls(&recorded.runs(), recorded.left_out_sealed);
    match args.json {
        true => context.output.json(&found)?,
        false => context.output.print(&observed::pitfalls(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}
