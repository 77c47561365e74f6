//! `breakage reproduce`: the published results recomputed, beside what was published.

use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::json;

use crate::cli::Context;
use crate::cli::failure::{BELOW_THRESHOLD, Failure};
use crate::cli::output::Output;
use crate::report::published::claims::{ClaimCheck, claim_checks};
use crate::report::published::{Cell, Check, Family, PooledRow, Published, check, true_label};
use crate::stats::multiplicity::{bh, holm};
use crate::stats::welch::{Welch, welch};

/// Disagreements with the golden that are printed one by one.
const MAX_PRINTED: usize = 20;

/// Recompute every published result and print it beside what was published
///
/// From the printed summaries and from the scores reconstructed of them (an inference: the only scores that print the
/// published means, standard deviations and t). Every number is compared with what scipy, statsmodels and R gave for it;
/// the exit code is 2 if any differs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    breakage reproduce\n  \
    breakage reproduce --family sweep_9\n  \
    breakage reproduce --json")]
pub struct Args {
    /// Only this family of tests, such as `falsification_3` or `sweep_9`
    #[arg(long)]
    family: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let published = Published::built_in();
    let families = published.families();
    let chosen = match &args.family {
        None => None,
        Some(name) => {
            let found = families.iter().find(|family| family.name == name.as_str());
            Some(found.ok_or_else(|| {
                let known: Vec<&str> = families.iter().map(|family| family.name).collect();
                Failure::usage(anyhow!("no family `{name}`"))
                    .hint(format!("families are: {}", known.join(", ")))
            })?)
        }
    };
    let checks = check(published);
    let wrong: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
    if args.json {
        print_json(context, published, chosen, &checks)?;
    } else {
        let cells: Vec<&Cell> = match chosen {
            Some(family) => family.cells.clone(),
            None => published.cells.iter().collect(),
        };
        print_cells(context, &cells)?;
        if chosen.is_none() {
            print_pooled(context, &published.pooled)?;
        }
        for family in families
            .iter()
            .filter(|f| chosen.is_none_or(|c| c.name == f.name))
        {
            print_family(context, family)?;
        }
        if chosen.is_none() {
            print_claims(context, &claim_checks(published))?;
        }
        print_agreement(context, &checks, &wrong)?;
    }
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(BELOW_THRESHOLD))
}

fn print_cells(context: &Context, cells: &[&Cell]) -> Result<(), Failure> {
    let mut table = Output::table_keeping(
        &[
            "cell", "delta", "t", "label", "t'", "p'", "label'", "exact p",
        ],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    );
    for cell in cells {
        let welch = cell.welch();
        let [_, t, _, p, label] = recomputed(welch);
        table.add_row([
            cell.id.clone(),
            format!("{:.3}", cell.published.delta),
            format!("{:.2}", cell.published.t),
            cell.published.label.clone(),
            t,
            p,
            label,
            format!("{:.4}", cell.permutation().p_two_sided),
        ]);
    }
    context.output.print(&format!(
        "Published, and recomputed from the printed summaries (')\n\n{table}\n\nexact p: permutation of the reconstructed scores. \
         Summaries are printed with three digits,\nso that t' may differ from the published t within rounding.\n"
    ))?;
    blank(context)
}

fn recomputed(welch: Option<Welch>) -> [String; 5] {
    match welch {
        Some(found) => [
            format!("{:.3}", found.delta),
            format!("{:.3}", found.t),
            format!("{:.1}", found.df),
            format!("{:.4}", found.p_two_sided()),
            true_label(found.p_two_sided()).to_owned(),
        ],
        None => ["-", "-", "-", "-", "-"].map(str::to_owned),
    }
}

fn blank(context: &Context) -> Result<(), Failure> {
    context.output.print("")
}

fn print_pooled(context: &Context, rows: &[PooledRow]) -> Result<(), Failure> {
    let mut table = Output::table_keeping(
        &[
            "pooled naively",
            "delta",
            "t",
            "label",
            "delta'",
            "t'",
            "df'",
            "p'",
            "label'",
        ],
        &[0],
    );
    for row in rows {
        let (x, y) = row.input.summaries();
        let [delta, t, df, p, label] = recomputed(welch(&x, &y).ok());
        table.add_row([
            row.id.clone(),
            format!("{:.3}", row.published.delta),
            format!("{:.2}", row.published.t),
            row.published.label.clone(),
            delta,
            t,
            df,
            p,
            label,
        ]);
    }
    context.output.print(&table.to_string())?;
    blank(context)?;
    let mut table = Output::table_keeping(
        &[
            "stratified",
            "estimate",
            "se",
            "t",
            "df",
            "p",
            "exact p",
            "Q p",
            "I2",
        ],
        &[0],
    );
    for row in rows {
        let Some((found, exact)) = Published::built_in().stratified(row) else {
            continue;
        };
        let spread = found.heterogeneity;
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        table.add_row([
            row.id.clone(),
            format!("{:.4}", found.estimate),
            format!("{:.4}", found.se),
            number(found.t, 3),
            number(found.df, 1),
            number(found.p_two_sided, 4),
            format!("{:.4}", exact.p_two_sided),
            number(spread.map(|s| s.p), 4),
            number(spread.map(|s| s.i2), 2),
        ]);
    }
    context.output.print(&table.to_string())?;
    blank(context)
}

fn print_family(context: &Context, family: &Family) -> Result<(), Failure> {
    let p = family.p();
    let (adjusted, discovery) = (holm(&p), bh(&p));
    let by = if family.is_of_permutations() {
        "exact permutation of reconstructed scores"
    } else {
        "Welch from printed summaries"
    };
    let heading = format!("family {}", family.name);
    let mut table = Output::table_keeping(&[&heading, "p", "Holm", "BH"], &[0]);
    for (at, cell) in family.cells.iter().enumerate() {
        table.add_row([
            cell.id.clone(),
            format!("{:.4}", p[at]),
            format!("{:.4}", adjusted[at]),
            format!("{:.4}", discovery[at]),
        ]);
    }
    context.output.print(&format!("{table}\n\np by {by}\n"))?;
    blank(context)
}

fn print_claims(context: &Context, claims: &[ClaimCheck]) -> Result<(), Failure> {
    let mut table = Output::table(&["published claim", "verdict", "recomputed"]);
    for claim in claims {
        let recomputed = claim.recomputed.as_ref();
        table.add_row([
            format!("{} ({})", claim.claim, claim.source),
            claim.verdict.clone(),
            recomputed.map_or_else(
                || format!("not from published data: {}", claim.fact),
                |recomputed| recomputed.text.clone(),
            ),
        ]);
    }
    context.output.print(&table.to_string())?;
    blank(context)
}

fn print_agreement(context: &Context, checks: &[Check], wrong: &[&Check]) -> Result<(), Failure> {
    if wrong.is_empty() {
        return context.output.print(&format!(
            "{} numbers recomputed; all agree with what scipy, statsmodels and R gave.",
            checks.len()
        ));
    }
    let mut table = Output::table_keeping(&["differs", "golden", "ours"], &[1, 2]);
    for check in wrong.iter().take(MAX_PRINTED) {
        table.add_row([
            check.place.clone(),
            check
                .golden
                .map_or_else(|| "missing".to_owned(), |golden| format!("{golden:e}")),
            format!("{:e}", check.ours),
        ]);
    }
    context.output.print(&format!(
        "{table}\n\n{} of {} numbers differ from the golden: the core of this build is wrong.",
        wrong.len(),
        checks.len()
    ))
}

fn print_json(
    context: &Context,
    published: &Published,
    chosen: Option<&Family>,
    checks: &[Check],
) -> Result<(), Failure> {
    let in_family = |cell: &&Cell| {
        chosen.is_none_or(|family| family.cells.iter().any(|member| member.id == cell.id))
    };
    let cells: Vec<_> = published
        .cells
        .iter()
        .filter(in_family)
        .map(|cell| {
            let permutation = cell.permutation();
            let welch = cell.welch();
            json!({
                "id": cell.id,
                "input": cell.input,
                "published": cell.published,
                "welch": welch,
                "p_two_sided": welch.map(|welch| welch.p_two_sided()),
                "permutation": permutation,
                "note": cell.note,
            })
        })
        .collect();
    let families: Vec<_> = published
        .families()
        .iter()
        .filter(|family| chosen.is_none_or(|chosen| chosen.name == family.name))
        .map(|family| {
            let p = family.p();
            let ids: Vec<&str> = family.cells.iter().map(|cell| cell.id.as_str()).collect();
            json!({"family": family.name, "ids": ids, "holm": holm(&p), "bh": bh(&p), "p": p})
        })
        .collect();
    let wrong: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
    context.output.json(&json!({
        "cells": cells,
        "families": families,
        "claims": claim_checks(published),
        "checked": checks.len(),
        "disagreements": wrong,
    }))
}
