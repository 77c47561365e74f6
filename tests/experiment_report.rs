//! `experiment report` and `experiment analyze` as they are typed: sealed, broken open, and after the last run.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn breakage(workspace: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .current_dir(workspace)
        .args(args)
        .output()
        .unwrap()
}

fn done(workspace: &Path, args: &[&str]) -> String {
    let output = breakage(workspace, args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Locks a template with two blocks; answers its id.
fn locked(workspace: &Path, template: &str) -> String {
    let plan = done(workspace, &["experiment", "init", template]);
    let blocks = plan
        .lines()
        .find(|line| line.starts_with("blocks:"))
        .unwrap();
    let plan = plan.replace(blocks, "blocks: 2");
    std::fs::write(workspace.join("plan.yaml"), plan).unwrap();
    done(workspace, &["experiment", "lock", "plan.yaml"]);
    format!("my-{template}")
}

#[test]
fn a_finished_experiment_is_reported_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let id = &locked(at, "density-sweep");
    done(at, &["experiment", "run", id]);
    let short = done(at, &["experiment", "analyze", id]);
    let text = done(at, &["experiment", "report", id]);
    assert!(short.lines().count() < text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(text.contains("SIMULATION"), "{text}");
    let json: Value =
        serde_json::from_str(&done(at, &["experiment", "analyze", id, "--json"])).unwrap();
    let runs = json["runs"].as_array().unwrap().len();
    let csv = done(at, &["experiment", "report", id, "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + runs);
    let printed = done(at, &["experiment", "report", id, "--format", "html"]);
    let hash = json["registration"]["hash"].as_str().unwrap();
    let page = at
        .join("reports")
        .join(format!("my-density-sweep-{}.html", &hash[..8]));
    assert_eq!(printed.trim(), page.display().to_string());
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("plot-dose") && html.contains("plot-order"));
    assert!(!html.contains("NaN"));
    // Reading leaves no trace: the same ledger, the same bytes.
    assert_eq!(text, done(at, &["experiment", "report", id]));
}

#[test]
fn a_sealed_experiment_is_not_reported_and_a_broken_seal_is_told_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A third of the runs, because nothing here hangs on tiers.
    let id = &locked(at, "falsification");
    for command in ["analyze", "report"] {
        let output = breakage(at, &["experiment", command, id]);
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains("sealed until its last run") && told.contains("--unseal"),
            "{told}"
        );
        assert!(output.stdout.is_empty());
    }
    breakage(at, &["experiment", "report", id, "--unseal"]);
    done(at, &["experiment", "run", id]);
    let text = done(at, &["experiment", "report", id]);
    assert!(text.contains("EXPLORATORY"), "{text}");
    assert!(!text.to_lowercase().contains("confirm"), "{text}");
}

#[test]
fn what_cannot_be_opened_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let output = breakage(
        folder.path(),
        &["experiment", "report", "x", "--format", "csv", "--open"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--open shows HTML only"));
}
