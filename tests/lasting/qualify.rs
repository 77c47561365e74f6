//! `scenario qualify --context`: ordinary runs that leave neither records nor anything in the cluster.

use serde_json::{Value, json};

use crate::reader::{self, held};
use crate::served::{SCENARIOS, Served, signal, text_of};

const WORKSPACE: &str = "qualifying";

fn qualify(served: &Served) -> std::process::Command {
    let mut command = served.breakage(WORKSPACE, &["scenario", "qualify", SCENARIOS[1]]);
    command
        .args(["--depth", "fault", "--json", "--context", &served.context])
        .arg("--kubeconfig")
        .arg(served.path("kubeconfig"));
    command
}

#[test]
fn a_qualification_in_a_lasting_cluster_leaves_no_record_and_nothing_behind_where_it_is_interrupted()
 {
    let served = Served::start();
    let mut interrupted = qualify(&served)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The first run, without a fault, is over by then.
    reader::wait_for("the fault", || {
        let held = held(&served.url);
        held.values().any(|object| object["spec"]["replicas"] == 0)
    });
    signal(&interrupted, "-INT");
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert_eq!(served.records(WORKSPACE), []);
    let restored = served.restore(WORKSPACE);
    assert_eq!(restored["left"], json!([]));

    let output = qualify(&served).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["cluster"], "served");
    assert_eq!(told["depth"], "fault");
    let passed = told["checks"].as_array().unwrap().iter();
    assert!(passed.clone().all(|check| check["pass"] == true), "{told}");
    assert!(passed.count() >= 3, "{told}");
    assert_eq!(served.records(WORKSPACE), []);
    let unready = reader::unready(&served.url);
    assert!(unready.is_empty(), "{unready:#?}");
    let said = String::from_utf8_lossy(&output.stderr);
    // What had come to its end before the interruption was not run again.
    assert!(said.contains("1 run in"), "{said}");
    assert!(
        said.contains("2 runs one after another, which may take up to"),
        "{said}"
    );
}
