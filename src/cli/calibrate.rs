//! `breakage calibrate`: how often the instrument finds what is not there, and how often what is.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

use crate::agent::coin::Probability;
use crate::cli::experiment::now_text;
use crate::cli::failure::{BELOW_THRESHOLD, Failure, INTERRUPTED};
use crate::cli::output::Output;
use crate::cli::run::cores;
use crate::cli::scenario::open_library;
use crate::cli::{Context, interrupt};
use crate::config::Workspace;
use crate::experiment::analysis::model::{CalibrationNote, Interval};
use crate::experiment::calibrate::{self, ALPHA, GATE_LEVEL, Rate, Rejections, TwoCoins};
use crate::experiment::trial::Trial;
use crate::ids::ArmId;
use crate::scenario::library::Library;

/// Runs an arm of one dataset: the published size.
const DATASET: usize = 20;
/// Half of the planted difference lies on each side of this probability.
const MIDDLE: f64 = 0.5;
/// What the right and the wrong cause earn where one cause is all, in micro-points.
const HIT: i64 = 910_000;
const MISS: i64 = 700_000;
/// One cause and no secondary one, so that a wrong name always earns the same.
const SCENARIO: &str = "replicas-zero-advocate";
/// The shuffles are the same for everybody.
const SHUFFLE_SEED: u64 = 1;
/// With fewer datasets nearly every share lies within the interval.
const ENOUGH: u32 = 20;
const MIN_BLOCKS: i64 = 40;
/// Two hours of runs.
const MAX_BLOCKS: i64 = 100_000;

/// Measure the instrument itself: false alarms where the arms are the same, and power where they are known to differ
///
/// Two experiments are locked, run and read like any other. In the first both arms are one agent, which names the right cause
/// as a coin falls; each `n` blocks are a dataset, and its tests should reject in 5 % of them or less (the exact test of
/// discrete scores in 1.9 to 4.5 %). Then labels are shuffled over all of its runs. In the second the coins differ by a
/// known amount, and the share of datasets in which that is found must agree with the power computed beforehand. Exits with 2
/// where one does not.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage calibrate
  breakage calibrate --planted 0.15 --blocks 2000
  breakage calibrate --json")]
pub struct Args {
    /// The planted difference of mean totals, above 0 and at most 0.21
    #[arg(
        long,
        value_name = "POINTS",
        default_value_t = 0.10,
        allow_negative_numbers = true
    )]
    pub planted: f64,
    /// Blocks of each experiment, 40 to 100000; 20 of them make a dataset
    #[arg(long, value_name = "N", default_value_t = 400, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(MIN_BLOCKS..=MAX_BLOCKS))]
    pub blocks: u32,
    /// Datasets of shuffled labels, 100 to 100000
    #[arg(long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub shuffles: u32,
    /// Worlds and coins derive from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs at the same time, 1 to 1024 [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Do not keep the result for the reports of this workspace
    #[arg(long)]
    pub no_keep: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is printed and kept.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    breakage_version: &'static str,
    scenario: &'static str,
    runs_per_dataset_and_arm: usize,
    aa_live: Rejections,
    aa_shuffled: Rejections,
    /// Of the exact test over shuffled labels, with its exact 99 % interval.
    aa_rate: Rate,
    aa_honest: bool,
    planted: Planted,
}

#[derive(Clone, Debug, Serialize)]
struct Planted {
    difference: f64,
    found: Rejections,
    /// Of the exact test, with its exact 99 % interval.
    rate: Rate,
    expected_power: f64,
    power_agrees: bool,
    coverage: Rate,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let coins = coins(args.planted)?;
    let library = open_library(context)?;
    let (stop, interrupted) = watch::channel(false);
    interrupt::listen(stop);
    let aa = TwoCoins {
        treatment: MIDDLE,
        control: MIDDLE,
        ..coins
    };
    let Some((x, y)) = totals(context, args, &library, &interrupted, ("a-a", &aa))? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let pool: Vec<i64> = x.iter().chain(&y).copied().collect();
    let live = calibrate::live(&x, &y, DATASET, 0.0);
    let shuffled = calibrate::shuffled(&pool, DATASET, args.shuffles, SHUFFLE_SEED);
    let Some((x, y)) = totals(context, args, &library, &interrupted, ("planted", &coins))? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let found = calibrate::live(&x, &y, DATASET, coins.difference());
    let outcome = outcome(&coins, live, shuffled, found);
    if !args.no_keep {
        keep(context, &outcome)?;
    }
    if args.json {
        context.output.json(&outcome)?;
    } else {
        context.output.print(&told(&outcome))?;
    }
    let sound = outcome.aa_honest && outcome.planted.power_agrees;
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BELOW_THRESHOLD)
    })
}

/// Two coins that differ by the planted amount.
fn coins(planted: f64) -> Result<TwoCoins, Failure> {
    let span = (HIT - MISS) as f64 / 1e6;
    if !(planted > 0.0 && planted <= span) {
        return Err(Failure::usage(anyhow::anyhow!(
            "--planted {planted} cannot be planted: naming the right cause is worth {span}, expected above 0 and at most that"
        )));
    }
    let half = (planted / span / 2.0 * 1e6).round() / 1e6;
    Ok(TwoCoins {
        treatment: MIDDLE + half,
        control: MIDDLE - half,
        hit: HIT,
        miss: MISS,
    })
}

type Totals = (Vec<i64>, Vec<i64>);

/// The totals of both arms of an experiment, by block; nothing when the user stopped it.
fn totals(
    context: &Context,
    args: &Args,
    library: &Library,
    interrupted: &watch::Receiver<bool>,
    (name, coins): (&str, &TwoCoins),
) -> Result<Option<Totals>, Failure> {
    let text = plan(args, name, coins);
    let trial = Trial::lock(
        library,
        (&text, name),
        interrupted.clone(),
        Arc::new(now_text),
    )
    .map_err(Failure::internal)?;
    let bar = context.output.progress(2 * u64::from(args.blocks), name);
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let whole = trial.run(jobs, |_| bar.inc(1)).map_err(Failure::internal)?;
    bar.finish_and_clear();
    let of = |arm: &str| trial.totals(&ArmId::new(arm));
    let (x, y) = (of("treatment"), of("control"));
    let expected = args.blocks as usize;
    if whole && (x.len() < expected || y.len() < expected) {
        return Err(Failure::internal(anyhow::anyhow!(
            "only {} and {} of {expected} runs count: the instrument failed in the others",
            x.len(),
            y.len()
        )));
    }
    Ok(whole.then_some((x, y)))
}

fn plan(args: &Args, name: &str, coins: &TwoCoins) -> String {
    let agent = |p: f64| {
        let known = Probability::parse(&format!("{p:.6}")).is_some();
        debug_assert!(known, "{p}");
        format!("{p:.6}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    format!(
        "id: calibration-{name}
title: Calibration of the instrument
authors: [breakage calibrate]
prior_data: none
hypotheses:
  - {{id: h, text: The coins fall as they should., direction: either}}
sesoi: 0.05
rubric: v0.1
control: control
arms:
  - {{id: treatment, agent: 'coin:{}', retrieval: off}}
  - {{id: control, agent: 'coin:{}', retrieval: off}}
scenarios: [{SCENARIO}]
blocks: {}
seed: {}
matrix:
  rows:
    - {{id: all, decision: none, ships: false, when: scenarios >= 0}}
  no_decision: none
",
        agent(coins.treatment),
        agent(coins.control),
        args.blocks,
        args.seed
    )
}

fn outcome(
    coins: &TwoCoins,
    aa_live: Rejections,
    aa_shuffled: Rejections,
    found: Rejections,
) -> Outcome {
    let rate = Rate::of(found.permutation, found.datasets, GATE_LEVEL);
    let expected_power = coins.power(DATASET);
    let of_live = Rejections::is_honest(aa_live.permutation, aa_live.datasets);
    let of_shuffled = Rejections::is_honest(aa_shuffled.permutation, aa_shuffled.datasets);
    Outcome {
        breakage_version: env!("CARGO_PKG_VERSION"),
        scenario: SCENARIO,
        runs_per_dataset_and_arm: DATASET,
        aa_rate: Rate::of(aa_shuffled.permutation, aa_shuffled.datasets, GATE_LEVEL),
        aa_honest: of_live && of_shuffled,
        planted: Planted {
            difference: coins.difference(),
            power_agrees: (rate.low..=rate.high).contains(&expected_power),
            expected_power,
            rate,
            coverage: Rate::of(found.covered, found.datasets, GATE_LEVEL),
            found,
        },
        aa_live,
        aa_shuffled,
    }
}

/// Keeps the last result of this version, which reports show.
fn keep(context: &Context, outcome: &Outcome) -> Result<(), Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = workspace.store().map_err(Failure::input)?;
    let note = CalibrationNote {
        breakage_version: outcome.breakage_version.to_owned(),
        at: now_text(),
        aa_rejected: outcome.aa_rate.count,
        aa_datasets: outcome.aa_rate.of,
        aa_ci99: Interval {
            low: outcome.aa_rate.low,
            high: outcome.aa_rate.high,
        },
        planted: Some(outcome.planted.difference),
        planted_found: outcome.planted.rate.count,
        planted_datasets: outcome.planted.rate.of,
    };
    calibrate::keep(&store, &note).map_err(Failure::input)
}

fn told(outcome: &Outcome) -> String {
    let mut table = Output::table(&[
        "",
        "datasets",
        "exact",
        "mid-p",
        "paired",
        "Welch",
        "B.-Munzel",
        "covered",
    ]);
    let rows = [
        ("no difference, live", &outcome.aa_live, true),
        ("no difference, shuffled", &outcome.aa_shuffled, false),
        ("planted", &outcome.planted.found, true),
    ];
    for (name, of, paired) in rows {
        let share = |count: u32| {
            format!(
                "{:.1} %",
                f64::from(count) / f64::from(of.datasets.max(1)) * 100.0
            )
        };
        table.add_row([
            name.to_owned(),
            of.datasets.to_string(),
            share(of.permutation),
            share(of.mid_p),
            if paired {
                share(of.sign_flip)
            } else {
                "-".to_owned()
            },
            share(of.welch),
            share(of.brunner_munzel),
            share(of.covered),
        ]);
    }
    let (aa, planted) = (&outcome.aa_rate, &outcome.planted);
    let word = |good: bool, datasets: u32| match good {
        false => "NOT as it should be",
        true if datasets < ENOUGH => "too few datasets to say more",
        true => "as it should be",
    };
    format!(
        "Datasets of {DATASET} runs an arm; shares in which a test rejects at {:.0} %\n\n{table}\n\n\
         False alarms of the exact test {:.1} % (99 % interval {:.1} to {:.1} %), at most {:.0} %: {}\n\
         Planted {:+.3} found in {:.1} % (99 % interval {:.1} to {:.1} %), computed {:.1} %: {}",
        ALPHA * 100.0,
        aa.rate * 100.0,
        aa.low * 100.0,
        aa.high * 100.0,
        ALPHA * 100.0,
        word(outcome.aa_honest, aa.of),
        planted.difference,
        planted.rate.rate * 100.0,
        planted.rate.low * 100.0,
        planted.rate.high * 100.0,
        planted.expected_power * 100.0,
        word(planted.power_agrees, planted.rate.of),
    )
}
