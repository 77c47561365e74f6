//! Behaviour of the Deployment controller together with the ReplicaSet controller.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS, deployment};
use crate::embedded::controllers::object::{condition, name, replicas};
use crate::embedded::kind::Kind;

fn recreate() -> Value {
    json!({"type": "Recreate"})
}

fn rolling() -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
}

fn running(replicas: i64, strategy: Value) -> Bench {
    let mut bench = Bench::new();
    bench.create(Kind::Deployment, deployment(replicas, strategy));
    bench.run(3);
    bench
}

fn set_image(bench: &mut Bench, image: &str) {
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    });
}

fn set_replicas(bench: &mut Bench, count: i64) {
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["replicas"] = json!(count);
    });
}

fn progressing(bench: &Bench) -> (String, String) {
    bench.condition(Kind::Deployment, "web", "Progressing")
}

fn revision(object: &Value) -> &str {
    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        .as_str()
        .unwrap()
}

#[test]
fn a_new_deployment_gets_its_pods_and_says_so() {
    let bench = running(1, recreate());
    let d = bench.get(Kind::Deployment, "web");
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(d["metadata"]["generation"], 1);
    let mut status = d["status"].clone();
    let conditions = status["conditions"].take();
    assert_eq!(
        status,
        json!({"observedGeneration": d["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
               "readyReplicas": 1, "availableReplicas": 1, "conditions": null})
    );
    assert_eq!(conditions[0]["type"], "Available");
    assert_eq!(
        conditions[0]["message"],
        "Deployment has minimum availability."
    );
    let message = format!("ReplicaSet \"{}\" has successfully progressed.", name(&rs));
    assert_eq!(conditions[1]["message"], message);
    assert_eq!(conditions[1]["reason"], "NewReplicaSetAvailable");
    let annotations = &rs["metadata"]["annotations"];
    assert_eq!(
        annotations["deployment.kubernetes.io/desired-replicas"],
        "1"
    );
    assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "1");
    assert_eq!(revision(&rs), "1");
    assert_eq!(revision(&d), "1");
    let mut rs_status = rs["status"].clone();
    rs_status.as_object_mut().unwrap().remove("conditions");
    assert_eq!(
        rs_status,
        json!({"replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1,
               "availableReplicas": 1, "observedGeneration": 1})
    );
    let pod = bench.only(Kind::Pod);
    assert_eq!(
        bench.events("Deployment")[0].1,
        format!("Scaled up replica set {} from 0 to 1", name(&rs))
    );
    assert_eq!(
        bench.events("ReplicaSet")[0].1,
        format!("Created pod: {}", name(&pod))
    );
    assert_eq!(
        pod["metadata"]["labels"]["pod-template-hash"],
        rs["spec"]["selector"]["matchLabels"]["pod-template-hash"]
    );
}

#[test]
fn recreate_waits_until_the_old_pod_is_gone() {
    let mut bench = running(1, recreate());
    let old = name(&bench.only(Kind::Pod)).to_owned();
    bench.update(Kind::Pod, &old, |p| {
        p["metadata"]["finalizers"] = json!(["hold"]);
    });
    set_image(&mut bench, "two");
    bench.run(2);
    assert_eq!(bench.sizes(), [("one".to_owned(), 0)]);
    assert_eq!(bench.only(Kind::Pod)["metadata"]["name"], old.as_str());
    let (status, reason) = bench.condition(Kind::Deployment, "web", "Available");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "MinimumReplicasUnavailable")
    );
    bench.world.store.remove(Kind::Pod, NS, &old).unwrap();
    bench.run(2);
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 0), ("two".to_owned(), 1)]
    );
    assert_eq!(progressing(&bench).1, "NewReplicaSetAvailable");
    let texts: Vec<String> = bench
        .events("Deployment")
        .into_iter()
        .map(|e| e.1)
        .collect();
    let (one, two) = (bench.set_of("one"), bench.set_of("two"));
    assert_eq!(
        texts[1],
        format!("Scaled down replica set {} from 1 to 0", name(&one))
    );
    assert_eq!(
        texts[2],
        format!("Scaled up replica set {} from 0 to 1", name(&two))
    );
}

#[test]
fn a_rolling_update_that_hangs_leaves_the_old_pods_serving() {
    let mut bench = running(3, rolling());
    bench.broken.insert("two".to_owned());
    set_image(&mut bench, "two");
    bench.run(5);
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 3), ("two".to_owned(), 1)]
    );
    let status = bench.get(Kind::Deployment, "web")["status"].clone();
    assert_eq!(status["unavailableReplicas"], 1);
    assert_eq!(status["availableReplicas"], 3);
    assert_eq!(
        progressing(&bench),
        ("True".to_owned(), "ReplicaSetUpdated".to_owned())
    );
    set_image(&mut bench, "one");
    bench.run(2);
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 3), ("two".to_owned(), 0)]
    );
    let rs = bench.set_of("one");
    assert_eq!(revision(&rs), "3");
    assert_eq!(
        rs["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(progressing(&bench).1, "NewReplicaSetAvailable");
}

#[test]
fn a_rolling_update_replaces_all_pods_and_never_leaves_too_few() {
    let mut bench = running(4, rolling());
    set_image(&mut bench, "two");
    for _ in 0..10 {
        bench.run(1);
        let status = bench.get(Kind::Deployment, "web")["status"].clone();
        assert!(
            status["availableReplicas"].as_i64().unwrap() >= 3,
            "{status}"
        );
    }
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 0), ("two".to_owned(), 4)]
    );
    assert_eq!(progressing(&bench).1, "NewReplicaSetAvailable");
}

#[test]
fn the_progress_deadline_passes_a_second_after_its_time() {
    let mut bench = running(1, recreate());
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["progressDeadlineSeconds"] = json!(20);
    });
    bench.broken.insert("two".to_owned());
    set_image(&mut bench, "two");
    bench.run(20);
    assert_eq!(
        progressing(&bench),
        ("True".to_owned(), "ReplicaSetUpdated".to_owned())
    );
    bench.run(3);
    assert_eq!(
        progressing(&bench),
        ("False".to_owned(), "ProgressDeadlineExceeded".to_owned())
    );
    let d = bench.get(Kind::Deployment, "web");
    let message = condition(&d, "Progressing").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(
        message.ends_with("\" has timed out progressing."),
        "{message}"
    );
}

#[test]
fn a_paused_deployment_rolls_nothing_out_until_it_is_resumed() {
    let mut bench = running(1, recreate());
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["paused"] = json!(true);
    });
    set_image(&mut bench, "two");
    bench.run(2);
    assert_eq!(bench.sizes(), [("one".to_owned(), 1)]);
    assert_eq!(
        progressing(&bench),
        ("Unknown".to_owned(), "DeploymentPaused".to_owned())
    );
    let status = bench.get(Kind::Deployment, "web")["status"].clone();
    assert_eq!(status.get("updatedReplicas"), None);
    assert_eq!(
        status["observedGeneration"],
        bench.get(Kind::Deployment, "web")["metadata"]["generation"]
    );
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"].as_object_mut().unwrap().remove("paused");
    });
    bench.run(3);
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 0), ("two".to_owned(), 1)]
    );
    assert_eq!(progressing(&bench).1, "NewReplicaSetAvailable");
}

#[test]
fn scaling_keeps_the_pod_that_was_ready_longest_and_does_not_touch_progress() {
    let mut bench = running(1, recreate());
    let first = name(&bench.only(Kind::Pod)).to_owned();
    let before = bench.get(Kind::Deployment, "web")["status"]["conditions"][1].clone();
    bench.run(30);
    set_replicas(&mut bench, 3);
    bench.run(5);
    assert_eq!(bench.list(Kind::Pod).len(), 3);
    set_replicas(&mut bench, 1);
    bench.run(2);
    assert_eq!(bench.only(Kind::Pod)["metadata"]["name"], first.as_str());
    let d = bench.get(Kind::Deployment, "web");
    assert_eq!(condition(&d, "Progressing").unwrap(), &before);
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(
        rs["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"],
        "1"
    );
    let texts: Vec<String> = bench
        .events("Deployment")
        .into_iter()
        .map(|e| e.1)
        .collect();
    assert_eq!(
        texts[1],
        format!("Scaled up replica set {} from 1 to 3", name(&rs))
    );
    assert_eq!(
        texts[2],
        format!("Scaled down replica set {} from 3 to 1", name(&rs))
    );
}

#[test]
fn no_replicas_is_available_and_leaves_the_counts_out() {
    let mut bench = running(1, recreate());
    set_replicas(&mut bench, 0);
    bench.run(2);
    let d = bench.get(Kind::Deployment, "web");
    let mut status = d["status"].clone();
    status.as_object_mut().unwrap().remove("conditions");
    assert_eq!(
        status,
        json!({"observedGeneration": d["metadata"]["generation"]})
    );
    assert_eq!(
        bench.condition(Kind::Deployment, "web", "Available").0,
        "True"
    );
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(
        rs["status"],
        json!({"replicas": 0, "observedGeneration": 2})
    );
}

#[test]
fn the_oldest_revisions_go_when_there_are_too_many() {
    let mut bench = running(1, recreate());
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["revisionHistoryLimit"] = json!(1);
    });
    for image in ["two", "three"] {
        set_image(&mut bench, image);
        bench.run(3);
    }
    let images: Vec<String> = bench.sizes().into_iter().map(|s| s.0).collect();
    assert_eq!(images, ["three", "two"]);
}

#[test]
fn a_surge_is_scaled_in_proportion() {
    let mut bench = running(4, rolling());
    bench.broken.insert("two".to_owned());
    set_image(&mut bench, "two");
    bench.run(3);
    assert_eq!(
        bench.sizes(),
        [("one".to_owned(), 3), ("two".to_owned(), 2)]
    );
    set_replicas(&mut bench, 8);
    bench.run(3);
    let sizes = bench.sizes();
    assert_eq!(sizes.iter().map(|s| s.1).sum::<i64>(), 10, "{sizes:?}");
    assert_eq!(sizes[0], ("one".to_owned(), 6));
}

#[test]
fn an_orphaned_set_is_adopted() {
    let mut bench = running(1, recreate());
    let rs = bench.only(Kind::ReplicaSet);
    bench.update(Kind::ReplicaSet, name(&rs), |rs| {
        rs["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("ownerReferences");
    });
    bench.update(Kind::Deployment, "web", |d| {
        d["metadata"]["labels"] = json!({"a": "b"});
    });
    bench.run(1);
    let rs = bench.only(Kind::ReplicaSet);
    assert_eq!(rs["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(replicas(&rs), 1);
}
