//! Prometheus over HTTP, against a stub that answers as servers, proxies and login pages do.
//!
//! What is no plain number must never become one, no password may reach a message or another host, and a recovery may
//! not be proven by what was measured before it.

#![expect(
    clippy::unwrap_used,
    reason = "a set-up that fails is a failed test, and the line says which"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use agent_breakage::detect::condition::Condition;
use agent_breakage::detect::expression::Expression;
use agent_breakage::detect::watch::Watch;
use agent_breakage::observe::prometheus::Prometheus;
use agent_breakage::record::observation::{Answer, Observation};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A request as the stub saw it: method, path, parameters (of the address or the body), login.
#[derive(Clone, Debug)]
struct Asked {
    method: Method,
    path: String,
    query: String,
    login: Option<String>,
}

type Answering = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

#[derive(Clone)]
struct Stub {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    async fn start(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Stub {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Stub {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let answer: Answering = Arc::new(answer);
        let router = Router::new()
            .fallback(handle)
            .with_state((stub.asked.clone(), answer));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = hyper_util::service::TowerToHyperService::new(router.clone());
                let io = hyper_util::rt::TokioIo::new(socket);
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(io, service)
                        .await;
                });
            }
        });
        stub
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    async fn ask(&self, query: &str) -> Answer {
        let address = format!("http://{}", self.address);
        Prometheus::new(&address, None, None)
            .unwrap()
            .ask(query)
            .await
    }
}

async fn handle(
    State((seen, answer)): State<(Arc<Mutex<Vec<Asked>>>, Answering)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let parameters = match method {
        Method::POST => String::from_utf8(body.to_vec()).unwrap(),
        _ => uri.query().unwrap_or_default().to_owned(),
    };
    let asked = Asked {
        method,
        path: uri.path().to_owned(),
        query: parameters,
        login: headers
            .get(header::AUTHORIZATION)
            .map(|value| value.to_str().unwrap().to_owned()),
    };
    seen.lock().unwrap().push(asked.clone());
    answer(&asked)
}

fn of_type(kind: &str, result: &Value) -> Response {
    let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
    (
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}

fn number(text: &str) -> Response {
    of_type("vector", &json!([{"metric": {}, "value": [1000.0, text]}]))
}

/// A value whose newest sample is `age_s` old: only the query of its time shows it.
fn sampled(asked: &Asked, text: &str, age_s: f64) -> Response {
    if asked.query.contains("timestamp") {
        number(&format!("{}", 1000.0 - age_s))
    } else {
        number(text)
    }
}

fn failed(answer: Answer) -> String {
    match answer {
        Answer::Failed(reason) => reason,
        other => panic!("{other:?} in place of a failure"),
    }
}

#[tokio::test]
async fn one_fresh_number_is_the_answer_and_old_samples_are_asked_to_be_left_out() {
    let stub = Stub::start(|asked| sampled(asked, "0.25", 12.0)).await;
    assert_eq!(stub.ask("a / b").await, Answer::Number("0.25".to_owned()));
    let asked = stub.asked();
    assert_eq!(
        (&asked[0].method, asked[0].path.as_str()),
        (&Method::GET, "/api/v1/query")
    );
    assert!(asked[0].query.contains("query=a+%2F+b"), "{asked:?}");
    assert!(asked[0].query.contains("lookback_delta=60s"), "{asked:?}");
}

#[tokio::test]
async fn what_is_no_number_never_becomes_one() {
    let infinite = Stub::start(|_| number("+Inf")).await;
    assert_eq!(infinite.ask("q").await, Answer::Number("+Inf".to_owned()));
    let cases: [(&str, Value); 6] = [
        ("vector", json!([])),
        ("vector", json!([{"metric": {}, "value": [1000.0, "NaN"]}])),
        (
            "vector",
            json!([{"value": [1, "0.1"]}, {"value": [1, "0.9"]}]),
        ),
        (
            "vector",
            json!([{"metric": {}, "histogram": [1, {"count": "3"}]}]),
        ),
        ("matrix", json!([{"metric": {}, "values": [[1, "0"]]}])),
        ("string", json!([1, "0"])),
    ];
    for (kind, result) in cases {
        let told = (kind, result.clone());
        let stub = Stub::start(move |_| of_type(kind, &result)).await;
        let answer = stub.ask("q").await;
        assert!(!matches!(answer, Answer::Number(_)), "{told:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_sample_of_four_minutes_ago_is_no_data() {
    let stub = Stub::start(|asked| sampled(asked, "0", 240.0)).await;
    let Answer::NoData(said) = stub.ask("up").await else {
        panic!("a sample of four minutes ago was taken for the present");
    };
    assert!(said.contains("240 s old"), "{said}");
}

#[tokio::test]
async fn a_server_that_cannot_tell_the_time_of_a_sample_is_believed() {
    let stub = Stub::start(|asked| match asked.query.contains("timestamp") {
        true => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        false => number("3"),
    })
    .await;
    assert_eq!(stub.ask("up").await, Answer::Number("3".to_owned()));
}

#[tokio::test]
async fn a_login_page_is_told_as_what_it_is() {
    let stub = Stub::start(|_| {
        let page = format!("<html><title>Log in</title>{}</html>", "x".repeat(5000));
        ([(header::CONTENT_TYPE, "text/html")], page).into_response()
    })
    .await;
    let said = failed(stub.ask("up").await);
    assert!(
        said.contains("200") && said.contains("text/html") && said.contains("Log in"),
        "{said}"
    );
    assert!(said.len() < 600, "only its beginning: {said}");
}

#[tokio::test]
async fn redirects_are_refused_and_the_login_stays_where_it_was_meant_for() {
    let elsewhere = Stub::start(|_| number("0")).await;
    let there = elsewhere.address;
    for to in [
        format!("http://u:s3cret@{there}/login?next=s3cret"),
        "/api/v1/query/".to_owned(),
    ] {
        let location = to.clone();
        let stub = Stub::start(move |_| {
            (StatusCode::FOUND, [(header::LOCATION, location.clone())]).into_response()
        })
        .await;
        let address = format!("http://u:s3cret@{}", stub.address);
        let said = failed(
            Prometheus::new(&address, None, None)
                .unwrap()
                .ask("up")
                .await,
        );
        assert!(said.contains("302") && said.contains("sends to"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
        assert_eq!(stub.asked().len(), 1);
    }
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_user_of_the_address_or_a_token_is_sent_and_never_shown() {
    let stub = Stub::start(|asked| match &asked.login {
        None => (StatusCode::UNAUTHORIZED, "who are you?").into_response(),
        Some(_) => sampled(asked, "1", 1.0),
    })
    .await;
    let said = failed(stub.ask("up").await);
    assert!(
        said.contains("401") && said.contains("BREAKAGE_PROMETHEUS_TOKEN"),
        "{said}"
    );
    let with_user = format!("http://ci:hunt%40r2@{}/", stub.address);
    let by_user = Prometheus::new(&with_user, None, None).unwrap();
    let by_token =
        Prometheus::new(&format!("http://{}", stub.address), Some("t0ken"), None).unwrap();
    for prometheus in [&by_user, &by_token] {
        assert_eq!(prometheus.ask("up").await, Answer::Number("1".to_owned()));
        let shown = format!("{prometheus:?} {}", prometheus.shown());
        assert!(
            !shown.contains("hunt") && !shown.contains("t0ken"),
            "{shown}"
        );
    }
    let logins: Vec<Option<String>> = stub.asked().into_iter().map(|asked| asked.login).collect();
    // ci:hunt@r2
    assert!(
        logins.contains(&Some("Basic Y2k6aHVudEByMg==".to_owned())),
        "{logins:?}"
    );
    assert!(
        logins.contains(&Some("Bearer t0ken".to_owned())),
        "{logins:?}"
    );
}

#[tokio::test]
async fn a_base_path_is_kept_with_and_without_its_slash() {
    let stub = Stub::start(|_| number("1")).await;
    for base in ["/prometheus", "/prometheus/"] {
        let address = format!("http://{}{base}", stub.address);
        Prometheus::new(&address, None, None)
            .unwrap()
            .ask("up")
            .await;
    }
    assert!(
        stub.asked()
            .iter()
            .all(|asked| asked.path == "/prometheus/api/v1/query")
    );
}

#[tokio::test]
async fn a_long_query_goes_in_the_body() {
    let stub = Stub::start(|_| of_type("scalar", &json!([1, "1"]))).await;
    let long = format!("sum(x{{pod=~\"{}\"}})", "a|".repeat(4500));
    assert_eq!(stub.ask(&long).await, Answer::Number("1".to_owned()));
    let asked = &stub.asked()[0];
    assert_eq!(asked.method, Method::POST);
    assert!(asked.query.len() > 9_000);
}

#[tokio::test]
async fn a_wrong_query_is_told_apart_from_a_server_that_is_busy() {
    let error = |status: StatusCode, kind: &str| {
        let body = json!({"status": "error", "errorType": kind, "error": "it went wrong"});
        (status, body.to_string()).into_response()
    };
    let wrong = Stub::start(move |_| error(StatusCode::UNPROCESSABLE_ENTITY, "execution")).await;
    assert!(
        matches!(wrong.ask("up").await, Answer::Refused(said) if said.contains("it went wrong"))
    );
    let busy = Stub::start(move |_| error(StatusCode::SERVICE_UNAVAILABLE, "unavailable")).await;
    assert!(failed(busy.ask("up").await).contains("503"));
}

#[tokio::test]
async fn a_server_that_hangs_is_left_alone_and_one_that_is_not_there_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let said = failed(
        Prometheus::new(&silent, None, None)
            .unwrap()
            .ask("up")
            .await,
    );
    assert!(
        said.contains("no answer within") && said.contains(&silent),
        "{said}"
    );
    drop(listener);
    let said = failed(
        Prometheus::new(&silent, None, None)
            .unwrap()
            .ask("up")
            .await,
    );
    assert!(said.contains(&silent), "{said}");
}

/// A detector that waits for a queue to be empty, fed every two seconds.
fn fed(answers: impl Iterator<Item = (u64, Answer)>) -> Watch {
    let expression = Expression::parse("promql: queue_depth < 5").unwrap();
    let condition = Condition {
        sustained_for_s: 10,
        ..Condition::plain(expression)
    };
    let mut watch = Watch::new(&[condition], &[]);
    for (at_s, answer) in answers {
        watch.feed(&Observation {
            at_ms: at_s * 1000,
            metrics: Some([("queue_depth".to_owned(), answer)].into()),
            ..Observation::default()
        });
    }
    watch
}

#[test]
fn a_recovery_is_not_proven_by_samples_that_may_be_older_than_it() {
    let good = |at_s| (at_s, Answer::Number("0".to_owned()));
    // Its window of 10 s is over, and the sample may still be 60 s old.
    let early = fed((0..=50).step_by(2).map(good));
    assert_eq!(early.fixed().passed_since_ms(), None);
    let late = fed((0..=60).step_by(2).map(good));
    assert_eq!(late.fixed().passed_since_ms(), Some(0));
}

#[test]
fn no_data_is_neither_fixed_nor_broken() {
    let nothing = |at_s| (at_s, Answer::NoData("no series matches".to_owned()));
    let watch = fed((0..=120).step_by(2).map(nothing));
    assert_eq!(watch.fixed().passed_since_ms(), None);
    assert!(!watch.fixed().all_false_now());
    assert_eq!(watch.fixed().unknown_readings(), 61);
    let refused = |at_s| (at_s, Answer::Refused("two series".to_owned()));
    let watch = fed((0..=20).step_by(2).map(refused));
    assert!(
        watch.fixed().unevaluable().is_empty(),
        "it may not be passed over"
    );
    let told = watch.fixed().unmet().join(" ");
    assert!(told.contains("the scenario's query is wrong"), "{told}");
}
