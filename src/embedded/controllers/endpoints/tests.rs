//! Behaviour of the endpoints controller.

use serde_json::{Value, json};

use crate::embedded::controllers::bench::{Bench, NS, deployment, service};
use crate::embedded::controllers::object::name;
use crate::embedded::kind::Kind;

fn running(replicas: i64, service: Value) -> Bench {
    let mut bench = Bench::new();
    bench.create(Kind::Service, service);
    bench.create(
        Kind::Deployment,
        deployment(replicas, json!({"type": "Recreate"})),
    );
    bench.run(2);
    bench
}

#[test]
fn ready_pods_stand_in_the_slice_with_their_resolved_port() {
    let bench = running(1, service());
    let slice = bench.only(Kind::EndpointSlice);
    let pod = bench.only(Kind::Pod);
    assert!(name(&slice).starts_with("web-"));
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    assert_eq!(
        slice["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
    assert_eq!(
        slice["endpoints"][0]["addresses"],
        json!([pod["status"]["podIP"]])
    );
    assert_eq!(
        slice["endpoints"][0]["conditions"],
        json!({"ready": true, "serving": true, "terminating": false})
    );
    assert_eq!(
        slice["endpoints"][0]["targetRef"]["uid"],
        pod["metadata"]["uid"]
    );
    let endpoints = bench.get(Kind::Endpoints, "web");
    assert_eq!(
        endpoints["subsets"][0]["addresses"][0]["ip"],
        pod["status"]["podIP"]
    );
}

#[test]
fn a_service_without_pods_keeps_an_empty_slice() {
    let bench = running(0, service());
    let slice = bench.only(Kind::EndpointSlice);
    assert_eq!(slice["endpoints"], Value::Null);
    assert_eq!(slice["ports"], Value::Null);
    assert_eq!(bench.get(Kind::Endpoints, "web").get("subsets"), None);
}

#[test]
fn unready_and_leaving_pods_are_marked() {
    let mut bench = Bench::new();
    bench.broken.insert("one".to_owned());
    bench.create(Kind::Service, service());
    bench.create(Kind::Deployment, deployment(1, json!({"type": "Recreate"})));
    bench.run(2);
    let slice = bench.only(Kind::EndpointSlice);
    assert_eq!(slice["endpoints"][0]["conditions"]["ready"], false);
    let endpoints = bench.get(Kind::Endpoints, "web");
    assert!(endpoints["subsets"][0]["notReadyAddresses"].is_array());
    assert_eq!(endpoints["subsets"][0].get("addresses"), None);

    let mut bench = running(1, service());
    let pod = bench.only(Kind::Pod);
    bench.update(Kind::Deployment, "web", |d| {
        d["spec"]["paused"] = json!(true);
    });
    bench.update(Kind::Pod, name(&pod), |p| {
        p["metadata"]["deletionTimestamp"] = json!("2026-03-02T10:00:00Z");
        p["metadata"]["finalizers"] = json!(["hold"]);
    });
    bench.run(1);
    let slice = bench.only(Kind::EndpointSlice);
    let leaving = slice["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["targetRef"]["uid"] == pod["metadata"]["uid"])
        .unwrap();
    assert_eq!(
        leaving["conditions"],
        json!({"ready": false, "serving": true, "terminating": true})
    );
}

#[test]
fn a_selector_that_matches_nothing_empties_the_slice_and_keeps_its_name() {
    let mut bench = running(1, service());
    let before = name(&bench.only(Kind::EndpointSlice)).to_owned();
    bench.update(Kind::Service, "web", |s| {
        s["spec"]["selector"]["app"] = json!("wbe");
    });
    bench.run(1);
    let slice = bench.get(Kind::EndpointSlice, &before);
    assert_eq!(slice["endpoints"], Value::Null);
}

#[test]
fn a_numeric_target_port_is_taken_as_it_is_and_addresses_may_be_published_early() {
    let mut service = service();
    service["spec"]["ports"][0]["targetPort"] = json!(9999);
    service["spec"]["publishNotReadyAddresses"] = json!(true);
    let mut bench = Bench::new();
    bench.broken.insert("one".to_owned());
    bench.create(Kind::Service, service);
    bench.create(Kind::Deployment, deployment(1, json!({"type": "Recreate"})));
    bench.run(2);
    let slice = bench.only(Kind::EndpointSlice);
    assert_eq!(slice["ports"][0]["port"], 9999);
    assert_eq!(slice["endpoints"][0]["conditions"]["ready"], true);
    assert_eq!(slice["endpoints"][0]["conditions"]["serving"], false);
}

#[test]
fn deleting_a_service_deletes_its_endpoints() {
    let mut bench = running(1, service());
    bench.world.store.remove(Kind::Service, NS, "web").unwrap();
    bench.run(1);
    assert!(bench.list(Kind::Endpoints).is_empty());
}
