//! Scorecard, pitfalls and health over records made by hand, and as they are typed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

use std::path::Path;

use agent_breakage::ids::CategoryId;
use agent_breakage::record::{Record, Served};
use agent_breakage::report::health::health;
use agent_breakage::report::observed;
use agent_breakage::report::pitfalls::{Pitfalls, pitfalls};
use agent_breakage::report::scorecard::{Run, Scorecard, scorecard};
use agent_breakage::score::Score;
use serde_json::{Value, json};

struct Made {
    record: Record,
    score: Option<Score>,
    category: CategoryId,
}

/// A run of `agent` on a scenario: `total` in thousandths, or a framework error where there is none.
fn made(run: &str, agent: &str, scenario: &str, total: Option<u32>) -> Made {
    let state = match total {
        Some(_) => json!({"state": "scored"}),
        None => {
            json!({"state": "framework_error", "code": "fault-vanished", "message": "it healed"})
        }
    };
    let record = json!({
        "format": 1, "run_id": run, "incident_id": "s-1", "scenario_id": scenario, "scenario_sha256": "00aa",
        "scenario_text": "", "scenario_override": false, "rubric": "v0.1", "seed": 7,
        "cluster": {"name": "embedded", "kind": "embedded", "version": "v1.34.4"},
        "agent": {"name": agent, "version": "1"},
        "retrieval": {"embedder": "lexical-1", "k": 3, "max_distance": 0.4, "pool_cap": null, "corpus_size": 11},
        "qualified": true, "ran_at": "2026-12-01T10:00:00Z", "stages": [], "state": state, "injected": true,
        "detector": {"fixed": total.is_some_and(|total| total > 700), "regressions": [], "unmet": [], "skipped": [],
                     "elapsed_ms": 1, "unknown_readings": 0},
        "state_changes": [], "actions": [], "hypotheses": [], "postmortem": null, "retrievals": [],
        "undo": {"attempted": true, "succeeded": true}, "state_hash_before": null, "state_hash_after": null,
        "virtual_ms": 1, "breakage_version": "0.1.0"
    });
    Made {
        record: serde_json::from_value(record).unwrap(),
        score: total.map(|total| scored(total, "inconclusive", json!([]))),
        category: CategoryId::new("secret-content-missing"),
    }
}

fn scored(total: u32, outcome: &str, review: Value) -> Score {
    let total = f64::from(total) / 1000.0;
    let axis = json!({"earned": 0.0, "possible": 0.25, "detail": ""});
    let score = json!({
        "rubric": "v0.1", "total": total, "outcome": outcome, "review": review, "retrieval_used": [],
        "axes": {"detected": axis, "diagnosed": axis, "fixed": axis, "no_regressions": axis}
    });
    serde_json::from_value(score).unwrap()
}

fn runs(all: &[Made]) -> Vec<Run<'_>> {
    all.iter()
        .map(|one| Run {
            record: &one.record,
            score: one.score.as_ref(),
            category: Some(&one.category),
        })
        .collect()
}

fn card(all: &[Made]) -> Scorecard {
    scorecard(&runs(all), 0)
}

fn serve(made: &mut Made, query: &str, answer: &[(&str, f64)]) {
    let served: Vec<Value> = answer
        .iter()
        .map(|(id, distance)| json!({"id": id, "distance": distance, "tools": []}))
        .collect();
    let retrieval = json!({"at_ms": 1, "query": query, "served": served});
    made.record
        .retrievals
        .push(serde_json::from_value(retrieval).unwrap());
}

fn act(made: &mut Made, steps: &[(&str, &str, bool)]) {
    for (tool, name, changed) in steps {
        let action = json!({
            "at_ms": 1, "tool": tool, "verb": "patch", "resource": "deployments", "namespace": "ns", "name": name,
            "tier": 2, "reversibility": 0, "status": 200, "changed_something": changed, "summary": ""
        });
        made.record
            .actions
            .push(serde_json::from_value(action).unwrap());
    }
}

#[test]
fn our_failures_are_never_the_agents_and_both_rates_are_told() {
    // A35: 2 right, 4 wrong, 2 of ours.
    let mut all: Vec<Made> = (0..2)
        .map(|n| made(&format!("a{n}"), "x", "s", Some(910)))
        .collect();
    all.extend((0..4).map(|n| made(&format!("b{n}"), "x", "s", Some(500))));
    all.extend((0..2).map(|n| made(&format!("c{n}"), "x", "s", None)));
    let card = card(&all);
    let row = &card.groups[0].scenarios[0];
    assert_eq!((row.runs, row.n, row.repaired), (8, 6, 2));
    assert_eq!(row.framework_errors["fault-vanished"], 2);
    assert_eq!(row.repaired_of_all, Some(0.25));
    let mean = row.mean.unwrap();
    assert!(
        (mean - (2.0 * 0.91 + 4.0 * 0.5) / 6.0).abs() < 1e-12,
        "{mean}"
    );
    let text = observed::scorecard(&card, observed::Format::Text);
    assert!(text.contains("2 of 6") && text.contains("25.0 %"), "{text}");
    assert!(text.contains("fault-vanished"), "{text}");
}

#[test]
fn intervals_at_the_ends_are_not_points_and_one_run_has_no_spread() {
    // A36.
    let none: Vec<Made> = (0..50)
        .map(|n| made(&format!("r{n}"), "x", "s", Some(500)))
        .collect();
    let row = &card(&none).groups[0].scenarios[0];
    let ends = row.repaired_interval.unwrap();
    assert!(
        ends.low == 0.0 && (0.05..0.08).contains(&ends.high),
        "{ends:?}"
    );
    let one = card(&[made("r", "x", "s", Some(910))]);
    let row = &one.groups[0].scenarios[0];
    assert_eq!((row.n, row.sd), (1, None));
    let text = observed::scorecard(&one, observed::Format::Text);
    assert!(text.contains("not enough runs"), "{text}");
    let json = serde_json::to_string(&one).unwrap();
    assert!(!json.contains("null") && !json.contains("NaN"), "{json}");
    let none = card(&[made("r", "x", "s", None)]);
    assert_eq!(none.groups[0].scenarios[0].repaired_interval, None);
}

#[test]
fn runs_of_different_agents_versions_rubrics_or_clusters_are_never_one_mean() {
    let mut all = vec![
        made("a", "x", "s", Some(910)),
        made("b", "y", "s", Some(500)),
    ];
    for (run, change) in [("c", 0), ("d", 1), ("e", 2), ("f", 3)] {
        let mut other = made(run, "x", "s", Some(700));
        match change {
            0 => other.record.agent.version = "2".to_owned(),
            1 => other.score.as_mut().unwrap().rubric = agent_breakage::ids::RubricId::new("v0.2"),
            2 => other.record.cluster.name = "prod".to_owned(),
            _ => other.record.breakage_version = "0.2.0".to_owned(),
        }
        all.push(other);
    }
    let card = card(&all);
    assert_eq!(card.groups.len(), 6);
    assert!(card.groups.iter().all(|group| group.scenarios[0].n == 1));
    // Another text is another scenario.
    let mut pair = [
        made("a", "x", "s", Some(910)),
        made("b", "x", "s", Some(500)),
    ];
    pair[1].record.scenario_sha256 = "ffbb".to_owned();
    let names: Vec<String> = scorecard(&runs(&pair), 0).groups[0]
        .scenarios
        .iter()
        .map(|row| row.name.clone())
        .collect();
    assert_eq!(names, ["s @00aa", "s @ffbb"]);
}

#[test]
fn a_difference_that_is_all_difficulty_is_told_as_that() {
    // Every hit falls on the easy scenario, every miss on the hard one.
    let mut all = Vec::new();
    for n in 0..5 {
        let mut hit = made(&format!("h{n}"), "x", "easy", Some(910));
        serve(&mut hit, "q", &[("p1", 0.1)]);
        all.push(hit);
        all.push(made(&format!("m{n}"), "x", "hard", Some(500)));
    }
    let card = card(&all);
    let one = card.groups[0].retrieval.as_ref().unwrap();
    assert!((one.difference - 0.41).abs() < 1e-12);
    assert!((one.difficulty_gap - 0.41).abs() < 1e-12);
    assert!(one.within_scenarios.abs() < 1e-12);
    assert_eq!(one.scenarios_on_both_sides, 0);
    for format in [
        observed::Format::Text,
        observed::Format::Markdown,
        observed::Format::Html,
    ] {
        let text = observed::scorecard(&card, format);
        assert!(text.contains("confounded"), "{text}");
        for word in ["significan", "no effect", "trend", "NaN"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn a_simulation_is_never_shown_without_the_word() {
    let mut one = made("a", "simulated:0.7", "s", Some(910));
    one.record.agent.simulation = true;
    one.score = Some(scored(500, "regressed", json!(["repaired-at-a-cost"])));
    let all = [one];
    let card = observed::scorecard(&card(&all), observed::Format::Text);
    let pits = observed::pitfalls(&pitfalls(&runs(&all), 0));
    for text in [card, pits] {
        assert!(
            text.to_lowercase().contains("simulated:0.7 (a simulation)"),
            "{text}"
        );
        assert!(text.contains("no evidence about real"), "{text}");
    }
}

fn mined() -> Pitfalls {
    let mut all = Vec::new();
    for n in 0..3 {
        let mut bad = made(&format!("bad{n}"), "x", "s", Some(500));
        act(
            &mut bad,
            &[
                ("kubectl_get", "web", false),
                ("kubectl_get", "web", false),
                ("kubectl_scale", "web", true),
                ("kubectl_delete", "database", true),
                ("kubectl_get", "web", false),
            ],
        );
        let change = json!({"kind": "Deployment", "namespace": "ns", "name": "database", "what": "deleted", "path": "",
                            "in_scope": false, "protected": true});
        bad.record
            .state_changes
            .push(serde_json::from_value(change).unwrap());
        bad.score = Some(scored(500, "regressed", json!([])));
        all.push(bad);
    }
    let mut good = made("good", "x", "s", Some(910));
    act(
        &mut good,
        &[
            ("kubectl_get", "web", false),
            ("kubectl_scale", "web", true),
        ],
    );
    all.push(good);
    let mut costly = made("costly", "x", "s", Some(700));
    costly.score = Some(scored(700, "inconclusive", json!(["repaired-at-a-cost"])));
    all.push(costly);
    pitfalls(&runs(&all), 2)
}

#[test]
fn the_first_damaging_write_is_the_one_on_what_was_protected() {
    let found = mined();
    assert_eq!(
        (found.runs, found.damaged, found.left_out_sealed),
        (5, 4, 2)
    );
    let group = &found.groups[0];
    assert_eq!((group.regressed, group.repaired_at_a_cost), (3, 1));
    assert_eq!(group.damaged_without_write, 1);
    let first = &group.around_first_write[0];
    assert_eq!(
        first.tools,
        [
            "kubectl_get",
            "kubectl_scale",
            "[kubectl_delete]",
            "kubectl_get"
        ]
    );
    assert_eq!((first.damaged, first.undamaged), (3, 0));
    let examples: Vec<&str> = first.examples.iter().map(|id| id.as_str()).collect();
    assert_eq!(examples, ["bad0", "bad1", "bad2"]);
}

#[test]
fn a_run_counts_once_for_a_sequence_and_undamaged_runs_stand_beside() {
    let found = mined();
    let sequences = &found.groups[0].sequences;
    let common = sequences
        .iter()
        .find(|one| one.tools == ["kubectl_get", "kubectl_scale"])
        .unwrap();
    assert_eq!((common.damaged, common.undamaged), (3, 1));
    // As many damaged runs have both, and no undamaged one has the deletion: it comes first.
    let place = |tools: &[&str]| sequences.iter().position(|one| one.tools == tools).unwrap();
    assert!(place(&["kubectl_scale", "kubectl_delete"]) < place(&["kubectl_get", "kubectl_scale"]));
    for line in observed::pitfalls(&found).lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn equal_questions_with_different_answers_are_found() {
    let mut all = [
        made("a", "x", "s", Some(910)),
        made("b", "x", "s", Some(910)),
        made("c", "x", "s", None),
    ];
    serve(&mut all[0], "q", &[("p1", 0.1), ("p2", 0.2)]);
    serve(&mut all[1], "q", &[("p1", 0.1), ("p3", 0.2)]);
    serve(&mut all[2], "q", &[("p1", 0.1), ("p2", 0.2)]);
    serve(&mut all[2], "other", &[]);
    let records: Vec<Record> = all.iter().map(|one| one.record.clone()).collect();
    let now = |record: &Record, _: &agent_breakage::record::Retrieval| -> Option<Vec<Served>> {
        Some(record.retrievals[0].served.clone())
    };
    let found = health(&records, &mut { now });
    assert_eq!((found.runs, found.framework_errors), (3, 1));
    assert_eq!(found.periods.len(), 1);
    assert_eq!(found.periods[0].framework_errors["fault-vanished"], 1);
    let one = &found.determinism;
    assert_eq!(
        (
            one.retrievals,
            one.questions,
            one.repeated,
            one.different_count
        ),
        (4, 2, 1, 1)
    );
    let runs: Vec<&str> = one.different[0]
        .run_ids
        .iter()
        .map(|id| id.as_str())
        .collect();
    assert_eq!(runs, ["a", "b"]);
    // Another size of the corpus is another question.
    let mut grown = records;
    grown[1].retrieval.corpus_size = 12;
    assert_eq!(health(&grown, &mut { now }).determinism.different_count, 0);
}

#[test]
fn the_audit_tells_what_is_not_found_again() {
    let mut all = [
        made("a", "x", "s", Some(910)),
        made("b", "x", "s", Some(910)),
    ];
    serve(&mut all[0], "q", &[("p1", 0.1), ("p2", 0.2)]);
    serve(&mut all[1], "gone", &[("p9", 0.3)]);
    let records: Vec<Record> = all.iter().map(|one| one.record.clone()).collect();
    let found = health(&records, &mut |_, retrieval| {
        let mut served = retrieval.served.clone();
        served.truncate(1);
        (retrieval.query == "q").then_some(served)
    });
    let audit = &found.audit;
    assert_eq!(
        (audit.recomputed, audit.equal, audit.not_comparable),
        (1, 0, 1)
    );
    assert_eq!(audit.recall, Some(0.5));
    assert_eq!(audit.different_count, 1);
    assert!(observed::health(&found).contains("50.0 %"));
}

fn breakage(workspace: &Path, args: &[&str]) -> String {
    let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_breakage"))
        .env("BREAKAGE_WORKSPACE", workspace)
        .args(args)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn recorded_runs_are_read_back_by_all_three_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for agent in ["noop", "rules"] {
        breakage(at, &["run", "replicas-zero-advocate", "--agent", agent]);
    }
    let card: Value = serde_json::from_str(&breakage(at, &["scorecard", "--json"])).unwrap();
    assert_eq!(card["groups"].as_array().unwrap().len(), 2);
    let one: Value =
        serde_json::from_str(&breakage(at, &["scorecard", "--agent", "rules", "--json"])).unwrap();
    assert_eq!(one["groups"].as_array().unwrap().len(), 1);
    assert_eq!(one["groups"][0]["scenarios"][0]["n"], 1);
    let page = at.join("card.html");
    let path = page.display().to_string();
    breakage(at, &["scorecard", "--format", "html", "--output", &path]);
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .starts_with("<!DOCTYPE html>")
    );
    let pits: Value = serde_json::from_str(&breakage(at, &["pitfalls", "--json"])).unwrap();
    assert_eq!(pits["runs"], 2);
    let told: Value = serde_json::from_str(&breakage(at, &["health", "--json"])).unwrap();
    assert_eq!(told["runs"], 2);
    assert_eq!(told["audit"]["different_count"], 0, "{told}");
}

#[test]
fn an_empty_workspace_has_nothing_to_tell_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["scorecard", "pitfalls", "health"] {
        let text = breakage(folder.path(), &[command]);
        assert!(text.contains('0'), "{command}: {text}");
    }
}
