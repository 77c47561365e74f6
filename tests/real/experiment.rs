//! A block of a registered experiment on a real cluster, killed in the middle and gone on with.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tier::{Tier, WORKSPACE, take, text_of};
use crate::whole;

/// A run takes two minutes; one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often the cluster is looked at until the second run's fault stands in it.
const GLANCE: Duration = Duration::from_millis(500);
/// Of the published design; the first of them alone where time is short.
const SCENARIOS: [&str; 3] = [
    "replicas-zero-advocate",
    "secret-missing-key-advocate",
    "readiness-probe-misconfigured-advocate",
];

fn plan(context: &str, scenarios: &[&str]) -> String {
    let mut text = format!(
        "id: real-block
title: A block on a real cluster
authors: [a test]
prior_data: none
hypotheses:
  - {{id: h, text: Retrieval helps., direction: higher}}
sesoi: 0.05
rubric: v0.1
control: control
arms:
  - {{id: treatment, agent: rules, context: {context}, retrieval: {{mode: on, k: 3}}}}
  - {{id: control, agent: rules, context: {context}, retrieval: off}}
blocks: 2
matrix:
  rows:
    - {{id: all, decision: none, ships: false, when: scenarios >= 0}}
  no_decision: none
scenarios:
"
    );
    for scenario in scenarios {
        text.push_str(&format!(
            "  - id: {scenario}\n    unqualified_because: the test qualifies nothing here\n"
        ));
    }
    text
}

#[test]
fn an_experiment_killed_in_the_middle_of_a_run_goes_on_and_verifies() {
    let Some(tier) = take() else { return };
    // One block of all three where there is time for it; else of one.
    let count = if whole::wanted() { SCENARIOS.len() } else { 1 };
    let before = tier.held();
    let file = tier.path("real-block.yaml");
    std::fs::write(&file, plan(&tier.context, &SCENARIOS[..count])).unwrap();
    told(&tier, &["experiment", "lock", file.to_str().unwrap()]);
    let mut first = start(&tier);
    wait_for(&tier, 1);
    let started = Instant::now();
    while tier.held() == before {
        assert!(started.elapsed() < PATIENCE, "no second run broke anything");
        std::thread::sleep(GLANCE);
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = start(&tier);
    let block = 2 * count as u64;
    wait_for(&tier, block);
    // The first block is what is wanted; the second is stopped as a person would.
    interrupt(&second);
    assert_eq!(second.wait().unwrap().code(), Some(130));
    tier.assert_as_before(&before, "after the block");
    let status = json(&tier, &["experiment", "status", "real-block"]);
    assert!(
        status["progress"]["ended"].as_u64().unwrap() >= block,
        "{status}"
    );
    assert_eq!(status["progress"]["blocks_complete"], 1, "{status}");
    assert_eq!(status["progress"]["repeated"]["crashed"], 1, "{status}");
    told(&tier, &["experiment", "verify", "real-block"]);
}

fn start(tier: &Tier) -> Child {
    tier.breakage(WORKSPACE, &["experiment", "run", "real-block", "--yes"])
        .env("KUBECONFIG", &tier.kubeconfig)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// SIGINT, which asks for an end after undoing.
fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until this many planned runs have ended.
fn wait_for(tier: &Tier, runs: u64) {
    let started = Instant::now();
    while ended(tier) < runs {
        let allowed = PATIENCE * u32::try_from(runs).unwrap();
        assert!(started.elapsed() < allowed, "{runs} runs did not end");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// As the status file says, which is there from the first run on.
fn ended(tier: &Tier) -> u64 {
    let folder = tier.path(WORKSPACE).join("experiments");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files: Vec<PathBuf> = files
        .map(|entry| entry.path().join("status.json"))
        .collect();
    files
        .iter()
        .filter_map(|file| serde_json::from_slice::<Value>(&std::fs::read(file).ok()?).ok())
        .filter_map(|status| status["progress"]["ended"].as_u64())
        .max()
        .unwrap_or(0)
}

fn told(tier: &Tier, args: &[&str]) -> String {
    let mut command = tier.breakage(WORKSPACE, args);
    let output = command
        .env("KUBECONFIG", &tier.kubeconfig)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}: {}",
        text_of(&output)
    );
    text_of(&output)
}

fn json(tier: &Tier, args: &[&str]) -> Value {
    let mut command = tier.breakage(WORKSPACE, &[args, &["--json"]].concat());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}
