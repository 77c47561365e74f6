//! `breakage stats summary`: what each arm's scores are.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::stats::csv::Table;
use crate::stats::proportion::rule_of_three;
use crate::stats::sample::{MICRO, Sample};

/// Print n, mean, standard deviation and the score levels of each arm
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: breakage stats summary scores.csv\n\n  \
    arm,score\n  treatment,0.91\n  treatment,0.805\n  control,0.7")]
pub struct Args {
    /// CSV with columns `arm,score`, or one column per arm; `-` reads standard input
    #[arg(value_name = "SCORES.csv")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let table = Table::read(&args.file)?;
    let arms: Vec<(String, Sample)> = table
        .arms
        .into_iter()
        .map(|(arm, scores)| (arm, Sample::new(scores)))
        .collect();
    if args.json {
        let rows: Vec<_> = arms.iter().map(|(arm, sample)| row(arm, sample)).collect();
        context.output.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Output::table_keeping(&["arm", "n", "mean", "sd", "levels"], &[1, 2, 3]);
    let number = |value: Option<f64>| {
        value.map_or_else(
            || "not enough runs".to_owned(),
            |value| format!("{value:.6}"),
        )
    };
    for (arm, sample) in &arms {
        let levels: Vec<String> = sample
            .levels()
            .iter()
            .map(|(level, count)| format!("{} x{count}", *level as f64 / MICRO))
            .collect();
        rows.add_row([
            arm.clone(),
            sample.n().to_string(),
            number(sample.mean()),
            number(sample.sd()),
            levels.join("  "),
        ]);
    }
    context.output.print(&rows.to_string())?;
    for (arm, sample) in arms.iter().filter(|(_, s)| s.n() > 1 && s.is_constant()) {
        if let Some(bound) = rule_of_three(sample.n() as u64) {
            context.output.print(&format!(
                "{arm}: all {} scores are equal; up to {:.1} % of runs may still deviate (one-sided 95 %)",
                sample.n(),
                bound * 100.0
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Without what is not known of too few runs.
fn row(arm: &str, sample: &Sample) -> serde_json::Value {
    let levels: Vec<_> = sample
        .levels()
        .iter()
        .map(|(level, count)| json!({"score": *level as f64 / MICRO, "runs": count}))
        .collect();
    let mut row = json!({"arm": arm, "n": sample.n(), "levels": levels});
    let known = [
        ("mean", sample.mean()),
        ("sd", sample.sd()),
        (
            "deviating_runs_upper",
            rule_of_three(sample.n() as u64).filter(|_| sample.n() > 1 && sample.is_constant()),
        ),
    ];
    for (key, value) in known {
        if let Some(value) = value {
            row[key] = json!(value);
        }
    }
    row
}
