//! `breakage scorecard`, and the runs that it, `pitfalls` and `health` read.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::experiment::write_report;
use crate::cli::failure::Failure;
use crate::cli::runs::{rescore, scenario_of};
use crate::cli::scenario::open_library;
use crate::config::Workspace;
use crate::experiment::seal;
use crate::ids::CategoryId;
use crate::record::Record;
use crate::report::observed;
use crate::report::scorecard::{Run, scorecard};
use crate::score::Score;

/// What recorded runs earned, by scenario and by category: observation, not experiment
///
/// Runs stand in one row only where agent, version, cluster, rubric and breakage are the same. Our own failures are counted
/// apart. Runs of experiments whose scores are sealed are left out and counted.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage scorecard
  breakage scorecard --agent rules --json
  breakage scorecard --format html --output scorecard.html")]
pub struct Args {
    /// Only runs of this agent, as `breakage runs list` names it
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// text (when not given), md or html
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,
    /// Write to a file instead of printing
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Md,
    Html,
}

impl From<Format> for observed::Format {
    fn from(format: Format) -> observed::Format {
        match format {
            Format::Text => observed::Format::Text,
            Format::Md => observed::Format::Markdown,
            Format::Html => observed::Format::Html,
        }
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let recorded = Recorded::read(context, args.agent.as_deref())?;
    let card = scorecard(&recorded.runs(), recorded.left_out_sealed);
    let text = match args.json {
        true => serde_json::to_string_pretty(&card).map_err(Failure::internal)?,
        false => observed::scorecard(&card, args.format.unwrap_or(Format::Text).into()),
    };
    match &args.output {
        Some(file) => write_report(file, &text)?,
        None => context.output.print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The records of a workspace with their scores, those of sealed experiments left out.
pub(in crate::cli) struct Recorded {
    rows: Vec<(Record, Option<Score>, Option<CategoryId>)>,
    pub(in crate::cli) left_out_sealed: u32,
}

impl Recorded {
    pub(in crate::cli) fn read(
        context: &Context,
        agent: Option<&str>,
    ) -> Result<Recorded, Failure> {
        let workspace =
            Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
        let library = open_library(context)?;
        let mut recorded = Recorded {
            rows: Vec::new(),
            left_out_sealed: 0,
        };
        let Some(store) = context.existing_store(&workspace)? else {
            return Ok(recorded);
        };
        let sealed = seal::sealed(&store).map_err(Failure::input)?;
        let records = store.records().map_err(Failure::input)?;
        let all = records.len() as u64;
        let progress = context.output.progress(all, "scoring");
        for record in records {
            progress.inc(1);
            if agent.is_some_and(|agent| record.agent.name != agent) {
                continue;
            }
            let member = record.experiment.as_ref();
            if member.is_some_and(|one| sealed.contains(&one.registration)) {
                recorded.left_out_sealed += 1;
                continue;
            }
            let rubric = record.rubric.to_string();
            // A record whose rubric, vocabulary or scenario is not here any more still counts as a run.
            let score = rescore(&library, &record, &rubric).ok().flatten();
            let scenario = scenario_of(&library, &record).ok();
            let category = scenario.map(|one| one.ground_truth.primary_category);
            recorded.rows.push((record, score, category));
        }
        progress.finish_and_clear();
        if let (Some(agent), true, true) = (
            agent,
            recorded.rows.is_empty(),
            recorded.left_out_sealed == 0,
        ) {
            return Err(
                Failure::input(anyhow::anyhow!("no recorded run is by agent {agent:?}"))
                    .hint("breakage runs list shows the agents' names"),
            );
        }
        Ok(recorded)
    }

    pub(in crate::cli) fn runs(&self) -> Vec<Run<'_>> {
        self.rows
            .iter()
            .map(|(record, score, category)| Run {
                record,
                score: score.as_ref(),
                category: category.as_ref(),
            })
            .collect()
    }
}
