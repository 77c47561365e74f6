//! `doctor`: every check answers, problems have something to do, and nothing is left behind.

use serde_json::Value;

use crate::served::{Served, json_of, text_of};

const CHECKS: &[&str] = &[
    "version",
    "rights",
    "clock",
    "namespaces",
    "nodes",
    "room",
    "limits",
    "webhooks",
    "metrics",
    "image",
    "network-policy",
];

fn grades(findings: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = findings["findings"].as_array().unwrap().iter();
    findings
        .map(|one| (text(&one["check"]), text(&one["grade"])))
        .collect()
}

#[test]
fn a_served_cluster_is_found_good_by_asking_and_by_trying_and_is_left_as_it_was() {
    let served = Served::start();
    let output = served.on(&served.kubeconfig(), "w", &["doctor", "--json"]);
    let found = json_of(&output, 0);
    let grades = grades(&found);
    for check in CHECKS.iter().chain(&["unfinished-runs"]) {
        let grade = grades.iter().find(|(name, _)| name == check);
        assert_eq!(
            grade.map(|(_, grade)| grade.as_str()),
            Some("good"),
            "{check}: {found:#}"
        );
    }
    assert_eq!(served.namespaces(), Vec::<String>::new());
}

#[test]
fn looking_only_makes_no_pods_and_needs_no_agreement() {
    let served = Served::start();
    let somebodys = served.as_somebodys();
    let output = served.on(&somebodys, "w", &["doctor", "--only-look", "--json"]);
    let found = json_of(&output, 0);
    let tried = grades(&found);
    let of = |check: &str| {
        tried
            .iter()
            .find(|(name, _)| name == check)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(of("image"), "unknown");
    assert_eq!(of("network-policy"), "unknown");
    let output = served.on(&somebodys, "w", &["doctor"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
}

#[test]
fn namespaces_of_somebody_else_are_a_problem_with_something_to_do() {
    let served = Served::start();
    let kubeconfig = served.kubeconfig();
    let up = served.on(&kubeconfig, "w", &["cluster", "up"]);
    assert_eq!(up.status.code(), Some(0), "{}", text_of(&up));
    for args in [&["doctor", "--only-look"][..], &["doctor"]] {
        let mine = served.on(&kubeconfig, "w", args);
        assert_eq!(mine.status.code(), Some(0), "{}", text_of(&mine));
    }
    let output = served.on(&kubeconfig, "other", &["doctor", "--only-look"]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("prod-advocate, prod-billing exist"), "{told}");
    assert!(told.contains("TO DO"), "{told}");
}

#[test]
fn the_embedded_cluster_and_this_machine_are_examined_without_a_context() {
    let served = Served::start();
    let output = served
        .breakage("w", &["doctor", "--json"])
        .output()
        .unwrap();
    let found = json_of(&output, 0);
    let grades = grades(&found);
    for check in ["workspace", "k3d", "kubectl"].iter().chain(CHECKS) {
        assert!(
            grades.iter().any(|(name, _)| name == check),
            "{check} in {found:#}"
        );
    }
    let table = served.breakage("w", &["doctor"]).output().unwrap();
    let told = text_of(&table);
    let fits = told.lines().all(|line| line.chars().count() <= 100);
    assert!(table.status.success() && fits, "{told}");
}

#[test]
fn a_server_that_nobody_listens_at_is_told_as_that() {
    let mut served = Served::start();
    served.stop();
    let output = served.on(&served.kubeconfig(), "w", &["doctor", "--only-look"]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("nobody listens at"), "{told}");
}
