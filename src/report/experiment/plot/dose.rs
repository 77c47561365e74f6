//! Mean score over the tiers, against the control that all tiers share.

use crate::experiment::analysis::model::TierContrast;
use crate::report::experiment::plot::{
    Anchor, Drawing, Scale, WIDTH, decimals, fitting, label, line, marker, rect,
};
use crate::report::experiment::words;
use crate::report::markup::{coordinate, el};

const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 150.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 276.0;

/// Standard errors of a 95 % interval of a mean, by the normal distribution.
const TWO_SIDED_95: f64 = 1.96;

pub(super) fn draw(contrast: &TierContrast) -> Option<Drawing> {
    let (control, control_se) = contrast.control;
    let arm = |se: f64| TWO_SIDED_95 * se;
    let groups = || {
        contrast
            .treatment
            .iter()
            .map(|(_, mean, se)| (*mean, *se))
            .chain([(control, control_se)])
    };
    if contrast.treatment.is_empty() || groups().any(|(mean, se)| !(mean + se).is_finite()) {
        return None;
    }
    let low = groups()
        .map(|(mean, se)| mean - arm(se))
        .fold(1.0, f64::min);
    let high = groups()
        .map(|(mean, se)| mean + arm(se))
        .fold(0.0, f64::max);
    let pad = (0.12 * (high - low)).max(0.01);
    let y = Scale {
        domain: (low - pad, high + pad),
        range: (BOTTOM, TOP),
    };
    let mut nodes = Vec::new();
    let band = (
        y.at(control + arm(control_se)),
        y.at(control - arm(control_se)),
    );
    nodes.push(rect("s0 soft", LEFT, band.0, RIGHT - LEFT, band.1 - band.0));
    let ticks = y.ticks(5);
    let places = decimals(&ticks);
    for tick in &ticks {
        nodes.push(line("grid", LEFT, y.at(*tick), RIGHT, y.at(*tick)));
        let text = words::number(*tick, places);
        nodes.push(label(
            "small quiet",
            Anchor::End,
            LEFT - 8.0,
            y.at(*tick) + 4.0,
            text,
        ));
    }
    nodes.push(
        line("s0 thin", LEFT, y.at(control), RIGHT, y.at(control)).attr("stroke-dasharray", "6 4"),
    );
    nodes.push(marker(0, RIGHT + 14.0, y.at(control), 4.5));
    nodes.push(label(
        "",
        Anchor::Start,
        RIGHT + 26.0,
        y.at(control) + 4.0,
        "control, shared",
    ));
    let step = (RIGHT - LEFT) / contrast.treatment.len() as f64;
    let place = |at: usize| LEFT + (at as f64 + 0.5) * step;
    let path: Vec<String> = contrast
        .treatment
        .iter()
        .enumerate()
        .map(|(at, (_, mean, _))| format!("{},{}", coordinate(place(at)), coordinate(y.at(*mean))))
        .collect();
    nodes.push(
        el("polyline")
            .class("s1 line")
            .attr("points", path.join(" ")),
    );
    for (at, (tier, mean, se)) in contrast.treatment.iter().enumerate() {
        let x = place(at);
        let ends = (y.at(mean - arm(*se)), y.at(mean + arm(*se)));
        nodes.push(line("s1 thin", x, ends.0, x, ends.1));
        for end in [ends.0, ends.1] {
            nodes.push(line("s1 thin", x - 6.0, end, x + 6.0, end));
        }
        nodes.push(marker(1, x, y.at(*mean), 5.5));
        let value = words::number(*mean, 3);
        // On the side of the point that the line to the next one leaves free.
        let rises = contrast
            .treatment
            .get(at + 1)
            .is_some_and(|next| next.1 > *mean);
        let below = if rises { 19.0 } else { -8.0 };
        nodes.push(label(
            "small",
            Anchor::Start,
            x + 11.0,
            y.at(*mean) + below,
            value,
        ));
        nodes.push(label(
            "",
            Anchor::Middle,
            x,
            BOTTOM + 20.0,
            fitting(tier, step - 8.0),
        ));
    }
    nodes.push(line("axis", LEFT, BOTTOM, RIGHT, BOTTOM));
    let middle = f64::midpoint(LEFT, RIGHT);
    nodes.push(label(
        "small quiet",
        Anchor::Middle,
        middle,
        BOTTOM + 40.0,
        "tier of the treatment",
    ));
    Some(Drawing {
        title: "Mean score by tier".to_owned(),
        description: contrast
            .treatment
            .iter()
            .map(|(tier, mean, se)| {
                format!(
                    "tier {tier}: {} standard error {}",
                    words::number(*mean, 3),
                    words::number(*se, 3)
                )
            })
            .chain([format!(
                "control: {} standard error {}",
                words::number(control, 3),
                words::number(control_se, 3)
            )])
            .collect::<Vec<_>>()
            .join("; "),
        caption: "Circles: mean total of the treatment at each tier, averaged over the scenarios. Dashed line: the \
                  control. Bars and band: 95 % intervals of the means (1.96 standard errors)."
            .to_owned(),
        width: WIDTH,
        height: BOTTOM + 50.0,
        nodes,
    })
}
