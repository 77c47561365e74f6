//! CSV for R, Python and spreadsheets: numbers are numbers with all their digits, text is quoted and never a formula.

use crate::experiment::analysis::model::{
    Analysis, Comparison, Fragility, Interval, Pooled, ScenarioResult, Verdict,
};
use crate::report::experiment::words;
use crate::report::printable;

/// A spreadsheet takes text that begins so for a formula; the last four are the wide forms of the first four.
const FORMULA_STARTS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

enum Value<'a> {
    Text(&'a str),
    Owned(String),
    Whole(u64),
    /// Nothing where it is unknown or no number.
    Real(Option<f64>),
    Flag(bool),
}

pub(super) fn runs(analysis: &Analysis) -> String {
    let headings = [
        "registration",
        "order",
        "block",
        "scenario",
        "arm",
        "is_control",
        "tier",
        "total",
        "timeout",
        "simulation",
        "confirmatory",
    ];
    let note = &analysis.registration;
    let rows = analysis.runs.iter().map(|run| {
        let simulation = note
            .arms
            .iter()
            .any(|arm| arm.id == run.arm && arm.simulation);
        vec![
            Value::Text(note.hash.as_str()),
            Value::Whole(run.order),
            Value::Whole(u64::from(run.block)),
            Value::Text(run.scenario.as_str()),
            Value::Text(run.arm.as_str()),
            Value::Flag(run.arm == note.control),
            Value::Text(run.tier.as_deref().unwrap_or_default()),
            Value::Real(Some(run.total.as_f64())),
            Value::Flag(run.timeout),
            Value::Flag(simulation),
            Value::Flag(analysis.standing.confirmatory),
        ]
    });
    write(&headings, rows)
}

const RESULT_HEADINGS: &[&str] = &[
    "registration",
    "confirmatory",
    "simulation",
    "treatment",
    "control",
    "tier",
    "primary",
    "scenario",
    "is_pooled",
    "n_treatment",
    "mean_treatment",
    "sd_treatment",
    "n_control",
    "mean_control",
    "sd_control",
    "delta",
    "se",
    "t",
    "df",
    "ci95_low",
    "ci95_high",
    "ci_simultaneous_low",
    "ci_simultaneous_high",
    "p_welch",
    "p_permutation",
    "mid_p",
    "p",
    "p_adjusted",
    "p_hat",
    "p_brunner_munzel",
    "hedges_g",
    "hedges_g_low",
    "hedges_g_high",
    "p_tost",
    "ci90_low",
    "ci90_high",
    "p_sign_flip",
    "rho",
    "verdict",
    "material",
    "fragile",
    "gated",
];

pub(super) fn results(analysis: &Analysis) -> String {
    let mut rows = Vec::new();
    for comparison in &analysis.comparisons {
        for one in &comparison.scenarios {
            let mut row = opening(analysis, comparison);
            row.extend([Value::Text(one.scenario.as_str()), Value::Flag(false)]);
            row.extend(scenario_numbers(one));
            row.extend(closing(one.verdict, one.material, &one.fragile));
            row.push(Value::Flag(one.gated));
            rows.push(row);
        }
        if let Some(pooled) = &comparison.pooled {
            let mut row = opening(analysis, comparison);
            row.extend([Value::Text(""), Value::Flag(true)]);
            row.extend(pooled_numbers(pooled));
            row.extend(closing(pooled.verdict, pooled.material, &pooled.fragile));
            row.push(Value::Flag(false));
            rows.push(row);
        }
    }
    write(RESULT_HEADINGS, rows)
}

fn opening<'a>(analysis: &'a Analysis, comparison: &'a Comparison) -> Vec<Value<'a>> {
    let note = &analysis.registration;
    vec![
        Value::Text(note.hash.as_str()),
        Value::Flag(analysis.standing.confirmatory),
        Value::Flag(note.simulation),
        Value::Text(comparison.treatment.as_str()),
        Value::Text(comparison.control.as_str()),
        Value::Text(comparison.tier.as_deref().unwrap_or_default()),
        Value::Flag(comparison.primary),
    ]
}

fn closing<'a>(verdict: Verdict, material: bool, fragile: &[Fragility]) -> [Value<'a>; 3] {
    let flags: Vec<&str> = fragile.iter().map(|flag| words::fragility(*flag)).collect();
    [
        Value::Text(words::verdict(verdict)),
        Value::Flag(material),
        Value::Owned(flags.join(" ")),
    ]
}

/// From `n_treatment` to `rho`.
fn scenario_numbers(one: &ScenarioResult) -> Vec<Value<'static>> {
    let welch = one.welch.as_ref();
    let bm = one.brunner_munzel.as_ref();
    let mut row = vec![
        Value::Whole(u64::from(one.treatment.n)),
        Value::Real(one.treatment.mean),
        Value::Real(one.treatment.sd),
        Value::Whole(u64::from(one.control.n)),
        Value::Real(one.control.mean),
        Value::Real(one.control.sd),
        Value::Real(one.delta),
        Value::Real(welch.map(|one| one.se)),
        Value::Real(welch.map(|one| one.t)),
        Value::Real(welch.map(|one| one.df)),
    ];
    row.extend(ends(one.ci95));
    row.extend(ends(one.ci_simultaneous));
    row.extend(
        [
            welch.map(|one| one.p),
            one.permutation.as_ref().map(|one| one.p),
            one.permutation.as_ref().and_then(|one| one.mid_p),
            one.p,
            one.p_adjusted,
            bm.map(|one| one.p_hat),
            bm.and_then(|one| one.p),
            one.hedges_g.map(|(g, _)| g),
        ]
        .map(Value::Real),
    );
    row.extend(ends(one.hedges_g.map(|(_, interval)| interval)));
    row.push(Value::Real(one.tost.map(|one| one.p)));
    row.extend(ends(one.tost.map(|one| one.ci90)));
    row.push(Value::Real(one.paired.map(|one| one.p_sign_flip)));
    row.push(Value::Real(one.paired.and_then(|one| one.rho)));
    row
}

/// The same columns; what a pooled estimate does not have is empty.
fn pooled_numbers(pooled: &Pooled) -> Vec<Value<'static>> {
    let none = || Value::Real(None);
    let mut row: Vec<Value<'static>> = (0..6).map(|_| none()).collect();
    row.extend([Some(pooled.estimate), Some(pooled.se), pooled.t, pooled.df].map(Value::Real));
    row.extend(ends(pooled.ci95));
    row.extend(ends(None));
    row.extend(
        [
            pooled.p_t,
            None,
            None,
            Some(pooled.p),
            None,
            None,
            None,
            None,
        ]
        .map(Value::Real),
    );
    row.extend(ends(None));
    row.push(Value::Real(pooled.tost.map(|one| one.p)));
    row.extend(ends(pooled.tost.map(|one| one.ci90)));
    row.extend([none(), none()]);
    row
}

fn ends(interval: Option<Interval>) -> [Value<'static>; 2] {
    [
        Value::Real(interval.map(|one| one.low)),
        Value::Real(interval.map(|one| one.high)),
    ]
}

fn write<'a>(headings: &[&str], rows: impl IntoIterator<Item = Vec<Value<'a>>>) -> String {
    let mut out = headings.join(",");
    out.push('\n');
    for row in rows {
        let cells: Vec<String> = row.into_iter().map(Value::cell).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

impl Value<'_> {
    /// Text is always quoted, numbers never: an arm named `1e5` is text.
    fn cell(self) -> String {
        match self {
            Value::Text(text) => quoted(text),
            Value::Owned(text) => quoted(&text),
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => number
                .filter(|number| number.is_finite())
                .map(|number| number.to_string())
                .unwrap_or_default(),
            Value::Flag(flag) => (if flag { "TRUE" } else { "FALSE" }).to_owned(),
        }
    }
}

/// A leading apostrophe makes a spreadsheet take the rest for text.
fn quoted(text: &str) -> String {
    let mark = if text.trim_start_matches(' ').starts_with(FORMULA_STARTS) {
        "'"
    } else {
        ""
    };
    let safe = printable::line(text).replace('"', "\"\"");
    format!("\"{mark}{safe}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_a_formula_and_numbers_stay_numbers() {
        for (text, expected) in [
            ("=1+1", "\"'=1+1\""),
            (" @SUM(A1)", "\"' @SUM(A1)\""),
            ("-2", "\"'-2\""),
            ("\tx", "\"'\\tx\""),
            ("say \"hi\", you", "\"say \"\"hi\"\", you\""),
            ("one\r\ntwo", "\"one\\r\\ntwo\""),
            ("plain", "\"plain\""),
        ] {
            assert_eq!(Value::Text(text).cell(), expected, "{text:?}");
        }
        assert_eq!(Value::Real(Some(-0.012)).cell(), "-0.012");
        assert_eq!(Value::Real(Some(f64::NAN)).cell(), "");
        assert_eq!(Value::Real(None).cell(), "");
    }

    #[test]
    fn every_row_of_results_has_a_cell_for_every_heading() {
        let numbers = RESULT_HEADINGS
            .iter()
            .position(|heading| *heading == "verdict")
            .expect("it is a heading")
            - 9;
        let pooled = Pooled {
            weights: Vec::new(),
            estimate: 0.1,
            se: 0.1,
            t: None,
            df: None,
            ci95: None,
            tost: None,
            p_t: None,
            p: 0.5,
            method: String::new(),
            cochran_q: None,
            unlike_effects: false,
            verdict: Verdict::Inconclusive,
            material: false,
            fragile: Vec::new(),
        };
        assert_eq!(pooled_numbers(&pooled).len(), numbers);
    }
}
