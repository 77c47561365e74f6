//! Every case of the golden file, at its tolerance.

use agent_breakage::report::cases::{Outcome, evaluate};
use serde_json::Value;

const GOLDEN: &str = include_str!("../golden/stats-golden.json");
/// Cases that the file has. None may go missing unseen.
const CASES: usize = 41;

/// Absolute and relative, from texts such as `1e-6`, `1e-6 relative (p also relative)` and `0.006 (the means ...)`.
fn tolerance(case: &Value) -> (f64, f64) {
    let text = case["tolerance"]
        .as_str()
        .expect("every case has a tolerance");
    let number: f64 = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a tolerance begins with a number");
    if text.contains("relative") {
        (1e-12, number)
    } else {
        (number, 0.0)
    }
}

/// Places where `actual` lacks or misses what is expected.
fn differences(
    place: &str,
    expected: &Value,
    actual: &Value,
    tolerance: (f64, f64),
    into: &mut Vec<String>,
) {
    match (expected, actual) {
        (Value::Object(members), _) => {
            for (key, expected) in members {
                let place = format!("{place}/{key}");
                match actual.get(key) {
                    Some(actual) => differences(&place, expected, actual, tolerance, into),
                    None => into.push(format!("{place} is missing")),
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                differences(&format!("{place}[{at}]"), expected, actual, tolerance, into);
            }
        }
        (Value::Number(expected), Value::Number(actual)) => {
            let expected = expected.as_f64().expect("a number");
            let actual = actual.as_f64().expect("a number");
            // The file's numbers have ten digits, and small ones nine behind the first.
            let slack = tolerance.0.max(tolerance.1 * expected.abs());
            if (expected - actual).abs() > slack {
                into.push(format!("{place}: expected {expected}, got {actual}"));
            }
        }
        _ if expected == actual => {}
        _ => into.push(format!("{place}: expected {expected}, got {actual}")),
    }
}

fn outcome<'a>(outcomes: &'a [Outcome], id: &str) -> &'a Outcome {
    let found = outcomes.iter().find(|outcome| outcome.id == id);
    found.unwrap_or_else(|| panic!("no outcome for {id}"))
}

#[test]
fn every_golden_case_is_met_at_its_tolerance() {
    let golden: Value = serde_json::from_str(GOLDEN).expect("the golden file is JSON");
    let cases = golden["cases"].as_array().expect("a list of cases");
    assert_eq!(cases.len(), CASES);
    let outcomes = evaluate(GOLDEN).expect("the golden file has cases");
    let mut wrong = Vec::new();
    for case in cases {
        let id = case["id"].as_str().expect("every case has an id");
        let outcome = outcome(&outcomes, id);
        match &outcome.actual {
            Some(actual) => differences(
                id,
                &case["expected"],
                &Value::Object(actual.clone()),
                tolerance(case),
                &mut wrong,
            ),
            None => wrong.push(format!("{id}: {:?}", outcome.error)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_number_in_the_golden_file_is_noticed() {
    let expected: Value = serde_json::json!({"t": 1.0, "ci": [0.0, 2.0]});
    let mut wrong = Vec::new();
    let actual = serde_json::json!({"t": 1.000002, "ci": [0.0, 2.0]});
    differences("case", &expected, &actual, (1e-6, 0.0), &mut wrong);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let actual = serde_json::json!({"t": 1.0, "ci": [0.0]});
    differences("case", &expected, &actual, (1e-6, 0.0), &mut wrong);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn a_bare_list_and_an_object_with_cases_are_the_same() {
    let list = r#"[{"id": "multiplicity/m", "inputs": {"p": [0.5, 0.01]}}]"#;
    let object = format!(r#"{{"schema": "x", "cases": {list}}}"#);
    let from_list = evaluate(list).expect("a list");
    assert_eq!(from_list, evaluate(&object).expect("an object"));
    assert_eq!(
        from_list[0].actual.as_ref().expect("computed")["holm"],
        serde_json::json!([0.5, 0.02])
    );
}
