//! Cases for the statistics core, as the golden file has them: `{id, inputs}` in, `{id, actual}` out.
//!
//! What an id stands for is said by its part before the `/`, and where that names several things by the shape of the
//! inputs, so that cases with other names and numbers run through the same code.

mod inputs;
mod planning;
mod several;
mod single;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::report::cases::inputs::Inputs;

/// A file that has no cases in it.
#[derive(Debug, Error)]
pub enum CasesError {
    #[error("not JSON: {0}")]
    Json(#[source] serde_json::Error),
    #[error("neither a list of cases nor an object with a list `cases`: {0}")]
    Shape(#[source] serde_json::Error),
}

/// Why one case has no answer.
#[derive(Debug, Error, PartialEq)]
pub enum CaseError {
    #[error("the case is not an object with `id` and `inputs`: {0}")]
    NotACase(String),
    #[error("inputs.{0} is missing")]
    Missing(String),
    #[error("inputs.{field} is not {expected}")]
    Wrong { field: String, expected: String },
    #[error("`{kind}` is not a kind of case; known are {known}")]
    Unknown { kind: String, known: String },
    #[error("`{0}` is not computed here")]
    Unsupported(String),
    #[error("{0}")]
    Undefined(String),
}

/// One answer; exactly one of `actual` and `error` is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    cases: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Case<'a> {
    id: String,
    #[serde(borrow)]
    inputs: &'a RawValue,
}

type Kind = (&'static str, fn(&Request) -> Result<Answer, CaseError>);

const KINDS: &[Kind] = &[
    ("aa", single::label_shuffle),
    ("bca", single::bca),
    ("brunner_munzel", single::brunner_munzel),
    ("drift", single::drift),
    ("exclusions", single::exclusions),
    ("hedges_g", single::hedges_g),
    ("multiplicity", single::multiplicity),
    ("noncentral_t_cdf", planning::noncentral_t),
    ("paired", single::paired),
    ("permutation", single::permutation),
    ("power", planning::power),
    ("proportion_ci", planning::proportions),
    ("score_feasibility", planning::feasibility),
    ("sequential", planning::sequential),
    ("simpson", several::simpson),
    ("stratified", several::stratified),
    ("stratified_permutation", several::permutation),
    ("student_t", planning::student_t),
    ("tier_trend_contrast", several::tier_trend),
    ("tost", single::tost),
    ("welch", single::welch),
];

/// Kinds of the golden file's family that a registered experiment has no use for.
const UNSUPPORTED: &[&str] = &["clustered_se", "mixed_model_reference", "random_effects"];

/// What a case asks for.
struct Request<'a> {
    /// What stands behind the kind in the id.
    rest: &'a str,
    inputs: Inputs,
    /// The text of the inputs, for what depends on the order of its members.
    text: &'a str,
}

/// Computes every case of a file. `expected`, tolerances and notes in it are passed over.
pub fn evaluate(text: &str) -> Result<Vec<Outcome>, CasesError> {
    let whole: &RawValue = serde_json::from_str(text).map_err(CasesError::Json)?;
    let cases: Vec<&RawValue> = if whole.get().trim_start().starts_with('[') {
        serde_json::from_str(whole.get()).map_err(CasesError::Shape)?
    } else {
        let file: File = serde_json::from_str(whole.get()).map_err(CasesError::Shape)?;
        file.cases
    };
    Ok(cases
        .into_iter()
        .enumerate()
        .map(|(at, case)| outcome(at, case))
        .collect())
}

fn outcome(at: usize, case: &RawValue) -> Outcome {
    let parsed: Result<Case, _> = serde_json::from_str(case.get());
    match parsed {
        Ok(case) => match answer(&case) {
            Ok(answer) => Outcome {
                id: case.id,
                actual: Some(answer.0),
                error: None,
            },
            Err(error) => Outcome {
                id: case.id,
                actual: None,
                error: Some(error.to_string()),
            },
        },
        Err(error) => {
            let value: Value = serde_json::from_str(case.get()).unwrap_or(Value::Null);
            let id = value.get("id").and_then(Value::as_str);
            Outcome {
                id: id.map_or_else(|| format!("case {}", at + 1), ToOwned::to_owned),
                actual: None,
                error: Some(CaseError::NotACase(error.to_string()).to_string()),
            }
        }
    }
}

fn answer(case: &Case) -> Result<Answer, CaseError> {
    let (kind, rest) = case.id.split_once('/').unwrap_or((&case.id, ""));
    let Some((_, compute)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        if UNSUPPORTED.contains(&kind) {
            return Err(CaseError::Unsupported(kind.to_owned()));
        }
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        return Err(CaseError::Unknown {
            kind: kind.to_owned(),
            known: known.join(", "),
        });
    };
    let request = Request {
        rest,
        inputs: Inputs::parse(case.inputs.get())?,
        text: case.inputs.get(),
    };
    let answer = compute(&request)?;
    match answer.0.iter().find(|(_, value)| has_null(value)) {
        Some((key, _)) => Err(CaseError::Undefined(format!(
            "{key} is not a finite number for these inputs"
        ))),
        None => Ok(answer),
    }
}

/// JSON has no spelling of NaN and infinity; serde writes null, which no reader should have to understand.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// The members of `actual`.
#[derive(Default)]
struct Answer(Map<String, Value>);

impl Answer {
    fn with(mut self, key: &str, value: impl Into<Value>) -> Answer {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Leaves the key out where there is no value.
    fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Answer {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn value(self) -> Value {
        Value::Object(self.0)
    }
}

/// As a list of two.
fn pair(interval: crate::stats::Interval) -> Value {
    Value::from(vec![interval.low, interval.high])
}
