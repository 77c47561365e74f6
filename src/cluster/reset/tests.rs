//! What a reset may take away, and what it waits for.

use serde_json::json;

use super::*;
use crate::cluster::fixture::Fixtures;
use crate::cluster::target::Target;
use crate::ids::{FixtureId, Seed};

fn advocate() -> Fixture {
    let id = FixtureId::new("advocate");
    Fixtures::compiled_in().load(&[id]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_somebody_else_refuses_the_whole_before_anything_is_taken_away() {
    let client = Target::embedded(Seed(3)).client();
    let fixture = advocate();
    let mut owned = Owned::default();
    // One of the two is ours, the other was there before.
    let alone = Fixture {
        namespaces: BTreeSet::from(["prod-advocate".to_owned()]),
        objects: Vec::new(),
        ..fixture.clone()
    };
    apply(&client, &alone, &mut owned).await.unwrap();
    let namespaces = resource::of_kind("Namespace").unwrap();
    let billing =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod-billing"}});
    namespaces.create(&client, "", &billing).await.unwrap();
    let maps = resource::of_kind("ConfigMap").unwrap();
    let kept = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    maps.create(&client, "prod-advocate", &kept).await.unwrap();

    let refused = make_stand(&client, &fixture, &mut owned, None)
        .await
        .unwrap_err();
    assert!(matches!(refused, ClusterError::NotOurs { namespace } if namespace == "prod-billing"));
    assert!(
        maps.get(&client, "prod-advocate", "kept")
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn what_other_peoples_workloads_wait_for_is_not_waited_for() {
    let client = Target::embedded(Seed(4)).client();
    let fixture = advocate();
    let deployments = resource::of_kind("Deployment").unwrap();
    let stuck = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "stuck"},
        "spec": {
            "selector": {"matchLabels": {"app": "stuck"}},
            "template": {
                "metadata": {"labels": {"app": "stuck"}},
                "spec": {"containers": [{"name": "c", "image": "ghcr.io/acme/nothing:1"}]},
            },
        },
    });
    deployments
        .create(&client, "default", &stuck)
        .await
        .unwrap();
    apply(&client, &fixture, &mut Owned::default())
        .await
        .unwrap();
    let state = at_rest(&client, REST_DEADLINE, &fixture.namespaces)
        .await
        .unwrap();
    assert_eq!(state.unsettled().len(), 2, "{:?}", state.unsettled());
}
