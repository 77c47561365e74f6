//! A cluster that is gone for good: its runs are told until somebody gives it up, and then have their one record.

use serde_json::{Value, json};

use crate::reader::{self, held};
use crate::served::{SCENARIOS, Served, text_of};

const WORKSPACE: &str = "bereft";

#[test]
fn a_cluster_that_is_gone_is_given_up_only_when_somebody_agrees_and_its_runs_then_end_as_crashed() {
    let mut served = Served::start();
    let mut control = served.run(WORKSPACE, &[SCENARIOS[1], "--healthy"]);
    assert!(
        control.status().unwrap().success(),
        "{}",
        served.told(WORKSPACE)
    );
    let before = held(&served.url);
    let args = [
        SCENARIOS[1],
        "--agent",
        "noop",
        "--seed",
        "50",
        "--reps",
        "3",
    ];
    let mut running = served.run(WORKSPACE, &args).spawn().unwrap();
    reader::wait_for("the fault", || held(&served.url) != before);
    running.kill().unwrap();
    running.wait().unwrap();
    served.stop();

    let restore = |args: &[&str]| {
        let args = [&["runs", "restore"], args].concat();
        served.breakage(WORKSPACE, &args).output().unwrap()
    };
    let told = restore(&[]);
    assert_eq!(told.status.code(), Some(3), "{}", text_of(&told));
    assert!(text_of(&told).contains("--give-up"), "{}", text_of(&told));
    let asked = restore(&["--give-up"]);
    assert_eq!(asked.status.code(), Some(1), "{}", text_of(&asked));
    assert_eq!(served.records(WORKSPACE).len(), 1, "nobody agreed");

    let given_up = restore(&["--give-up", "--yes", "--json"]);
    assert_eq!(given_up.status.code(), Some(0), "{}", text_of(&given_up));
    let told: Value = serde_json::from_slice(&given_up.stdout).unwrap();
    let up = &told["given_up"][0];
    assert_eq!(up["crashed"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(up["not_run"], 2);
    assert!(
        up["faults"][0]["left"][0]
            .as_str()
            .unwrap()
            .contains("replicas"),
        "{told}"
    );
    assert_eq!(up["namespaces"], json!(["prod-advocate", "prod-billing"]));

    let records = served.records(WORKSPACE);
    let count = |state: &str| records.iter().filter(|(_, s)| s == state).count();
    assert_eq!(
        (records.len(), count("crashed"), count("not_run")),
        (4, 1, 2)
    );
    let after = restore(&[]);
    assert_eq!(after.status.code(), Some(0), "{}", text_of(&after));
}
