//! Arms on a cluster that outlives the process, beside embedded ones, and a kill in the middle.

use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::bench::workspace;

/// How much faster than the wall's the cluster's time runs.
const FACTOR: u32 = 100;

/// The cluster's process, which ends with the test.
struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        // Our own child, by its handle.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path) -> Served {
    let mut process = Command::new(env!("CARGO_BIN_EXE_breakage"))
        .args(["cluster", "serve", "--json"])
        .arg(format!("--fast={FACTOR}"))
        .arg("--kubeconfig")
        .arg(folder.join("kubeconfig"))
        .arg("--workspace")
        .arg(folder.join("server"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(process.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    Served(process, ready["context"].as_str().unwrap().to_owned())
}

fn breakage(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_breakage"));
    command
        .env("BREAKAGE_WORKSPACE", folder.join("workspace"))
        .env("BREAKAGE_KUBECONFIG", folder.join("kubeconfig"))
        .args(args)
        .stdin(Stdio::null());
    command
}

#[test]
fn a_kill_in_the_middle_of_runs_on_a_lasting_cluster_is_undone_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path());
    let context = served.1.clone();
    let hash = workspace(&folder.path().join("workspace"), |mut plan| {
        plan.blocks = 2;
        plan.scenarios.truncate(1);
        for arm in plan
            .arms
            .iter_mut()
            .filter(|arm| arm.id.as_str() == "treatment")
        {
            arm.context = Some(context.clone());
        }
        plan
    });
    let mut child = breakage(folder.path(), &["experiment", "run", hash.as_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A run there takes 2 to 3 s, after a start that makes the fixture.
    std::thread::sleep(Duration::from_millis(2500));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = breakage(
        folder.path(),
        &["experiment", "run", hash.as_str(), "--json"],
    )
    .output()
    .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let found = breakage(
        folder.path(),
        &["experiment", "verify", hash.as_str(), "--json"],
    )
    .output()
    .unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["intact"], true, "{found:#}");
    assert_eq!(found["progress"]["ended"], 4);
    assert_eq!(found["progress"]["states"].get("framework_error"), None);
    let runs = breakage(folder.path(), &["runs", "list", "--json"])
        .output()
        .unwrap();
    let runs: Vec<Value> = serde_json::from_slice(&runs.stdout).unwrap();
    let of_treatment = |run: &&Value| run["experiment"]["arm"] == "treatment";
    let ended = runs
        .iter()
        .filter(of_treatment)
        .filter(|run| run["state"] != "framework_error");
    assert_eq!(ended.count(), 2, "{runs:#?}");
}
