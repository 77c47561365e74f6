//! Behaviour of the namespace controller.

use serde_json::json;

use crate::embedded::api::delete::{self, DeleteOptions, Propagation};
use crate::embedded::controllers::bench::{Bench, NS, deployment};
use crate::embedded::controllers::object::{items, name};
use crate::embedded::kind::Kind;

#[test]
fn every_namespace_gets_an_account_and_the_root_certificate_and_gets_them_back() {
    let mut bench = Bench::new();
    bench.run(1);
    assert_eq!(name(&bench.only(Kind::ServiceAccount)), "default");
    assert_eq!(name(&bench.only(Kind::ConfigMap)), "kube-root-ca.crt");
    bench
        .world
        .store
        .remove(Kind::ServiceAccount, NS, "default")
        .unwrap();
    bench.run(1);
    assert_eq!(name(&bench.only(Kind::ServiceAccount)), "default");
}

#[test]
fn a_deleted_namespace_empties_and_goes() {
    let mut bench = Bench::new();
    bench.create(Kind::Deployment, deployment(2, json!({"type": "Recreate"})));
    bench.run(1);
    let options = DeleteOptions::default();
    delete::delete(&mut bench.world, Kind::Namespace, "", NS, &options).unwrap();
    bench.run(7);
    assert!(bench.world.store.get(Kind::Namespace, "", NS).is_none());
    assert!(bench.list(Kind::Pod).is_empty());
    assert!(bench.list(Kind::Event).is_empty());
}

#[test]
fn a_namespace_deleted_in_the_foreground_takes_what_is_in_it_along() {
    let mut bench = Bench::new();
    bench.create(Kind::Deployment, deployment(2, json!({"type": "Recreate"})));
    bench.run(1);
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        ..DeleteOptions::default()
    };
    delete::delete(&mut bench.world, Kind::Namespace, "", NS, &options).unwrap();
    bench.run(60);
    assert!(bench.world.store.get(Kind::Namespace, "", NS).is_none());
    assert!(bench.list(Kind::Deployment).is_empty());
    assert!(bench.list(Kind::ConfigMap).is_empty());
}

#[test]
fn a_namespace_that_something_holds_says_what() {
    let mut bench = Bench::new();
    bench.create(
        Kind::ConfigMap,
        json!({"metadata": {"name": "held", "namespace": NS, "finalizers": ["acme.io/hold"]}}),
    );
    bench.run(1);
    let options = DeleteOptions::default();
    delete::delete(&mut bench.world, Kind::Namespace, "", NS, &options).unwrap();
    bench.run(7);
    let namespace = bench.world.store.get(Kind::Namespace, "", NS).unwrap();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let conditions = items(&namespace["status"]["conditions"]);
    assert_eq!(conditions.len(), 5);
    let message =
        |kind: &str| conditions.iter().find(|c| c["type"] == kind).unwrap()["message"].clone();
    assert_eq!(
        message("NamespaceContentRemaining"),
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        message("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: acme.io/hold in 1 resource instances"
    );
}
