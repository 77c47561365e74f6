//! What one observation says about a condition, missing and late objects included.

use proptest::prelude::*;

use super::*;
use crate::detect::expression::Expression;

fn facts(desired: i64, ready: i64) -> WorkloadFacts {
    WorkloadFacts {
        uid: "u".to_owned(),
        generation: 7,
        observed_generation: 7,
        desired,
        replicas: ready,
        ready,
        updated: ready,
        available: ready,
    }
}

fn pod(name: &str, phase: &str, restarts: i64) -> PodFacts {
    PodFacts {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        owner: Some(("Deployment".to_owned(), "web".to_owned())),
        phase: phase.to_owned(),
        ready: true,
        restarts,
        terminating: false,
    }
}

fn shop(web: Option<WorkloadFacts>, pods: Vec<PodFacts>) -> Observation {
    Observation {
        deployments: web
            .map(|facts| (Observation::key("shop", "web"), facts))
            .into_iter()
            .collect(),
        pods,
        ..Observation::default()
    }
}

fn judge(text: &str, observation: &Observation) -> Reading {
    let condition = Condition::plain(Expression::parse(text).unwrap());
    evaluate(&condition, observation, &RestartBaseline::new())
}

#[test]
fn a_missing_object_is_named_and_every_comparison_with_it_is_false() {
    let empty = shop(None, Vec::new());
    for op in ["==", "!=", "<", "<=", ">", ">="] {
        let reading = judge(&format!("deployment.shop.web.readyReplicas {op} 0"), &empty);
        assert_eq!(reading.truth, Truth::False, "{op}");
        assert_eq!(reading.seen, "deployment.shop.web does not exist");
    }
    assert_eq!(
        judge("pod.shop.web.phase != Running", &empty).truth,
        Truth::False
    );
}

#[test]
fn counts_of_an_older_generation_are_not_evidence_but_the_wish_is() {
    let mut late = facts(3, 3);
    late.observed_generation = 6;
    let observation = shop(Some(late), Vec::new());
    let reading = judge(
        "deployment.shop.web.readyReplicas == desiredReplicas",
        &observation,
    );
    assert_eq!(reading.truth, Truth::NotObserved);
    assert_eq!(reading.seen, "not observed yet (generation 7, observed 6)");
    assert_eq!(
        judge("deployment.shop.web.desiredReplicas >= 3", &observation).truth,
        Truth::True
    );
}

#[test]
fn nothing_wanted_and_nothing_there_does_not_pass_unless_zero_is_allowed() {
    let observation = shop(Some(facts(0, 0)), Vec::new());
    let text = "deployment.shop.web.readyReplicas == desiredReplicas";
    assert_eq!(judge(text, &observation).truth, Truth::False);
    let mut condition = Condition::plain(Expression::parse(text).unwrap());
    condition.allow_zero = true;
    let reading = evaluate(&condition, &observation, &RestartBaseline::new());
    assert_eq!(reading.truth, Truth::True);
    assert_eq!(
        judge("deployment.shop.web.readyReplicas == 0", &observation).truth,
        Truth::True
    );
}

#[test]
fn what_could_not_be_read_is_unknown() {
    let mut observation = shop(None, Vec::new());
    observation
        .unread
        .insert("deployment.shop.web".to_owned(), "503".to_owned());
    observation
        .unread
        .insert("pods.shop".to_owned(), "503".to_owned());
    assert_eq!(
        judge("deployment.shop.web.readyReplicas == 1", &observation).truth,
        Truth::Unknown
    );
    assert_eq!(
        judge("pod.shop.web.phase == Running", &observation).truth,
        Truth::Unknown
    );
}

#[test]
fn every_staying_pod_of_an_owner_must_have_the_phase() {
    let mut leaving = pod("c", "Failed", 0);
    leaving.terminating = true;
    let mut observation = shop(
        None,
        vec![pod("a", "Running", 0), pod("b", "Pending", 0), leaving],
    );
    let reading = judge("pod.shop.web.phase == Running", &observation);
    assert_eq!(
        (reading.truth, reading.seen.as_str()),
        (Truth::False, "pod b is Pending")
    );
    observation.pods.remove(1);
    assert_eq!(
        judge("pod.shop.web.phase == Running", &observation).truth,
        Truth::True
    );
    assert_eq!(
        judge("pod.shop.a.phase != Running", &observation).truth,
        Truth::False
    );
}

#[test]
fn restarts_count_from_the_baseline_and_new_pods_from_zero() {
    let before = shop(Some(facts(2, 2)), vec![pod("a", "Running", 4)]);
    let after = shop(
        Some(facts(2, 2)),
        vec![pod("a", "Running", 5), pod("b", "Running", 2)],
    );
    let condition =
        Condition::plain(Expression::parse("deployment.shop.web.restarts <= 2").unwrap());
    let reading = evaluate(&condition, &after, &restart_baseline(&before));
    assert_eq!(
        (reading.truth, reading.seen.as_str()),
        (Truth::False, "restarts is 3")
    );
    assert_eq!(
        evaluate(&condition, &before, &restart_baseline(&before)).truth,
        Truth::True
    );
}

#[test]
fn prometheus_expressions_cannot_be_evaluated_here() {
    let observation = Observation::default();
    for text in [
        "promql: up == 1",
        "error_rate{ns=a} < 1",
        "cluster_slo_delta > 0.1",
    ] {
        assert_eq!(judge(text, &observation).truth, Truth::Unevaluable);
    }
}

proptest! {
    #[test]
    fn no_numbers_make_evaluation_panic(
        numbers in proptest::collection::vec(any::<i64>(), 8),
        restarts in proptest::collection::vec(any::<i64>(), 0..4),
        limit in any::<u32>(),
    ) {
        let web = WorkloadFacts {
            uid: String::new(),
            generation: numbers[0],
            observed_generation: numbers[1],
            desired: numbers[2],
            replicas: numbers[3],
            ready: numbers[4],
            updated: numbers[5],
            available: numbers[6],
        };
        let pods = restarts.iter().enumerate().map(|(i, n)| pod(&i.to_string(), "Running", *n)).collect();
        let observation = shop(Some(web), pods);
        let since: RestartBaseline = [("uid-0".to_owned(), numbers[7])].into();
        for field in ["readyReplicas", "replicas", "desiredReplicas", "availableReplicas", "updatedReplicas", "restarts"] {
            for op in ["==", "!=", "<", "<=", ">", ">="] {
                let text = format!("deployment.shop.web.{field} {op} {limit}");
                let condition = Condition::plain(Expression::parse(&text).unwrap());
                let reading = evaluate(&condition, &observation, &since);
                prop_assert!(!reading.seen.is_empty());
            }
        }
    }
}
