//! Plays recorded faults on the embedded cluster and compares what it shows with what a real one showed.
//!
//! Each recording in `tests/recordings` holds a fault's commands as data and samples of a real cluster's state.
//! Every value of a sample is one comparison. It counts as matched when the embedded cluster shows the same at
//! some time within three seconds of the sample, since two real runs differ by that much. The test prints
//! matched/total for each fault; whatever differs must stand in `tests/fidelity/accepted.txt` with a reason, and
//! still counts as unmatched.

#[path = "fidelity/compare.rs"]
mod compare;
#[path = "fidelity/names.rs"]
mod names;
#[path = "fidelity/play.rs"]
mod play;
#[path = "fidelity/recorded.rs"]
mod recorded;
#[path = "fidelity/values.rs"]
mod values;

use std::collections::BTreeMap;

/// Share of all comparisons that must match, in per mille.
const NEEDED_PER_MILLE: usize = 970;

/// Faults recorded of parts that the embedded cluster does not have.
const NOT_PLAYED: &[&str] = &[
    "hpa-at-max",
    "hpa-missing-request",
    "webhook-unavailable",
    "node-not-ready",
];

#[test]
fn the_embedded_cluster_shows_what_a_real_one_showed() {
    let only = std::env::var("FAULT").unwrap_or_default();
    let accepted = accepted();
    let (mut matched, mut total) = (0, 0);
    let mut unaccepted = Vec::new();
    for (mode, text) in recordings() {
        if NOT_PLAYED.contains(&mode.as_str()) || !mode.starts_with(&only) {
            continue;
        }
        let recording: serde_json::Value =
            serde_json::from_str(&text).expect("recordings are JSON");
        let result = compare::run(&recording);
        println!("{mode:40} {:4}/{:4}", result.matched, result.total);
        matched += result.matched;
        total += result.total;
        for difference in result.differences {
            let known = accepted.iter().any(|(fault, path)| {
                (fault == &mode || fault == "*") && difference.path.contains(path.as_str())
            });
            println!("    {}{difference}", if known { "accepted: " } else { "" });
            if !known {
                unaccepted.push(format!("{mode}: {difference}"));
            }
        }
    }
    println!(
        "{:40} {matched:4}/{total:4}  {:.2} %",
        "all",
        100.0 * matched as f64 / total.max(1) as f64
    );
    assert!(
        matched * 1000 >= total * NEEDED_PER_MILLE,
        "only {matched} of {total} values match"
    );
    assert!(
        unaccepted.is_empty(),
        "differences without a reason:\n{}",
        unaccepted.join("\n")
    );
}

fn recordings() -> BTreeMap<String, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the recordings are part of the project") {
        let path = entry.expect("a readable folder").path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        if path.extension().is_some_and(|ext| ext == "json") && stem != "fixture" {
            all.insert(
                stem,
                std::fs::read_to_string(&path).expect("a readable recording"),
            );
        }
    }
    all
}

/// Fault (or `*`) and part of a path, for each accepted difference; the reason stands behind them.
fn accepted() -> Vec<(String, String)> {
    include_str!("fidelity/accepted.txt")
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.splitn(3, " | ");
            let fault = fields.next().unwrap_or_default().trim().to_owned();
            let path = fields.next().unwrap_or_default().trim().to_owned();
            let reason = fields.next().unwrap_or_default().trim();
            assert!(
                !reason.is_empty(),
                "an accepted difference needs a reason: {line}"
            );
            (fault, path)
        })
        .collect()
}
