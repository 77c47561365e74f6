//! Scores in the order in which the runs were begun: drift, streaks and missing blocks show here.

use std::collections::BTreeMap;

use crate::experiment::analysis::model::{Analysis, RunPoint};
use crate::report::experiment::plot::{
    Anchor, Drawing, Scale, WIDTH, decimals, fitting, label, legend, line, marker, series, style_of,
};
use crate::report::experiment::words;
use crate::report::markup::Node;

const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 8.0;
const PANEL: f64 = 118.0;
const TITLE: f64 = 24.0;

/// More runs than these are drawn smaller.
const MANY: usize = 240;
/// About so many block borders get their number.
const NUMBERED: usize = 12;

pub(super) fn draw(analysis: &Analysis) -> Option<Drawing> {
    let last = analysis.runs.iter().map(|run| run.order).max()?;
    let lowest = analysis.runs.iter().map(|run| run.total.0).min()?;
    let low = f64::from(lowest.saturating_sub(20_000) / 100_000) / 10.0;
    let series = series(analysis);
    let radius = if analysis.runs.len() > MANY { 2.6 } else { 3.8 };
    let x = Scale {
        domain: (-0.5, last as f64 + 0.5),
        range: (LEFT + 4.0, RIGHT - 4.0),
    };
    let mut nodes = Vec::new();
    let first_panel = 8.0 + legend(&mut nodes, &series, 0.0, 14.0);
    let mut top = first_panel;
    for scenario in &analysis.registration.scenarios {
        let runs: Vec<&RunPoint> = analysis
            .runs
            .iter()
            .filter(|run| run.scenario == *scenario)
            .collect();
        if runs.is_empty() {
            continue;
        }
        let name = fitting(scenario.as_str(), WIDTH);
        nodes.push(label("head", Anchor::Start, 0.0, top + 13.0, name));
        let y = Scale {
            domain: (low, 1.0),
            range: (top + TITLE + PANEL - 28.0, top + TITLE),
        };
        grid(&mut nodes, &y);
        borders(&mut nodes, analysis, &x, &y);
        for run in runs {
            let style = style_of(&series, &run.arm, run.tier.as_deref());
            let at = (x.at(run.order as f64), y.at(run.total.as_f64()));
            nodes.push(marker(style, at.0, at.1, radius));
            if run.timeout {
                cross(&mut nodes, style, at, radius + 2.2);
            }
        }
        top += TITLE + PANEL;
    }
    block_numbers(&mut nodes, analysis, &x, top - 8.0);
    nodes.push(label(
        "small quiet",
        Anchor::Middle,
        f64::midpoint(LEFT, RIGHT),
        top + 10.0,
        "runs in the order in which they were begun; block numbers below their first run",
    ));
    Some(Drawing {
        title: "Scores in run order".to_owned(),
        description: format!(
            "{} in {}, one panel per scenario, arms told apart by shape. The table of drift has slopes and \
             correlations.",
            words::count(analysis.runs.len() as u64, "run", "runs"),
            words::count(first_of_blocks(analysis).len() as u64, "block", "blocks"),
        ),
        caption: "Total score of every counted run. Vertical lines are borders of blocks; a crossed mark is a run that timed out."
            .to_owned(),
        width: WIDTH,
        height: top + 18.0,
        nodes,
    })
}

fn grid(nodes: &mut Vec<Node>, y: &Scale) {
    let ticks = y.ticks(4);
    let places = decimals(&ticks);
    for tick in &ticks {
        let at = y.at(*tick);
        nodes.push(line("grid", LEFT, at, RIGHT, at));
        let text = words::number(*tick, places);
        nodes.push(label(
            "small quiet",
            Anchor::End,
            LEFT - 7.0,
            at + 4.0,
            text,
        ));
    }
}

/// The first place of each block, by its number.
fn first_of_blocks(analysis: &Analysis) -> BTreeMap<u32, u64> {
    let mut first = BTreeMap::new();
    for run in &analysis.runs {
        let at = first.entry(run.block).or_insert(run.order);
        *at = run.order.min(*at);
    }
    first
}

fn borders(nodes: &mut Vec<Node>, analysis: &Analysis, x: &Scale, y: &Scale) {
    for order in first_of_blocks(analysis).into_values().skip(1) {
        let at = x.at(order as f64 - 0.5);
        nodes.push(line("grid", at, y.range.0 + 4.0, at, y.range.1 - 4.0));
    }
}

fn block_numbers(nodes: &mut Vec<Node>, analysis: &Analysis, x: &Scale, y: f64) {
    let first = first_of_blocks(analysis);
    let every = first.len().div_ceil(NUMBERED).max(1);
    for (block, order) in first.into_iter().step_by(every) {
        let at = x.at(order as f64 - 0.5) + 3.0;
        let text = (block + 1).to_string();
        nodes.push(label("small quiet", Anchor::Start, at, y, text));
    }
}

fn cross(nodes: &mut Vec<Node>, style: usize, (x, y): (f64, f64), arm: f64) {
    let class = format!("s{style} thin");
    nodes.push(line(&class, x - arm, y - arm, x + arm, y + arm));
    nodes.push(line(&class, x - arm, y + arm, x + arm, y - arm));
}
