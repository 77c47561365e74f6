//! How numbers are written in reports: the same in every format, and never what is none.

use crate::ids::MicroPoints;

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

pub(super) fn interval(low: f64, high: f64, write: impl Fn(f64) -> String) -> String {
    if low.is_finite() && high.is_finite() {
        format!("[{}, {}]", write(low), write(high))
    } else {
        MISSING.to_owned()
    }
}

/// `0.700x7 0.805x6 0.910x7`.
pub(super) fn levels(levels: &[(MicroPoints, u32)]) -> String {
    if levels.is_empty() {
        return MISSING.to_owned();
    }
    let parts: Vec<String> = levels
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
            assert_eq!(interval(0.0, value, signed), MISSING);
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
        let told = [(MicroPoints(805_000), 2), (MicroPoints(805_250), 1)];
        assert_eq!(levels(&told), "0.805x2 0.80525x1");
    }
}
