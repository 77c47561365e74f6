//! The commands as they are typed: kills, changed inputs, two at once, sealed reads.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

use crate::bench::{NOW, workspace};
use agent_breakage::config::Workspace;
use agent_breakage::experience::Reader;
use agent_breakage::experience::entry::Entry;
use agent_breakage::experiment::ledger::Event;
use agent_breakage::experiment::ledger::chain::Ledger;

/// Kills of the test that kills; 20 by hand, fewer by default.
const KILLS: &str = "BREAKAGE_TEST_KILLS";

fn breakage(workspace: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .current_dir(workspace)
        .args(args)
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", told(output)))
}

fn started(workspace: &Path, args: &[&str]) -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .current_dir(workspace)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn runs_that_are_killed_again_and_again_end_as_if_they_had_not_been() {
    let kills: u64 = std::env::var(KILLS).map_or(3, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let hash = workspace(folder.path(), |mut plan| {
        plan.blocks = 2 + u32::try_from(kills).unwrap();
        plan
    });
    for kill in 0..kills {
        let mut child = started(
            folder.path(),
            &["experiment", "run", hash.as_str(), "--jobs", "2"],
        );
        // Spread over start, runs and commits.
        std::thread::sleep(Duration::from_millis(300 + 137 * (kill % 7)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = breakage(
        folder.path(),
        &["experiment", "run", hash.as_str(), "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let progress = &json(&output)["progress"];
    assert_eq!(progress["ended"], progress["planned"]);
    let verified = json(&breakage(
        folder.path(),
        &["experiment", "verify", hash.as_str(), "--json"],
    ));
    assert_eq!(verified["intact"], true, "{verified:#}");
    assert_eq!(verified["rescored"], progress["planned"]);
}

#[test]
fn a_changed_input_is_refused_by_its_name_and_one_put_back_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("scenarios");
    let rubrics = folder.path().join("vocab/rubrics");
    std::fs::create_dir_all(&scenarios).unwrap();
    std::fs::create_dir_all(&rubrics).unwrap();
    let hash = workspace(folder.path(), |mut plan| {
        plan.blocks = 1;
        plan
    });
    let text = agent_breakage::scenario::library::Library::open(None)
        .unwrap()
        .scenario("secret-missing-key-advocate")
        .unwrap()
        .text;
    let file = scenarios.join("secret-missing-key-advocate.yaml");
    std::fs::write(&file, format!("{text}\n# edited\n")).unwrap();
    let output = breakage(folder.path(), &["experiment", "run", hash.as_str()]);
    assert_eq!(output.status.code(), Some(1));
    let words = told(&output);
    assert!(
        words.contains("scenario secret-missing-key-advocate is not what was locked"),
        "{words}"
    );
    std::fs::remove_file(&file).unwrap();
    let rubric = include_str!("../../vocab/rubrics/v0.1.yaml");
    let other = rubric.replacen("0.35", "0.36", 1);
    assert_ne!(rubric, other);
    let file = rubrics.join("v0.1.yaml");
    std::fs::write(&file, other).unwrap();
    let words = told(&breakage(
        folder.path(),
        &["experiment", "run", hash.as_str()],
    ));
    assert!(
        words.contains("rubric v0.1 is not what was locked"),
        "{words}"
    );
    std::fs::remove_file(&file).unwrap();
    let output = breakage(folder.path(), &["experiment", "run", hash.as_str()]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn sealed_runs_show_no_scores_and_an_ended_experiment_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let hash = workspace(folder.path(), |mut plan| {
        plan.blocks = 40;
        plan
    });
    let mut child = started(folder.path(), &["experiment", "run", hash.as_str()]);
    under_way(folder.path(), hash.as_str());
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = json(&breakage(folder.path(), &["runs", "list", "--json"]));
    let rows = runs.as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(
        rows.iter()
            .all(|row| row["total"].is_null() && row["sealed"] == true),
        "{runs:#}"
    );
    let run = rows[0]["run_id"].as_str().unwrap();
    let table = told(&breakage(folder.path(), &["runs", "list"]));
    let row = table.lines().find(|line| line.contains(run)).unwrap();
    let agent = rows[0]["agent"].as_str().unwrap();
    for whole in [agent, "sealed", rows[0]["rubric"].as_str().unwrap()] {
        assert!(row.contains(whole), "{whole}: {table}");
    }
    sealed_postmortems(folder.path(), run);
    for command in ["show", "rescore"] {
        let output = breakage(folder.path(), &["runs", command, run]);
        assert_eq!(output.status.code(), Some(1));
        assert!(told(&output).contains("sealed"), "{}", told(&output));
        assert!(told(&output).contains("--unseal"), "{}", told(&output));
    }
    let output = breakage(folder.path(), &["runs", "show", run, "--unseal"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let status = json(&breakage(
        folder.path(),
        &["experiment", "status", hash.as_str(), "--json"],
    ));
    assert_eq!(status["progress"]["unsealed"], 1);
}

/// What a run of a sealed experiment learned is shown by no command of the corpus.
fn sealed_postmortems(folder: &Path, run: &str) {
    let store = Workspace::at(folder).store().unwrap();
    let of_run = |entry: &Entry| entry.run_id.as_ref().is_some_and(|id| id.as_str() == run);
    let reader = Reader::new(Some(Arc::new(store)));
    let (all, _) = reader.entries().unwrap();
    drop(reader);
    let learned = all.iter().find(|entry| of_run(entry)).unwrap();
    let id = learned.id.as_str();
    let said = learned.postmortem.final_diagnosis.as_str();
    for command in [
        &["list", "--quarantined"][..],
        &["search", said, "--quarantined", "--k", "100"],
        &["export"],
    ] {
        let arguments = [&["corpus"], command].concat();
        let output = breakage(folder, &arguments);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(!text.contains(id), "{command:?}: {text}");
        assert!(text.contains("postmortems of runs of sealed"), "{text}");
    }
    let output = breakage(folder, &["corpus", "show", id]);
    assert_eq!(output.status.code(), Some(1));
    let text = told(&output);
    assert!(
        text.contains("sealed") && text.contains("--unseal"),
        "{text}"
    );
    assert!(!text.contains(said), "{text}");
}

#[test]
fn a_reason_with_line_ends_is_one_line_of_what_verify_says() {
    let folder = tempfile::tempdir().unwrap();
    let hash = workspace(folder.path(), |plan| plan);
    let store = Workspace::at(folder.path()).store().unwrap();
    let mut ledger = Ledger::open(Arc::new(store), hash.clone()).unwrap();
    let text = "late\nnote: intact \u{1b}[31m".to_owned();
    ledger
        .append(NOW.to_owned(), Event::Deviation { text })
        .unwrap();
    drop(ledger);
    let output = breakage(folder.path(), &["experiment", "verify", hash.as_str()]);
    let said = told(&output);
    assert!(said.contains("late\\nnote: intact \\u{1b}"), "{said}");
    // Nobody wrote the file of the registration here.
    assert!(
        said.contains("copy of the registration is missing"),
        "{said}"
    );
    let file = folder.path().join(format!(
        "experiments/{}/registration.json",
        &hash.as_str()[..8]
    ));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{}").unwrap();
    let output = breakage(folder.path(), &["experiment", "verify", hash.as_str()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("registration.json: its SHA-256"));
}

/// Waits until a running experiment has kept some runs.
fn under_way(workspace: &Path, hash: &str) -> Value {
    for _ in 0..300 {
        let output = breakage(workspace, &["experiment", "status", hash, "--json"]);
        if output.status.success() {
            let status = json(&output);
            if status["progress"]["ended"].as_u64() > Some(1) {
                return status;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was kept in half a minute");
}

#[test]
fn a_running_experiment_answers_those_who_read_and_refuses_those_who_write() {
    let folder = tempfile::tempdir().unwrap();
    let hash = workspace(folder.path(), |mut plan| {
        plan.blocks = 100;
        plan
    });
    let mut child = started(
        folder.path(),
        &["experiment", "run", hash.as_str(), "--jobs", "1"],
    );
    let status = under_way(folder.path(), hash.as_str());
    assert_eq!(status["progress"]["planned"], 400);
    let file = folder
        .path()
        .join("experiments")
        .join(&hash.as_str()[..8])
        .join("status.json");
    let written: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(written["pid"], child.id());
    // States are counted; points are nowhere.
    let points = ["total", "earned", "delta"];
    let text = written.to_string();
    assert!(
        points.iter().all(|word| !text.contains(word)),
        "{written:#}"
    );
    let rows = json(&breakage(folder.path(), &["runs", "list", "--json"]));
    assert!(rows[0]["total"].is_null());
    let corpus = breakage(folder.path(), &["corpus", "list"]);
    assert!(
        corpus.status.success() && told(&corpus).contains("seed-"),
        "{}",
        told(&corpus)
    );
    let missing = breakage(folder.path(), &["corpus", "show", "nothing-of-this-name"]);
    assert_eq!(missing.status.code(), Some(1));
    // A second run, and anything else that writes, is told who has the store.
    for args in [
        &["experiment", "run", hash.as_str()][..],
        &["corpus", "seed"],
        &["run", "replicas-zero-advocate"],
    ] {
        let output = breakage(folder.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let words = told(&output);
        assert!(
            words.contains("open in another breakage process"),
            "{words}"
        );
        #[cfg(target_os = "linux")]
        assert!(
            words.contains(&format!("process {}", child.id())),
            "{words}"
        );
    }
    // Ctrl-C: stops after undoing, and goes on later.
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let found = json(&breakage(
        folder.path(),
        &["experiment", "verify", hash.as_str(), "--json"],
    ));
    assert_eq!(found["intact"], true, "{found:#}");
    assert_eq!(found["progress"]["finished"], false);
}
