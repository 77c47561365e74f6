//! Agents from files: the example of the guide, steps that fail, files that are refused before anything happens.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

#[path = "run/bench.rs"]
#[expect(dead_code, reason = "the bench also serves tests that break runs")]
mod bench;

use agent_breakage::agent::choice::Choice;
use agent_breakage::record::RunState;
use agent_breakage::run::Finished;
use assert_cmd::Command;

use bench::Bench;

const SCENARIO: &str = "oom-advocate-api-k8s-only";

fn run(text: &str) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("by-hand.yaml");
    std::fs::write(&file, text).unwrap();
    let agent = Choice::parse(&format!("script:{}", file.display()))
        .unwrap()
        .make();
    let bench = Bench::new();
    let scenario = bench.library.scenario(SCENARIO).unwrap();
    bench.run(&scenario, agent.as_ref(), 1)
}

#[test]
fn the_example_of_the_guide_repairs_its_scenario() {
    let guide = include_str!("../docs/agent-guide.md");
    let (_, rest) = guide.split_once("```yaml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let finished = run(text);
    let record = &finished.record;
    assert_eq!(record.agent.name, "script:by-hand");
    assert_eq!(finished.score.as_ref().unwrap().total.to_string(), "0.910");
    let tools: Vec<&str> = record.actions.iter().map(|a| a.tool.as_str()).collect();
    let start = [
        // The pods; the workload, its pods and their logs; the repair; then looks at one field.
        "kubectl_get",
        "kubectl_get",
        "kubectl_get",
        "kubectl_logs",
        "kubectl_patch",
        "kubectl_get",
    ];
    assert_eq!(tools[..start.len()], start);
    assert_eq!((record.retrievals.len(), record.hypotheses.len()), (1, 1));
    let other = run(&format!("{text}\n# another text\n"));
    assert_ne!(other.record.agent.version, record.agent.version);
}

#[test]
fn the_first_step_that_fails_ends_the_script_and_is_named_by_its_line() {
    for (step, words) in [
        (
            "get: {kind: Deployment, ns: prod-advocate, name: nobody}",
            "refused with 404",
        ),
        (
            "wait_until: {kind: Deployment, ns: prod-advocate, name: advocate-api, path: 'spec.replicas', equals: 7, timeout_s: 10}",
            "spec.replicas is 1, and did not become 7 within 10 s",
        ),
    ] {
        let finished = run(&format!("steps:\n  - wait: 1\n  - {step}\n  - wait: 500\n"));
        assert_eq!(finished.record.state, RunState::Timeout);
        let notes: Vec<&str> = finished
            .record
            .stages
            .iter()
            .filter_map(|stage| stage.note.as_deref())
            .collect();
        let told = notes
            .iter()
            .any(|note| note.contains("line 3") && note.contains(words));
        assert!(told, "{words}: {notes:?}");
    }
}

#[test]
fn a_bad_file_is_refused_before_the_run_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    std::fs::write(
        &file,
        "steps:\n  - wiat: 3\n  - restart: {kind: Pod, ns: a, name: b}\n",
    )
    .unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", &workspace)
        .args([
            "run",
            SCENARIO,
            "--agent",
            &format!("script:{}", file.display()),
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for words in [
        "bad.yaml:2:5: steps[0].wiat: unknown key (did you mean `wait`?)",
        "bad.yaml:3:21: steps[1].restart.kind: unknown word `Pod`",
        "docs/agent-guide.md",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    assert_eq!(std::fs::read_dir(&workspace).unwrap().count(), 0);
}
