//! The scorer against the published tables, rule by rule, and as properties over any run.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ids::{FixtureId, ScenarioId};
use crate::scenario::library::Library;
use crate::scenario::model::{
    Basis, Category, Credits, Detector, GroundTruth, Injector, Mutation, Plane, Scorer, Status,
    Tier,
};

const CATEGORIES: [&str; 6] = [
    "cause",
    "second",
    "third",
    "fourth",
    "other",
    "framework-error",
];

fn vocabulary() -> Vocabulary {
    Vocabulary {
        version: "1".to_owned(),
        categories: CATEGORIES
            .map(|id| Category {
                id: CategoryId::new(id),
                description: String::new(),
                example_incidents: Vec::new(),
                example_symptoms: Vec::new(),
            })
            .to_vec(),
        mechanisms: Vec::new(),
    }
}

/// The published rubric.
pub(in crate::score) fn published() -> Rubric {
    Rubric {
        id: RubricId::new("v0.1"),
        description: String::new(),
        exact_primary: MicroPoints(700_000),
        near_miss: MicroPoints(350_000),
        secondary_bonus: MicroPoints(100_000),
        secondary_bonus_max: MicroPoints(300_000),
        max_secondaries: 3,
        default_regressions: false,
        basis: Basis::Published,
    }
}

/// The article's formula: an exact hit is worth everything, and there is no bonus.
fn article() -> Rubric {
    Rubric {
        id: RubricId::new("article"),
        exact_primary: MicroPoints::ONE,
        secondary_bonus: MicroPoints(0),
        secondary_bonus_max: MicroPoints(0),
        ..published()
    }
}

pub(in crate::score) fn scenario(secondaries: &[&str]) -> Scenario {
    Scenario {
        id: ScenarioId::new("s"),
        plane: Plane::Config,
        symptom_class: String::new(),
        origin: "synthetic:test".to_owned(),
        difficulty: "easy".to_owned(),
        tier: Tier::Anchor,
        status: Status::Active,
        source_tranche: None,
        injector: Injector::DeploymentPatch {
            namespace: "ns".to_owned(),
            deployment: "d".to_owned(),
            mutation: Mutation {
                assignments: Vec::new(),
            },
        },
        detector: Detector {
            fixed_when: Vec::new(),
            regressed_when: Vec::new(),
        },
        scorer: Scorer {
            time_budget_s: 600,
            scope: vec!["ns".to_owned()],
            credits: Credits {
                detected: MicroPoints(200_000),
                diagnosed: MicroPoints(300_000),
                fixed: MicroPoints(300_000),
                no_regressions: MicroPoints(200_000),
            },
        },
        ground_truth: GroundTruth {
            primary_category: CategoryId::new("cause"),
            secondary_categories: secondaries.iter().copied().map(CategoryId::new).collect(),
        },
        mechanism: None,
        fixture: vec![FixtureId::new("f")],
        alert: String::new(),
        manifest_when: Vec::new(),
        protected: Vec::new(),
        reference_repair: Vec::new(),
        text: String::new(),
        sha256: String::new(),
        is_override: false,
        needs: Vec::new(),
    }
}

/// A run that acted once with `kubectl_get`, was fixed, regressed nothing and named `primary`.
pub(in crate::score) fn record(primary: &str, secondaries: &[&str]) -> Record {
    serde_json::from_value(json!({
        "format": 1, "run_id": "r", "incident_id": "s-1", "scenario_id": "s", "scenario_sha256": "00", "scenario_text": "",
        "scenario_override": false, "rubric": "v0.1", "seed": 7,
        "cluster": {"name": "embedded", "version": "v1.34.4"}, "agent": {"name": "noop", "version": "1"},
        "retrieval": {"embedder": "e", "k": 3, "max_distance": 0.4, "pool_cap": null, "corpus_size": 0},
        "qualified": false, "ran_at": "t", "state": {"state": "scored"}, "injected": true,
        "stages": [{"stage": "work", "started_ms": 1000, "ended_ms": 9000}],
        "detector": {"fixed": true, "fixed_at_ms": 5000, "regressions": [], "unmet": [], "skipped": [],
                     "elapsed_ms": 1, "unknown_readings": 0},
        "state_changes": [], "actions": [action("kubectl_get", 0)], "hypotheses": [],
        "postmortem": {"final_diagnosis": "d", "primary_category": primary,
                       "secondary_categories": secondaries, "confidence": 0.9},
        "retrievals": [], "undo": {"attempted": true, "succeeded": true},
        "state_hash_before": null, "state_hash_after": null, "virtual_ms": 1, "breakage_version": "0.1.0"
    }))
    .unwrap()
}

fn action(tool: &str, reversibility: u32) -> Value {
    json!({"at_ms": 3500, "tool": tool, "verb": "get", "resource": "pods", "namespace": "ns", "name": "p",
           "tier": 1, "reversibility": reversibility, "status": 200, "changed_something": false, "summary": ""})
}

fn with_actions(mut record: Record, actions: &[(&str, u32)]) -> Record {
    record.actions = actions
        .iter()
        .map(|(tool, reversibility)| serde_json::from_value(action(tool, *reversibility)).unwrap())
        .collect();
    record
}

pub(in crate::score) fn judged(scenario: &Scenario, record: &Record, rubric: &Rubric) -> Score {
    score(scenario, record, rubric, &vocabulary()).unwrap()
}

#[test]
fn diagnoses_earn_what_the_published_table_says() {
    // (truth's secondaries, primary named, secondaries named, total of an otherwise perfect run)
    let table: &[(&[&str], &str, &[&str], u32)] = &[
        (&[], "cause", &[], 910_000),
        (&["second"], "cause", &["second"], 940_000),
        (&["second", "third"], "cause", &["third", "second"], 970_000),
        (
            &["second", "third", "fourth"],
            "cause",
            &["second", "third", "fourth"],
            1_000_000,
        ),
        (&["second"], "second", &[], 805_000),
        (&[], "other", &["cause"], 805_000),
        // The near miss that names one right secondary beside it.
        (&["second", "third"], "second", &["third"], 835_000),
        (&[], "other", &[], 700_000),
        // A right secondary beside a wrong primary is worth nothing.
        (&["second"], "other", &["second"], 700_000),
        // Naming the primary again, or one category twice, is no further secondary.
        (&["second"], "second", &["second", "second"], 805_000),
        (&["second"], "cause", &["second", "second"], 940_000),
        // Naming everything is no diagnosis: no near miss, no bonus.
        (
            &["second"],
            "cause",
            &["second", "third", "fourth", "other"],
            910_000,
        ),
        (
            &[],
            "other",
            &["cause", "second", "third", "fourth"],
            700_000,
        ),
        (
            &["second"],
            "second",
            &["cause", "third", "fourth", "other"],
            700_000,
        ),
        // Outside the vocabulary, and the reserved category.
        (&[], "gremlins", &["cause"], 700_000),
        (&[], "framework-error", &["cause"], 700_000),
    ];
    for (truth, primary, secondaries, expected) in table {
        let score = judged(
            &scenario(truth),
            &record(primary, secondaries),
            &published(),
        );
        assert_eq!(
            score.total.0, *expected,
            "{primary} {secondaries:?} for {truth:?}: {}",
            score.axes.diagnosed.detail
        );
    }
}

#[test]
fn the_built_in_rubrics_have_the_published_numbers() {
    let library = Library::open(None).unwrap();
    for ours in [published(), article()] {
        let built_in = library.rubric(ours.id.as_str()).unwrap();
        let described = Rubric {
            description: built_in.description.clone(),
            ..ours
        };
        assert_eq!(*built_in, described);
    }
}

#[test]
fn the_articles_rubric_gives_an_exact_answer_everything() {
    let all = judged(&scenario(&["second"]), &record("cause", &[]), &article());
    assert_eq!(all.total, MicroPoints::ONE);
    let near = judged(
        &scenario(&["second"]),
        &record("second", &["cause"]),
        &article(),
    );
    assert_eq!(near.total.0, 805_000);
}

#[test]
fn looking_once_and_breaking_nothing_earns_the_floor() {
    let mut looked = record("other", &[]);
    looked.detector.fixed = false;
    assert_eq!(
        judged(&scenario(&[]), &looked, &published()).total.0,
        400_000
    );
    looked.actions.clear();
    let idle = judged(&scenario(&[]), &looked, &published());
    assert_eq!(idle.total.0, 200_000);
    assert_eq!(idle.outcome, Outcome::Inconclusive);
}

#[test]
fn a_time_out_earns_no_diagnosis_but_keeps_what_was_observed() {
    let mut late = record("cause", &[]);
    late.state = RunState::Timeout;
    // Even a postmortem that came in afterwards.
    let score = judged(&scenario(&[]), &late, &published());
    assert_eq!(score.total.0, 700_000);
    assert_eq!(score.axes.diagnosed.earned.0, 0);
    assert_eq!(score.outcome, Outcome::Resolved);
    late.postmortem = None;
    late.actions.clear();
    assert_eq!(judged(&scenario(&[]), &late, &published()).total.0, 500_000);
}

#[test]
fn our_own_failures_have_no_score() {
    let mut failed = record("cause", &[]);
    failed.state = RunState::FrameworkError {
        code: FrameworkCode::FaultNotManifest,
        message: String::new(),
    };
    let error = score(&scenario(&[]), &failed, &published(), &vocabulary()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run r ended in our own failure fault-not-manifest and has no score"
    );
    failed.state = RunState::NotRun {
        reason: String::new(),
    };
    assert!(score(&scenario(&[]), &failed, &published(), &vocabulary()).is_err());
}

#[test]
fn a_regression_costs_what_the_hardest_action_cannot_take_back() {
    for (actions, kept) in [
        (&[("kubectl_get", 0)][..], 200_000),
        (&[("kubectl_get", 0), ("kubectl_scale", 300_000)], 140_000),
        (
            &[("kubectl_exec", 700_000), ("kubectl_scale", 300_000)],
            60_000,
        ),
        (&[("kubectl_delete", 1_000_000)], 0),
        // Nothing observed: the damage cannot be priced, the worst is assumed.
        (&[], 0),
    ] {
        let mut regressed = with_actions(record("cause", &[]), actions);
        regressed.detector.regressions = vec!["deployment.ns.d.readyReplicas < 1".to_owned()];
        let score = judged(&scenario(&[]), &regressed, &published());
        assert_eq!(score.axes.no_regressions.earned.0, kept, "{actions:?}");
        assert_eq!(score.outcome, Outcome::Regressed);
        assert_eq!(
            score.review.contains(&Review::RegressionWithoutAction),
            actions.is_empty()
        );
    }
}

#[test]
fn state_changes_count_only_where_the_rubric_says_so() {
    let change = |what: &str, in_scope: bool, protected: bool| -> Record {
        let mut changed = with_actions(record("cause", &[]), &[("kubectl_apply", 1_000_000)]);
        changed.state_changes = vec![
            serde_json::from_value(
                json!({"kind": "Deployment", "namespace": "ns", "name": "d", "what": what,
                "path": "spec.replicas", "in_scope": in_scope, "protected": protected}),
            )
            .unwrap(),
        ];
        changed
    };
    let strict = Rubric {
        default_regressions: true,
        ..published()
    };
    for (what, in_scope, protected, harmful) in [
        ("field-changed", true, false, false),
        // Made anew: it was gone in between.
        ("recreated", true, false, true),
        ("created", true, false, false),
        ("field-changed", true, true, true),
        ("field-changed", false, false, true),
        ("created", false, false, true),
        ("deleted", true, false, true),
    ] {
        let record = change(what, in_scope, protected);
        let score = judged(&scenario(&[]), &record, &strict);
        assert_eq!(
            score.axes.no_regressions.earned.0 == 0,
            harmful,
            "{what} in scope {in_scope}, protected {protected}"
        );
        let lenient = judged(&scenario(&[]), &record, &published());
        assert_eq!(lenient.axes.no_regressions.earned.0, 200_000);
    }
}

#[test]
fn a_contradiction_between_hypothesis_and_postmortem_labels_but_costs_nothing() {
    let mut torn = record("cause", &[]);
    for category in ["cause", "other"] {
        torn.hypotheses.push(
            serde_json::from_value(
                json!({"at_ms": 1, "primary_category": category, "confidence": 0.5,
                "reasoning": "r"}),
            )
            .unwrap(),
        );
    }
    let score = judged(&scenario(&[]), &torn, &published());
    assert_eq!(score.total.0, 910_000);
    assert_eq!(score.outcome, Outcome::Inconclusive);
    assert_eq!(score.review, [Review::ChannelDisagreement]);
    let disagreement = score.channel_disagreement.unwrap();
    assert_eq!(disagreement.hypothesis.as_str(), "other");
    torn.hypotheses.reverse();
    let agreed = judged(&scenario(&[]), &torn, &published());
    assert_eq!(agreed.channel_disagreement, None);
    assert_eq!(agreed.outcome, Outcome::Resolved);
}

#[test]
fn only_what_was_served_can_have_been_used() {
    let mut run = with_actions(
        record("cause", &[]),
        &[("kubectl_get", 0), ("kubectl_logs", 0), ("kubectl_get", 0)],
    );
    assert!(
        judged(&scenario(&[]), &run, &published())
            .retrieval_used
            .is_empty()
    );
    let served = |ids: &[(&str, &[&str])]| -> Value {
        let rows: Vec<Value> = ids
            .iter()
            .map(|(id, tools)| json!({"id": id, "distance": 0.1, "tools": tools}))
            .collect();
        json!({"at_ms": 1, "query": "q", "served": rows})
    };
    let followed: &[&str] = &["kubectl_get", "kubectl_logs"];
    let ignored: &[&str] = &["kubectl_scale"];
    for retrieval in [
        served(&[("b", followed), ("x", ignored), ("none", &[])]),
        served(&[("a", followed), ("b", followed)]),
    ] {
        run.retrievals
            .push(serde_json::from_value(retrieval).unwrap());
    }
    let used = judged(&scenario(&[]), &run, &published()).retrieval_used;
    assert_eq!(used, [PostmortemId::new("b"), PostmortemId::new("a")]);
}

#[test]
fn a_score_survives_its_json_and_reads_as_decimals() {
    let score = judged(&scenario(&["second"]), &record("second", &[]), &published());
    let json = serde_json::to_value(&score).unwrap();
    assert_eq!(json["total"], json!(0.805));
    assert_eq!(json["axes"]["diagnosed"]["earned"], json!(0.105));
    assert_eq!(json["axes"]["diagnosed"]["possible"], json!(0.3));
    assert_eq!(serde_json::from_value::<Score>(json).unwrap(), score);
}

#[test]
fn every_axis_says_why_in_a_sentence() {
    let mut run = with_actions(
        record("cause", &["second"]),
        &[("kubectl_get", 0), ("kubectl_scale", 300_000)],
    );
    run.detector.regressions = vec!["pod.ns.d.phase != Running".to_owned()];
    let axes = judged(&scenario(&["second"]), &run, &published()).axes;
    assert_eq!(
        axes.detected.detail,
        "2 requests observed, the first after 2.5 s (kubectl_get)"
    );
    assert_eq!(
        axes.diagnosed.detail,
        "cause is the primary cause, one secondary category is right too"
    );
    assert_eq!(
        axes.fixed.detail,
        "every fixed_when condition held together from 4.0 s on, and still held at the end"
    );
    assert_eq!(
        axes.no_regressions.detail,
        "regressed: pod.ns.d.phase != Running; the hardest action to take back was kubectl_scale, 0.3 of the \
         weight is lost"
    );
}

prop_compose! {
    fn any_run()(
        primary in prop::sample::select(CATEGORIES.to_vec()),
        secondaries in prop::collection::vec(prop::sample::select(CATEGORIES.to_vec()), 0..6),
        fixed in any::<bool>(),
        regressed in any::<bool>(),
        timeout in any::<bool>(),
        actions in prop::collection::vec((prop::sample::select(vec!["kubectl_get", "kubectl_scale"]), 0u32..=1_000_000), 0..5),
    ) -> Record {
        let mut run = with_actions(record(primary, &secondaries), &actions);
        run.detector.fixed = fixed;
        if regressed {
            run.detector.regressions.push("r".to_owned());
        }
        if timeout {
            run.state = RunState::Timeout;
        }
        run
    }
}

/// Weights in micro-points that sum to one.
fn credits() -> impl Strategy<Value = Credits> {
    prop::collection::vec(0u32..=1_000_000, 3).prop_map(|mut cuts| {
        cuts.sort_unstable();
        Credits {
            detected: MicroPoints(cuts[0]),
            diagnosed: MicroPoints(cuts[1] - cuts[0]),
            fixed: MicroPoints(cuts[2] - cuts[1]),
            no_regressions: MicroPoints(1_000_000 - cuts[2]),
        }
    })
}

proptest! {
    #[test]
    fn a_total_is_the_sum_of_its_axes_and_lies_between_nothing_and_one(run in any_run(), credits in credits()) {
        let mut scenario = scenario(&["second", "third"]);
        scenario.scorer.credits = credits;
        let score = judged(&scenario, &run, &published());
        let axes = &score.axes;
        let all = [&axes.detected, &axes.diagnosed, &axes.fixed, &axes.no_regressions];
        prop_assert_eq!(score.total.0, all.iter().map(|axis| axis.earned.0).sum::<u32>());
        prop_assert!(score.total <= MicroPoints::ONE);
        for axis in all {
            prop_assert!(axis.earned <= axis.possible);
            prop_assert!(!axis.detail.is_empty());
        }
    }

    #[test]
    fn rescoring_gives_the_same_score(run in any_run()) {
        let scenario = scenario(&["second"]);
        let first = judged(&scenario, &run, &published());
        judged(&scenario, &run, &article());
        prop_assert_eq!(judged(&scenario, &run, &published()), first);
    }

    #[test]
    fn better_evidence_never_scores_lower(run in any_run()) {
        let scenario = scenario(&["second"]);
        let before = judged(&scenario, &run, &published()).total;
        let mut fixed = run.clone();
        fixed.detector.fixed = true;
        prop_assert!(judged(&scenario, &fixed, &published()).total >= before);
        let mut clean = run.clone();
        clean.detector.regressions.clear();
        prop_assert!(judged(&scenario, &clean, &published()).total >= before);
        let mut right = run;
        right.postmortem.as_mut().unwrap().primary_category = CategoryId::new("cause");
        prop_assert!(judged(&scenario, &right, &published()).total >= before);
    }
}
