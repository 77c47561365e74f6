//! The CONSORT diagram: from planned runs to analysed ones, one column per arm.

use std::collections::BTreeMap;

use crate::experiment::analysis::model::{Analysis, FlowRow};
use crate::report::experiment::plot::{
    Anchor, Drawing, Series, WIDTH, fitting, label, line, rect, series,
};
use crate::report::experiment::words;
use crate::report::markup::{Node, coordinate, el};

/// Narrower columns would cut the codes of errors.
const COLUMN: f64 = 200.0;
const GAP: f64 = 18.0;
const LINE: f64 = 17.0;
const PAD: f64 = 11.0;
/// Between boxes, for the arrow.
const STEP: f64 = 26.0;

/// Sums of one arm over the scenarios.
#[derive(Default)]
struct Arm {
    planned: u32,
    started: u32,
    retried: u32,
    excluded: BTreeMap<String, u32>,
    not_run: u32,
    timeouts: u32,
    analysed: u32,
}

pub(super) fn draw(analysis: &Analysis) -> Option<Drawing> {
    let arms: Vec<(Series, Arm)> = series(analysis)
        .into_iter()
        .map(|series| {
            let arm = sum(&analysis.flow, &series);
            (series, arm)
        })
        .filter(|(_, arm)| arm.planned > 0)
        .collect();
    if arms.is_empty() {
        return None;
    }
    let width = WIDTH.max(arms.len() as f64 * COLUMN);
    let column = width / arms.len() as f64;
    let mut nodes = Vec::new();
    let planned: u32 = arms.iter().map(|(_, arm)| arm.planned).sum();
    let top = [
        format!("{planned} runs planned"),
        format!(
            "{}, {}",
            words::count(u64::from(analysis.registration.blocks), "block", "blocks"),
            words::count(
                analysis.registration.scenarios.len() as u64,
                "scenario",
                "scenarios"
            )
        ),
    ];
    let height = boxed(&mut nodes, "box", width / 2.0, 260.0, 1.0, &top);
    let rail = 1.0 + height + STEP / 2.0;
    nodes.push(line("axis", width / 2.0, 1.0 + height, width / 2.0, rail));
    nodes.push(line("axis", column / 2.0, rail, width - column / 2.0, rail));
    let lost = arms
        .iter()
        .map(|(_, arm)| lost_lines(arm, column).len())
        .max()
        .unwrap_or(1);
    let mut bottom = 0.0;
    for (at, (series, arm)) in arms.iter().enumerate() {
        let x = (at as f64 + 0.5) * column;
        bottom = draw_column(&mut nodes, series, arm, (x, column, rail), lost);
    }
    Some(Drawing {
        title: "Flow of runs".to_owned(),
        description: arms
            .iter()
            .map(|(series, arm)| described(series, arm))
            .collect::<Vec<_>>()
            .join(". "),
        caption: "Summed over the scenarios; the table has every cell.".to_owned(),
        width,
        height: bottom + 2.0,
        nodes,
    })
}

fn sum(rows: &[FlowRow], series: &Series) -> Arm {
    let mut arm = Arm::default();
    for row in rows {
        if row.arm != series.arm || row.tier != series.tier {
            continue;
        }
        arm.planned += row.planned;
        arm.started += row.started;
        arm.retried += row.retried;
        arm.not_run += row.not_run;
        arm.timeouts += row.timeouts;
        arm.analysed += row.analysed;
        for (code, count) in &row.excluded {
            *arm.excluded.entry(code.clone()).or_insert(0) += count;
        }
    }
    arm
}

/// What did not come through, a line each.
fn lost_lines(arm: &Arm, column: f64) -> Vec<String> {
    let excluded: u32 = arm.excluded.values().sum();
    let mut lines = vec![format!("{excluded} excluded, {} not run", arm.not_run)];
    for (code, count) in &arm.excluded {
        lines.push(fitting(
            &format!("{count} {code}"),
            column - GAP - 2.0 * PAD,
        ));
    }
    lines
}

/// Answers where the column ends.
fn draw_column(
    nodes: &mut Vec<Node>,
    series: &Series,
    arm: &Arm,
    (x, column, rail): (f64, f64, f64),
    lost: usize,
) -> f64 {
    let width = column.min(300.0) - GAP;
    let name = fitting(&series.label, width - 2.0 * PAD);
    let started = [
        name,
        format!("{} planned", arm.planned),
        format!("{} started, {} retried", arm.started, arm.retried),
    ];
    let mut y = arrow(nodes, x, rail, STEP / 2.0);
    y += boxed(nodes, "box", x, width, y, &started);
    y = arrow(nodes, x, y, STEP);
    let mut lines = lost_lines(arm, column);
    // All columns are equally high, so that the rows of boxes line up.
    lines.resize(lost, String::new());
    y += boxed(nodes, "lost", x, width, y, &lines);
    y = arrow(nodes, x, y, STEP);
    let kept = [
        format!("{} analysed", arm.analysed),
        format!("{} of them timed out", arm.timeouts),
    ];
    y + boxed(nodes, "box", x, width, y, &kept)
}

/// A box with centred lines, the first in bold; answers its height.
fn boxed(nodes: &mut Vec<Node>, class: &str, x: f64, width: f64, y: f64, lines: &[String]) -> f64 {
    let height = lines.len() as f64 * LINE + 2.0 * PAD - 4.0;
    nodes.push(rect(class, x - width / 2.0, y, width, height).attr("rx", 5));
    for (at, text) in lines
        .iter()
        .enumerate()
        .filter(|(_, text)| !text.is_empty())
    {
        let class = if at == 0 { "head" } else { "" };
        let baseline = y + PAD + at as f64 * LINE + 10.0;
        nodes.push(label(class, Anchor::Middle, x, baseline, text));
    }
    height
}

/// Answers where it ends.
fn arrow(nodes: &mut Vec<Node>, x: f64, from: f64, length: f64) -> f64 {
    let to = from + length;
    nodes.push(line("axis", x, from, x, to - 6.0));
    let corner = |dx: f64, y: f64| format!("{},{}", coordinate(x + dx), coordinate(y));
    nodes.push(
        el("polygon").class("arrow").attr(
            "points",
            [
                corner(-4.0, to - 7.0),
                corner(4.0, to - 7.0),
                corner(0.0, to),
            ]
            .join(" "),
        ),
    );
    to
}

fn described(series: &Series, arm: &Arm) -> String {
    format!(
        "{}: {} planned, {} started, {} retried, {} excluded, {} not run, {} analysed, {} of them timed out",
        series.label,
        arm.planned,
        arm.started,
        arm.retried,
        arm.excluded.values().sum::<u32>(),
        arm.not_run,
        arm.analysed,
        arm.timeouts
    )
}
