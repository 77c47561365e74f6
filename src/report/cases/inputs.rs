//! The inputs of a case: members by name, with what is wrong named by its place.

use serde_json::{Map, Value};

use crate::report::cases::CaseError;
use crate::stats::sample::{Sample, Summary};

/// Digits behind the point of a score that whole micro-points hold.
const MICRO_DIGITS: i32 = 6;
/// Digits that an f64 of order 1 has.
const MAX_DIGITS: i32 = 15;
/// Whole numbers up to here are exact in an f64.
const EXACT: f64 = 9e15;
/// How far a scaled score may lie from a whole number and still be one: rounding of its decimal spelling.
const WHOLE: f64 = 1e-16 * 8.0;

pub(super) struct Inputs(Map<String, Value>);

impl Inputs {
    pub(super) fn parse(text: &str) -> Result<Inputs, CaseError> {
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Ok(Inputs(members)),
            Ok(_) => Err(CaseError::NotACase("inputs is not an object".to_owned())),
            Err(error) => Err(CaseError::NotACase(error.to_string())),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn get(&self, name: &str) -> Result<&Value, CaseError> {
        self.0
            .get(name)
            .ok_or_else(|| CaseError::Missing(name.to_owned()))
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, CaseError> {
        number(self.get(name)?, name)
    }

    pub(super) fn number_or(&self, name: &str, default: f64) -> Result<f64, CaseError> {
        if self.has(name) {
            return self.number(name);
        }
        Ok(default)
    }

    /// Above 0 and below 1.
    pub(super) fn level_or(&self, name: &str, default: f64) -> Result<f64, CaseError> {
        let level = self.number_or(name, default)?;
        if level > 0.0 && level < 1.0 {
            return Ok(level);
        }
        Err(wrong(name, "between 0 and 1"))
    }

    pub(super) fn count(&self, name: &str) -> Result<u64, CaseError> {
        count(self.get(name)?, name)
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, CaseError> {
        let value = self.get(name)?;
        value.as_str().ok_or_else(|| wrong(name, "a text"))
    }

    pub(super) fn list(&self, name: &str) -> Result<&[Value], CaseError> {
        list(self.get(name)?, name)
    }

    pub(super) fn numbers(&self, name: &str) -> Result<Vec<f64>, CaseError> {
        numbers(self.get(name)?, name)
    }

    /// One count or a list of them.
    pub(super) fn counts(&self, name: &str) -> Result<Vec<u64>, CaseError> {
        let value = self.get(name)?;
        if value.is_number() {
            return Ok(vec![count(value, name)?]);
        }
        let items = list(value, name)?;
        let named = |at: usize| format!("{name}[{at}]");
        items
            .iter()
            .enumerate()
            .map(|(at, item)| count(item, &named(at)))
            .collect()
    }

    /// A list of lists of this many numbers.
    pub(super) fn rows(&self, name: &str, columns: usize) -> Result<Vec<Vec<f64>>, CaseError> {
        let items = self.list(name)?;
        let rows = items.iter().enumerate().map(|(at, item)| {
            let field = format!("{name}[{at}]");
            let row = numbers(item, &field)?;
            if row.len() == columns {
                return Ok(row);
            }
            Err(wrong(&field, &format!("a list of {columns} numbers")))
        });
        rows.collect()
    }

    /// The lists `x` and `y`, as whole numbers of the same unit.
    pub(super) fn arms(&self) -> Result<Arms, CaseError> {
        Arms::new(self.numbers("x")?, self.numbers("y")?, "")
    }

    /// Treatment and control by their summaries, under either naming: `n_t, mean_t, sd_t, n_c, ...` or `n1, m1, s1, ...`.
    pub(super) fn summaries(&self) -> Result<(Summary, Summary), CaseError> {
        let arm = |n: [&str; 3], mean: [&str; 3], sd: [&str; 3]| {
            let named = n.iter().position(|n| self.has(n)).unwrap_or(0);
            let n = n[named];
            summary(
                self.count(n)?,
                self.number(self.spelling(mean, named))?,
                self.number(self.spelling(sd, named))?,
                n,
            )
        };
        let x = arm(
            ["n1", "n_t", "n_x"],
            ["m1", "mean_t", "mean1"],
            ["s1", "sd_t", "sd1"],
        )?;
        let y = arm(
            ["n2", "n_c", "n_y"],
            ["m2", "mean_c", "mean2"],
            ["s2", "sd_c", "sd2"],
        )?;
        Ok((x, y))
    }

    /// The first of several names that is there; where none is, the one that goes with how n is named.
    fn spelling<'a>(&self, choices: [&'a str; 3], named: usize) -> &'a str {
        let found = choices.into_iter().find(|name| self.has(name));
        found.unwrap_or(choices[named])
    }
}

/// n of at least 2 and a standard deviation of at least 0; `field` names it in the error.
pub(super) fn summary(n: u64, mean: f64, sd: f64, field: &str) -> Result<Summary, CaseError> {
    if n < 2 {
        return Err(CaseError::Undefined(format!(
            "inputs.{field} is {n}: the standard deviation is undefined, no test"
        )));
    }
    if sd < 0.0 {
        return Err(CaseError::Undefined(format!(
            "a standard deviation of {sd} beside inputs.{field} is below 0"
        )));
    }
    Ok(Summary { n, mean, sd })
}

/// Scores of two arms in whole numbers. Scores with more than six digits are brought to a smaller unit, so that nothing
/// is rounded away.
pub(super) struct Arms {
    pub(super) x: Vec<i64>,
    pub(super) y: Vec<i64>,
    /// Points that one point of a [`Sample`] of these stands for: 1, or a power of ten below it.
    pub(super) unit: f64,
}

impl Arms {
    /// `place` stands before `x` and `y` in errors.
    pub(super) fn new(x: Vec<f64>, y: Vec<f64>, place: &str) -> Result<Arms, CaseError> {
        for (name, scores) in [("x", &x), ("y", &y)] {
            if scores.is_empty() {
                let field = format!("{place}{name}");
                return Err(wrong(&field, "a list with at least one score"));
            }
        }
        let digits = digits(x.iter().chain(&y))
            .ok_or_else(|| wrong(&format!("{place}x and y"), "scores of ordinary size"))?;
        let whole = |scores: &[f64]| -> Vec<i64> {
            let factor = 10_f64.powi(digits);
            scores.iter().map(|s| (s * factor).round() as i64).collect()
        };
        Ok(Arms {
            x: whole(&x),
            y: whole(&y),
            unit: 10_f64.powi(MICRO_DIGITS - digits),
        })
    }

    pub(super) fn samples(&self) -> (Sample, Sample) {
        (
            Sample::new(self.x.iter().copied()),
            Sample::new(self.y.iter().copied()),
        )
    }

    /// In points; an arm of one run has no standard deviation.
    pub(super) fn summaries(&self) -> Result<(Summary, Summary), CaseError> {
        let (x, y) = self.samples();
        let of = |sample: &Sample, name: &str| {
            let found = Summary::of(sample).ok_or_else(|| {
                CaseError::Undefined(format!(
                    "inputs.{name} has one score: the standard deviation is undefined, no test"
                ))
            })?;
            Ok(Summary {
                n: found.n,
                mean: found.mean * self.unit,
                sd: found.sd * self.unit,
            })
        };
        Ok((of(&x, "x")?, of(&y, "y")?))
    }
}

/// The digits behind the point that make all scores whole, at least six. Where none do, as many as fit.
fn digits<'a>(scores: impl Iterator<Item = &'a f64> + Clone) -> Option<i32> {
    let most = scores.clone().fold(0.0_f64, |most, s| most.max(s.abs()));
    let fits = |digits: i32| most * 10_f64.powi(digits) < EXACT;
    let whole = |digits: i32| {
        scores.clone().all(|score| {
            let scaled = score * 10_f64.powi(digits);
            (scaled - scaled.round()).abs() <= WHOLE * scaled.abs()
        })
    };
    let range = MICRO_DIGITS..=MAX_DIGITS;
    range
        .clone()
        .take_while(|d| fits(*d))
        .find(|d| whole(*d))
        .or_else(|| range.take_while(|d| fits(*d)).last())
}

pub(super) fn wrong(field: &str, expected: &str) -> CaseError {
    CaseError::Wrong {
        field: field.to_owned(),
        expected: expected.to_owned(),
    }
}

pub(super) fn number(value: &Value, field: &str) -> Result<f64, CaseError> {
    value
        .as_f64()
        .filter(|number| number.is_finite())
        .ok_or_else(|| wrong(field, "a number"))
}

/// Also where it is spelled `20.0`.
pub(super) fn count(value: &Value, field: &str) -> Result<u64, CaseError> {
    let number = number(value, field)?;
    whole(number).ok_or_else(|| wrong(field, "a whole number of at least 0"))
}

pub(super) fn whole(number: f64) -> Option<u64> {
    (number >= 0.0 && number.fract() == 0.0 && number < EXACT).then_some(number as u64)
}

pub(super) fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], CaseError> {
    let items = value.as_array().ok_or_else(|| wrong(field, "a list"))?;
    Ok(items)
}

pub(super) fn numbers(value: &Value, field: &str) -> Result<Vec<f64>, CaseError> {
    list(value, field)?
        .iter()
        .enumerate()
        .map(|(at, item)| number(item, &format!("{field}[{at}]")))
        .collect()
}
