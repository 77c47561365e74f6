//! How often each score was reached, per scenario and arm. Scores take few values, so levels say more than a mean.

use std::collections::BTreeMap;

use crate::experiment::analysis::model::{Analysis, ArmSummary, Comparison};
use crate::ids::ArmId;
use crate::report::experiment::plot::{
    Anchor, Drawing, Scale, WIDTH, decimals, fitting, label, line, rect, series, style_of,
};
use crate::report::experiment::words;
use crate::report::markup::{Node, coordinate, el};

const LEFT: f64 = 190.0;
const RIGHT: f64 = WIDTH - 20.0;
const STRIP: f64 = 68.0;
/// Room for the counts above the tallest bar.
const HEADROOM: f64 = 18.0;
const TITLE: f64 = 24.0;
const AXIS: f64 = 30.0;

/// More levels than these are drawn in steps of a hundredth.
const MOST_LEVELS: usize = 48;
/// More bars than these are drawn without their counts.
const MOST_COUNTS: usize = 20;
/// A hundredth of a point, in millionths.
const BIN: u32 = 10_000;

pub(super) fn draw(analysis: &Analysis, comparison: &Comparison) -> Option<Drawing> {
    let bars: Vec<[BTreeMap<u32, u32>; 2]> = comparison
        .scenarios
        .iter()
        .map(|one| [levels(&one.treatment), levels(&one.control)])
        .collect();
    let all = || bars.iter().flatten();
    let tallest = all().flat_map(|levels| levels.values()).copied().max()?;
    let lowest = all().flat_map(|levels| levels.keys()).copied().min()?;
    let highest = all().flat_map(|levels| levels.keys()).copied().max()?;
    let scale = Scale {
        domain: domain(lowest, highest),
        range: (LEFT + 8.0, RIGHT - 8.0),
    };
    let width = bar_width(&bars, &scale);
    let series = series(analysis);
    let arms = [
        (&comparison.treatment, comparison.tier.as_deref()),
        (&comparison.control, None),
    ];
    let mut nodes = Vec::new();
    let panel = TITLE + 2.0 * STRIP + AXIS;
    for (at, one) in comparison.scenarios.iter().enumerate() {
        let top = at as f64 * panel;
        let name = fitting(one.scenario.as_str(), WIDTH);
        nodes.push(label("head", Anchor::Start, 0.0, top + 15.0, name));
        for (strip, summary) in [&one.treatment, &one.control].into_iter().enumerate() {
            let (arm, tier) = arms[strip];
            let base = top + TITLE + (strip as f64 + 1.0) * STRIP;
            let look = Look {
                scale,
                base,
                unit: (STRIP - HEADROOM) / f64::from(tallest),
                width,
                style: style_of(&series, arm, tier),
            };
            named(&mut nodes, arm, tier, summary, base);
            strip_of(&mut nodes, &look, &bars[at][strip], summary);
        }
        ticks(&mut nodes, &scale, top + TITLE + 2.0 * STRIP);
    }
    Some(Drawing {
        title: format!(
            "Score levels of {} and {}",
            words::arm(&comparison.treatment, comparison.tier.as_deref()),
            comparison.control
        ),
        description: description(comparison),
        caption: "Runs by total score; the number above a bar counts them. The small triangle below a row is the arm's mean."
            .to_owned(),
        width: WIDTH,
        height: comparison.scenarios.len() as f64 * panel,
        nodes,
    })
}

struct Look {
    scale: Scale,
    /// Where the bars stand.
    base: f64,
    /// Height of one run.
    unit: f64,
    width: f64,
    style: usize,
}

fn levels(summary: &ArmSummary) -> BTreeMap<u32, u32> {
    let many = summary.levels.len() > MOST_LEVELS;
    let mut counts = BTreeMap::new();
    for (level, count) in &summary.levels {
        let level = if many {
            (level.0 + BIN / 2) / BIN * BIN
        } else {
            level.0
        };
        *counts.entry(level).or_insert(0) += count;
    }
    counts
}

/// Whole tenths around the scores, at least three of them.
fn domain(lowest: u32, highest: u32) -> (f64, f64) {
    let tenth = 100_000;
    let low = (lowest.saturating_sub(tenth / 5) / tenth) as f64 / 10.0;
    let high = (highest + tenth / 5).div_ceil(tenth).min(10) as f64 / 10.0;
    if high - low < 0.3 {
        ((high - 0.3).max(0.0), (high - 0.3).max(0.0) + 0.3)
    } else {
        (low, high)
    }
}

/// As wide as the nearest two levels allow.
fn bar_width(bars: &[[BTreeMap<u32, u32>; 2]], scale: &Scale) -> f64 {
    let gap = bars
        .iter()
        .flatten()
        .flat_map(|levels| {
            let keys: Vec<u32> = levels.keys().copied().collect();
            keys.windows(2)
                .map(|pair| f64::from(pair[1] - pair[0]) / 1e6)
                .collect::<Vec<_>>()
        })
        .fold(f64::INFINITY, f64::min);
    let unit = (scale.range.1 - scale.range.0) / (scale.domain.1 - scale.domain.0);
    (gap * unit * 0.85).clamp(2.0, 18.0)
}

fn named(nodes: &mut Vec<Node>, arm: &ArmId, tier: Option<&str>, summary: &ArmSummary, base: f64) {
    let name = fitting(&words::arm(arm, tier), LEFT - 20.0);
    let about = match summary.mean {
        Some(mean) => format!("n {}, mean {}", summary.n, words::number(mean, 3)),
        None => format!("n {}", summary.n),
    };
    nodes.push(label("", Anchor::Start, 0.0, base - 22.0, name));
    nodes.push(label("small quiet", Anchor::Start, 0.0, base - 7.0, about));
}

fn strip_of(nodes: &mut Vec<Node>, look: &Look, bars: &BTreeMap<u32, u32>, summary: &ArmSummary) {
    let base = look.base;
    nodes.push(line("axis", LEFT, base, RIGHT, base));
    // The control's bars are outlined: told apart without colour as well.
    let class = if look.style == 0 { "s0 hollow" } else { "" };
    for (level, count) in bars {
        let x = look.scale.at(f64::from(*level) / 1e6);
        let height = f64::from(*count) * look.unit;
        let class = match class {
            "" => format!("s{} bar", look.style),
            class => class.to_owned(),
        };
        nodes.push(rect(
            &class,
            x - look.width / 2.0,
            base - height,
            look.width,
            height,
        ));
        if bars.len() <= MOST_COUNTS {
            let y = base - height - 4.0;
            nodes.push(label("small", Anchor::Middle, x, y, count.to_string()));
        }
    }
    if let Some(mean) = summary.mean.filter(|mean| mean.is_finite()) {
        let x = look.scale.at(mean);
        let corner = |dx: f64, dy: f64| format!("{},{}", coordinate(x + dx), coordinate(base + dy));
        let corners = [corner(0.0, 1.5), corner(-4.5, 9.0), corner(4.5, 9.0)];
        nodes.push(
            el("polygon")
                .class(format!("s{}", look.style))
                .attr("points", corners.join(" ")),
        );
    }
}

fn ticks(nodes: &mut Vec<Node>, scale: &Scale, y: f64) {
    let ticks = scale.ticks(6);
    let places = decimals(&ticks);
    for tick in &ticks {
        let x = scale.at(*tick);
        nodes.push(line("axis", x, y, x, y + 4.0));
        let text = words::number(*tick, places);
        nodes.push(label("small quiet", Anchor::Middle, x, y + 21.0, text));
    }
}

fn description(comparison: &Comparison) -> String {
    let parts: Vec<String> = comparison
        .scenarios
        .iter()
        .map(|one| {
            format!(
                "{}: treatment {}; control {}",
                one.scenario,
                words::levels(&one.treatment),
                words::levels(&one.control)
            )
        })
        .collect();
    parts.join(". ")
}
