//! The demonstration: from plan to report in one command, the same whatever runs beside it, and honest about its agent.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// The fewest blocks with a spread: 12 runs.
const BLOCKS: &str = "2";

fn demo(workspace: &Path, more: &[&str]) -> (Value, String) {
    let output = Command::cargo_bin("breakage")
        .unwrap()
        .env("BREAKAGE_WORKSPACE", workspace)
        .args(["demo", "--blocks", BLOCKS, "--json"])
        .args(more)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    (serde_json::from_slice(&output.stdout).unwrap(), told)
}

/// Without what tells when it was.
fn timeless(mut analysis: Value) -> Value {
    analysis["registration"]["locked_at"] = Value::Null;
    analysis["standing"]["ledger_head"] = Value::Null;
    analysis
}

#[test]
fn the_demonstration_decides_by_its_matrix_says_what_its_agent_is_and_leaves_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let (one, told) = demo(folder.path(), &["--jobs", "1"]);
    assert_eq!(one["registration"]["simulation"], true);
    assert_eq!(one["standing"]["confirmatory"], true, "{}", one["standing"]);
    assert_eq!(
        one["manipulation"]["passed"], true,
        "{}",
        one["manipulation"]
    );
    assert_eq!(one["runs"].as_array().unwrap().len(), 12);
    let row = one["decision"]["row"].as_str().unwrap();
    let rows = one["decision"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|of| of["id"] == row), "{row}");
    assert!(told.contains("simulated"), "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 100),
        "{told}"
    );
    let report = std::fs::read_to_string(folder.path().join("reports/demo.html")).unwrap();
    assert!(report.contains("<svg") && report.contains("simulat"));
    for outside in [
        "src=\"http",
        "href=\"http",
        "<script",
        "@import",
        "url(http",
    ] {
        assert!(!report.contains(outside), "{outside}");
    }
    // Nothing is kept but the report.
    assert!(!folder.path().join("breakage.redb").exists());
    let (two, _) = demo(folder.path(), &["--jobs", "2"]);
    assert_eq!(timeless(one), timeless(two));
}

#[test]
fn a_difference_that_cannot_be_planted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for planted in ["0", "-0.1", "0.22", "NaN"] {
        let output = Command::cargo_bin("breakage")
            .unwrap()
            .env("BREAKAGE_WORKSPACE", folder.path())
            .args(["calibrate", "--planted", planted])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{planted}: {told}");
        assert!(told.contains("cannot be planted"), "{told}");
    }
}
