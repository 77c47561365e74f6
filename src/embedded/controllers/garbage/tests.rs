//! Behaviour of garbage collection.

use serde_json::json;

use crate::embedded::api::delete::{self, DeleteOptions, Propagation};
use crate::embedded::controllers::bench::{Bench, NS, deployment, service};
use crate::embedded::controllers::object::items;
use crate::embedded::kind::Kind;

fn running() -> Bench {
    let mut bench = Bench::new();
    bench.create(Kind::Service, service());
    bench.create(Kind::Deployment, deployment(2, json!({"type": "Recreate"})));
    bench.run(2);
    bench
}

fn remove(bench: &mut Bench, kind: Kind, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    delete::delete(&mut bench.world, kind, NS, "web", &options).unwrap();
}

#[test]
fn what_a_deleted_object_owns_goes_after_it() {
    let mut bench = running();
    remove(&mut bench, Kind::Deployment, Propagation::Background);
    assert_eq!(bench.list(Kind::Pod).len(), 2);
    bench.run(1);
    assert!(bench.list(Kind::ReplicaSet).is_empty());
    assert!(bench.list(Kind::Pod).is_empty());
    remove(&mut bench, Kind::Service, Propagation::Background);
    bench.run(1);
    assert!(bench.list(Kind::EndpointSlice).is_empty());
}

#[test]
fn in_the_foreground_the_owner_waits_for_what_it_owns() {
    let mut bench = running();
    for pod in bench.list(Kind::Pod) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        bench.update(Kind::Pod, name, |p| {
            p["metadata"]["finalizers"] = json!(["hold"]);
        });
    }
    remove(&mut bench, Kind::Deployment, Propagation::Foreground);
    bench.run(1);
    assert_eq!(bench.list(Kind::Deployment).len(), 1);
    for pod in bench.list(Kind::Pod) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        bench.world.store.remove(Kind::Pod, NS, name).unwrap();
    }
    bench.run(1);
    assert!(bench.list(Kind::ReplicaSet).is_empty());
    assert!(bench.list(Kind::Deployment).is_empty());
}

#[test]
fn orphans_stay_without_their_owner() {
    let mut bench = running();
    remove(&mut bench, Kind::Deployment, Propagation::Orphan);
    bench.run(1);
    assert!(bench.list(Kind::Deployment).is_empty());
    let rs = bench.only(Kind::ReplicaSet);
    assert!(items(&rs["metadata"]["ownerReferences"]).is_empty());
    assert_eq!(bench.list(Kind::Pod).len(), 2);
}
