//! `cluster up`, `status`, `down` and `rbac`: what they make, tell, remove and leave alone.

use serde_json::json;

use crate::served::{Served, json_of, text_of};

#[test]
fn what_up_makes_stand_is_told_by_status_used_by_runs_and_removed_by_down() {
    let served = Served::start();
    let on = |workspace: &str, args: &[&str]| served.on(&served.kubeconfig(), workspace, args);
    let up = json_of(&on("w", &["cluster", "up", "--json"]), 0);
    assert_eq!(up["fixtures"][0]["fixture"], "advocate");
    assert_eq!(served.namespaces(), ["prod-advocate", "prod-billing"]);
    let status = json_of(&on("w", &["cluster", "status", "--json"]), 0);
    let cluster = &status["clusters"][0];
    assert_eq!(cluster["at_rest"], true);
    assert_eq!(cluster["cluster_uid"], up["cluster_uid"]);
    assert_eq!(
        cluster["namespaces"],
        json!(["prod-advocate", "prod-billing"])
    );
    // The workspace knows the cluster, also where nobody names it.
    let all = served
        .breakage("w", &["cluster", "status"])
        .output()
        .unwrap();
    assert!(
        text_of(&all).contains("everything is at rest"),
        "{}",
        text_of(&all)
    );

    // Another workspace did not make these, and touches nothing.
    let other = on("other", &["cluster", "up"]);
    assert_eq!(other.status.code(), Some(3), "{}", text_of(&other));
    assert!(text_of(&other).contains("was not created by breakage from this workspace"));
    let other = on("other", &["cluster", "down"]);
    assert_eq!(other.status.code(), Some(0), "{}", text_of(&other));
    assert_eq!(served.namespaces(), ["prod-advocate", "prod-billing"]);

    // A run finds the fixture as it needs it.
    let run = on("w", &["run", "replicas-zero-advocate", "--json"]);
    let record = json_of(&run, 0);
    assert_eq!(record["state"], "scored");
    assert!(
        !text_of(&run).contains("making fixture"),
        "{}",
        text_of(&run)
    );

    let down = json_of(&on("w", &["cluster", "down", "--json"]), 0);
    assert_eq!(down["namespaces"], json!(["prod-advocate", "prod-billing"]));
    assert_eq!(served.namespaces(), Vec::<String>::new());
    let again = on("w", &["cluster", "up", "--fixture", "advocate-trio"]);
    assert_eq!(again.status.code(), Some(0), "{}", text_of(&again));
}

#[test]
fn an_image_that_cannot_be_pulled_is_told_before_anything_else_is_made() {
    let served = Served::start();
    let folder = served.path("w/fixtures");
    std::fs::create_dir_all(&folder).unwrap();
    let own = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod-own"}},
        {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "prod-own"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "registry.lab:5000/acme/web:1"}]},
                },
            },
        },
    ]});
    std::fs::write(folder.join("own.json"), own.to_string()).unwrap();
    let args = ["cluster", "up", "--fixture", "own"];
    let output = served.on(&served.kubeconfig(), "w", &args);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    for words in [
        "cannot pull registry.lab:5000/acme/web:1",
        "Pull",
        "k3d image import",
        "fixture image --push",
        "ctr -n k8s.io images import",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert_eq!(served.namespaces(), Vec::<String>::new());
}

#[test]
fn a_cluster_that_was_agreed_to_is_not_asked_about_again() {
    let served = Served::start();
    let somebodys = served.as_somebodys();
    let up = ["cluster", "up"];
    let output = served.on(&somebodys, "w", &up);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert_eq!(served.namespaces(), Vec::<String>::new());
    let output = served.on(&somebodys, "w", &["cluster", "up", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let output = served.on(&somebodys, "w", &up);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    // Another workspace is asked.
    let output = served.on(&somebodys, "other", &up);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
}

#[test]
fn the_embedded_cluster_needs_no_preparation_and_a_workspace_that_knows_none_says_so() {
    let served = Served::start();
    let args = ["cluster", "up", "--context", "embedded"];
    let output = served.breakage("w", &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    for command in ["status", "down"] {
        let output = served
            .breakage("w", &["cluster", command])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        assert!(text_of(&output).contains("knows no cluster"));
    }
}

#[test]
fn the_manifest_of_rights_names_an_account_and_gives_nothing_away() {
    let served = Served::start();
    let args = [
        "cluster",
        "rbac",
        "--namespace",
        "ops",
        "--service-account",
        "deployer",
    ];
    let output = served.breakage("w", &args).output().unwrap();
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for words in [
        "kind: ClusterRole\n",
        "name: \"deployer\"",
        "namespace: \"ops\"",
        "\"prod-advocate\"",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    let sent = told
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    for line in sent {
        for word in [
            "breakage", "fault", "chaos", "inject", "fixture", "scenario",
        ] {
            assert!(!line.to_lowercase().contains(word), "{line}");
        }
        assert!(!line.contains('*'), "{line}");
    }
}
