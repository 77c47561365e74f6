//! Two processes on one workspace, two workspaces on one cluster, closed clusters, contexts that lead elsewhere.

use std::process::Stdio;

use crate::reader::{self, differences, held};
use crate::served::{Served, text_of};

const SCENARIO: &str = "replicas-zero-advocate";

#[test]
fn a_second_process_on_a_workspace_is_told_who_holds_it() {
    let served = Served::start();
    let empty = held(&served.url);
    let mut running = served
        .run("one", &[SCENARIO, "--agent", "noop"])
        .spawn()
        .unwrap();
    reader::wait_for("a namespace", || held(&served.url) != empty);
    // Each waits a moment for the store; together they are done before the run is.
    let others = [
        &["run", SCENARIO][..],
        &["runs", "list"],
        &["runs", "restore"],
    ]
    .map(|args| {
        let mut command = served.breakage("one", args);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    });
    for other in others {
        let second = other.wait_with_output().unwrap();
        assert_eq!(second.status.code(), Some(1), "{}", text_of(&second));
        let told = text_of(&second);
        assert!(told.contains("open in another breakage process"), "{told}");
        if cfg!(target_os = "linux") {
            assert!(
                told.contains(&format!("(process {})", running.id())),
                "{told}"
            );
        }
    }
    running.kill().unwrap();
    running.wait().unwrap();
    // Its end frees the workspace, however it ended.
    served.restore("one");
    let records = served.records("one");
    assert_eq!((records.len(), records[0].1.as_str()), (1, "crashed"));
}

#[test]
fn a_second_workspace_does_not_touch_what_another_one_made() {
    let served = Served::start();
    let first = served.run("one", &[SCENARIO]).status().unwrap();
    assert!(first.success(), "{}", served.told("one"));
    let before = held(&served.url);
    let second = served.run("two", &[SCENARIO]).status().unwrap();
    assert_eq!(second.code(), Some(3));
    let printed = served.printed("two").remove(0);
    assert_eq!(printed["state_code"], "reset-not-proven");
    let error = printed["error"].as_str().unwrap();
    assert!(error.contains("namespace prod-advocate exists"), "{error}");
    assert!(
        error.contains("use the workspace that created it"),
        "{error}"
    );
    assert_eq!(differences(&before, &held(&served.url)), [""; 0]);
    // Restoring has nothing of its own there either.
    served.restore("two");
    assert_eq!(differences(&before, &held(&served.url)), [""; 0]);
    assert!(
        served
            .run("one", &[SCENARIO, "--seed", "2"])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_context_that_leads_to_another_cluster_by_now_is_not_undone_into() {
    let mut served = Served::start();
    let empty = held(&served.url);
    let mut running = served
        .run("one", &[SCENARIO, "--agent", "noop"])
        .spawn()
        .unwrap();
    reader::wait_for("a namespace", || held(&served.url) != empty);
    running.kill().unwrap();
    running.wait().unwrap();
    // The cluster goes, and another one takes its name: the embedded cluster derives everything from its seed, its
    // identity too.
    served.replace(&["--seed", "2"]);
    let other = held(&served.url);
    let output = served
        .breakage("one", &["runs", "restore"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
    let told = text_of(&output);
    assert!(told.contains("left: something in cluster"), "{told}");
    assert!(
        told.contains("breakage runs restore --context breakage-embedded"),
        "{told}"
    );
    assert_eq!(differences(&other, &held(&served.url)), [""; 0]);
    // Runs in the cluster at hand go on, and what waits elsewhere is told.
    let next = served
        .run("one", &[SCENARIO, "--seed", "2"])
        .status()
        .unwrap();
    assert!(next.success(), "{}", served.told("one"));
    assert!(
        served
            .told("one")
            .contains("was cut off on another cluster")
    );
}

#[test]
fn a_context_without_a_server_is_no_cluster_and_jobs_are_refused() {
    let mut served = Served::start();
    let refused = served
        .run("one", &[SCENARIO, "--jobs", "2"])
        .status()
        .unwrap();
    assert_eq!(refused.code(), Some(1));
    assert!(served.told("one").contains("one after another"));
    served.stop();
    let gone = served.run("one", &[SCENARIO]).status().unwrap();
    assert_eq!(gone.code(), Some(3), "{}", served.told("one"));
    assert!(
        served.told("one").contains(&served.url),
        "{}",
        served.told("one")
    );
    assert!(served.records("one").is_empty(), "nothing was planned");
}
