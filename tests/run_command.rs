//! `breakage run` as it is typed: what is refused before anything starts, thresholds, retrieval, signals.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

use std::io::BufRead;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

const ID: &str = "replicas-zero-advocate";

fn breakage(workspace: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .args(args)
        .output()
        .unwrap()
}

fn run_json(workspace: &Path, args: &[&str]) -> Value {
    let output = breakage(workspace, &[&["run", "--json"], args].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scenario file of the catalogue with some of its text replaced.
fn edited(folder: &Path, from: &str, to: &str) -> String {
    let text = include_str!("../scenarios/anchor/replicas-zero-advocate.yaml");
    assert!(text.contains(from), "{from}");
    let path = folder.join("edited.yaml");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    path.display().to_string()
}

#[test]
fn a_prometheus_for_the_embedded_cluster_is_refused_and_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let flag = ["--prometheus", "http://127.0.0.1:9090"];
    for command in [["run", ID].as_slice(), &["scenario", "qualify", ID]] {
        let output = breakage(folder.path(), &[command, &flag].concat());
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(told(&output).contains("without --context"), "{command:?}");
    }
}

#[test]
fn flags_out_of_range_are_refused_with_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--reps", "0"], "1..=100000"),
        (&["--reps", "100001"], "1..=100000"),
        (&["--reps", "-3"], "invalid value"),
        (&["--jobs", "0"], "1..=1024"),
        (&["--seed", "-1"], "invalid value"),
        (&["--fail-under", "1.5"], "between 0 and 1"),
        (&["--dry-run", "--reps", "2"], "cannot be used with"),
        (&["--dry-run", "--learn"], "cannot be used with"),
        (
            &["--seed", "18446744073709551615", "--reps", "2"],
            "leaves no room",
        ),
    ];
    for (flags, words) in cases {
        let output = breakage(
            folder.path(),
            &[&["run", "replicas-zero-advocate"], flags].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        assert!(
            told(&output).contains(words),
            "{flags:?}: {}",
            told(&output)
        );
    }
}

#[test]
fn what_cannot_run_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "fixture: advocate",
            "fixture: advocat",
            "did you mean fixture advocate?",
        ),
        (
            "deployment.prod-advocate.advocate-api.readyReplicas >= 1",
            "'promql: up == 1'",
            "Prometheus",
        ),
    ];
    for (from, to, words) in cases {
        let file = edited(folder.path(), from, to);
        let output = breakage(folder.path(), &["run", &file]);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert!(told(&output).contains(words), "{}", told(&output));
    }
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "only the scenario's own file");
}

#[test]
fn a_missed_threshold_is_exit_code_two() {
    let folder = tempfile::tempdir().unwrap();
    let code = |agent: &str| {
        let args = [
            "run",
            "replicas-zero-advocate",
            "--fail-under",
            "0.7",
            "--agent",
            agent,
        ];
        breakage(folder.path(), &args).status.code()
    };
    assert_eq!(code("noop"), Some(2));
    assert_eq!(code("rules"), Some(0));
}

#[test]
fn a_run_is_not_handed_the_solution_of_its_own_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let id = "replicas-zero-advocate";
    let first = run_json(folder.path(), &[id, "--learn"]);
    assert_eq!(first["state"], "scored");
    let served = |flags: &[&str]| {
        let summary = run_json(folder.path(), &[&[id, "--seed", "2"], flags].concat());
        let excluded = summary["retrieval"]["excluded_scenarios"]
            .as_array()
            .unwrap()
            .len();
        (
            excluded,
            summary["retrieval"]["consulted"]
                .as_array()
                .unwrap()
                .clone(),
        )
    };
    let (excluded, apart) = served(&[]);
    let (none, with_own) = served(&["--same-scenario"]);
    assert_eq!((excluded, none), (1, 0));
    assert_ne!(apart, with_own);
    // The same run again, with its own postmortem in the base, is no other run.
    let again = run_json(folder.path(), &[id, "--learn"]);
    assert_eq!(again["run_id"], first["run_id"]);
}

#[test]
fn reversibility_is_a_decimal_in_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let summary = run_json(folder.path(), &["replicas-zero-advocate"]);
    let actions = summary["actions"].as_array().unwrap();
    assert!(actions.iter().any(|action| action["reversibility"] == 0.3));
}

#[cfg(unix)]
#[test]
fn a_request_to_terminate_undoes_and_records_as_an_interruption_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", folder.path())
        .args(["run", "replicas-zero-advocate", "--reps", "500"])
        .args(["--jobs", "1", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(running.stdout.take().unwrap()).lines();
    // The first run is over, so the signal's handler stands.
    lines.next().unwrap().unwrap();
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &running.id().to_string()])
        .status()
        .unwrap();
    assert!(asked.success());
    let last = lines.map(Result::unwrap).last().unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["state_code"], "interrupted");
    // Every planned run has one record, also those that never began.
    let listed = breakage(folder.path(), &["runs", "list", "--json"]);
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let mut ids: Vec<&str> = listed
        .iter()
        .map(|r| r["run_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((listed.len(), ids.len()), (500, 500));
    assert!(listed.iter().any(|run| run["state"] == "not_run"));
}
