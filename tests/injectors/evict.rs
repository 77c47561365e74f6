//! pod-evict: who goes, who stays, what budgets say, and what the reset proves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_breakage::cluster::target::{Service, Target};
use agent_breakage::cluster::{reset, state};
use agent_breakage::inject::InjectError;
use agent_breakage::inject::change::Plan;
use agent_breakage::inject::pod_evict::PATIENCE;
use agent_breakage::inject::write;
use agent_breakage::scenario::model::{EvictCount, EvictTarget, Injector};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use crate::stage::{NAMESPACE, Stage, object, paused, told};

fn evict(victims: EvictTarget, how_many: EvictCount) -> Injector {
    Injector::PodEvict {
        namespace: NAMESPACE.to_owned(),
        victims,
        how_many,
    }
}

fn api(percentage: u8) -> Injector {
    let target = EvictTarget::Deployment("advocate-api".to_owned());
    evict(target, EvictCount::Percentage(percentage))
}

fn labelled(selector: &str, count: u32) -> Injector {
    let target = EvictTarget::Selector(selector.to_owned());
    evict(target, EvictCount::Count(count))
}

fn names(plan: &Plan) -> Vec<String> {
    let pods = plan.evictions.iter();
    pods.map(|one| one.pod.name.clone()).collect()
}

async fn api_pods(stage: &Stage) -> Vec<String> {
    let mut names: Vec<String> = stage
        .list("Pod")
        .await
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .filter(|name| name.starts_with("advocate-api-"))
        .collect();
    names.sort();
    names
}

fn budget(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "advocate-api"}});
    object("PodDisruptionBudget", name, json!({"spec": spec}))
}

/// A budget that its controller has counted.
async fn put_budget(stage: &Stage, name: &str, spec: &Value) {
    stage.put(&budget(name, spec)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Why the eviction fails although it could be planned.
async fn failure(stage: &Stage, fault: &Injector) -> InjectError {
    let mut plan = stage.plan(fault).await.unwrap();
    write::apply(&stage.client, &mut plan).await.unwrap_err()
}

#[test]
fn a_percentage_is_rounded_up_and_the_first_by_name_go() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        let pods = api_pods(&stage).await;
        for (percentage, count) in [(1, 1), (33, 1), (34, 2), (67, 3), (100, 3)] {
            let plan = stage.plan(&api(percentage)).await.unwrap();
            assert_eq!(names(&plan), pods[..count], "{percentage}");
        }
        let plan = stage.plan(&labelled("app=advocate-api", 2)).await.unwrap();
        assert_eq!(names(&plan), pods[..2]);
        let database = EvictTarget::StatefulSet("advocate-db".to_owned());
        let plan = stage
            .plan(&evict(database, EvictCount::Percentage(10)))
            .await
            .unwrap();
        assert_eq!(names(&plan), ["advocate-db-0"]);
        assert_eq!(
            plan.evictions[0].owner,
            "StatefulSet prod-advocate/advocate-db"
        );
    });
}

#[test]
fn evicted_pods_are_made_anew_and_the_undo_says_that_it_cannot_take_them_back() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        let before = state::read(&stage.client).await.unwrap();
        let planned = stage.plan(&api(34)).await.unwrap();
        // Nothing has happened yet, and that is told too.
        assert_eq!(stage.undo(&planned).await.original.len(), 2);
        let plan = stage.inject(&api(34)).await;
        let undone = stage.undo(&plan).await;
        assert_eq!(undone.kept.len(), 2);
        assert!(undone.kept[0].contains("cannot be taken back; ReplicaSet prod-advocate/"));
        tokio::time::sleep(Duration::from_secs(30)).await;
        let after = reset::at_rest(
            &stage.client,
            reset::REST_DEADLINE,
            &stage.fixture.namespaces,
        )
        .await
        .unwrap();
        assert_eq!(before.hash(), after.hash());
        let left = api_pods(&stage).await;
        assert!(names(&plan).iter().all(|name| !left.contains(name)));
    });
}

#[test]
fn nothing_matching_too_few_and_bare_pods_are_refused() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        for (fault, reason) in [
            (
                labelled("app=nobody", 1),
                "has 0 ready pod(s), and 1 are to be evicted",
            ),
            (labelled("app=advocate-api", 4), "has 3 ready pod(s), and 4"),
            (labelled("app=(", 1), "400"),
            (
                evict(
                    EvictTarget::Deployment("none".to_owned()),
                    EvictCount::Count(1),
                ),
                "Deployment prod-advocate/none does not exist",
            ),
        ] {
            let refusal = stage.refusal(&fault).await;
            assert!(refusal.contains(reason), "{refusal}");
        }
        let container =
            json!([{"name": "c", "image": "busybox:1.36", "command": ["sleep", "3600"]}]);
        let mut bare = object("Pod", "bare", json!({"spec": {"containers": container}}));
        bare["metadata"]["labels"] = json!({"app": "bare"});
        stage.put(&bare).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let refusal = stage.refusal(&labelled("app=bare", 1)).await;
        assert!(refusal.contains("nothing would make anew"), "{refusal}");
        assert!(stage.get("Pod", "bare").await.is_some());
    });
}

#[test]
fn pods_that_are_going_or_not_ready_are_passed_over() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        let pods = api_pods(&stage).await;
        // Its graceful end takes a moment; its replacement is not ready in the next seconds.
        stage.delete("Pod", &pods[0]).await;
        let plan = stage.plan(&api(100)).await.unwrap();
        assert_eq!(names(&plan), pods[1..]);
    });
}

#[test]
fn a_budget_that_never_allows_it_ends_in_a_refusal_that_names_pod_and_budget() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        put_budget(&stage, "api-floor", &json!({"minAvailable": 3})).await;
        let before = api_pods(&stage).await;
        let warnings = stage.plan(&api(1)).await.unwrap().warnings;
        assert!(warnings[0].contains("needs 3 healthy pods"), "{warnings:?}");
        let started = Instant::now();
        let error = told(&failure(&stage, &api(1)).await);
        assert!(
            error.contains(&format!("Pod prod-advocate/{}", before[0])),
            "{error}"
        );
        assert!(error.contains("(PodDisruptionBudget api-floor)"), "{error}");
        assert!(started.elapsed() <= PATIENCE, "{:?}", started.elapsed());
        assert_eq!(before, api_pods(&stage).await);
    });
}

#[test]
fn two_budgets_on_one_pod_are_refused_before_anything_is_journaled() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        put_budget(&stage, "one", &json!({"minAvailable": 1})).await;
        put_budget(&stage, "two", &json!({"maxUnavailable": 1})).await;
        let refusal = stage.refusal(&api(1)).await;
        assert!(
            refusal.contains("(PodDisruptionBudget one, two)"),
            "{refusal}"
        );
    });
}

#[test]
fn a_budget_that_allows_one_at_a_time_is_waited_for() {
    paused(async {
        let stage = Stage::of("advocate-trio").await;
        put_budget(&stage, "one-by-one", &json!({"maxUnavailable": 1})).await;
        let before = api_pods(&stage).await;
        stage.inject(&api(100)).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let after = api_pods(&stage).await;
        assert!(before.iter().all(|name| !after.contains(name)), "{after:?}");
    });
}

/// Answers the first evictions that are meant itself: a refusal, with `Retry-After` where there is one.
fn refusing(inner: Service, times: Arc<AtomicUsize>, code: u16, wait: Option<u64>) -> Service {
    BoxCloneSyncService::new(tower::service_fn(
        move |request: http::Request<kube::client::Body>| {
            let inner = inner.clone();
            let left = times.clone();
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let meant = head.uri.path().ends_with("/eviction")
                    && !String::from_utf8_lossy(&bytes).contains("dryRun");
                if meant && left.load(Ordering::Relaxed) > 0 {
                    left.fetch_sub(1, Ordering::Relaxed);
                    let mut answer = http::Response::builder().status(code);
                    if let Some(wait) = wait {
                        answer = answer.header("Retry-After", wait.to_string());
                    }
                    let body = Full::from("{\"message\":\"not now\"}");
                    return Ok(answer.body(body.map_err(|never| match never {}).boxed_unsync())?);
                }
                let request =
                    http::Request::from_parts(head, kube::client::Body::from(bytes.to_vec()));
                inner.oneshot(request).await
            }
        },
    ))
}

#[test]
fn refusals_for_now_are_waited_out_as_the_server_asks_and_else_with_a_pause() {
    for (code, wait, at_least) in [(429, Some(7), 14), (429, None, 10), (503, None, 10)] {
        paused(async {
            let mut stage = Stage::of("advocate-trio").await;
            let left = Arc::new(AtomicUsize::new(2));
            let target: Target = stage
                .target
                .clone()
                .behind(|inner| refusing(inner, left.clone(), code, wait));
            stage.client = target.client();
            let started = Instant::now();
            let plan = stage.inject(&api(1)).await;
            let took = started.elapsed().as_secs();
            assert!((at_least..at_least + 3).contains(&took), "{code}: {took} s");
            assert_eq!(left.load(Ordering::Relaxed), 0);
            assert!(
                !api_pods(&stage).await.contains(&names(&plan)[0]) || plan.evictions.len() == 1
            );
        });
    }
}

#[test]
fn a_server_that_asks_for_an_hour_is_not_waited_for() {
    paused(async {
        let mut stage = Stage::of("advocate-trio").await;
        let left = Arc::new(AtomicUsize::new(9));
        let target = stage
            .target
            .clone()
            .behind(|inner| refusing(inner, left.clone(), 429, Some(3600)));
        stage.client = target.client();
        let started = Instant::now();
        let error = failure(&stage, &api(1)).await;
        assert!(
            matches!(error, InjectError::Refused { code: 429, .. }),
            "{error}"
        );
        assert!(started.elapsed() < PATIENCE);
        assert_eq!(left.load(Ordering::Relaxed), 8);
    });
}

#[test]
fn under_a_quota_below_present_use_pods_stay_missing_and_the_reset_still_proves_the_state() {
    paused(async {
        let mut stage = Stage::of("advocate-quota").await;
        let reference = reset::at_rest(
            &stage.client,
            reset::REST_DEADLINE,
            &stage.fixture.namespaces,
        )
        .await
        .unwrap();
        stage.inject(&api(50)).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let deployment = stage.get("Deployment", "advocate-api").await.unwrap();
        assert_eq!(deployment["status"]["readyReplicas"], 2);
        let quota = stage.get("ResourceQuota", "team-quota").await.unwrap();
        assert_eq!(quota["spec"]["hard"]["limits.memory"], "768Mi");
        let reached =
            reset::to_reference(&stage.client, &stage.fixture, &mut stage.owned, &reference)
                .await
                .unwrap();
        assert_eq!(reached.hash(), reference.hash());
        assert!(stage.get("ResourceQuota", "team-quota").await.is_some());
    });
}
