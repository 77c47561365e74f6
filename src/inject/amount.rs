//! Kubernetes quantities as exact amounts, so that `0.5Gi` and `512Mi` are the same and `32M` and `32Mi` are not.
//!
//! Only for comparing; amounts are never written back in another spelling.

/// Amounts are counted in billionths of a unit, the finest that the API keeps.
const NANO: i128 = 1_000_000_000;
/// More digits than any amount that fits the API (15 E in billionths has 28).
const MAX_DIGITS: usize = 30;

/// The amount in billionths, rounded up as the API does; nothing for a text that is no quantity.
pub fn parse(text: &str) -> Option<i128> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    if digits.trim_start_matches('0').len() > MAX_DIGITS {
        return None;
    }
    let mantissa: i128 = digits.parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let exponent = exponent - i32::try_from(fraction.len()).ok()?;
    let scaled = mantissa.checked_mul(factor)?.checked_mul(NANO)?;
    let magnitude = 10i128.checked_pow(exponent.unsigned_abs())?;
    let amount = if exponent >= 0 {
        scaled.checked_mul(magnitude)?
    } else {
        scaled / magnitude + i128::from(scaled % magnitude != 0)
    };
    Some(if negative { -amount } else { amount })
}

/// A suffix as a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1024i128.pow(power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let power: i32 = digits.parse().ok()?;
            (-18..=18).contains(&power).then_some((1, power))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_in_other_spellings_are_equal() {
        for (one, other) in [
            ("1000", "1k"),
            ("0.1", "100m"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.9Gi", "966367641600m"),
            ("1024Ki", "1Mi"),
            ("0.1m", "100u"),
            (".5", "500m"),
            ("128974848000m", "128974848"),
            ("0.30000000000000004", "300000001n"),
            ("1e3", "1000"),
            ("1E3", "1k"),
            ("1.", "+1"),
            ("-1", "-1000m"),
        ] {
            assert_eq!(parse(one), parse(other), "{one} and {other}");
            assert!(parse(one).is_some(), "{one}");
        }
        assert_ne!(parse("32M"), parse("32Mi"));
    }

    #[test]
    fn what_the_api_refuses_is_no_amount() {
        for text in [
            "1K", "1ki", "1 Gi", "1m5", "96MB", "", ".", "1.2.3", "wrong", "e3", "1e99",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
