//! The published expressions parse; the others are refused with a column.

use proptest::prelude::*;

use super::*;

fn error(text: &str) -> String {
    Expression::parse(text).expect_err(text).to_string()
}

#[test]
fn the_published_expressions_parse() {
    for text in [
        "deployment.prod-advocate.advocate-api.readyReplicas == desiredReplicas",
        "deployment.prod-advocate.advocate-api.readyReplicas >= 1",
        "deployment.prod-advocate.advocate-api.desiredReplicas > 0",
        "deployment.shop.web.replicas==3",
        "statefulset.shop.db.updatedReplicas != 0",
        "deployment.shop.web.restarts == 0",
        "pod.prod-advocate.advocate-api.phase == Running",
        r#"promql: sum(rate(http_requests_total{code=~"5.."}[1m])) / 2 <= 0.01"#,
        "promql: max(up{job=\"a\"}) == 1e-3",
        "error_rate{ns=otel-demo} < 0.05",
        "error_rate{ns=\"otel-demo\"} <= 0.05",
        "cluster_slo_delta > 0.05 in any out-of-scope namespace",
        "cluster_slo_delta <= 0.1",
    ] {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expression.text, text);
    }
}

#[test]
fn a_name_may_hold_dots() {
    let expression = Expression::parse("deployment.shop.web.v2.readyReplicas == 1").unwrap();
    let Test::Workload { object, .. } = expression.test else {
        panic!("not a workload")
    };
    assert_eq!(
        (object.namespace.as_str(), object.name.as_str()),
        ("shop", "web.v2")
    );
}

#[test]
fn errors_name_the_column_and_what_was_expected() {
    assert_eq!(error(""), "column 1: the expression is empty");
    assert!(error("deploy.a.b.readyReplicas == 1").starts_with("column 1: unknown start `deploy`"));
    assert!(
        error("deployment.a.readyReplicas == 1").contains("deployment.<namespace>.<name>.<field>")
    );
    assert!(error("deployment.a.b.ready == 1").starts_with("column 16: unknown field `ready`"));
    assert!(error("deployment.a.b.readyReplicas = 1").starts_with("column 30: expected one of =="));
    assert!(error("deployment.a.b.readyReplicas == 2e0").contains("expected a whole number"));
    assert!(
        error("deployment.a.b.readyReplicas == 1 and").contains("expected the end, found `and`")
    );
    assert!(
        error("deployment.a.b.restarts == desiredReplicas").contains("expected a whole number")
    );
    assert!(error("pod.a.b.phase == Ready").contains("unknown phase `Ready`"));
    assert!(error("pod.a.b.phase > Running").contains("== or !="));
    assert!(error("promql: up").contains("no number at the end"));
    assert!(error("promql: sum(up == 1").contains("not closed"));
    assert!(error("promql: < 1").contains("query is empty"));
    assert!(error("error_rate{namespace=x} < 1").contains("error_rate{ns=<namespace>}"));
    assert!(error("cluster_slo_delta > 0.1 in scope").contains("out-of-scope"));
}

#[test]
fn needs_name_only_the_objects_that_are_read() {
    let all: Vec<Expression> = [
        "deployment.a.web.readyReplicas == 1",
        "statefulset.b.db.readyReplicas == 1",
        "pod.c.x.phase == Running",
        "deployment.d.web.restarts == 0",
        "promql: up == 1",
    ]
    .iter()
    .map(|text| Expression::parse(text).unwrap())
    .collect();
    let needs = Needs::of(&all);
    assert_eq!(needs.deployments.len(), 2);
    assert_eq!(needs.statefulsets.len(), 1);
    assert_eq!(
        needs.pods.iter().map(String::as_str).collect::<Vec<_>>(),
        ["c", "d"]
    );
    assert!(needs.prometheus);
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "\\PC{0,80}") {
        let _ = Expression::parse(&text);
    }

    #[test]
    fn near_misses_never_panic(
        start in "(deployment|statefulset|pod|promql:|error_rate|cluster_slo_delta)?",
        tail in "[a-z0-9.{}=<>! \"éüx-]{0,40}",
    ) {
        let _ = Expression::parse(&format!("{start}{tail}"));
    }
}
