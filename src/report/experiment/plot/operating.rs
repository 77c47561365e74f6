//! How often each row of the matrix is landed in when the truth is known.

use crate::experiment::analysis::model::Decision;
use crate::report::experiment::contents::{operating_rows, patterns, probability};
use crate::report::experiment::plot::{
    Anchor, Drawing, WIDTH, fitting, fitting_small, label, line, rect,
};
use crate::report::experiment::words;

const LEFT: f64 = 190.0;
const TOP: f64 = 30.0;
const ROW: f64 = 34.0;
/// Room for the per cent behind a bar.
const NUMBER: f64 = 58.0;

pub(super) fn draw(decision: &Decision) -> Option<Drawing> {
    let (patterns, rows) = (patterns(decision), operating_rows(decision));
    if patterns.is_empty() {
        return None;
    }
    let column = (WIDTH - LEFT) / patterns.len() as f64;
    let mut nodes = Vec::new();
    for (at, pattern) in patterns.iter().enumerate() {
        let x = LEFT + at as f64 * column;
        nodes.push(label(
            "head small",
            Anchor::Start,
            x,
            16.0,
            fitting_small(pattern, column - 8.0),
        ));
    }
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + at as f64 * ROW;
        let landed = decision.row.as_deref() == Some(*row);
        if landed {
            nodes.push(rect("mark", 0.0, y, WIDTH, ROW));
        }
        nodes.push(line("grid", 0.0, y, WIDTH, y));
        let name = match landed {
            true => format!("{row} (landed)"),
            false => (*row).to_owned(),
        };
        let class = if landed { "head" } else { "" };
        nodes.push(label(
            class,
            Anchor::Start,
            6.0,
            y + 21.0,
            fitting(&name, LEFT - 12.0),
        ));
        for (place, pattern) in patterns.iter().enumerate() {
            let x = LEFT + place as f64 * column;
            let Some(share) = probability(decision, pattern, row).filter(|p| p.is_finite()) else {
                continue;
            };
            let length = share.clamp(0.0, 1.0) * (column - NUMBER - 10.0);
            nodes.push(rect("s1 bar", x, y + 10.0, length.max(1.0), 14.0));
            let text = words::percent(share);
            nodes.push(label(
                "small",
                Anchor::Start,
                x + length + 6.0,
                y + 21.0,
                text,
            ));
        }
    }
    let bottom = TOP + rows.len() as f64 * ROW;
    nodes.push(line("grid", 0.0, bottom, WIDTH, bottom));
    Some(Drawing {
        title: "Operating characteristics of the decision matrix".to_owned(),
        description: "Probability of every row of the matrix for each pattern of true differences; the table below has \
                      the numbers."
            .to_owned(),
        caption: "Columns: true differences. Bars: how often a row is landed in at the planned size. Each column sums to 100 %."
            .to_owned(),
        width: WIDTH,
        height: bottom + 4.0,
        nodes,
    })
}
