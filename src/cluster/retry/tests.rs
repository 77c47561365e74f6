//! Tests of the policy against a service that answers from a script, in virtual time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use http::{Method, Response};
use serde_json::json;
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::cluster::resource::{JsonPatch, of_kind};

/// One thing that a server does to a request.
#[derive(Clone)]
enum Act {
    Say(u16, Value),
    SayLater(u16, &'static str),
    Text(&'static str),
    Hang,
    Drop,
}

/// A server that acts in order, and what it was asked; the last act is repeated.
fn server(acts: Vec<Act>) -> (kube::Client, Arc<Mutex<Vec<Method>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (acts, seen) = (Arc::new(Mutex::new(VecDeque::from(acts))), asked.clone());
    let versions = Versions::default();
    let service = service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.method().clone());
        let mut acts = acts.lock().unwrap();
        let act = match acts.len() {
            1 => acts[0].clone(),
            _ => acts.pop_front().unwrap(),
        };
        let versions = versions.clone();
        async move {
            let (status, after, text) = match act {
                Act::Say(status, value) => (status, None, value.to_string()),
                Act::SayLater(status, after) => (status, Some(after), "{}".to_owned()),
                Act::Text(text) => (200, None, text.to_owned()),
                Act::Hang => std::future::pending().await,
                Act::Drop => return Err(tower::BoxError::from("connection closed")),
            };
            let mut response = Response::builder().status(status);
            if let Some(after) = after {
                response = response.header("retry-after", after);
            }
            let mut response = response.body(http_body_util::Full::from(text)).unwrap();
            response.extensions_mut().insert(versions);
            Ok::<_, tower::BoxError>(response)
        }
    });
    (kube::Client::new(service, "default"), asked)
}

fn object(version: &str) -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version}, "spec": {"a": 1}})
}

async fn get(client: &kube::Client) -> Result<Option<Value>, ClusterError> {
    of_kind("Deployment")
        .unwrap()
        .get(client, "shop", "web")
        .await
}

#[tokio::test(start_paused = true)]
async fn a_read_outlives_an_outage_of_a_few_seconds_and_no_longer() {
    for act in [
        Act::Say(429, json!({})),
        Act::Say(500, json!({})),
        Act::Say(503, json!({})),
        Act::Hang,
        Act::Drop,
        Act::Text("<html>"),
        Act::Text("[]"),
    ] {
        let wrong_shape = matches!(act, Act::Text("[]"));
        let (client, asked) = server(vec![act.clone(), Act::Say(200, object("1"))]);
        if !wrong_shape {
            assert!(get(&client).await.unwrap().is_some());
            assert_eq!(asked.lock().unwrap().len(), 2);
        }
        let (client, asked) = server(vec![act]);
        let started = Instant::now();
        let error = get(&client).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        if !wrong_shape {
            assert_eq!(asked.lock().unwrap().len(), ATTEMPTS as usize, "{error}");
        }
        let most = (REQUEST_LIMIT + MAX_RETRY_AFTER) * ATTEMPTS;
        assert!(
            started.elapsed() <= most,
            "{error}: {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_says_of_the_request_is_not_asked_again() {
    for code in [400, 401, 403, 409, 422] {
        let (client, asked) = server(vec![Act::Say(code, json!({"message": "no"}))]);
        let error = get(&client).await.unwrap_err();
        assert!(!error.is_outage() && !error.is_unclear(), "{error}");
        assert_eq!(asked.lock().unwrap().len(), 1);
    }
    let (client, _) = server(vec![Act::Say(404, json!({}))]);
    assert_eq!(get(&client).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_to_wait_is_followed_within_bounds() {
    for (wish, waited) in [("7", 7_000), ("0", 500), ("3600", 30_000), ("soon", 500)] {
        let (client, _) = server(vec![Act::SayLater(429, wish), Act::Say(200, object("1"))]);
        let started = Instant::now();
        get(&client).await.unwrap();
        assert_eq!(started.elapsed(), Duration::from_millis(waited), "{wish}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_whose_answer_is_lost_is_left_to_its_maker() {
    for (act, sent) in [
        (Act::Drop, 1),
        (Act::Hang, 1),
        (Act::Say(500, json!({})), 1),
        (Act::Say(429, json!({})), ATTEMPTS as usize),
    ] {
        let (client, asked) = server(vec![act]);
        let patch = JsonPatch {
            operations: &[],
            manager: "m",
            dry_run: false,
        };
        let deployments = of_kind("Deployment").unwrap();
        let error = deployments
            .patch(&client, "shop", "web", &patch)
            .await
            .unwrap_err();
        assert_eq!(error.is_unclear(), sent == 1, "{error}");
        assert_eq!(asked.lock().unwrap().len(), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_looked_up_and_never_blindly_repeated() {
    let sent = json!({"metadata": {"name": "web"}, "spec": {"a": 1}});
    let other = json!({"metadata": {"name": "web"}, "spec": {"a": 2}});
    let deployments = of_kind("Deployment").unwrap();
    let verbs = |asked: &Arc<Mutex<Vec<Method>>>| {
        let asked = asked.lock().unwrap();
        asked
            .iter()
            .map(Method::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (client, asked) = server(vec![Act::Drop, Act::Say(200, object("4"))]);
    let created = deployments.create(&client, "shop", &sent).await.unwrap();
    assert_eq!(created["metadata"]["uid"], "u");
    assert_eq!(verbs(&asked), "POST GET");
    let (client, asked) = server(vec![Act::Drop, Act::Say(200, other)]);
    let error = deployments
        .create(&client, "shop", &sent)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ClusterError::Api { code: 409, .. }),
        "{error}"
    );
    assert_eq!(verbs(&asked), "POST GET");
    let (client, asked) = server(vec![
        Act::Drop,
        Act::Say(404, json!({})),
        Act::Say(201, object("4")),
    ]);
    deployments.create(&client, "shop", &sent).await.unwrap();
    assert_eq!(verbs(&asked), "POST GET POST");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_answer_is_lost_is_looked_up() {
    let deployments = of_kind("Deployment").unwrap();
    let mut going = object("5");
    going["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z".into();
    for there in [Act::Say(404, json!({})), Act::Say(200, going)] {
        let (client, asked) = server(vec![Act::Drop, there]);
        deployments.delete(&client, "shop", "web").await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 2);
    }
    let (client, asked) = server(vec![Act::Drop, Act::Say(200, object("5"))]);
    deployments.delete(&client, "shop", "web").await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.last(), Some(&Method::DELETE));
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_past_is_no_evidence() {
    let list =
        |version: &str| json!({"metadata": {"resourceVersion": version}, "items": [object("1")]});
    let (client, _) = server(vec![
        Act::Say(200, list("20")),
        Act::Say(200, list("20")),
        Act::Say(200, list("19")),
    ]);
    let deployments = of_kind("Deployment").unwrap();
    deployments.look(&client, "shop", "web").await.unwrap();
    assert!(
        deployments
            .look(&client, "shop", "web")
            .await
            .unwrap()
            .is_some()
    );
    let error = deployments.look(&client, "shop", "web").await.unwrap_err();
    assert!(
        matches!(
            error,
            ClusterError::Stale {
                version: 19,
                newest: 20,
                ..
            }
        ),
        "{error}"
    );
    // Another type may be kept elsewhere, where versions count apart.
    assert!(
        of_kind("Secret")
            .unwrap()
            .list(&client, "shop")
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_without_items_is_no_empty_list() {
    let (client, _) = server(vec![Act::Say(200, json!({"metadata": {}}))]);
    let error = of_kind("Deployment")
        .unwrap()
        .list(&client, "")
        .await
        .unwrap_err();
    assert!(matches!(error, ClusterError::Garbled { .. }), "{error}");
}
