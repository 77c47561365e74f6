//! Plots as inline SVG. Everything that a colour says a shape or a word says too, and a table beside every plot has
//! its numbers.

mod dose;
mod exposure;
mod flow;
mod forest;
mod levels;
mod operating;
mod order;

use crate::experiment::analysis::model::Analysis;
use crate::ids::ArmId;
use crate::report::document::Figure;
use crate::report::experiment::words;
use crate::report::markup::{Node, coordinate, el};
use crate::report::printable;

/// Units across every plot; on paper and screen it is scaled to the column.
const WIDTH: f64 = 820.0;

/// Arms and tiers told apart by colour and shape; beyond these the last serves for all.
const STYLES: usize = 6;

/// Width of a character of 12.5 units, on the safe side.
const CHARACTER: f64 = 6.9;

/// And of one of 11 units.
const SMALL_CHARACTER: f64 = 5.9;

struct Drawing {
    /// Says what is drawn.
    title: String,
    /// Says what is seen, for who does not see it.
    description: String,
    caption: String,
    width: f64,
    height: f64,
    nodes: Vec<Node>,
}

/// The plot, or nothing where there is nothing to draw.
pub(super) fn figure(figure: Figure, analysis: &Analysis) -> Option<Node> {
    let drawing = match figure {
        Figure::Flow => flow::draw(analysis),
        Figure::Exposure => exposure::draw(analysis),
        Figure::Operating => operating::draw(&analysis.decision),
        Figure::Forest(at) => forest::draw(analysis, analysis.comparisons.get(at)?),
        Figure::Levels(at) => levels::draw(analysis, analysis.comparisons.get(at)?),
        Figure::Order => order::draw(analysis),
        Figure::Dose => dose::draw(analysis.tiers.as_ref()?),
    }?;
    let name = match figure {
        Figure::Flow => "flow".to_owned(),
        Figure::Exposure => "exposure".to_owned(),
        Figure::Operating => "operating".to_owned(),
        Figure::Forest(at) => format!("forest-{at}"),
        Figure::Levels(at) => format!("levels-{at}"),
        Figure::Order => "order".to_owned(),
        Figure::Dose => "dose".to_owned(),
    };
    Some(drawing.framed(&name))
}

impl Drawing {
    fn framed(self, name: &str) -> Node {
        let (title, description) = (format!("plot-{name}-title"), format!("plot-{name}-desc"));
        let svg = el("svg")
            .attr("id", format!("plot-{name}"))
            .attr(
                "viewBox",
                format!("0 0 {} {}", coordinate(self.width), coordinate(self.height)),
            )
            .attr("role", "img")
            .attr("aria-labelledby", format!("{title} {description}"))
            .child(el("title").attr("id", &title).text(&self.title))
            .child(el("desc").attr("id", &description).text(&self.description))
            .children(self.nodes);
        el("figure")
            .child(
                el("div")
                    .class("scroll")
                    .attr("tabindex", 0)
                    .attr("role", "region")
                    .attr("aria-label", &self.title)
                    .child(svg),
            )
            .child(
                el("figcaption")
                    .child(el("strong").text(format!("{}.", self.title)))
                    .text(" ")
                    .text(&self.caption),
            )
    }
}

/// From values to units.
#[derive(Clone, Copy)]
struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        self.range.0 + share.clamp(0.0, 1.0) * (self.range.1 - self.range.0)
    }

    /// Round values, about `wanted` of them, within the domain.
    fn ticks(&self, wanted: usize) -> Vec<f64> {
        let (low, high) = self.domain;
        let step = nice_step(high - low, wanted);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

/// 1, 2 or 5 times a power of ten.
fn nice_step(span: f64, wanted: usize) -> f64 {
    let rough = span.max(1e-6) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    step.into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power)
}

/// Decimals that tell ticks apart.
fn decimals(ticks: &[f64]) -> usize {
    let step = match ticks {
        [first, second, ..] => second - first,
        _ => 0.1,
    };
    (1..=4)
        .find(|places| {
            let scaled = step * 10f64.powi(*places as i32);
            (scaled - scaled.round()).abs() < 1e-6
        })
        .unwrap_or(3)
}

/// Arms and tiers as the plots tell them apart.
struct Series {
    arm: ArmId,
    tier: Option<String>,
    label: String,
    style: usize,
}

/// The control first, then treatments as the plan lists them.
fn series(analysis: &Analysis) -> Vec<Series> {
    let control = analysis.registration.control.clone();
    let mut all = vec![Series {
        label: match control.as_str() {
            "control" => "control".to_owned(),
            other => format!("{other} (control)"),
        },
        arm: control,
        tier: None,
        style: 0,
    }];
    let flow = analysis.flow.iter().map(|row| (&row.arm, &row.tier));
    let compared = analysis.comparisons.iter();
    for (arm, tier) in flow.chain(compared.map(|one| (&one.treatment, &one.tier))) {
        let known = all.iter().any(|one| one.arm == *arm && one.tier == *tier);
        if !known {
            all.push(Series {
                arm: arm.clone(),
                tier: tier.clone(),
                label: words::arm(arm, tier.as_deref()),
                style: all.len().min(STYLES - 1),
            });
        }
    }
    all
}

fn style_of(series: &[Series], arm: &ArmId, tier: Option<&str>) -> usize {
    series
        .iter()
        .find(|one| one.arm == *arm && one.tier.as_deref() == tier)
        .map_or(STYLES - 1, |one| one.style)
}

/// Each style has its shape: hollow square, circle, triangle, diamond, hollow circle, cross.
fn marker(style: usize, x: f64, y: f64, radius: f64) -> Node {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners
            .iter()
            .map(|(dx, dy)| {
                format!(
                    "{},{}",
                    coordinate(x + dx * radius),
                    coordinate(y + dy * radius)
                )
            })
            .collect();
        el("polygon").attr("points", corners.join(" "))
    };
    let circle = || el("circle").at("cx", x).at("cy", y).at("r", radius);
    match style {
        0 => el("rect")
            .at("x", x - 0.9 * radius)
            .at("y", y - 0.9 * radius)
            .at("width", 1.8 * radius)
            .at("height", 1.8 * radius)
            .class("s0 hollow"),
        1 => circle().class("s1"),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]).class("s2"),
        3 => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]).class("s3"),
        4 => circle().class("s4 hollow"),
        _ => polygon(&[(-1.1, -0.8), (1.1, -0.8), (0.0, 1.2)]).class("s5 hollow"),
    }
}

fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Node {
    el("line")
        .class(class)
        .at("x1", x1)
        .at("y1", y1)
        .at("x2", x2)
        .at("y2", y2)
}

fn rect(class: &str, x: f64, y: f64, width: f64, height: f64) -> Node {
    el("rect")
        .class(class)
        .at("x", x)
        .at("y", y)
        .at("width", width.max(0.0))
        .at("height", height.max(0.0))
}

#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

fn label(class: &str, anchor: Anchor, x: f64, y: f64, text: impl AsRef<str>) -> Node {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    el("text")
        .class(class)
        .attr("text-anchor", anchor)
        .at("x", x)
        .at("y", y)
        .text(text)
}

/// Cut to a width; ids and labels may be of any length.
fn fitting(text: &str, width: f64) -> String {
    printable::short(text, (width / CHARACTER).max(4.0) as usize)
}

/// As [`fitting`], for small letters.
fn fitting_small(text: &str, width: f64) -> String {
    printable::short(text, (width / SMALL_CHARACTER).max(4.0) as usize)
}

/// Markers with their names in a row, wrapped; answers the height used.
fn legend(nodes: &mut Vec<Node>, series: &[Series], x: f64, y: f64) -> f64 {
    let (mut across, mut down) = (x, y);
    for one in series {
        let text = fitting(&one.label, 320.0);
        let width = 26.0 + text.chars().count() as f64 * CHARACTER;
        if across > x && across + width > WIDTH {
            (across, down) = (x, down + 20.0);
        }
        nodes.push(marker(one.style, across + 6.0, down - 4.0, 4.5));
        nodes.push(label("", Anchor::Start, across + 17.0, down, text));
        across += width;
    }
    down - y + 20.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = |low, high| Scale {
            domain: (low, high),
            range: (0.0, 100.0),
        };
        let shown = |low, high| -> Vec<String> {
            let ticks = scale(low, high).ticks(5);
            let places = decimals(&ticks);
            ticks.iter().map(|t| words::number(*t, places)).collect()
        };
        assert_eq!(shown(-0.11, 0.23), ["-0.1", "0.0", "0.1", "0.2"]);
        assert_eq!(shown(0.5, 1.0), ["0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]);
        assert_eq!(shown(0.4, 1.0).first().map(String::as_str), Some("0.4"));
        assert_eq!(scale(0.4, 0.4).at(0.4), 50.0);
    }
}
