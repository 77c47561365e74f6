//! Kubernetes quantities (`500m`, `1.5Gi`, `1e3`) in exact arithmetic.
//!
//! Amounts are whole numbers of nano units in an `i128`; nothing here goes through floating point. Finer
//! digits are rounded away from zero and amounts beyond an `i64` of whole units are capped, as the API server
//! does. A spelling that is not a quantity is an error, never zero. Comparison is by amount, not by text.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// Nano units in one unit.
const UNIT: i128 = 1_000_000_000;

/// The largest amount that is kept; larger ones are capped, as the API server's 64-bit integers do.
const MAX_NANOS: i128 = (i64::MAX as i128) * UNIT;

/// Powers of ten beyond this leave no difference between capped or rounded results.
const MAX_EXPONENT: u32 = 60;

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY_SUFFIXES: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// Which family of suffixes an amount is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// An amount of a resource.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity: \"{0}\"")]
pub struct QuantityError(pub String);

impl Quantity {
    pub const ZERO: Quantity = Quantity {
        nanos: 0,
        format: Format::Decimal,
    };

    /// A whole number of units, printed with decimal suffixes.
    pub const fn units(units: i64) -> Quantity {
        Quantity {
            nanos: units as i128 * UNIT,
            format: Format::Decimal,
        }
    }

    /// Thousandths of a unit, printed with decimal suffixes: `millis(250)` is `250m`.
    pub const fn millis(millis: i64) -> Quantity {
        Quantity {
            nanos: millis as i128 * (UNIT / 1000),
            format: Format::Decimal,
        }
    }

    /// A number of bytes, printed with binary suffixes.
    pub const fn bytes(bytes: i64) -> Quantity {
        Quantity {
            nanos: bytes as i128 * UNIT,
            format: Format::Binary,
        }
    }

    /// Reads a quantity as it stands in manifests.
    ///
    /// # Errors
    /// When the text is not a number followed by a known suffix or exponent.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        parse(text).ok_or_else(|| QuantityError(text.to_owned()))
    }

    /// Reads a quantity from JSON, where it may stand as a string or as a number.
    ///
    /// # Errors
    /// When the value is neither, or is not a quantity.
    pub fn from_json(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            other => Err(QuantityError(other.to_string())),
        }
    }

    /// The amount in billionths of a unit.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// The amount in thousandths of a unit, rounded away from zero.
    pub fn milli_value(self) -> i64 {
        to_i64(divide_away_from_zero(self.nanos, UNIT / 1000))
    }

    /// The amount in whole units, rounded away from zero.
    pub fn value(self) -> i64 {
        to_i64(divide_away_from_zero(self.nanos, UNIT))
    }

    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The sum; printed like `self`, or like `other` when `self` is zero.
    #[must_use]
    pub fn plus(self, other: Quantity) -> Quantity {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Quantity {
            nanos: cap(self.nanos + other.nanos),
            format,
        }
    }

    /// The difference, which may be negative; printed like `self`, or like `other` when `self` is zero.
    #[must_use]
    pub fn minus(self, other: Quantity) -> Quantity {
        self.plus(Quantity {
            nanos: -other.nanos,
            format: other.format,
        })
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The canonical spelling: the largest suffix that needs no fraction.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = self.nanos.abs() < 1024 * UNIT;
        match self.format {
            Format::Binary if !small && self.nanos % UNIT == 0 => binary_text(self.nanos / UNIT, f),
            Format::Exponent => decimal_text(self.nanos, true, f),
            Format::Binary | Format::Decimal => decimal_text(self.nanos, false, f),
        }
    }
}

fn binary_text(mut units: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut suffix = "";
    for (name, _) in BINARY_SUFFIXES {
        if units % 1024 != 0 {
            break;
        }
        units /= 1024;
        suffix = name;
    }
    write!(f, "{units}{suffix}")
}

fn decimal_text(nanos: i128, exponent: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if nanos == 0 {
        return f.write_str("0");
    }
    let mut number = nanos;
    let mut step = 0;
    while number % 1000 == 0 && step + 1 < DECIMAL_SUFFIXES.len() {
        number /= 1000;
        step += 1;
    }
    let (suffix, power) = DECIMAL_SUFFIXES[step];
    if exponent && power != 0 {
        write!(f, "{number}e{power}")
    } else {
        write!(f, "{number}{suffix}")
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let scale = suffix_of(suffix)?;
    let digits = Digits::new(whole, fraction);
    let amount = match scale {
        Scale::Ten(power) => digits.scaled(power, 1),
        Scale::Two(bits) => digits.scaled(0, 1i128 << bits),
    };
    let format = match scale {
        Scale::Two(_) => Format::Binary,
        Scale::Ten(_) if suffix.len() > 1 => Format::Exponent,
        Scale::Ten(_) => Format::Decimal,
    };
    Some(Quantity {
        nanos: if negative { -amount } else { amount },
        format,
    })
}

#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

fn suffix_of(suffix: &str) -> Option<Scale> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Ten(*power));
    }
    if let Some((_, bits)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Two(*bits));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let limit = i32::try_from(MAX_EXPONENT).unwrap_or(i32::MAX);
    // Longer exponents than an i32 holds only say "far beyond either end".
    let power = unsigned.parse::<i32>().unwrap_or(limit).min(limit);
    Some(Scale::Ten(if exponent.starts_with('-') {
        -power
    } else {
        power
    }))
}

/// A decimal number: `mantissa * 10^-decimals`, or `None` when it is beyond what can be kept.
struct Digits {
    mantissa: Option<i128>,
    decimals: i32,
    /// Digits were cut off that were not all zero.
    inexact: bool,
}

/// Digits after the point that can matter: nano units of an `Ei` amount need 9 + 19.
const DECIMALS_KEPT: usize = 18;

impl Digits {
    fn new(whole: &str, fraction: &str) -> Digits {
        let kept = &fraction[..fraction.len().min(DECIMALS_KEPT)];
        let inexact = fraction[kept.len()..].bytes().any(|b| b != b'0');
        let mut mantissa = Some(0i128);
        for digit in whole.bytes().chain(kept.bytes()) {
            mantissa = mantissa
                .and_then(|m| m.checked_mul(10))
                .and_then(|m| m.checked_add(i128::from(digit - b'0')));
        }
        Digits {
            mantissa,
            decimals: i32::try_from(kept.len()).unwrap_or(0),
            inexact,
        }
    }

    /// The amount in nano units after multiplying by `10^power * factor`, rounded up and capped.
    fn scaled(&self, power: i32, factor: i128) -> i128 {
        let Some(product) = self.mantissa.and_then(|m| m.checked_mul(factor)) else {
            return MAX_NANOS;
        };
        if product == 0 {
            return i128::from(self.inexact);
        }
        let shift = power + 9 - self.decimals;
        let magnitude = shift.unsigned_abs();
        let nanos = match 10i128.checked_pow(magnitude) {
            Some(ten) if shift >= 0 => product.checked_mul(ten).unwrap_or(MAX_NANOS),
            Some(ten) => {
                let rest = product % ten != 0 || self.inexact;
                product / ten + i128::from(rest)
            }
            None if shift >= 0 => MAX_NANOS,
            None => 1,
        };
        cap(nanos)
    }
}

fn cap(nanos: i128) -> i128 {
    nanos.clamp(-MAX_NANOS, MAX_NANOS)
}

fn divide_away_from_zero(amount: i128, by: i128) -> i128 {
    let rest = amount % by;
    amount / by + rest.signum()
}

fn to_i64(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).unwrap().to_string()
    }

    #[test]
    fn amounts_are_read_back_in_their_canonical_spelling() {
        for (written, read_back) in [
            ("1000", "1k"),
            ("0.1", "100m"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.9Gi", "966367641600m"),
            ("1024Ki", "1Mi"),
            ("0.1m", "100u"),
            ("1500u", "1500u"),
            (".5", "500m"),
            ("128974848000m", "128974848"),
            ("0.30000000000000004", "300000001n"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1.", "1"),
            ("+1", "1"),
            ("-1", "-1"),
            ("1Pi", "1Pi"),
            ("1Ei", "1Ei"),
            ("2E", "2E"),
            ("0.5Ki", "512"),
            ("0", "0"),
            ("0Mi", "0"),
            ("12e6", "12e6"),
            ("100e-3", "100e-3"),
            ("24566696Ki", "24566696Ki"),
        ] {
            assert_eq!(canonical(written), read_back, "{written}");
        }
    }

    #[test]
    fn bad_spellings_are_errors_and_never_zero() {
        for text in [
            "1K", "1ki", "1 Gi", "1m5", "96MB", "", ".", "+", "-", "Mi", "1..2", "1.2.3", "1e",
            "1e+", "0x10", "1,5", " 1", "1 ", "--1", "1Zi", "NaN", "１",
        ] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn comparison_is_by_amount_and_not_by_spelling() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert_eq!(parse("0.5"), parse("500m"));
        assert_eq!(parse("1e3"), parse("1k"));
        assert_eq!(parse("1Gi"), parse("1024Mi"));
        assert_ne!(parse("32M"), parse("32Mi"));
        assert!(parse("32M") < parse("32Mi"));
    }

    #[test]
    fn amounts_beyond_64_bits_are_capped() {
        for text in [
            "9223372036854775808",
            "8Ei",
            "1e40",
            "1e999999999999",
            "99999999999999999999999999999999999999999",
        ] {
            assert_eq!(Quantity::parse(text).unwrap().value(), i64::MAX, "{text}");
        }
        assert_eq!(Quantity::parse("1e-60").unwrap().nanos(), 1);
    }

    #[test]
    fn json_numbers_and_strings_are_the_same_amount() {
        let parse = |value| Quantity::from_json(&value).unwrap();
        assert_eq!(parse(serde_json::json!(2)), parse(serde_json::json!("2")));
        assert_eq!(
            parse(serde_json::json!(0.5)),
            parse(serde_json::json!("500m"))
        );
        assert!(Quantity::from_json(&Value::Null).is_err());
    }

    #[test]
    fn whole_and_milli_values_round_up() {
        let amount = Quantity::parse("1500001n").unwrap();
        assert_eq!(amount.milli_value(), 2);
        assert_eq!(amount.value(), 1);
        assert_eq!(Quantity::parse("250m").unwrap().milli_value(), 250);
    }

    #[test]
    fn sums_keep_the_spelling_of_the_first_amount_that_is_not_zero() {
        let sum = Quantity::ZERO
            .plus(Quantity::parse("512Mi").unwrap())
            .plus(Quantity::parse("0.5Gi").unwrap());
        assert_eq!(sum.to_string(), "1Gi");
        assert_eq!(
            Quantity::parse("1")
                .unwrap()
                .minus(Quantity::millis(250))
                .to_string(),
            "750m"
        );
    }
}
