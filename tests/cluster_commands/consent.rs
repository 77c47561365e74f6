//! A cluster that may be somebody's is asked about once; one that we served is not.

use crate::served::{Served, text_of};

const SCENARIO: &str = "replicas-zero-advocate";

#[test]
fn a_cluster_that_nobody_agreed_to_is_refused_before_anything_is_written() {
    let served = Served::start();
    let output = served.on(&served.as_somebodys(), "w", &["run", SCENARIO]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for words in [&served.url, "v1.34.4", "cluster uid", "1 node", "--yes"] {
        assert!(told.contains(words), "{words} in {told}");
    }
    // Looking is free, and shows that nothing was made.
    let output = served.on(&served.as_somebodys(), "w", &["run", SCENARIO, "--dry-run"]);
    let told = text_of(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(
        told.contains("a first run makes the fixture stand"),
        "{told}"
    );
}
