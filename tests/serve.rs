//! The embedded cluster on a socket: what clients of other processes rely on.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

#[path = "serve/http.rs"]
mod http_client;
#[path = "serve/kubectl.rs"]
mod kubectl;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent_breakage::cluster::images;
use agent_breakage::embedded::bootstrap;
use agent_breakage::embedded::cluster::{Cluster, ClusterConfig};
use agent_breakage::embedded::kubelet::policy::Denied;
use agent_breakage::embedded::serve::{self, Limits, ServeError};
use agent_breakage::embedded::time::Time;
use futures::{StreamExt, TryStreamExt};
use http_client::{Answer, exchange};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything here takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// A populated cluster on a free port.
struct Served {
    address: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start() -> Served {
        let cluster = Cluster::new(ClusterConfig {
            seed: 1,
            start: Time::from_micros(1_772_444_467_000_000),
            images: images::registry(),
            denied: Denied::default(),
        });
        cluster.with(bootstrap::populate);
        let listener = serve::bind("127.0.0.1:0".parse().unwrap(), false)
            .await
            .unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let limits = Limits {
            farewell: Duration::from_millis(300),
            ..Limits::REAL
        };
        let serving = tokio::spawn(serve::serve(cluster.router(), listener, limits, async {
            let _ = stopped.await;
        }));
        Served {
            address,
            stop: Some(stop),
            serving,
        }
    }

    fn client(&self) -> kube::Client {
        let url = format!("http://{}", self.address).parse().unwrap();
        kube::Client::try_from(kube::Config::new(url)).unwrap()
    }

    async fn ask(&self, request: &str) -> Answer {
        exchange(&self.address, request.as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        ))
        .await
    }

    /// Asks the server to end and waits until it has.
    async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(PATIENCE, self.serving)
            .await
            .expect("the server hangs")
            .expect("the server panicked");
    }
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_client_library_creates_watches_and_deletes_over_the_socket() {
    let served = Served::start().await;
    let client = served.client();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.34.4");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut events = maps
        .watch(&WatchParams::default().fields("metadata.name=a"), "0")
        .await
        .unwrap()
        .boxed();
    let map: ConfigMap = typed(json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
    maps.create(&PostParams::default(), &map).await.unwrap();
    let added = events.try_next().await.unwrap().unwrap();
    assert!(
        matches!(added, WatchEvent::Added(map) if map.data == Some([("k".into(), "v".into())].into()))
    );
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let deleted = events.try_next().await.unwrap().unwrap();
    assert!(matches!(deleted, WatchEvent::Deleted(_)));
    let error = maps.get("a").await.unwrap_err();
    assert!(
        error.to_string().contains("configmaps \"a\" not found"),
        "{error}"
    );
    drop(events);
    served.stop().await;
}

#[tokio::test]
async fn a_workload_starts_in_real_time_while_it_is_watched() {
    let served = Served::start().await;
    let client = served.client();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let deployment: Deployment = typed(json!({
        "metadata": {"name": "idle"},
        "spec": {
            "selector": {"matchLabels": {"app": "idle"}},
            "template": {
                "metadata": {"labels": {"app": "idle"}},
                "spec": {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "1000"]}]},
            },
        },
    }));
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut events = pods
        .watch(&WatchParams::default().labels("app=idle"), "0")
        .await
        .unwrap()
        .boxed();
    let running = async {
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event
                && pod.status.and_then(|status| status.phase).as_deref() == Some("Running")
            {
                return;
            }
        }
        panic!("the watch ended");
    };
    tokio::time::timeout(PATIENCE, running).await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn a_watch_ends_in_good_order_when_the_server_is_to_end() {
    let served = Served::start().await;
    let mut stream = TcpStream::connect(&served.address).await.unwrap();
    stream
        .write_all(b"GET /api/v1/namespaces?watch=true HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 17];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK\r\n");
    served.stop().await;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    // The last chunk of a chunked body: an end, not a cut.
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"), "cut off");
}

#[tokio::test]
async fn clients_that_fall_silent_do_not_hold_up_the_end() {
    let served = Served::start().await;
    let mut half = TcpStream::connect(&served.address).await.unwrap();
    half.write_all(b"GET /api/v1/na").await.unwrap();
    let mut bodiless = TcpStream::connect(&served.address).await.unwrap();
    bodiless
        .write_all(b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        .await
        .unwrap();
    let idle = TcpStream::connect(&served.address).await.unwrap();
    assert_eq!(served.get("/healthz").await.code, 200);
    served.stop().await;
    drop((half, bodiless, idle));
}

#[tokio::test]
async fn the_cluster_outlives_clients_that_go_away_in_the_middle() {
    let served = Served::start().await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&served.address).await.unwrap();
        stream
            .write_all(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
    }
    let namespaces: Api<Namespace> = Api::all(served.client());
    let made = namespaces
        .create(
            &PostParams::default(),
            &typed(json!({"metadata": {"name": "later"}})),
        )
        .await;
    assert!(made.is_ok(), "{made:?}");
    served.stop().await;
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let served = Served::start().await;
    let client = served.client();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = futures::future::join_all((0..100).map(|n| {
        let maps = maps.clone();
        async move {
            let map = typed(json!({"metadata": {"name": format!("m{n}")}}));
            maps.create(&PostParams::default(), &map).await
        }
    }))
    .await;
    assert!(made.iter().all(Result::is_ok));
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        list.items
            .iter()
            .filter(|m| m.metadata.name.as_deref() != Some("kube-root-ca.crt"))
            .count(),
        100
    );
    served.stop().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_get_a_status_and_nothing_breaks() {
    let served = Served::start().await;
    let unknown = served.get("/apis/nope/v1/things").await;
    assert_eq!(
        (unknown.code, &unknown.json()["reason"]),
        (404, &json!("NotFound"))
    );
    let body = "x".repeat(3 * 1024 * 1024 + 1);
    let large = served
        .ask(&format!(
            "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert_eq!(
        (large.code, &large.json()["reason"]),
        (413, &json!("RequestEntityTooLarge"))
    );
    assert!(large.head.contains("content-type: application/json"));
    let garbled = served.ask("\0\0\0 nonsense\r\n\r\n").await;
    assert_eq!(garbled.code, 400);
    let long = format!(
        "GET /{} HTTP/1.1\r\nhost: x\r\n\r\n",
        "a".repeat(2 * 1024 * 1024)
    );
    let long = served.ask(&long).await;
    assert!([414, 431].contains(&long.code), "{}", long.code);
    assert_eq!(served.get("/readyz").await.code, 200);
    served.stop().await;
}

#[tokio::test]
async fn the_log_of_a_container_is_followed_to_the_end_of_its_run() {
    let served = Served::start().await;
    let pods: Api<Pod> = Api::namespaced(served.client(), "default");
    let script = "for n in 1 2 3; do echo $n; sleep 1; done";
    let pod: Pod = typed(json!({
        "metadata": {"name": "counter"},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]}]},
    }));
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let log = loop {
        // Until the container runs there is nothing to follow.
        let answer = served
            .get("/api/v1/namespaces/default/pods/counter/log?follow=true")
            .await;
        if answer.code == 200 && !answer.body.is_empty() {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(log.body, "1\n2\n3\n");
    served.stop().await;
}

#[tokio::test]
async fn clients_choose_the_form_of_an_answer() {
    let served = Served::start().await;
    let ask = |path: &'static str, accept: &'static str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
        );
        let served = &served;
        async move { served.ask(&request).await }
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let nodes = ask("/api/v1/nodes?includeObject=None", table).await.json();
    assert_eq!(nodes["kind"], "Table");
    assert_eq!(nodes["rows"][0]["cells"][1], "Ready");
    assert_eq!(nodes["rows"][0]["object"], Value::Null);
    let node = ask("/api/v1/nodes/node-1?includeObject=Object", table)
        .await
        .json();
    assert_eq!(node["rows"][0]["object"]["kind"], "Node");
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = ask("/api/v1/nodes", metadata).await.json();
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("spec").is_none());
    let protobuf = ask("/api/v1/nodes", "application/vnd.kubernetes.protobuf").await;
    assert_eq!(
        (protobuf.code, &protobuf.json()["reason"]),
        (406, &json!("NotAcceptable"))
    );
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(ask("/api/v1/nodes", both).await.json()["kind"], "NodeList");
    let events = ask("/api/v1/nodes?watch=true&timeoutSeconds=1", table).await;
    // The columns come with the first event; chunks of the stream hold one line or more.
    let first = events
        .body
        .lines()
        .find(|line| line.starts_with('{'))
        .unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["object"]["columnDefinitions"][1]["name"], "Status");
    served.stop().await;
}

#[tokio::test]
async fn bodies_in_formats_that_are_not_read_are_refused() {
    let served = Served::start().await;
    for (content_type, code) in [
        ("application/yaml", 415),
        ("application/cbor", 415),
        ("application/vnd.kubernetes.protobuf", 400),
        ("application/json", 400),
    ] {
        let answer = served
            .ask(&format!(
                "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\nconnection: close\r\ncontent-length: 4\r\n\r\na: b"
            ))
            .await;
        assert_eq!(answer.code, code, "{content_type}");
        assert_eq!(answer.json()["kind"], "Status");
    }
    served.stop().await;
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_unless_it_is_meant() {
    let anywhere = "0.0.0.0:0".parse().unwrap();
    let error = serve::bind(anywhere, false).await.unwrap_err();
    assert!(matches!(error, ServeError::Remote { .. }));
    assert!(error.to_string().contains("no authentication"), "{error}");
}

/// The program itself, serving; killed if a test leaves it behind.
struct Program(Child);

impl Program {
    fn serve(arguments: &[&str]) -> Program {
        let child = Command::new(env!("CARGO_BIN_EXE_breakage"))
            .args(["cluster", "serve"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Program(child)
    }

    fn ready_line(&mut self) -> String {
        let mut line = String::new();
        let mut out = BufReader::new(self.0.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_command_says_where_it_serves_and_ends_when_asked_to() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().to_str().unwrap();
    let mut program = Program::serve(&[
        "--workspace",
        workspace,
        "--fixture",
        "advocate",
        "--fast=60",
        "--json",
    ]);
    let ready: Value = serde_json::from_str(&program.ready_line()).unwrap();
    assert_eq!(ready["context"], "breakage-embedded");
    assert_eq!(ready["fast"], 60);
    let file = folder.path().join("kubeconfig");
    assert_eq!(ready["kubeconfig"].as_str(), file.to_str());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let kubeconfig = kube::config::Kubeconfig::read_from(&file).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    assert_eq!(
        config.cluster_url.to_string().trim_end_matches('/'),
        ready["url"]
    );
    let pods: Api<Pod> = Api::namespaced(kube::Client::try_from(config).unwrap(), "prod-advocate");
    let names = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(names.items.len(), 2);

    let asked = Instant::now();
    let id = program.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    let status = tokio::task::spawn_blocking(move || program.0.wait().unwrap())
        .await
        .unwrap();
    assert!(status.success(), "{status}");
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}",
        asked.elapsed()
    );
}

#[test]
fn the_command_refuses_remote_addresses_and_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes");
    std::fs::write(&file, "mine").unwrap();
    for (arguments, said) in [
        (["--listen", "0.0.0.0:0"], "--allow-remote"),
        (["--kubeconfig", file.to_str().unwrap()], "stays as it is"),
        (["--fixture", "nowhere"], "advocate-trio"),
        (["--fast=0", "--json"], "1 to 1000"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_breakage"))
            .args([
                "cluster",
                "serve",
                "--workspace",
                folder.path().to_str().unwrap(),
            ])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}
