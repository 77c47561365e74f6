//! `scenario compare`: the embedded cluster against itself behind a socket must agree with itself.

use serde_json::{Value, json};

use crate::served::{SCENARIOS, Served, text_of};

const WORKSPACE: &str = "comparing";

#[test]
fn a_cluster_behind_a_socket_agrees_with_the_one_inside_and_the_page_says_so() {
    let served = Served::start();
    let page = served.path("page.md");
    std::fs::write(
        &page,
        "before\n<!-- breakage scenario compare: begin -->\nold\n<!-- breakage scenario compare: end -->\nafter\n",
    )
    .unwrap();
    let output = served
        .breakage(WORKSPACE, &["scenario", "compare", SCENARIOS[1], "--json"])
        .args(["--context", &served.context])
        .arg("--kubeconfig")
        .arg(served.path("kubeconfig"))
        .arg("--output")
        .arg(&page)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let sheet: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pair = &sheet["pairs"][0];
    assert_eq!(pair["differs"], json!([]));
    assert_eq!(pair["embedded"]["fixed"], true);
    assert!(
        !pair["real"]["repair"].as_array().unwrap().is_empty(),
        "{sheet}"
    );
    assert_eq!(served.records(WORKSPACE), [], "the runs are kept nowhere");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.starts_with("before\n") && page.ends_with("after\n"),
        "{page}"
    );
    assert!(
        page.contains("1 of 1 agree") && !page.contains("old"),
        "{page}"
    );
}
