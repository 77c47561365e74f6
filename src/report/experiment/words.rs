//! How numbers and verdicts are written, the same in every format.
//!
//! Nothing here says that something is or is not there because of a p: the words for verdicts are those that were
//! registered, each with what it rests on.

use crate::experiment::analysis::model::{
    ArmSummary, Fragility, Interval, ScenarioResult, Verdict,
};
use crate::experiment::plan::Direction;
use crate::ids::{ArmId, MicroPoints};
use crate::report::experiment::document::{Cell, Tone};

/// What stands where there is no number.
pub(super) const MISSING: &str = "-";

/// Smaller probabilities are not told apart: the tail functions are good to about this.
const SMALLEST_P: f64 = 1e-12;

/// Below this a probability needs an exponent to show two digits.
const SMALL_P: f64 = 1e-4;

/// A plain number; nothing that is not one is ever printed.
pub(super) fn number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let text = format!("{value:.decimals$}");
    // -0.0 and what rounds to it has no sign.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => text,
    }
}

/// A difference, with its sign.
pub(super) fn signed(value: f64) -> String {
    let text = number(value, 3);
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    if text.starts_with('-') || is_zero {
        text
    } else {
        format!("+{text}")
    }
}

pub(super) fn maybe(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), write)
}

/// A probability of a test.
pub(super) fn p(value: f64) -> String {
    if !value.is_finite() {
        MISSING.to_owned()
    } else if value < SMALLEST_P {
        "< 1e-12".to_owned()
    } else if value < SMALL_P {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}")
    }
}

/// A share as per cent.
pub(super) fn percent(value: f64) -> String {
    if value.is_finite() {
        format!("{} %", number(value * 100.0, 1))
    } else {
        MISSING.to_owned()
    }
}

pub(super) fn interval(value: Interval) -> String {
    if value.low.is_finite() && value.high.is_finite() {
        format!("[{}, {}]", signed(value.low), signed(value.high))
    } else {
        MISSING.to_owned()
    }
}

/// An interval of something that has no sign to show.
pub(super) fn bare_interval(value: Interval, decimals: usize) -> String {
    if value.low.is_finite() && value.high.is_finite() {
        let end = |value| number(value, decimals);
        format!("[{}, {}]", end(value.low), end(value.high))
    } else {
        MISSING.to_owned()
    }
}

pub(super) fn maybe_interval(value: Option<Interval>) -> String {
    value.map_or_else(|| MISSING.to_owned(), interval)
}

/// `0.700x7 0.805x6 0.910x7`.
pub(super) fn levels(summary: &ArmSummary) -> String {
    if summary.levels.is_empty() {
        return MISSING.to_owned();
    }
    let parts: Vec<String> = summary
        .levels
        .iter()
        .map(|(level, count)| format!("{}x{count}", points(*level)))
        .collect();
    parts.join(" ")
}

/// Three decimals, or as many as the level has.
fn points(level: MicroPoints) -> String {
    if level.0.is_multiple_of(1000) {
        level.to_string()
    } else {
        let text = format!("{:.6}", level.as_f64());
        text.trim_end_matches('0').to_owned()
    }
}

pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Benefit => "benefit",
        Verdict::Harm => "harm",
        Verdict::Equivalent => "equivalent",
        Verdict::NoBenefit => "no benefit",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Degenerate => "degenerate",
        Verdict::Invalid => "invalid",
    }
}

/// What a verdict means, with the numbers that were registered for it.
pub(super) fn meaning(verdict: Verdict, sesoi: f64, alpha: f64) -> String {
    let m = number(sesoi, 3);
    let alpha = number(alpha, 3);
    match verdict {
        Verdict::Benefit => format!(
            "the simultaneous interval lies above 0 and the adjusted exact p is at most {alpha}"
        ),
        Verdict::Harm => format!(
            "the simultaneous interval lies below 0 and the adjusted exact p is at most {alpha}"
        ),
        Verdict::Equivalent => format!("the 90 % interval lies within -{m} and +{m}"),
        Verdict::NoBenefit => {
            format!("the interval ends below +{m}: a benefit of that size is excluded, harm is not")
        }
        Verdict::Inconclusive => {
            "the data exclude neither a difference that matters nor its absence".to_owned()
        }
        Verdict::Degenerate => "the scores do not vary enough for a test".to_owned(),
        Verdict::Invalid => "too few runs count, or too many were excluded".to_owned(),
    }
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Benefit => Tone::Good,
        Verdict::Harm => Tone::Bad,
        Verdict::Inconclusive | Verdict::Degenerate | Verdict::Invalid => Tone::Caution,
        Verdict::Equivalent | Verdict::NoBenefit => Tone::Plain,
    }
}

/// A scenario's verdict.
pub(super) fn scenario_cell(one: &ScenarioResult) -> Cell {
    let mut cell = verdict_cell(one.verdict, one.material, &one.fragile);
    if one.gated {
        cell.text.push_str(", gated");
        cell.tone = Tone::Caution;
    }
    cell
}

/// The verdict with what qualifies it.
pub(super) fn verdict_cell(one: Verdict, material: bool, fragile: &[Fragility]) -> Cell {
    let mut text = verdict(one).to_owned();
    if material {
        text.push_str(", material");
    }
    if !fragile.is_empty() {
        let flags: Vec<&str> = fragile.iter().map(|flag| fragility(*flag)).collect();
        text.push_str(&format!(", fragile:{}", flags.join(",")));
    }
    Cell::with(text, tone(one))
}

pub(super) fn fragility(flag: Fragility) -> &'static str {
    match flag {
        Fragility::Test => "test",
        Fragility::Exclusions => "exclusions",
        Fragility::Rubric => "rubric",
    }
}

pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "treatment higher",
        Direction::Lower => "treatment lower",
        Direction::Either => "either way",
    }
}

/// An arm with its tier.
pub(super) fn arm(arm: &ArmId, tier: Option<&str>) -> String {
    match tier {
        Some(tier) => format!("{arm}, tier {tier}"),
        None => arm.to_string(),
    }
}

pub(super) fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// `1 run`, `2 runs`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_are_never_printed() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(number(value, 3), MISSING);
            assert_eq!(signed(value), MISSING);
            assert_eq!(p(value), MISSING);
            assert_eq!(percent(value), MISSING);
            let broken = Interval {
                low: 0.0,
                high: value,
            };
            assert_eq!(interval(broken), MISSING);
        }
    }

    #[test]
    fn a_small_p_says_how_small_and_never_zero() {
        assert_eq!(p(0.0), "< 1e-12");
        assert_eq!(p(1.1e-32), "< 1e-12");
        assert_eq!(p(1.8e-6), "1.8e-6");
        assert_eq!(p(0.0377), "0.0377");
        assert_eq!(p(1.0), "1.0000");
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        assert_eq!(signed(-0.0001), "0.000");
        assert_eq!(signed(0.0), "0.000");
        assert_eq!(signed(0.095), "+0.095");
        assert_eq!(signed(-0.0125), "-0.013");
    }

    #[test]
    fn levels_that_three_decimals_cannot_tell_apart_are_written_out() {
        let summary = ArmSummary {
            n: 3,
            mean: None,
            sd: None,
            levels: vec![(MicroPoints(805_000), 2), (MicroPoints(805_250), 1)],
        };
        assert_eq!(levels(&summary), "0.805x2 0.80525x1");
    }
}
