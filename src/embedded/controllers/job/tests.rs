//! Behaviour of the Job controller.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS};
use crate::embedded::controllers::object::{items, name};
use crate::embedded::kind::Kind;

fn bench(spec: Value) -> Bench {
    let mut bench = Bench::new();
    let mut spec = spec;
    spec["template"] = json!({
        "metadata": {"labels": {"app": "nightly"}},
        "spec": {
            "schedulerName": "none",
            "restartPolicy": "Never",
            "containers": [{"name": "j", "image": "one"}],
        },
    });
    let job = json!({"metadata": {"name": "nightly", "namespace": NS}, "spec": spec});
    bench.create(Kind::Job, job);
    bench
}

/// Ends every pod that runs.
fn finish(bench: &mut Bench, phase: &str) {
    let now = bench.world.now().seconds_text();
    for pod in bench.list(Kind::Pod) {
        if pod["status"]["phase"] == "Running" {
            bench.update(Kind::Pod, name(&pod), |p| {
                p["status"] = json!({"phase": phase, "containerStatuses":
                    [{"name": "j", "state": {"terminated": {"exitCode": 3, "finishedAt": now}}}]});
            });
        }
    }
}

fn step(bench: &mut Bench, seconds: u64, phase: &str) {
    for _ in 0..seconds {
        // The stand-in makes finished pods run again; only the first state counts here.
        bench
            .world
            .run_until(bench.world.now() + std::time::Duration::from_secs(1));
        let new: Vec<Value> = bench.list(Kind::Pod);
        for pod in new.iter().filter(|pod| pod["status"]["phase"] != "Failed") {
            if pod["status"]["phase"] != "Succeeded" {
                bench.update(Kind::Pod, name(pod), |p| {
                    p["status"]["phase"] = json!("Running");
                });
            }
        }
        finish(bench, phase);
    }
}

#[test]
fn a_failing_job_backs_off_and_gives_up_at_its_limit() {
    let mut bench = bench(json!({"backoffLimit": 2, "completions": 1, "parallelism": 1}));
    step(&mut bench, 5, "Failed");
    assert_eq!(bench.list(Kind::Pod).len(), 1);
    step(&mut bench, 10, "Failed");
    assert_eq!(bench.list(Kind::Pod).len(), 2);
    step(&mut bench, 30, "Failed");
    assert_eq!(bench.list(Kind::Pod).len(), 3);
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(status["failed"], 3);
    assert_eq!(status.get("active"), None);
    let conditions = items(&status["conditions"]);
    assert_eq!(conditions[0]["type"], "FailureTarget");
    assert_eq!(conditions[1]["type"], "Failed");
    assert_eq!(
        conditions[1]["message"],
        "Job has reached the specified backoff limit"
    );
    let reasons: Vec<String> = bench.events("Job").into_iter().map(|e| e.0).collect();
    assert_eq!(reasons.last().unwrap(), "BackoffLimitExceeded");
    let labels = bench.list(Kind::Pod)[0]["metadata"]["labels"].clone();
    assert_eq!(labels["job-name"], "nightly");
}

#[test]
fn a_job_is_complete_when_enough_pods_have_succeeded() {
    let mut bench = bench(json!({"backoffLimit": 2, "completions": 2, "parallelism": 1}));
    step(&mut bench, 4, "Succeeded");
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(status["succeeded"], 2);
    assert_eq!(items(&status["conditions"])[1]["type"], "Complete");
    assert!(status["completionTime"].is_string());
    assert_eq!(bench.list(Kind::Pod).len(), 2);
}

#[test]
fn a_job_past_its_deadline_loses_its_pods_and_fails_when_they_are_gone() {
    let mut bench = bench(json!({"activeDeadlineSeconds": 5, "completions": 1, "parallelism": 1}));
    bench.run(8);
    assert!(bench.list(Kind::Pod).is_empty());
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(status["failed"], 1);
    let conditions = items(&status["conditions"]);
    assert_eq!(conditions[1]["type"], "Failed");
    assert_eq!(conditions[1]["reason"], "DeadlineExceeded");
    let last = bench.events("Job").pop().unwrap();
    assert_eq!(last.1, "Job was active longer than specified deadline");
}

#[test]
fn an_indexed_job_names_its_pods_by_index_and_lists_those_that_are_done() {
    let mut bench = bench(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    step(&mut bench, 1, "Running");
    let pods = bench.list(Kind::Pod);
    assert!(name(&pods[0]).starts_with("nightly-0-") && name(&pods[1]).starts_with("nightly-1-"));
    assert_eq!(pods[1]["spec"]["hostname"], "nightly-1");
    step(&mut bench, 3, "Succeeded");
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(status["completedIndexes"], "0,1");
    assert_eq!(status["succeeded"], 2);
}

#[test]
fn a_failure_policy_ends_the_job_at_the_first_pod_that_it_names() {
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}});
    let mut bench =
        bench(json!({"podFailurePolicy": {"rules": [rule]}, "completions": 1, "parallelism": 1}));
    step(&mut bench, 3, "Failed");
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(
        items(&status["conditions"])[1]["reason"],
        "PodFailurePolicy"
    );
    let message = items(&status["conditions"])[1]["message"].as_str().unwrap();
    assert!(message.ends_with("failed with exit code 3 matching FailJob rule at index 0"));
}

#[test]
fn a_finished_job_goes_when_its_time_to_live_is_over() {
    let mut bench =
        bench(json!({"ttlSecondsAfterFinished": 5, "completions": 1, "parallelism": 1}));
    step(&mut bench, 3, "Succeeded");
    assert_eq!(bench.list(Kind::Job).len(), 1);
    step(&mut bench, 8, "Succeeded");
    assert!(bench.list(Kind::Job).is_empty());
}

#[test]
fn a_suspended_job_says_so_and_starts_nothing() {
    let mut bench = bench(json!({"suspend": true, "completions": 1, "parallelism": 1}));
    step(&mut bench, 3, "Succeeded");
    assert!(bench.list(Kind::Pod).is_empty());
    let status = bench.get(Kind::Job, "nightly")["status"].clone();
    assert_eq!(items(&status["conditions"])[0]["reason"], "JobSuspended");
    assert!(status.get("startTime").is_none());
}
