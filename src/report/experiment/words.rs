//! How numbers and verdicts are written, the same in every format.
//!
//! Nothing here says that something is or is not there because of a p: the words for verdicts are those that were
//! registered, each with what it rests on.

use crate::experiment::analysis::model::{
    ArmSummary, Fragility, Interval, ScenarioResult, Verdict,
};
use crate::experiment::plan::Direction;
use crate::ids::ArmId;
use crate::report::document::{Cell, Tone};
use crate::report::numbers;
pub(super) use crate::report::numbers::{MISSING, count, maybe, number, p, percent, signed};

pub(super) fn interval(value: Interval) -> String {
    numbers::interval(value.low, value.high, signed)
}

/// An interval of something that has no sign to show.
pub(super) fn bare_interval(value: Interval, decimals: usize) -> String {
    numbers::interval(value.low, value.high, |end| number(end, decimals))
}

pub(super) fn maybe_interval(value: Option<Interval>) -> String {
    value.map_or_else(|| MISSING.to_owned(), interval)
}

/// `0.700x7 0.805x6 0.910x7`.
pub(super) fn levels(summary: &ArmSummary) -> String {
    numbers::levels(&summary.levels)
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
        Verdict::Invalid => {
            "too few runs count, too many were excluded, or the treatment was not delivered"
                .to_owned()
        }
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
