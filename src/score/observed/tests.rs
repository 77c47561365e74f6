//! The rubric that rests on the action log, and control runs.

use serde_json::{Value, json};

use crate::record::{Outcome, Record};
use crate::scenario::library::Library;
use crate::scenario::model::Rubric;
use crate::score::tests::{judged, published, record, scenario};
use crate::score::{Review, Score};

fn observed() -> Rubric {
    let library = Library::open(None).unwrap();
    library.rubric("observed").unwrap().clone()
}

fn acted(actions: &[Value]) -> Record {
    let mut run = record("cause", &[]);
    run.actions = actions
        .iter()
        .map(|action| serde_json::from_value(action.clone()).unwrap())
        .collect();
    run
}

fn read(namespace: &str, resource: &str, status: u16) -> Value {
    json!({"at_ms": 3500, "tool": "kubectl_get", "verb": "list", "resource": resource, "namespace": namespace,
           "name": "", "tier": 1, "reversibility": 0, "status": status, "changed_something": false, "summary": ""})
}

fn write(verb: &str, resource: &str, namespace: &str, reversibility: u32, changed: bool) -> Value {
    json!({"at_ms": 4000, "tool": format!("kubectl_{verb}"), "verb": verb, "resource": resource,
           "namespace": namespace, "name": "x", "tier": 2, "reversibility": reversibility,
           "status": if changed { 200 } else { 403 }, "changed_something": changed, "summary": ""})
}

fn points(score: &Score) -> [u32; 4] {
    let axes = &score.axes;
    [
        &axes.detected,
        &axes.diagnosed,
        &axes.fixed,
        &axes.no_regressions,
    ]
    .map(|axis| axis.earned.0)
}

#[test]
fn only_an_answered_read_where_the_fault_is_detects_and_lets_a_diagnosis_count() {
    for (action, counts) in [
        (read("ns", "pods", 200), true),
        (read("ns", "pods/log", 200), true),
        // A list over all namespaces shows this one too.
        (read("", "events", 200), true),
        (read("", "nodes", 200), false),
        (read("", "", 200), false),
        (read("elsewhere", "pods", 200), false),
        (read("ns", "pods", 403), false),
        (write("patch", "deployments", "ns", 300_000, true), false),
    ] {
        let run = acted(std::slice::from_ref(&action));
        let score = judged(&scenario(&[]), &run, &observed());
        let expected = if counts { [200_000, 210_000] } else { [0, 0] };
        assert_eq!(points(&score)[..2], expected, "{action}");
        assert_eq!(score.first_relevant_read_ms.is_some(), counts, "{action}");
        assert_eq!(score.review.contains(&Review::UnseenDiagnosis), !counts);
        // The published rubric believes a guess, and says that it was one.
        let lenient = judged(&scenario(&[]), &run, &published());
        assert_eq!(points(&lenient)[..2], [200_000, 210_000], "{action}");
    }
}

#[test]
fn the_time_to_the_first_relevant_read_counts_from_the_start_of_the_agents_clock() {
    let run = acted(&[read("elsewhere", "pods", 200), read("ns", "pods", 200)]);
    let score = judged(&scenario(&[]), &run, &published());
    assert_eq!(score.first_relevant_read_ms, Some(2500));
}

#[test]
fn damage_beside_the_repair_costs_even_when_it_was_put_back() {
    for (action, kept) in [
        (write("patch", "deployments", "ns", 300_000, true), 200_000),
        (write("delete", "pods", "ns", 1_000_000, true), 200_000),
        (write("delete", "deployments", "ns", 1_000_000, true), 0),
        (
            write("patch", "deployments", "billing", 300_000, true),
            140_000,
        ),
        (write("patch", "nodes", "", 300_000, true), 140_000),
        // What was refused did no damage.
        (
            write("delete", "deployments", "billing", 1_000_000, false),
            200_000,
        ),
    ] {
        let run = acted(&[read("ns", "pods", 200), action.clone()]);
        let score = judged(&scenario(&[]), &run, &observed());
        assert_eq!(points(&score)[3], kept, "{action}");
        let published = judged(&scenario(&[]), &run, &published());
        assert_eq!(points(&published)[3], 200_000, "{action}");
    }
}

#[test]
fn a_symptom_gone_at_the_cost_of_what_is_protected_is_not_fixed() {
    let mut run = acted(&[read("ns", "pods", 200)]);
    run.detector.violated = vec!["Deployment ns/d changed at spec.replicas".to_owned()];
    for rubric in [published(), observed()] {
        let score = judged(&scenario(&[]), &run, &rubric);
        assert_eq!(points(&score)[2], 0);
        assert_eq!(score.outcome, Outcome::Inconclusive);
        assert!(score.review.contains(&Review::RepairedAtACost));
        assert_eq!(
            score.axes.fixed.detail,
            "the symptom is gone, but protected Deployment ns/d changed at spec.replicas"
        );
    }
}

#[test]
fn a_control_run_rewards_leaving_alone_and_nothing_else() {
    let healthy = |mut run: Record| {
        run.healthy = true;
        run.injected = false;
        run
    };
    let mut silent = healthy(acted(&[read("ns", "pods", 200)]));
    silent.postmortem = None;
    let quiet = judged(&scenario(&[]), &silent, &observed());
    assert_eq!(points(&quiet), [0, 0, 0, 200_000]);
    assert_eq!(quiet.axes.fixed.possible.0, 0);
    assert_eq!(quiet.false_alarm, None);
    assert_eq!(quiet.outcome, Outcome::Inconclusive);

    let named = healthy(acted(&[read("ns", "pods", 200)]));
    let mut changed = healthy(acted(&[write("patch", "deployments", "ns", 300_000, true)]));
    changed.postmortem = None;
    for (run, changes) in [(named, 0), (changed, 1)] {
        let score = judged(&scenario(&[]), &run, &observed());
        assert_eq!(points(&score), [0, 0, 0, 0]);
        assert_eq!(
            score.false_alarm.as_ref().map(|alarm| alarm.changes),
            Some(changes)
        );
        assert!(score.review.contains(&Review::FalseAlarm));
        // As published there is no such thing as a false alarm.
        assert_eq!(
            points(&judged(&scenario(&[]), &run, &published())),
            [0, 0, 0, 200_000]
        );
    }
}
