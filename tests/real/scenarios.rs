//! Whole runs with the built-in agent: what holds on the embedded cluster holds on a real one.

use serde_json::Value;

use crate::tier::{Tier, WORKSPACE, take, text_of};
use crate::whole::{self, Listed};

/// A Secret, a probe and a Deployment fault.
const SHORT: [&str; 3] = [
    "secret-missing-key-advocate",
    "readiness-probe-misconfigured-advocate",
    "replicas-zero-advocate",
];
/// What an agent that repairs and names the cause earns at least under the published rubric.
const ENOUGH: f64 = 0.9;
const SEED: &str = "7";

#[test]
fn the_agent_earns_on_a_real_cluster_what_it_earns_on_the_embedded_one() {
    let Some(tier) = take() else { return };
    let before = tier.held();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    let scenarios = if whole::wanted() {
        whole::advocate_scenarios(&tier)
    } else {
        let plain = |id: &str| Listed {
            id: id.to_owned(),
            plain: true,
        };
        SHORT.map(plain).into()
    };
    for Listed { id, plain } in &scenarios {
        let started = std::time::Instant::now();
        let real = tier.run(WORKSPACE, &[id, "--seed", SEED], 0).remove(0);
        let wall = started.elapsed();
        let embedded = embedded(&tier, id);
        if *plain {
            tier.assert_as_before(&before, id);
        }
        failures.extend(shortfalls(id, &real, &embedded));
        rows.push([
            id.clone(),
            total(&real),
            total(&embedded),
            category(&real).to_owned(),
            text(&real["score"]["outcome"]).to_owned(),
            format!("{:.0} s", wall.as_secs_f64()),
            format!("{:.0} s", real["virtual_ms"].as_f64().unwrap() / 1000.0),
        ]);
    }
    let heads = [
        "scenario",
        "real",
        "embedded",
        "diagnosis",
        "outcome",
        "wall",
        "run",
    ];
    whole::print_table(&heads, &rows);
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The same run inside the process.
fn embedded(tier: &Tier, scenario: &str) -> Value {
    let args = ["run", scenario, "--seed", SEED, "--json"];
    let output = tier.breakage("embedded", &args).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What is not as it should be, in words.
fn shortfalls(scenario: &str, real: &Value, embedded: &Value) -> Vec<String> {
    let mut short = Vec::new();
    let earned = real["score"]["total"].as_f64().unwrap_or(0.0);
    if real["state"] != "scored" || earned < ENOUGH {
        short.push(format!(
            "{scenario}: {} with {earned}: {}, {}",
            real["state"], real["error"], real["score"]["axes"]
        ));
    }
    if category(real) != category(embedded) {
        short.push(format!(
            "{scenario}: {} on the real cluster, {} on the embedded one",
            category(real),
            category(embedded)
        ));
    }
    if real["undo"]["succeeded"] != true || real["state_hash_before"] != real["state_hash_after"] {
        short.push(format!("{scenario}: not put back: {}", real["undo"]));
    }
    short
}

fn category(run: &Value) -> &str {
    text(&run["postmortem"]["primary_category"])
}

fn total(run: &Value) -> String {
    run["score"]["total"]
        .as_f64()
        .map_or("none".to_owned(), |total| format!("{total:.2}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("none")
}
