//! Behaviour of the StatefulSet controller.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS, template};
use crate::embedded::controllers::object::name;
use crate::embedded::kind::Kind;

fn set(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "db", "namespace": NS},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("one"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    })
}

fn running(replicas: i64) -> Bench {
    let mut bench = Bench::new();
    bench.create(Kind::StatefulSet, set(replicas));
    bench.run(3);
    bench
}

fn set_image(bench: &mut Bench, image: &str) {
    bench.update(Kind::StatefulSet, "db", |s| {
        s["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    });
}

fn images(bench: &Bench) -> Vec<(String, String)> {
    bench
        .list(Kind::Pod)
        .iter()
        .map(|pod| {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
            (name(pod).to_owned(), image.to_owned())
        })
        .collect()
}

#[test]
fn pods_have_fixed_names_and_labels() {
    let bench = running(2);
    let pod = bench.get(Kind::Pod, "db-0");
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-0");
    let status = bench.get(Kind::StatefulSet, "db")["status"].clone();
    assert_eq!(
        labels["controller-revision-hash"],
        status["currentRevision"]
    );
    assert_eq!(status["readyReplicas"], 2);
    assert_eq!(status["availableReplicas"], 2);
    assert_eq!(status["currentReplicas"], 2);
    assert_eq!(status["updatedReplicas"], 2);
    assert_eq!(pod["spec"]["hostname"], "db-0");
    assert_eq!(pod["spec"]["subdomain"], "db");
    assert_eq!(
        bench.events("StatefulSet")[0],
        (
            "SuccessfulCreate".to_owned(),
            "create Pod db-0 in StatefulSet db successful".to_owned()
        )
    );
}

#[test]
fn a_pod_is_made_only_when_the_one_before_is_ready() {
    let mut bench = Bench::new();
    bench.broken.insert("one".to_owned());
    bench.create(Kind::StatefulSet, set(3));
    bench.run(5);
    assert_eq!(bench.list(Kind::Pod).len(), 1);
    let status = bench.get(Kind::StatefulSet, "db")["status"].clone();
    assert_eq!(status["replicas"], 1);
    assert_eq!(status["availableReplicas"], 0);
    assert_eq!(status.get("readyReplicas"), None);
}

#[test]
fn scaling_down_takes_the_highest_pod_first_and_scaling_up_counts_the_event_up() {
    let mut bench = running(2);
    bench.update(Kind::StatefulSet, "db", |s| {
        s["spec"]["replicas"] = json!(0);
    });
    bench.run(2);
    assert!(bench.list(Kind::Pod).is_empty());
    let deleted: Vec<String> = bench
        .events("StatefulSet")
        .into_iter()
        .filter(|e| e.0 == "SuccessfulDelete")
        .map(|e| e.1)
        .collect();
    assert_eq!(deleted[0], "delete Pod db-1 in StatefulSet db successful");
    bench.update(Kind::StatefulSet, "db", |s| {
        s["spec"]["replicas"] = json!(1);
    });
    bench.run(2);
    let counts: Vec<Value> = bench
        .list(Kind::Event)
        .into_iter()
        .filter(|e| e["message"] == "create Pod db-0 in StatefulSet db successful")
        .map(|e| e["count"].clone())
        .collect();
    assert_eq!(counts, [json!(2)]);
}

#[test]
fn an_update_goes_in_reverse_order_and_stops_at_the_first_pod_that_is_not_ready() {
    let mut bench = running(3);
    bench.broken.insert("two".to_owned());
    set_image(&mut bench, "two");
    bench.run(3);
    let pair = |pod: &str, image: &str| (pod.to_owned(), image.to_owned());
    assert_eq!(
        images(&bench),
        [
            pair("db-0", "one"),
            pair("db-1", "one"),
            pair("db-2", "two")
        ]
    );
    let status = bench.get(Kind::StatefulSet, "db")["status"].clone();
    assert_eq!(status["updatedReplicas"], 1);
    assert_eq!(status["currentReplicas"], 2);
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    // Setting the template right does not help the stuck pod; deleting it does.
    set_image(&mut bench, "three");
    bench.run(3);
    assert_eq!(images(&bench)[2].1, "two");
    bench.world.store.remove(Kind::Pod, NS, "db-2").unwrap();
    bench.run(5);
    assert!(images(&bench).iter().all(|(_, image)| image == "three"));
    let status = bench.get(Kind::StatefulSet, "db")["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(bench.list(Kind::ControllerRevision).len(), 3);
}

#[test]
fn a_partition_holds_the_lower_pods_back() {
    let mut bench = running(3);
    bench.update(Kind::StatefulSet, "db", |s| {
        s["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    });
    set_image(&mut bench, "two");
    bench.run(3);
    let images: Vec<String> = images(&bench).into_iter().map(|i| i.1).collect();
    assert_eq!(images, ["one", "one", "two"]);
}

#[test]
fn a_parallel_set_also_updates_one_pod_at_a_time_and_stops_at_a_bad_one() {
    let mut bench = Bench::new();
    let mut parallel = set(2);
    parallel["spec"]["podManagementPolicy"] = "Parallel".into();
    bench.create(Kind::StatefulSet, parallel);
    bench.run(3);
    bench.broken.insert("two".to_owned());
    set_image(&mut bench, "two");
    bench.run(10);
    let now = images(&bench);
    assert_eq!(now[0], ("db-0".to_owned(), "one".to_owned()));
    assert_eq!(now[1], ("db-1".to_owned(), "two".to_owned()));
}
