//! `breakage stats eval`: cases of the golden file's shape through the core.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::failure::{Failure, USAGE};
use crate::cli::stats::read;
use crate::report::cases;

/// Compute a file of cases `{id, inputs}` and print `[{id, actual}]`
///
/// The file is a list of cases or an object with a list `cases`; `expected`, tolerances and notes are passed over. What is
/// computed follows from the part of the id before the `/`. A case that cannot be computed has `error` in place of
/// `actual`, and the exit code is 1.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: breakage stats eval cases.json\n\n  \
    [{\"id\": \"welch/mine\", \"inputs\": {\"x\": [0.91, 0.7], \"y\": [0.5, 0.7]}}]")]
pub struct Args {
    /// JSON; `-` reads standard input
    #[arg(value_name = "CASES.json")]
    file: PathBuf,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let text = read(&args.file)?;
    let outcomes = cases::evaluate(&text).map_err(|error| {
        Failure::input(anyhow::Error::new(error).context(args.file.display().to_string()))
            .hint("write a list of {\"id\": ..., \"inputs\": {...}}; JSON has no NaN")
    })?;
    context.output.json(&outcomes)?;
    let failed = outcomes.iter().filter(|o| o.error.is_some()).count();
    if failed > 0 {
        context.output.note(&format!(
            "{failed} of {} cases could not be computed; see their `error`",
            outcomes.len()
        ));
        return Ok(ExitCode::from(USAGE));
    }
    Ok(ExitCode::SUCCESS)
}
