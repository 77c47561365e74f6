//! The commands as a person types them.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

fn breakage(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_breakage"))
        .args(args)
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("an exit code"),
        text(output.stdout),
        text(output.stderr),
    )
}

fn json(args: &[&str]) -> Value {
    let (code, out, err) = breakage(args);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).expect("JSON")
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_golden_file_runs_through_eval() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/stats-golden.json"
    );
    let answers = json(&["stats", "eval", path]);
    let answers = answers.as_array().expect("a list");
    assert_eq!(answers.len(), 41);
    assert!(answers.iter().all(|answer| answer["actual"].is_object()));
}

#[test]
fn a_case_that_cannot_be_computed_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cases.json");
    let cases = r#"[{"id": "welch/few", "inputs": {"x": [0.9], "y": [0.8, 0.7]}},
                    {"id": "multiplicity", "inputs": {"p": [0.01]}}]"#;
    fs::write(&file, cases).expect("written");
    let (code, out, err) = breakage(&["stats", "eval", file.to_str().expect("UTF-8")]);
    assert_eq!(code, 1);
    let answers: Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        answers[0]["error"]
            .as_str()
            .expect("an error")
            .contains("undefined, no test")
    );
    assert_eq!(answers[1]["actual"]["holm"][0], 0.01);
    assert!(err.contains("1 of 2 cases"), "{err}");
}

#[test]
fn welch_from_summaries_gives_the_rounding_envelope() {
    let args = [
        "stats", "welch", "--n1", "40", "--mean1", "0.91", "--sd1", "0", "--n2", "40", "--mean2",
        "0.907", "--sd2", "0.017",
    ];
    let (code, out, _) = breakage(&args);
    assert_eq!(code, 0);
    fits(&out);
    let found = json(&[&args[..], &["--json"]].concat());
    let near =
        |value: &Value, expected: f64| (value.as_f64().expect("a number") - expected).abs() < 1e-2;
    assert!(near(&found["rounding_envelope"]["t_min"], 0.72), "{found}");
    assert!(near(&found["rounding_envelope"]["t_max"], 1.53), "{found}");
    let (code, _, err) = breakage(&[
        "stats", "welch", "--n1", "40", "--mean1", "0.91", "--sd1", "0.4", "--n2", "40", "--mean2",
        "0.9", "--sd2", "0",
    ]);
    assert_eq!(code, 1);
    assert!(
        err.contains("standard deviation 0.4 is impossible"),
        "{err}"
    );
}

#[test]
fn welch_from_a_file_gives_every_test() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.csv");
    let scores =
        "treatment,control\n0.91,0.7\n0.91,0.7\n0.805,0.5\n0.7,0.805\n0.91,0.91\n0.5,\n0.91,\n";
    fs::write(&file, scores).expect("written");
    let path = file.to_str().expect("UTF-8");
    let found = json(&["stats", "welch", path, "--margin", "0.05", "--json"]);
    let near = |key: &str, expected: f64| {
        let value = found[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key}: {found}"));
        assert!((value - expected).abs() < 1e-6, "{key}: {value}");
    };
    near("t", 0.924_077_238_8);
    near("permutation_p_two_sided", 0.424_242_424_2);
    near("permutation_p_studentised", 0.424_242_424_2);
    near("p_hat", 0.685_714_285_7);
    near("tost_p", 0.640_104_417_2);
    let swapped = json(&["stats", "welch", path, "--treatment", "control", "--json"]);
    assert_eq!(
        swapped["delta"].as_f64(),
        found["delta"].as_f64().map(|d| -d)
    );
    let (code, out, _) = breakage(&["stats", "welch", path]);
    assert_eq!(code, 0);
    fits(&out);
    fs::write(&file, "arm,score\na,0.9\na,NaN\n").expect("written");
    let (code, _, err) = breakage(&["stats", "welch", path]);
    assert_eq!(code, 1);
    assert!(
        err.contains(":3: field `score`: NaN is not a score"),
        "{err}"
    );
}

#[test]
fn summary_shows_levels_and_what_equal_scores_leave_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.csv");
    let rows: String = (0..40).map(|_| "t,0.91\n").collect();
    fs::write(&file, format!("arm,score\n{rows}c,0.5\n")).expect("written");
    let path = file.to_str().expect("UTF-8");
    let (code, out, _) = breakage(&["stats", "summary", path]);
    assert_eq!(code, 0);
    fits(&out);
    assert!(
        out.contains("0.91 x40") && out.contains("7.2 %") && out.contains("not enough runs"),
        "{out}"
    );
    let found = json(&["stats", "summary", path, "--json"]);
    assert_eq!(found[1]["n"], 1);
    assert!(
        found[1].get("sd").is_none() && !found.to_string().contains("null"),
        "{found}"
    );
}

#[test]
fn power_solves_whatever_is_missing() {
    let n = json(&[
        "stats", "power", "--delta", "0.05", "--sd", "0.13", "--power", "0.8", "--json",
    ]);
    assert_eq!(
        (&n["solved"], &n["n"]),
        (&Value::from("n"), &Value::from(108))
    );
    let p = json(&[
        "stats", "power", "--delta", "0.05", "--sd", "0.13", "--n", "20", "--json",
    ]);
    assert!((p["power"].as_f64().expect("a number") - 0.220_203_013).abs() < 1e-6);
    assert!((p["type_m"].as_f64().expect("a number") - 2.079).abs() < 5e-3);
    let d = json(&[
        "stats", "power", "--n", "40", "--sd", "0.13", "--power", "0.8", "--json",
    ]);
    assert!((d["delta"].as_f64().expect("a number") - 0.082_458_8).abs() < 1e-6);
    let s = json(&[
        "stats", "power", "--delta", "0.05", "--sd", "0.13", "--power", "0.8", "--strata", "3",
        "--json",
    ]);
    assert_eq!(s["n"], 36);
    let (code, _, err) = breakage(&["stats", "power", "--sd", "0.13", "--n", "20"]);
    assert_eq!(code, 1);
    assert!(err.contains("two of --n, --power and --delta"), "{err}");
}

#[test]
fn the_published_results_are_reproduced() {
    let (code, out, err) = breakage(&["reproduce"]);
    assert_eq!(code, 0, "{out}{err}");
    fits(&out);
    for shown in [
        "falsification/secret-missing-key",
        "0.0599",
        "0.205",
        "108 by the exact",
        "all agree",
    ] {
        assert!(out.contains(shown), "{shown}");
    }
    let found = json(&["reproduce", "--family", "falsification_3", "--json"]);
    assert_eq!(found["cells"].as_array().map(Vec::len), Some(3));
    assert_eq!(found["disagreements"], Value::Array(Vec::new()));
    let (code, _, err) = breakage(&["reproduce", "--family", "none"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("families are: ") && err.contains("sweep_9"),
        "{err}"
    );
}

#[test]
fn a_probability_s_interval_stays_between_0_and_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.csv");
    fs::write(&file, "t,c\n0.9,0.1\n0.8,0.2\n0.7,0.3\n0.35,0.4\n").expect("written");
    let found = json(&["stats", "welch", file.to_str().expect("UTF-8"), "--json"]);
    let interval = &found["p_hat_ci95"];
    assert_eq!(interval[1], 1.0, "{found:#}");
    assert!(interval[0].as_f64().expect("a number") >= 0.0);
}

#[test]
fn so_many_runs_that_permutations_take_minutes_are_answered_without_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.csv");
    let mut text = "t,c\n".to_owned();
    for at in 0..30_000_u32 {
        let score = |of: u32| f64::from(of * 7919 % 1_000_003) / 1_000_003.0;
        text.push_str(&format!("{:.6},{:.6}\n", score(at), score(at + 17)));
    }
    fs::write(&file, text).expect("written");
    let path = file.to_str().expect("UTF-8");
    let found = json(&["stats", "welch", path, "--json"]);
    assert!(found["permutation_p_two_sided"].is_null());
    let status = found["permutation_status"].as_str().expect("a reason");
    assert!(status.starts_with("left out"), "{status}");
    assert!(found["t"].is_number() && found["p_hat"].is_number());
    let (_, out, _) = breakage(&["stats", "welch", path]);
    assert!(out.contains("left out: of more than"), "{out}");
    let few: String = (0..200_u32).map(|at| format!("0.{at:03},0.5\n")).collect();
    fs::write(&file, format!("t,c\n{few}")).expect("written");
    let found = json(&["stats", "welch", path, "--json"]);
    let method = found["permutation_method"].as_str().expect("a method");
    assert!(method.contains("of about 1.0e119 arrangements"), "{method}");
}

#[test]
fn a_quote_that_is_not_closed_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.csv");
    fs::write(&file, "arm,score\n\"t\",0.9\n\"c,0.8\n").expect("written");
    let (code, _, err) = breakage(&["stats", "welch", file.to_str().expect("UTF-8")]);
    assert_eq!(code, 1);
    assert!(err.contains("scores.csv:3: a quote without"), "{err}");
}
