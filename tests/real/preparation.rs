//! What comes before a run: the image reaches the node, the cluster is examined, and nobody else's is touched.

use crate::tier::{REPOSITORY, WORKSPACE, take};

#[test]
fn an_image_that_the_program_pushed_is_what_the_node_runs() {
    let Some(tier) = take() else { return };
    let pods = tier.list("/api/v1/namespaces/prod-advocate/pods");
    let statuses: Vec<_> = pods
        .iter()
        .flat_map(|pod| pod["status"]["containerStatuses"].as_array().cloned())
        .flatten()
        .collect();
    assert!(!statuses.is_empty());
    for status in &statuses {
        assert_eq!(status["image"], format!("ghcr.io/{REPOSITORY}"), "{status}");
        assert_eq!(status["ready"], true, "{status}");
    }
    // The runtime names what runs by the digest that the registry gave.
    let digest = tier.digest();
    for status in &statuses {
        let id = status["imageID"].as_str().unwrap_or_default();
        assert!(id.ends_with(&digest), "{id} is not {digest}");
    }
}

#[test]
fn the_doctor_finds_a_usable_cluster_and_says_what_it_lacks() {
    let Some(tier) = take() else { return };
    let before = tier.held();
    let (code, told) = tier.placed(WORKSPACE, &["doctor"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("1.34.4"), "{told}");
    // There is no metrics server here, and nothing that enforces policies.
    assert!(told.contains("no metrics API"), "{told}");
    assert!(told.contains("not enforced"), "{told}");
    tier.assert_as_before(&before, "the doctor takes its pods away again");
}

#[test]
fn a_wrong_image_reference_is_told_with_the_three_ways_to_bring_one() {
    let Some(tier) = take() else { return };
    let before = tier.held();
    let missing = "ghcr.io/acme/services:9.9.9";
    let up = ["cluster", "up", "--yes", "--image", missing];
    let (code, told) = tier.placed(WORKSPACE, &up);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains(missing), "{told}");
    for way in [
        "fixture image --push",
        "k3d image import",
        "ctr -n k8s.io images import",
    ] {
        assert!(told.contains(way), "{way} is not in: {told}");
    }
    tier.assert_as_before(&before, "an image that is not there");
}

#[test]
fn a_second_workspace_does_not_touch_what_the_first_one_made() {
    let Some(tier) = take() else { return };
    let before = tier.held();
    let printed = tier.run("second", &["replicas-zero-advocate"], 3).remove(0);
    assert_eq!(printed["state_code"], "reset-not-proven", "{printed}");
    let error = printed["error"].as_str().unwrap();
    assert!(error.contains("namespace prod-advocate exists"), "{error}");
    assert!(
        error.contains("use the workspace that created it"),
        "{error}"
    );
    tier.restore("second");
    tier.assert_as_before(&before, "a second workspace");
}

#[test]
fn a_run_that_was_cut_off_is_found_by_the_next_process_of_its_workspace_only() {
    let Some(tier) = take() else { return };
    let before = tier.held();
    let args = [
        "replicas-zero-advocate",
        "--agent",
        "noop",
        "--seed",
        "4001",
    ];
    let mut run = crate::terminal::Watched::start(&tier, WORKSPACE, &args);
    run.wait_for(3);
    assert!(run.kill().is_some());
    // The fault is there, and a stranger neither takes it back nor adds to it.
    let faulty = tier.held();
    assert_ne!(faulty, before);
    tier.restore("second");
    tier.run("second", &["replicas-zero-advocate", "--seed", "2"], 3);
    assert_eq!(crate::held::differences(&faulty, &tier.held()), [""; 0]);
    tier.restore(WORKSPACE);
    tier.assert_as_before(&before, "the owner's restore");
    let records = tier.records(WORKSPACE);
    let cut_off: Vec<_> = records
        .iter()
        .filter(|(run, _)| run.contains("-4001-"))
        .collect();
    assert_eq!(cut_off.len(), 1, "{records:?}");
    assert_eq!(cut_off[0].1, "crashed");
}
