//! Differences with their intervals, against zero and the smallest effect of interest.

use crate::experiment::analysis::model::{Analysis, Comparison, Interval, Pooled, ScenarioResult};
use crate::report::experiment::plot::{
    Anchor, Drawing, Scale, WIDTH, decimals, fitting, fitting_small, label, line, rect,
};
use crate::report::experiment::words;
use crate::report::markup::{Node, coordinate, el};

const LEFT: f64 = 246.0;
const RIGHT: f64 = 655.0;
const TOP: f64 = 34.0;
const ROW: f64 = 46.0;
/// How much of the width small letters leave when they are bold.
const SMALL_BOLD: f64 = 0.95;

pub(super) fn draw(analysis: &Analysis, comparison: &Comparison) -> Option<Drawing> {
    if comparison.scenarios.is_empty() {
        return None;
    }
    let m = analysis.registration.sesoi;
    let scale = Scale {
        domain: domain(comparison, m),
        range: (LEFT, RIGHT),
    };
    let rows = comparison.scenarios.len() + usize::from(comparison.pooled.is_some());
    let bottom = TOP + rows as f64 * ROW + 6.0;
    let mut nodes = backdrop(&scale, m, bottom);
    for (at, one) in comparison.scenarios.iter().enumerate() {
        scenario(&mut nodes, &scale, one, TOP + (at as f64 + 0.5) * ROW);
    }
    if let Some(pooled) = &comparison.pooled {
        let y = TOP + (rows as f64 - 0.5) * ROW;
        nodes.push(line("grid", 0.0, y - ROW / 2.0, WIDTH, y - ROW / 2.0));
        average(&mut nodes, &scale, pooled, y);
    }
    Some(Drawing {
        title: format!(
            "Difference of {} and {} by scenario",
            words::arm(&comparison.treatment, comparison.tier.as_deref()),
            comparison.control
        ),
        description: description(comparison),
        caption: format!(
            "Point: difference of means. Thick line: 95 % interval; thin line with ends: simultaneous interval, which the \
             verdict goes by. Diamond: average over the scenarios with its 95 % interval. Band: differences smaller than \
             {}, the smallest effect of interest.",
            words::number(m, 3)
        ),
        width: WIDTH,
        height: bottom + 44.0,
        nodes,
    })
}

fn domain(comparison: &Comparison, m: f64) -> (f64, f64) {
    let mut values = vec![-1.6 * m, 1.6 * m];
    for one in &comparison.scenarios {
        values.extend(one.delta);
        for interval in [one.ci95, one.ci_simultaneous].into_iter().flatten() {
            values.extend([interval.low, interval.high]);
        }
    }
    if let Some(pooled) = &comparison.pooled {
        values.push(pooled.estimate);
        values.extend(pooled.ci95.into_iter().flat_map(|ci| [ci.low, ci.high]));
    }
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let low = finite().fold(0.0, f64::min);
    let high = finite().fold(0.0, f64::max);
    let pad = (0.05 * (high - low)).max(0.005);
    (low - pad, high + pad)
}

fn backdrop(scale: &Scale, m: f64, bottom: f64) -> Vec<Node> {
    let mut nodes = vec![rect(
        "band",
        scale.at(-m),
        TOP,
        scale.at(m) - scale.at(-m),
        bottom - TOP,
    )];
    let ticks = scale.ticks(6);
    let places = decimals(&ticks);
    for tick in &ticks {
        let x = scale.at(*tick);
        nodes.push(line("grid", x, TOP, x, bottom));
        let sign = if *tick > 1e-9 { "+" } else { "" };
        let text = format!("{sign}{}", words::number(*tick, places)).replace('-', "\u{2212}");
        nodes.push(label("small quiet", Anchor::Middle, x, bottom + 16.0, text));
    }
    nodes.push(line("zero", scale.at(0.0), TOP, scale.at(0.0), bottom));
    nodes.push(line("axis", LEFT, bottom, RIGHT, bottom));
    let zero = scale.at(0.0);
    nodes.push(label(
        "small quiet",
        Anchor::End,
        zero - 8.0,
        20.0,
        "control scores higher",
    ));
    nodes.push(label(
        "small quiet",
        Anchor::Start,
        zero + 8.0,
        20.0,
        "treatment scores higher",
    ));
    nodes.push(label(
        "small quiet",
        Anchor::Middle,
        f64::midpoint(LEFT, RIGHT),
        bottom + 35.0,
        "treatment minus control",
    ));
    nodes
}

fn scenario(nodes: &mut Vec<Node>, scale: &Scale, one: &ScenarioResult, y: f64) {
    let cell = words::scenario_cell(one);
    named(
        nodes,
        one.scenario.as_str(),
        &fitting_small(&cell.text, LEFT - 12.0),
        y,
    );
    let Some(delta) = one.delta.filter(|delta| delta.is_finite()) else {
        nodes.push(label(
            "quiet",
            Anchor::Start,
            RIGHT + 12.0,
            y + 4.0,
            "no estimate",
        ));
        return;
    };
    if let Some(ci) = finite(one.ci_simultaneous) {
        nodes.push(line("s1 thin", scale.at(ci.low), y, scale.at(ci.high), y));
        for end in [ci.low, ci.high] {
            nodes.push(line(
                "s1 thin",
                scale.at(end),
                y - 5.0,
                scale.at(end),
                y + 5.0,
            ));
        }
    }
    if let Some(ci) = finite(one.ci95) {
        nodes.push(line("s1 thick", scale.at(ci.low), y, scale.at(ci.high), y));
    }
    nodes.push(
        el("circle")
            .class("s1")
            .at("cx", scale.at(delta))
            .at("cy", y)
            .at("r", 6.0),
    );
    told(nodes, delta, finite(one.ci95), y);
}

fn average(nodes: &mut Vec<Node>, scale: &Scale, pooled: &Pooled, y: f64) {
    let cell = words::verdict_cell(pooled.verdict, pooled.material, &pooled.fragile);
    let name = match pooled.unlike_effects {
        true => "average of unlike effects",
        false => "average of scenarios",
    };
    named(nodes, name, &fitting_small(&cell.text, LEFT - 12.0), y);
    let middle = scale.at(pooled.estimate);
    let (low, high) = match finite(pooled.ci95) {
        Some(ci) => (scale.at(ci.low), scale.at(ci.high)),
        None => (middle - 5.0, middle + 5.0),
    };
    let corner = |x: f64, y: f64| format!("{},{}", coordinate(x), coordinate(y));
    nodes.push(
        el("polygon").class("s1").attr(
            "points",
            [
                corner(low, y),
                corner(middle, y - 9.0),
                corner(high, y),
                corner(middle, y + 9.0),
            ]
            .join(" "),
        ),
    );
    told(nodes, pooled.estimate, finite(pooled.ci95), y);
}

/// A name that is too long even in small letters goes over two lines, broken behind a hyphen.
fn named(nodes: &mut Vec<Node>, name: &str, verdict: &str, y: f64) {
    let width = LEFT - 12.0;
    let small = |text: &str| fitting_small(text, width * SMALL_BOLD);
    let mut put = |class, y, text: String| nodes.push(label(class, Anchor::Start, 0.0, y, text));
    if fitting(name, width) == name {
        put("head", y - 2.0, name.to_owned());
    } else if small(name) == name {
        put("head small", y - 2.0, name.to_owned());
    } else {
        let fits = |at: &usize| small(&name[..*at]) == name[..*at];
        let breaks = name
            .match_indices('-')
            .map(|(at, hyphen)| at + hyphen.len());
        let (first, second) = name.split_at(breaks.rev().find(fits).unwrap_or(0));
        if !first.is_empty() {
            put("head small", y - 14.0, first.to_owned());
        }
        put("head small", y - 1.0, small(second));
    }
    put("small quiet", y + 13.0, verdict.to_owned());
}

fn told(nodes: &mut Vec<Node>, delta: f64, ci: Option<Interval>, y: f64) {
    let minus = |text: String| text.replace('-', "\u{2212}");
    let x = RIGHT + 12.0;
    let Some(ci) = ci else {
        nodes.push(label(
            "",
            Anchor::Start,
            x,
            y + 4.0,
            minus(words::signed(delta)),
        ));
        return;
    };
    let text = format!("{} {}", words::signed(delta), words::interval(ci));
    nodes.push(label("small", Anchor::Start, x, y + 4.0, minus(text)));
}

fn finite(interval: Option<Interval>) -> Option<Interval> {
    interval.filter(|one| one.low.is_finite() && one.high.is_finite())
}

fn description(comparison: &Comparison) -> String {
    let mut parts: Vec<String> = comparison
        .scenarios
        .iter()
        .map(|one| {
            format!(
                "{}: {} {}, {}",
                one.scenario,
                words::maybe(one.delta, words::signed),
                words::maybe_interval(one.ci95),
                words::verdict(one.verdict)
            )
        })
        .collect();
    if let Some(pooled) = &comparison.pooled {
        parts.push(format!(
            "average: {} {}, {}",
            words::signed(pooled.estimate),
            words::maybe_interval(pooled.ci95),
            words::verdict(pooled.verdict)
        ));
    }
    parts.join("; ")
}
