//! Behaviour of claims.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS};
use crate::embedded::kind::Kind;

fn bench(class: Option<&str>) -> Bench {
    let mut bench = Bench::new();
    let local = json!({
        "metadata": {"name": "local-path"},
        "provisioner": "rancher.io/local-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    bench.world.create(Kind::StorageClass, local).unwrap();
    let mut claim = json!({
        "metadata": {"name": "cases", "namespace": NS},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    if let Some(class) = class {
        claim["spec"]["storageClassName"] = class.into();
    } else {
        claim["spec"]["storageClassName"] = "".into();
    }
    bench
        .world
        .create(Kind::PersistentVolumeClaim, claim)
        .unwrap();
    bench
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": NS},
        "spec": {
            "schedulerName": "none",
            "containers": [{"name": "c", "image": "one"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "cases"}}],
        },
    })
}

fn counts(bench: &Bench) -> Vec<(String, i64)> {
    bench
        .list(Kind::Event)
        .iter()
        .map(|e| {
            (
                e["message"].as_str().unwrap().to_owned(),
                e["count"].as_i64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_claim_without_class_and_volume_says_so_again_and_again() {
    let mut bench = bench(None);
    bench.run(31);
    let message = "no persistent volumes available for this claim and no storage class is set";
    assert_eq!(counts(&bench), [(message.to_owned(), 3)]);
    assert_eq!(
        bench.get(Kind::PersistentVolumeClaim, "cases")["status"]["phase"],
        "Pending"
    );
}

#[test]
fn a_claim_of_a_late_binding_class_gets_its_volume_with_its_first_pod() {
    let mut bench = bench(Some("local-path"));
    bench.run(2);
    assert_eq!(
        counts(&bench)[0].0,
        "waiting for first consumer to be created before binding"
    );
    bench.create(Kind::Pod, pod());
    bench.run(20);
    let claim = bench.get(Kind::PersistentVolumeClaim, "cases");
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    let volume = bench
        .world
        .store
        .all(Kind::PersistentVolume)
        .next()
        .unwrap();
    assert_eq!(volume["spec"]["claimRef"]["name"], "cases");
}

#[test]
fn a_class_that_does_not_exist_is_named() {
    let mut bench = bench(Some("fast"));
    bench.run(1);
    assert_eq!(
        counts(&bench)[0].0,
        "storageclass.storage.k8s.io \"fast\" not found"
    );
}

#[test]
fn a_free_volume_that_is_large_enough_is_bound() {
    let mut bench = bench(None);
    let volume = |name: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
               "capacity": {"storage": size}}, "status": {"phase": "Available"}})
    };
    for (name, size) in [("small", "512Mi"), ("large", "5Gi"), ("medium", "2Gi")] {
        bench
            .world
            .create(Kind::PersistentVolume, volume(name, size))
            .unwrap();
    }
    bench.run(1);
    let claim = bench.get(Kind::PersistentVolumeClaim, "cases");
    assert_eq!(claim["spec"]["volumeName"], "medium");
}
