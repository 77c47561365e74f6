//! Behaviour of the disruption controller.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS, deployment};
use crate::embedded::controllers::object::name;
use crate::embedded::kind::Kind;

fn status(replicas: i64, limit: Value) -> (Bench, Value) {
    let mut bench = Bench::new();
    bench.create(
        Kind::Deployment,
        deployment(replicas, json!({"type": "Recreate"})),
    );
    let mut spec = limit;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    let budget = json!({"metadata": {"name": "web", "namespace": NS}, "spec": spec});
    bench.create(Kind::PodDisruptionBudget, budget);
    bench.run(2);
    let status = bench.get(Kind::PodDisruptionBudget, "web")["status"].clone();
    (bench, status)
}

fn numbers(status: &Value) -> [i64; 4] {
    [
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
        "disruptionsAllowed",
    ]
    .map(|field| status[field].as_i64().unwrap())
}

#[test]
fn a_budget_that_needs_the_only_pod_allows_nothing() {
    let (_, status) = status(1, json!({"minAvailable": 1}));
    assert_eq!(numbers(&status), [1, 1, 1, 0]);
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    assert_eq!(status["conditions"][0]["status"], "False");
}

#[test]
fn an_unhealthy_pod_uses_the_budget_up() {
    let (mut bench, before) = status(3, json!({"maxUnavailable": 1}));
    assert_eq!(numbers(&before), [3, 2, 3, 1]);
    assert_eq!(before["conditions"][0]["reason"], "SufficientPods");
    let pod = bench.list(Kind::Pod).remove(0);
    bench.update(Kind::Pod, name(&pod), |p| {
        p["status"]["conditions"][0]["status"] = json!("False");
    });
    bench.run(1);
    let after = bench.get(Kind::PodDisruptionBudget, "web")["status"].clone();
    assert_eq!(numbers(&after), [2, 2, 3, 0]);
}

#[test]
fn a_percentage_is_of_the_specified_replicas() {
    let (_, status) = status(4, json!({"minAvailable": "50%"}));
    assert_eq!(numbers(&status), [4, 2, 4, 2]);
}
