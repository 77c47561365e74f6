//! Mean score over the tiers, against the control that all tiers share.

use crate::experiment::analysis::model::TierContrast;
use crate::report::experiment::plot::{
    Anchor, Drawing, Scale, WIDTH, decimals, fitting, label, line, marker, rect,
};
use crate::report::experiment::words;
use crate::report::markup::{Node, coordinate, el};

const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 150.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 276.0;

/// Standard errors of a 95 % interval of a mean, by the normal distribution.
const TWO_SIDED_95: f64 = 1.96;

/// Half of a 95 % interval.
fn half(se: f64) -> f64 {
    TWO_SIDED_95 * se
}

pub(super) fn draw(contrast: &TierContrast) -> Option<Drawing> {
    let y = scale(contrast)?;
    let mut nodes = backdrop(contrast, &y);
    treatment(&mut nodes, contrast, &y);
    nodes.push(line("axis", LEFT, BOTTOM, RIGHT, BOTTOM));
    nodes.push(label(
        "small quiet",
        Anchor::Middle,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 40.0,
        "tier of the treatment",
    ));
    Some(Drawing {
        title: "Mean score by tier".to_owned(),
        description: description(contrast),
        caption: "Circles: mean total of the treatment at each tier, averaged over the scenarios. Dashed line: the \
                  control. Bars and band: 95 % intervals of the means (1.96 standard errors)."
            .to_owned(),
        width: WIDTH,
        height: BOTTOM + 50.0,
        nodes,
    })
}

/// Around all intervals; nothing where there is no tier or a number is missing.
fn scale(contrast: &TierContrast) -> Option<Scale> {
    let groups = || {
        contrast
            .treatment
            .iter()
            .map(|(_, mean, se)| (*mean, *se))
            .chain([contrast.control])
    };
    if contrast.treatment.is_empty() || groups().any(|(mean, se)| !(mean + se).is_finite()) {
        return None;
    }
    let low = groups()
        .map(|(mean, se)| mean - half(se))
        .fold(1.0, f64::min);
    let high = groups()
        .map(|(mean, se)| mean + half(se))
        .fold(0.0, f64::max);
    let pad = (0.12 * (high - low)).max(0.01);
    Some(Scale {
        domain: (low - pad, high + pad),
        range: (BOTTOM, TOP),
    })
}

/// The control with its band, and the grid.
fn backdrop(contrast: &TierContrast, y: &Scale) -> Vec<Node> {
    let (mean, se) = contrast.control;
    let (top, bottom) = (y.at(mean + half(se)), y.at(mean - half(se)));
    let control = y.at(mean);
    let mut nodes = vec![rect("s0 soft", LEFT, top, RIGHT - LEFT, bottom - top)];
    let ticks = y.ticks(5);
    let places = decimals(&ticks);
    for tick in &ticks {
        let at = y.at(*tick);
        nodes.push(line("grid", LEFT, at, RIGHT, at));
        let text = words::number(*tick, places);
        nodes.push(label(
            "small quiet",
            Anchor::End,
            LEFT - 8.0,
            at + 4.0,
            text,
        ));
    }
    nodes.push(line("s0 thin", LEFT, control, RIGHT, control).attr("stroke-dasharray", "6 4"));
    nodes.push(marker(0, RIGHT + 14.0, control, 4.5));
    let name = "control, shared";
    nodes.push(label("", Anchor::Start, RIGHT + 26.0, control + 4.0, name));
    nodes
}

fn treatment(nodes: &mut Vec<Node>, contrast: &TierContrast, y: &Scale) {
    let tiers = &contrast.treatment;
    let step = (RIGHT - LEFT) / tiers.len() as f64;
    let place = |at: usize| LEFT + (at as f64 + 0.5) * step;
    let path: Vec<String> = tiers
        .iter()
        .enumerate()
        .map(|(at, (_, mean, _))| format!("{},{}", coordinate(place(at)), coordinate(y.at(*mean))))
        .collect();
    nodes.push(
        el("polyline")
            .class("s1 line")
            .attr("points", path.join(" ")),
    );
    for (at, (tier, mean, se)) in tiers.iter().enumerate() {
        let (x, middle) = (place(at), y.at(*mean));
        let ends = (y.at(mean - half(*se)), y.at(mean + half(*se)));
        nodes.push(line("s1 thin", x, ends.0, x, ends.1));
        for end in [ends.0, ends.1] {
            nodes.push(line("s1 thin", x - 6.0, end, x + 6.0, end));
        }
        nodes.push(marker(1, x, middle, 5.5));
        // On the side of the point that the line to the next one leaves free.
        let rises = tiers.get(at + 1).is_some_and(|next| next.1 > *mean);
        let below = if rises { 19.0 } else { -8.0 };
        let value = words::number(*mean, 3);
        nodes.push(label(
            "small",
            Anchor::Start,
            x + 11.0,
            middle + below,
            value,
        ));
        let name = fitting(tier, step - 8.0);
        nodes.push(label("", Anchor::Middle, x, BOTTOM + 20.0, name));
    }
}

fn description(contrast: &TierContrast) -> String {
    let told = |name: &str, mean: f64, se: f64| {
        let (mean, se) = (words::number(mean, 3), words::number(se, 3));
        format!("{name}: {mean} standard error {se}")
    };
    let (mean, se) = contrast.control;
    contrast
        .treatment
        .iter()
        .map(|(tier, mean, se)| told(&format!("tier {tier}"), *mean, *se))
        .chain([told("control", mean, se)])
        .collect::<Vec<_>>()
        .join("; ")
}
