//! Behaviour of the DaemonSet controller.

use serde_json::json;

use crate::embedded::controllers::bench::{Bench, NS, template};
use crate::embedded::controllers::object::name;
use crate::embedded::kind::Kind;

fn bench() -> Bench {
    let mut bench = Bench::new();
    for (node, disk) in [("a", "ssd"), ("b", "hdd")] {
        let node = json!({
            "metadata": {"name": node, "labels": {"disk": disk}},
            "spec": {},
            "status": {"allocatable": {"cpu": "2", "pods": "10"}},
        });
        bench.world.create(Kind::Node, node).unwrap();
    }
    let set = json!({
        "metadata": {"name": "agent", "namespace": NS},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("one")},
    });
    bench.create(Kind::DaemonSet, set);
    bench.run(2);
    bench
}

#[test]
fn every_node_gets_one_pod_until_the_template_excludes_it() {
    let mut bench = bench();
    assert_eq!(bench.list(Kind::Pod).len(), 2);
    let status = bench.get(Kind::DaemonSet, "agent")["status"].clone();
    assert_eq!(status["desiredNumberScheduled"], 2);
    assert_eq!(status["numberReady"], 2);
    assert_eq!(status["numberAvailable"], 2);
    bench.update(Kind::DaemonSet, "agent", |set| {
        set["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    });
    bench.run(3);
    assert_eq!(bench.list(Kind::Pod).len(), 1);
    assert_eq!(
        bench.get(Kind::DaemonSet, "agent")["status"]["desiredNumberScheduled"],
        1
    );
}

#[test]
fn a_new_template_replaces_the_pods_and_a_broken_one_stops_at_the_first() {
    let mut bench = bench();
    bench.broken.insert("two".to_owned());
    bench.update(Kind::DaemonSet, "agent", |set| {
        set["spec"]["template"]["spec"]["containers"][0]["image"] = "two".into();
    });
    bench.run(3);
    let images: Vec<String> = bench
        .list(Kind::Pod)
        .iter()
        .map(|pod| {
            pod["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(images.iter().filter(|image| *image == "two").count(), 1);
    bench.update(Kind::DaemonSet, "agent", |set| {
        set["spec"]["template"]["spec"]["containers"][0]["image"] = "three".into();
    });
    bench.run(3);
    for pod in bench.list(Kind::Pod) {
        assert_eq!(
            pod["spec"]["containers"][0]["image"],
            "three",
            "{}",
            name(&pod)
        );
    }
    assert_eq!(
        bench.get(Kind::DaemonSet, "agent")["status"]["updatedNumberScheduled"],
        2
    );
}
