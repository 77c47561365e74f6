//! Behaviour of the quota controller.

use serde_json::json;

use crate::embedded::controllers::bench::{Bench, NS, deployment};
use crate::embedded::kind::Kind;

#[test]
fn use_follows_the_pods_that_are_there() {
    let mut bench = Bench::new();
    let mut web = deployment(2, json!({"type": "Recreate"}));
    web["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"memory": "256Mi"}, "requests": {"cpu": "20m", "memory": "16Mi"}});
    bench.create(Kind::Deployment, web);
    bench.run(1);
    let hard = json!({"limits.memory": "600Mi", "requests.cpu": "1", "memory": "1Gi", "pods": "10", "count/deployments.apps": "5"});
    let quota = json!({"metadata": {"name": "team", "namespace": NS}, "spec": {"hard": hard}});
    bench.create(Kind::ResourceQuota, quota);
    bench.run(1);
    let status = bench.get(Kind::ResourceQuota, "team")["status"].clone();
    assert_eq!(
        status["used"],
        json!({"limits.memory": "512Mi", "requests.cpu": "40m", "memory": "32Mi", "pods": "2", "count/deployments.apps": "1"})
    );
    assert_eq!(status["hard"]["pods"], "10");
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["replicas"] = json!(1);
    });
    bench.run(1);
    let status = bench.get(Kind::ResourceQuota, "team")["status"].clone();
    assert_eq!(status["used"]["limits.memory"], "256Mi");
}
