//! `breakage stats power`: the size, the power or the effect of a design, whichever is not given.

use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::stats::power::{
    half_width_of_difference, mde, n_for, paired_mde, paired_n_for, paired_power,
    paired_stratified_power, power, stratified_mde, stratified_n_for, stratified_power, type_s_m,
    upper_sd,
};

/// The level of the upper limit of a standard deviation from a pilot.
const PILOT_LEVEL: f64 = 0.8;

/// Solve the size, the power or the smallest effect of a design: leave one of --n, --power, --delta out
///
/// Two-sided tests at --alpha by the exact noncentral t. Without --power and with both others, the power is solved.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    breakage stats power --delta 0.05 --sd 0.13 --power 0.8              n per arm: 108\n  \
    breakage stats power --delta 0.05 --sd 0.13 --n 20                   power: 0.22\n  \
    breakage stats power --sd 0.13 --n 40 --power 0.8                    smallest effect: 0.082\n  \
    breakage stats power --delta 0.05 --sd 0.13 --power 0.8 --strata 3   n per arm and scenario: 36\n  \
    breakage stats power --delta 0.05 --sd 0.13 --power 0.8 --rho 0.5    pairs: 56")]
pub struct Args {
    /// True difference of means
    #[arg(long)]
    delta: Option<f64>,
    /// Standard deviation of a score within one arm
    #[arg(long)]
    sd: f64,
    /// Runs per arm (and scenario); pairs with --rho
    #[arg(long)]
    n: Option<u64>,
    /// Probability of finding the effect
    #[arg(long)]
    power: Option<f64>,
    #[arg(long, default_value_t = 0.05)]
    alpha: f64,
    /// Scenarios over whose average the test goes
    #[arg(long, default_value_t = 1)]
    strata: u64,
    /// Runs are paired, with this correlation of their scores
    #[arg(long)]
    rho: Option<f64>,
    /// Runs that --sd was estimated from: its upper 80 % limit is planned with
    #[arg(long, value_name = "RUNS")]
    sd_from: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Design {
    solved: &'static str,
    n: u64,
    strata: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rho: Option<f64>,
    delta: f64,
    sd: f64,
    alpha: f64,
    power: f64,
    /// Smallest effect found with the asked power, or with 0.8.
    #[serde(skip_serializing_if = "Option::is_none")]
    mde: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width: Option<f64>,
    /// Only of plain two-sample designs.
    #[serde(skip_serializing_if = "Option::is_none")]
    type_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    type_m: Option<f64>,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let design = solve(args)?;
    if args.json {
        context.output.json(&design)?;
        return Ok(ExitCode::SUCCESS);
    }
    let what = match (args.rho.is_some(), args.strata > 1) {
        (false, false) => "n per arm",
        (false, true) => "n per arm and scenario",
        (true, false) => "pairs",
        (true, true) => "pairs per scenario",
    };
    let mut table = Output::table(&["quantity", "value", ""]);
    let mark = |name: &str| if design.solved == name { "solved" } else { "" }.to_owned();
    table.add_row([what.to_owned(), design.n.to_string(), mark("n")]);
    table.add_row([
        "true effect".to_owned(),
        format!("{:.6}", design.delta),
        mark("delta"),
    ]);
    table.add_row([
        "power".to_owned(),
        format!("{:.6}", design.power),
        mark("power"),
    ]);
    table.add_row([
        "sd planned with".to_owned(),
        format!("{:.6}", design.sd),
        String::new(),
    ]);
    let target = args.power.unwrap_or(0.8);
    let mut row = |name: String, value: Option<String>| {
        if let Some(value) = value {
            table.add_row([name, value, String::new()]);
        }
    };
    row(
        format!("smallest effect with power {target}"),
        design.mde.map(|mde| format!("{mde:.6}")),
    );
    row(
        "half of the 95 % interval".to_owned(),
        design.half_width.map(|half| format!("{half:.6}")),
    );
    row(
        "type S: wrong sign among estimates with p < alpha".to_owned(),
        design.type_s.map(|s| format!("{:.2} %", s * 100.0)),
    );
    row(
        "type M: such estimates overstate the effect by".to_owned(),
        design.type_m.map(|m| format!("x{m:.3}")),
    );
    context.output.print(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn checked(args: &Args) -> Result<f64, Failure> {
    let refuse = |flag: &str, what: &str| Failure::usage(anyhow!("{flag} must be {what}"));
    if !(args.sd > 0.0 && args.sd.is_finite()) {
        return Err(refuse("--sd", "a number above 0"));
    }
    if !(args.alpha > 0.0 && args.alpha < 1.0) {
        return Err(refuse("--alpha", "between 0 and 1"));
    }
    if args.power.is_some_and(|p| !(p > args.alpha && p < 1.0)) {
        return Err(refuse("--power", "above --alpha and below 1"));
    }
    if args.delta.is_some_and(|d| !d.is_finite() || d == 0.0) {
        return Err(refuse("--delta", "a number other than 0"));
    }
    if args.n.is_some_and(|n| n < 2) {
        return Err(refuse("--n", "at least 2"));
    }
    if args.strata == 0 {
        return Err(refuse("--strata", "at least 1"));
    }
    if args.rho.is_some_and(|rho| !(rho > -1.0 && rho < 1.0)) {
        return Err(refuse("--rho", "above -1 and below 1"));
    }
    match args.sd_from {
        None => Ok(args.sd),
        Some(runs) => {
            upper_sd(args.sd, runs, PILOT_LEVEL).ok_or_else(|| refuse("--sd-from", "at least 2"))
        }
    }
}

fn solve(args: &Args) -> Result<Design, Failure> {
    let sd = checked(args)?;
    let (alpha, strata) = (args.alpha, args.strata);
    let power_at = |delta: f64, n: u64| match args.rho {
        Some(rho) if strata > 1 => paired_stratified_power(delta, sd, rho, n, strata, alpha),
        Some(rho) => paired_power(delta, sd, rho, n, alpha),
        None if strata > 1 => stratified_power(delta, sd, n, strata, alpha),
        None => power(delta, sd, n, n, alpha),
    };
    let effect_at = |n: u64, target: f64| match args.rho {
        Some(rho) => paired_mde(n, strata, sd, rho, target, alpha),
        None if strata > 1 => stratified_mde(n, strata, sd, target, alpha),
        None => mde(n, n, sd, target, alpha),
    };
    let missing = || {
        Failure::usage(anyhow!(
            "two of --n, --power and --delta must be given; the third is solved"
        ))
    };
    let (solved, n, delta) = match (args.n, args.power, args.delta) {
        (Some(n), None, Some(delta)) => ("power", n, delta),
        (Some(_), Some(_), Some(_)) => {
            return Err(Failure::usage(anyhow!(
                "--n, --power and --delta are all given: nothing is left to solve"
            ))
            .hint("leave one of them out"));
        }
        (Some(n), Some(target), None) => {
            let delta = effect_at(n, target).ok_or_else(missing)?;
            ("delta", n, delta)
        }
        (None, Some(target), Some(delta)) => {
            let n = match args.rho {
                Some(rho) if strata == 1 => paired_n_for(delta, sd, rho, target, alpha),
                Some(rho) => crate::stats::power::smallest(2, target, |n| {
                    paired_stratified_power(delta, sd, rho, n, strata, alpha)
                }),
                None if strata > 1 => stratified_n_for(delta, sd, strata, target, alpha),
                None => n_for(delta, sd, target, alpha),
            };
            let n = n.ok_or_else(|| {
                Failure::usage(anyhow!("no design of a size that can be run finds {delta}"))
            })?;
            ("n", n, delta)
        }
        _ => return Err(missing()),
    };
    let plain = args.rho.is_none() && strata == 1;
    let inflation = type_s_m(delta, sd, n, alpha).filter(|_| plain);
    Ok(Design {
        solved,
        n,
        strata,
        rho: args.rho,
        delta,
        sd,
        alpha,
        power: power_at(delta, n),
        mde: effect_at(n, args.power.unwrap_or(0.8)),
        half_width: plain.then(|| half_width_of_difference(sd, n, 0.95)),
        type_s: inflation.map(|(s, _)| s),
        type_m: inflation.map(|(_, m)| m),
    })
}
