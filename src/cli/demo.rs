//! `breakage demo`: the falsification design from plan to report, on the embedded cluster, narrated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::cli::experiment::now_text;
use crate::cli::failure::{Failure, INTERRUPTED};
use crate::cli::output::Output;
use crate::cli::run::cores;
use crate::cli::scenario::open_library;
use crate::cli::{Context, interrupt};
use crate::config::Workspace;
use crate::experiment::analysis::analyze;
use crate::experiment::analysis::model::{Analysis, Comparison, Interval, Verdict};
use crate::experiment::matrix;
use crate::experiment::templates::template;
use crate::experiment::trial::Trial;
use crate::report;

/// Blocks of the published design.
const BLOCKS: u32 = 20;
const MIN_BLOCKS: i64 = 2;
/// More blocks than a demonstration needs; an experiment of your own takes any number.
const MAX_BLOCKS: i64 = 1000;

/// Run the falsification experiment once through, from registration to report, with a simulated agent
///
/// Does retrieval of past incidents make an agent better? 3 scenarios, 2 arms (retrieval on, retrieval off), 20 runs of each:
/// 120 whole runs on embedded clusters, in a quarter of a minute. The plan and its decision matrix are locked before the first
/// run. The agent is a simulation, so the answer is none about real agents: it shows what the instrument does.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage demo
  breakage demo --blocks 36 --output /tmp/demo.html
To do it with an agent of yours: breakage experiment init falsification > my.yaml")]
pub struct Args {
    /// Runs of each scenario and arm, 2 to 1000
    #[arg(long, value_name = "N", default_value_t = BLOCKS, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(MIN_BLOCKS..=MAX_BLOCKS))]
    pub blocks: u32,
    /// Runs at the same time, 1 to 1024 [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where the HTML report goes [default: reports/demo.html in the workspace]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the whole analysis as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let library = open_library(context)?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => {
            let workspace =
                Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
            workspace.folder().join("reports").join("demo.html")
        }
    };
    let (stop, interrupted) = watch::channel(false);
    interrupt::listen(stop);
    let plan = plan(args.blocks);
    let trial = Trial::lock(&library, (&plan, "demo"), interrupted, Arc::new(now_text))
        .map_err(Failure::internal)?;
    tell_plan(context, &trial);
    let planned = trial.registration().plan.cells().len() as u64 * u64::from(args.blocks);
    let bar = context.output.progress(planned, "runs");
    let started = Instant::now();
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let whole = trial
        .run(jobs, |told| {
            if told.run.is_final {
                bar.inc(1);
            }
        })
        .map_err(Failure::internal)?;
    bar.finish_and_clear();
    if !whole {
        context.output.note("stopped; a demonstration is not kept");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let took = started.elapsed().as_secs_f64();
    let analysis =
        analyze(trial.hash(), trial.registration(), &trial.entries()).map_err(Failure::internal)?;
    write_report(&output, &report::experiment::html(&analysis))?;
    if args.json {
        context.output.json(&analysis)?;
    } else {
        context.output.print(&told(&analysis))?;
    }
    context.output.note(&format!(
        "\n{planned} runs in {took:.1} s, {:.0} ms each; the same seed and version give the same result",
        took * 1e3 / planned as f64
    ));
    context
        .output
        .note(&format!("report with plots: {}", output.display()));
    context.output.note(NEXT);
    Ok(ExitCode::SUCCESS)
}

const NEXT: &str = "\nThe agent was simulated: this says nothing about real ones. For yours:
  breakage experiment init falsification > my.yaml     then set `agent:` and `context:` in it
  breakage experiment lock my.yaml
  breakage experiment run my-falsification";

/// The template, under a name of its own.
fn plan(blocks: u32) -> String {
    let text = template("falsification").map_or("", |template| template.text);
    text.replace("\nid: my-falsification\n", "\nid: demo\n")
        .replace("\nblocks: 20\n", &format!("\nblocks: {blocks}\n"))
        .replace("\nauthors: [Your Name]\n", "\nauthors: [breakage demo]\n")
}

/// What is tested, before anything is known.
fn tell_plan(context: &Context, trial: &Trial) {
    let registration = trial.registration();
    let plan = &registration.plan;
    let mut rows = vec![(
        "question",
        "does retrieval of past incidents make an agent better at new ones?".to_owned(),
    )];
    rows.extend(
        plan.hypotheses
            .iter()
            .map(|one| ("hypothesis", one.text.clone())),
    );
    rows.push((
        "design",
        format!(
            "{} scenarios x {} arms (retrieval on, off) x {} runs; smallest difference that matters {}",
            plan.scenarios.len(),
            plan.arms.len(),
            plan.blocks,
            plan.sesoi
        ),
    ));
    rows.push((
        "agent",
        "simulated: it errs and leans on past incidents by documented parameters".to_owned(),
    ));
    for (index, row) in plan.matrix.rows.iter().enumerate() {
        let label = if index == 0 { "decisions" } else { "" };
        rows.push((label, format!("{}: when {}", row.decision, row.when)));
    }
    rows.push(("locked as", trial.hash().to_string()));
    context.output.note(&listed(rows));
    context.output.note("");
}

/// Labels with texts that wrap beside them.
fn listed(rows: Vec<(&str, String)>) -> String {
    let mut table = Output::table(&[]);
    for (label, text) in rows {
        table.add_row([label.to_owned(), text]);
    }
    Output::keep_whole(&mut table, &[0]);
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

fn write_report(path: &Path, html: &str) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let written = folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, html));
    written.map_err(|error| {
        Failure::input(anyhow::anyhow!(
            "the report cannot be written to {}: {error}",
            path.display()
        ))
        .hint("--output names another file")
    })
}

/// The table, and the row that the data landed in.
fn told(analysis: &Analysis) -> String {
    let decision = &analysis.decision;
    let row = decision.row.as_deref().unwrap_or("no decision");
    let mut rows = vec![
        (
            "agent",
            "simulated: this is no evidence about real agents".to_owned(),
        ),
        ("landed in", format!("{row}: {}", decision.decision)),
        ("because", decision.because.clone()),
    ];
    for why in &analysis.standing.exploratory_because {
        rows.push(("exploratory", why.clone()));
    }
    let Some(primary) = analysis.comparisons.first() else {
        return listed(rows);
    };
    if let Some(precision) = &primary.precision {
        rows.push((
            "precision",
            format!(
                "the interval is {:.3} wide on each side; true differences are found with the registered power from {:.3} on",
                precision.half_width, precision.mde
            ),
        ));
    }
    format!("{}\n\n{}", table(primary), listed(rows))
}

fn table(primary: &Comparison) -> comfy_table::Table {
    let mut table = Output::table(&[
        "scenario",
        "with",
        "without",
        "difference",
        "95 % together",
        "verdict",
    ]);
    let mean = |mean: Option<f64>| mean.map_or("-".to_owned(), |mean| format!("{mean:.3}"));
    for one in &primary.scenarios {
        table.add_row([
            one.scenario.to_string(),
            mean(one.treatment.mean),
            mean(one.control.mean),
            one.delta
                .map_or("-".to_owned(), |delta| format!("{delta:+.3}")),
            between(one.ci_simultaneous),
            words(one.verdict),
        ]);
    }
    if let Some(pooled) = &primary.pooled {
        table.add_row([
            "all, equal weights".to_owned(),
            String::new(),
            String::new(),
            format!("{:+.3}", pooled.estimate),
            between(pooled.ci95),
            words(pooled.verdict),
        ]);
    }
    table
}

fn between(interval: Option<Interval>) -> String {
    interval.map_or("-".to_owned(), |of| {
        format!("{:+.3} to {:+.3}", of.low, of.high)
    })
}

fn words(verdict: Verdict) -> String {
    matrix::word(verdict).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_demonstration_is_the_template_under_its_own_name() {
        let plan = plan(7);
        for line in ["id: demo", "blocks: 7", "authors: [breakage demo]"] {
            assert!(plan.lines().any(|one| one == line), "{line}");
        }
    }
}
