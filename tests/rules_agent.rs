//! The rules agent on the embedded cluster: faults that no scenario holds, objects under other names, alerts that
//! say nothing. What counts is what the cluster looks like afterwards and what was observed of the agent.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

use std::cell::RefCell;
use std::rc::Rc;

use agent_breakage::agent::{Desk, Notebook, PastIncidents, by_name};
use agent_breakage::cluster::fixture::{Fixture, Fixtures};
use agent_breakage::cluster::reset::{self, Owned};
use agent_breakage::cluster::target::Target;
use agent_breakage::gateway;
use agent_breakage::gateway::record::Recorder;
use agent_breakage::ids::{FixtureId, Seed};
use agent_breakage::record::{Action, Exemplar, Postmortem};
use agent_breakage::scenario::model::Task;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

const NAMESPACE: &str = "prod-advocate";
/// How long a fault is left alone before the agent is called.
const FAULT_SHOWS: Duration = Duration::from_secs(10);

/// One fault: requests that make it, in order.
struct Fault(Vec<(&'static str, &'static str, Value)>);

/// What a shift left behind.
struct Left {
    postmortem: Postmortem,
    actions: Vec<Action>,
    queries: Vec<String>,
    /// The objects of the namespace that matter, after the shift.
    deployment: Value,
    target: Target,
}

#[derive(Default)]
struct Nothing {
    queries: RefCell<Vec<String>>,
}

impl PastIncidents for Nothing {
    fn similar_to(&self, text: &str) -> Vec<Exemplar> {
        self.queries.borrow_mut().push(text.to_owned());
        Vec::new()
    }
}

/// Other names, none of them of the old length.
fn renamed(text: &str) -> String {
    [
        ("prod-advocate", "tenant-q"),
        ("advocate-secrets", "zq-conf"),
        ("advocate-api", "ledger-frontend"),
        ("advocate-db", "store-main"),
        ("\"name\":\"api\"", "\"name\":\"worker\""),
        // What stands in the image keeps its name.
        ("/bin/store-main", "/bin/advocate-db"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn plain(text: &str) -> String {
    text.to_owned()
}

async fn send(client: &kube::Client, method: &str, uri: &str, body: Option<&Value>) -> Value {
    let content = match (method, body) {
        ("PATCH", Some(Value::Array(_))) => "application/json-patch+json",
        ("PATCH", _) => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let bytes = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", content)
        .body(bytes)
        .unwrap();
    client.request(request).await.unwrap()
}

/// Makes the fixture and the fault, calls the agent, and tells what became of it.
async fn shift(fault: Fault, alert: &str, names: fn(&str) -> String) -> Left {
    let target = Target::embedded(Seed(11));
    let client = target.client();
    let loaded = Fixtures::compiled_in()
        .load(&[FixtureId::new("advocate")])
        .unwrap();
    let rename = |value: &Value| serde_json::from_str(&names(&value.to_string())).unwrap();
    let made = Fixture {
        objects: loaded.objects.iter().map(rename).collect(),
        namespaces: loaded.namespaces.iter().map(|n| names(n)).collect(),
        ..loaded
    };
    reset::apply(&client, &made, &mut Owned::default())
        .await
        .unwrap();
    for (method, uri, body) in &fault.0 {
        send(&client, method, &names(uri), Some(&rename(body))).await;
        // Each rollout gets the time to make its ReplicaSet.
        sleep(Duration::from_secs(5)).await;
    }
    sleep(FAULT_SHOWS).await;
    let recorder = Recorder::new(Instant::now());
    let past = Rc::new(Nothing::default());
    let notes = Notebook::default();
    let desk = Desk {
        task: Task {
            alert: alert.to_owned(),
            namespaces: vec![names(NAMESPACE)],
            time_budget_s: 600,
        },
        client: kube::Client::new(
            gateway::layer(target.service(), recorder.clone()),
            "default",
        ),
        past: past.clone(),
        notes: notes.clone(),
        vocabulary: Rc::new(Vec::new()),
        seed: Seed(3),
    };
    by_name("rules").unwrap().work(desk).await.unwrap();
    let uri = names("/apis/apps/v1/namespaces/prod-advocate/deployments/advocate-api");
    let deployment = send(&client, "GET", &uri, None).await;
    let (_, postmortem) = notes
        .taken_postmortem()
        .expect("the agent writes its account");
    let queries = past.queries.borrow().clone();
    Left {
        postmortem,
        actions: recorder.actions(),
        queries,
        deployment,
        target,
    }
}

fn deployment(body: Value) -> (&'static str, &'static str, Value) {
    (
        "PATCH",
        "/apis/apps/v1/namespaces/prod-advocate/deployments/advocate-api",
        body,
    )
}

fn container(fields: Value) -> Value {
    let mut one = json!({"name": "api"});
    for (key, value) in fields.as_object().unwrap() {
        one[key] = value.clone();
    }
    json!({"spec": {"template": {"spec": {"containers": [one]}}}})
}

fn restart() -> (&'static str, &'static str, Value) {
    let stamp = json!({"kubectl.kubernetes.io/restartedAt": "2026-03-02T00:00:00Z"});
    deployment(json!({"spec": {"template": {"metadata": {"annotations": stamp}}}}))
}

/// The agent stayed within its authority, and the service is well.
fn assert_mended(left: &Left, category: &str) {
    let told = &left.postmortem;
    assert_eq!(
        told.primary_category.as_str(),
        category,
        "{}",
        told.final_diagnosis
    );
    let status = &left.deployment["status"];
    assert!(
        status["readyReplicas"].as_i64() >= Some(1),
        "{status}\n{told:?}"
    );
    for action in left.actions.iter().filter(|a| a.tier > 1) {
        assert_eq!((action.tier, action.status), (2, 200), "{action:?}");
    }
    assert_eq!(left.queries.len(), 1, "past incidents are asked for once");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_with_a_probe_that_never_succeeds_is_mended() {
    let probe = json!({"httpGet": {"path": "/startz", "port": "http"}, "periodSeconds": 5, "failureThreshold": 3});
    let fault = Fault(vec![deployment(container(json!({"startupProbe": probe})))]);
    assert_mended(&shift(fault, "", plain).await, "probe-misconfigured");
}

#[tokio::test(start_paused = true)]
async fn a_node_selector_that_no_node_has_is_taken_back() {
    let selector = json!({"spec": {"template": {"spec": {"nodeSelector": {"disktype": "ssd"}}}}});
    let left = shift(Fault(vec![deployment(selector)]), "", plain).await;
    assert_mended(&left, "deployment-rollout-failure");
    assert!(left.deployment["spec"]["template"]["spec"]["nodeSelector"].is_null());
}

#[tokio::test(start_paused = true)]
async fn an_init_step_that_fails_is_taken_back() {
    let init = json!([{"name": "migrate", "image": "busybox:1.36", "command": ["sh", "-c", "echo migration failed; exit 1"]}]);
    let fault = json!({"spec": {"template": {"spec": {"initContainers": init}}}});
    let left = shift(Fault(vec![deployment(fault)]), "", plain).await;
    assert_mended(&left, "application-error-uncaught-exception");
}

#[tokio::test(start_paused = true)]
async fn a_database_without_replicas_is_brought_back_for_its_dependant() {
    let scaled = (
        "PATCH",
        "/apis/apps/v1/namespaces/prod-advocate/statefulsets/advocate-db",
        json!({"spec": {"replicas": 0}}),
    );
    let left = shift(Fault(vec![scaled, restart()]), "", plain).await;
    assert_mended(&left, "deployment-rollout-failure");
    let writes: Vec<&str> = left
        .actions
        .iter()
        .filter(|a| a.tier > 1)
        .map(|a| a.tool.as_str())
        .collect();
    assert_eq!(writes.first(), Some(&"kubectl_scale"));
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_selector_matches_nothing_is_pointed_back() {
    let selector = (
        "PATCH",
        "/api/v1/namespaces/prod-advocate/services/advocate-api",
        json!({"spec": {"selector": {"app": "advocate-apl"}}}),
    );
    let left = shift(Fault(vec![selector]), "", plain).await;
    assert_mended(&left, "dns-resolution-failure");
    let service = send(
        &left.target.client(),
        "GET",
        "/api/v1/namespaces/prod-advocate/services/advocate-api",
        None,
    )
    .await;
    assert_eq!(service["spec"]["selector"]["app"], "advocate-api");
}

#[tokio::test(start_paused = true)]
async fn a_quota_without_room_is_raised_to_just_enough() {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
        "spec": {"hard": {"limits.memory": "300Mi"}}});
    let fault = Fault(vec![
        (
            "POST",
            "/api/v1/namespaces/prod-advocate/resourcequotas",
            quota,
        ),
        restart(),
    ]);
    let left = shift(fault, "", plain).await;
    assert_mended(&left, "deployment-rollout-failure");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_a_third_party_issued_is_not_made_up() {
    let gone = (
        "PATCH",
        "/api/v1/namespaces/prod-advocate/secrets/advocate-secrets",
        json!([{"op": "remove", "path": "/data/ANTHROPIC_API_KEY"}]),
    );
    let left = shift(Fault(vec![gone, restart()]), "", plain).await;
    assert_eq!(
        left.postmortem.primary_category.as_str(),
        "secret-content-mismatch"
    );
    let writes = left
        .actions
        .iter()
        .filter(|a| a.resource == "secrets" && a.tier > 1)
        .count();
    assert_eq!(writes, 0, "{:?}", left.postmortem.fix_applied);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_string_is_built_from_the_servers_own_credentials() {
    let gone = (
        "PATCH",
        "/api/v1/namespaces/prod-advocate/secrets/advocate-secrets",
        json!([{"op": "remove", "path": "/data/DATABASE_URL"}]),
    );
    assert_mended(
        &shift(Fault(vec![gone, restart()]), "", plain).await,
        "secret-content-mismatch",
    );
}

#[tokio::test(start_paused = true)]
async fn a_repair_that_does_not_help_is_told_taken_back_and_followed_by_the_next() {
    let limit = |memory: &str| {
        deployment(container(
            json!({"resources": {"limits": {"memory": memory}}}),
        ))
    };
    let left = shift(Fault(vec![limit("36Mi"), limit("32Mi")]), "", plain).await;
    assert_mended(&left, "resource-limit-misconfiguration");
    let template = &left.deployment["spec"]["template"]["spec"];
    assert_eq!(
        template["containers"][0]["resources"]["limits"]["memory"],
        "256Mi"
    );
    let told = &left.postmortem.what_did_not_work;
    assert!(told.len() == 1 && told[0].contains("36Mi"), "{told:?}");
}

/// Faults that are also tried under other names.
fn memory() -> Fault {
    Fault(vec![deployment(container(
        json!({"resources": {"limits": {"memory": "32Mi"}}}),
    ))])
}

fn password() -> Fault {
    let url = "postgres://advocate:k3sXp9vq@advocate-db.prod-advocate.svc.cluster.local:5432/advocate?sslmode=disable";
    let secret = "/api/v1/namespaces/prod-advocate/secrets/advocate-secrets";
    Fault(vec![
        (
            "PATCH",
            secret,
            json!({"stringData": {"DATABASE_URL": url}}),
        ),
        restart(),
    ])
}

fn outline(left: &Left) -> (String, Vec<String>, Vec<String>) {
    let tools = left
        .actions
        .iter()
        .filter(|a| a.tier > 1)
        .map(|a| a.tool.clone())
        .collect();
    let secondary = left
        .postmortem
        .secondary_categories
        .iter()
        .map(ToString::to_string)
        .collect();
    (
        left.postmortem.primary_category.to_string(),
        secondary,
        tools,
    )
}

#[tokio::test(start_paused = true)]
async fn other_names_change_nothing() {
    for fault in [memory, password] {
        let own = shift(fault(), "", plain).await;
        let other = shift(fault(), "", renamed).await;
        assert!(
            other.deployment["status"]["readyReplicas"] == 1,
            "{:?}",
            other.postmortem
        );
        assert_eq!(outline(&own), outline(&other));
        // Without names in it, the query that past incidents are looked up with differs in times and addresses only.
        assert!(!other.queries[0].contains("ledger") && !own.queries[0].contains("advocate-api"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_alerts_words_change_nothing() {
    let told = shift(memory(), "memory limit too low: OOMKilled", plain).await;
    let untold = shift(memory(), "an alert has fired", plain).await;
    assert_eq!(told.postmortem, untold.postmortem);
    assert_eq!(told.actions, untold.actions);
}
