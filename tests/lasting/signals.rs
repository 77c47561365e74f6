//! SIGINT and SIGTERM: the first undoes before the process ends, the second ends at once and says what to type.

use std::process::Child;

use crate::reader::{self, differences, held};
use crate::served::{Served, signal};

const WORKSPACE: &str = "signalled";
const SCENARIO: &str = "replicas-zero-advocate";

/// A run in the middle of its fault, as the cluster itself shows it.
fn at_work(served: &Served, args: &[&str]) -> Child {
    let before = held(&served.url);
    let running = served
        .run(WORKSPACE, &[&[SCENARIO, "--agent", "noop"], args].concat())
        .spawn()
        .unwrap();
    reader::wait_for("the fault", || held(&served.url) != before);
    running
}

#[test]
fn the_first_signal_undoes_and_the_second_ends_at_once_and_says_how_to_restore() {
    let served = Served::start();
    let mut control = served.run(WORKSPACE, &[SCENARIO, "--healthy"]);
    assert!(
        control.status().unwrap().success(),
        "{}",
        served.told(WORKSPACE)
    );
    let before = held(&served.url);

    for (name, seed) in [("-INT", "10"), ("-TERM", "20")] {
        let mut running = at_work(&served, &["--seed", seed, "--reps", "3"]);
        signal(&running, name);
        assert_eq!(running.wait().unwrap().code(), Some(130), "{name}");
        assert_eq!(differences(&before, &held(&served.url)), [""; 0], "{name}");
        assert_eq!(reader::unready(&served.url), [""; 0], "{name}");
        let printed = served.printed(WORKSPACE);
        assert_eq!(printed.len(), 1, "{name}");
        assert_eq!(printed[0]["state_code"], "interrupted");
        assert_eq!(printed[0]["undo"]["succeeded"], true);
    }
    let records = served.records(WORKSPACE);
    let count = |state: &str| records.iter().filter(|(_, s)| s == state).count();
    assert_eq!(
        (records.len(), count("interrupted"), count("not_run")),
        (7, 2, 4)
    );

    // A second one before the first can have done its work.
    let mut running = at_work(&served, &["--seed", "30"]);
    signal(&running, "-INT");
    let said = served.path(&format!("{WORKSPACE}.err"));
    reader::wait_for("the first answer", || {
        crate::served::contains(&said, "interrupted: undoing the fault")
    });
    signal(&running, "-INT");
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let told = served.told(WORKSPACE);
    if told.contains("ended;") {
        let command = "breakage runs restore --context breakage-embedded --kubeconfig";
        assert!(told.contains(command), "{told}");
    }
    served.restore(WORKSPACE);
    assert_eq!(differences(&before, &held(&served.url)), [""; 0]);
    assert_eq!(served.records(WORKSPACE).len(), 8);
}
