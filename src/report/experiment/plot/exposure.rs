//! What runs were served: whether the treatment reached those that it was meant for, and nobody else.

use crate::experiment::analysis::model::{Analysis, ExposureRow};
use crate::report::experiment::plot::{
    Anchor, Drawing, WIDTH, fitting, label, line, marker, rect, series, style_of,
};
use crate::report::experiment::words;
use crate::report::markup::Node;

const LEFT: f64 = 250.0;
const RIGHT: f64 = 560.0;
const ROW: f64 = 24.0;
const HEAD: f64 = 24.0;

pub(super) fn draw(analysis: &Analysis) -> Option<Drawing> {
    let rows = &analysis.manipulation.exposure;
    if rows.is_empty() {
        return None;
    }
    let series = series(analysis);
    let mut nodes = Vec::new();
    let mut y = 0.0;
    let mut scenario = None;
    for row in rows {
        if scenario != Some(&row.scenario) {
            if scenario.is_some() {
                y += 10.0;
            }
            let name = fitting(row.scenario.as_str(), WIDTH);
            nodes.push(label("head", Anchor::Start, 0.0, y + 15.0, name));
            y += HEAD;
            scenario = Some(&row.scenario);
        }
        let style = style_of(&series, &row.arm, row.tier.as_deref());
        bar(&mut nodes, row, style, y);
        y += ROW;
    }
    for (share, text) in [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")] {
        let x = LEFT + share * (RIGHT - LEFT);
        nodes.push(line("axis", x, y + 2.0, x, y + 7.0));
        nodes.push(label("small quiet", Anchor::Middle, x, y + 21.0, text));
    }
    nodes.push(line("axis", LEFT, y + 2.0, RIGHT, y + 2.0));
    Some(Drawing {
        title: "Share of runs that were served anything".to_owned(),
        description: rows
            .iter()
            .map(|row| {
                format!(
                    "{}, {}: {} of {}",
                    row.scenario,
                    words::arm(&row.arm, row.tier.as_deref()),
                    row.exposed,
                    row.runs
                )
            })
            .collect::<Vec<_>>()
            .join("; "),
        caption: "Bars: share of runs that were served at least one past incident. A control must stand at 0."
            .to_owned(),
        width: WIDTH,
        height: y + 28.0,
        nodes,
    })
}

fn bar(nodes: &mut Vec<Node>, row: &ExposureRow, style: usize, y: f64) {
    let name = fitting(&words::arm(&row.arm, row.tier.as_deref()), LEFT - 34.0);
    nodes.push(marker(style, 8.0, y + 11.0, 4.5));
    nodes.push(label("", Anchor::Start, 20.0, y + 15.0, name));
    nodes.push(rect("band", LEFT, y + 4.0, RIGHT - LEFT, 14.0));
    let share = f64::from(row.exposed) / f64::from(row.runs.max(1));
    let length = share.min(1.0) * (RIGHT - LEFT);
    if row.exposed > 0 {
        nodes.push(rect(&format!("s{style} bar"), LEFT, y + 4.0, length, 14.0));
    }
    let mut text = format!("{} of {}", row.exposed, row.runs);
    if row.exposed > 0 {
        text.push_str(&format!(
            ", {} served on average",
            words::number(row.mean_served, 1)
        ));
    }
    nodes.push(label("small", Anchor::Start, RIGHT + 14.0, y + 15.0, text));
}
