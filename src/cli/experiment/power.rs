//! `breakage experiment power`: what a plan's size can show, before anything is locked.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::Context;
use crate::cli::experiment::{plan_file, plan_text};
use crate::cli::failure::Failure;
use crate::experiment::matrix::operating;
use crate::experiment::power;

/// Show what a plan's size can and cannot show: power, smallest effect, type S and M errors, rows of the matrix
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:  breakage experiment power my.yaml")]
pub struct Args {
    /// The plan
    #[arg(value_name = "PLAN.yaml")]
    pub plan: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let (loaded, _) = plan_file::open(context, &args.plan)?;
    let plan = &loaded.plan;
    let forecast = power::forecast(plan);
    let operating = operating::characteristics(plan).map_err(Failure::internal)?;
    if args.json {
        context.output.json(&json!({
            "id": plan.id, "power": forecast, "operating": operating,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    context.output.print(&format!(
        "{}\n\n{}",
        plan_text::power(&forecast),
        plan_text::operating(plan, &operating)
    ))?;
    for warning in &forecast.warnings {
        context.output.note(&format!("warning: {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}
