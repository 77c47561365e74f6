//! A cluster that a kubeconfig names: its client stack, its identity, its time.
//!
//! The only place that reads the wall clock, and only where neither the server nor a node of the cluster tells the time.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;
use tower::BoxError;
use tower::util::BoxCloneSyncService;

use crate::cluster::ClusterError;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::resource;
use crate::cluster::session::Session;
use crate::cluster::target::{Service, Target};
use crate::record::{ClusterFacts, ClusterKind};

/// How long an ordinary request may take, on tokio's clock. An API server gives up on one after 60 s itself and answers
/// in far less than a second when it is well; half of its limit tells a hanging one without waiting for both.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// How far a `Date` header may be from the nodes' newest sign of life. They give it every 10 s; what differs by more
/// was not written by the cluster's clock.
const CLOCK_SLACK_S: i64 = 60;

/// What is known of a cluster that outlives the process.
#[derive(Clone, Debug)]
pub struct Remote {
    pub facts: ClusterFacts,
    /// The uid of its `kube-system` namespace.
    pub uid: String,
    /// The file that was named by flag, for hints.
    pub kubeconfig: Option<PathBuf>,
    /// The cluster's time at a moment of tokio's clock.
    time: (Timestamp, Instant),
}

impl Remote {
    /// RFC 3339 to the second.
    pub fn now_text(&self) -> String {
        let (then, at) = self.time;
        let passed = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
        let now = Timestamp::from_second(then.as_second().saturating_add(passed)).unwrap_or(then);
        now.to_string()
    }
}

/// Connects to the cluster of a context and asks who it is. Must be called inside the runtime that will use it.
pub async fn connect(chosen: Chosen) -> Result<Target, ClusterError> {
    let server = chosen.config.cluster_url.to_string();
    let facts = ClusterFacts {
        name: chosen.context.clone(),
        kind: if chosen.served {
            ClusterKind::Served
        } else {
            ClusterKind::Kubernetes
        },
        version: String::new(),
    };
    let kubeconfig = chosen.kubeconfig.clone();
    let session = Session::open(chosen)?;
    identified(limited(session), &server, facts, kubeconfig).await
}

/// As [`connect`], for whatever answers Kubernetes paths as the embedded cluster does and outlives the caller. `server`
/// is what errors call it.
pub async fn over(
    service: Service,
    server: &str,
    context: String,
    kubeconfig: Option<PathBuf>,
) -> Result<Target, ClusterError> {
    let facts = ClusterFacts {
        name: context,
        kind: ClusterKind::Served,
        version: String::new(),
    };
    identified(service, server, facts, kubeconfig).await
}

async fn identified(
    service: Service,
    server: &str,
    facts: ClusterFacts,
    kubeconfig: Option<PathBuf>,
) -> Result<Target, ClusterError> {
    let target_of = |remote| Target::remote(service.clone(), remote);
    let mut remote = Remote {
        facts,
        uid: String::new(),
        kubeconfig,
        time: (Timestamp::UNIX_EPOCH, Instant::now()),
    };
    let client = target_of(remote.clone()).client();
    let (version, date) = version(&client, server).await?;
    remote.facts.version = version;
    let namespaces = resource::of_kind("Namespace")?;
    let system = namespaces.get(&client, "", "kube-system").await?;
    remote.uid = system
        .and_then(|object| object["metadata"]["uid"].as_str().map(str::to_owned))
        .unwrap_or_default();
    if remote.uid.is_empty() {
        return Err(ClusterError::NoIdentity {
            server: server.to_owned(),
        });
    }
    let now = clusters_time(date, newest_lease(&client).await).unwrap_or_else(Timestamp::now);
    remote.time = (now, Instant::now());
    Ok(target_of(remote))
}

/// The client's stack as a service whose ordinary requests end in time, bodies included. Watches and followed logs end
/// when their readers want.
fn limited(session: Session) -> Service {
    BoxCloneSyncService::new(tower::service_fn(move |request: http::Request<Body>| {
        let session = session.clone();
        async move {
            if is_endless(request.uri().query().unwrap_or_default()) {
                let answer = session.send(request).await?;
                return Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()));
            }
            let whole = async {
                let (head, body) = session.send(request).await?.into_parts();
                let bytes = body.collect().await?.to_bytes();
                Ok::<_, BoxError>(http::Response::from_parts(head, bytes))
            };
            match tokio::time::timeout(REQUEST_LIMIT, whole).await {
                Ok(answer) => Ok(answer?.map(|bytes: Bytes| {
                    Full::new(bytes)
                        .map_err(|never| match never {})
                        .boxed_unsync()
                })),
                Err(_) => Err(BoxError::from(format!(
                    "no answer within {} s",
                    REQUEST_LIMIT.as_secs()
                ))),
            }
        }
    }))
}

/// Whether a request is for a stream that ends when its reader wants.
fn is_endless(query: &str) -> bool {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(key, value)| ["watch", "follow"].contains(&key) && ["true", "1"].contains(&value))
}

/// `gitVersion` of the server, and the date that its answer carries.
async fn version(
    client: &kube::Client,
    server: &str,
) -> Result<(String, Option<Timestamp>), ClusterError> {
    let request = format!("GET {}/version", server.trim_end_matches('/'));
    let asked = http::Request::get("/version")
        .body(Body::empty())
        .map_err(|source| ClusterError::Request {
            path: "/version".to_owned(),
            source,
        })?;
    let unreachable = |source| ClusterError::Unreachable {
        request: request.clone(),
        source: Box::new(source),
    };
    let answer = client.send(asked).await.map_err(unreachable)?;
    let code = answer.status();
    let date = answer
        .headers()
        .get(http::header::DATE)
        .and_then(|date| date.to_str().ok())
        .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
        .map(|date| date.timestamp());
    let bytes = answer
        .into_body()
        .collect()
        .await
        .map_err(unreachable)?
        .to_bytes();
    let version: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    match version["gitVersion"].as_str() {
        Some(version) => Ok((version.to_owned(), date)),
        None => Err(ClusterError::Api {
            request,
            code: code.as_u16(),
            message: "the answer tells no gitVersion, so it is no Kubernetes API server".to_owned(),
        }),
    }
}

/// When a node last gave a sign of life; nothing where that may not be read.
async fn newest_lease(client: &kube::Client) -> Option<Timestamp> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    let list: Value = client.request(request).await.ok()?;
    let times = list["items"].as_array()?.iter();
    times
        .filter_map(|lease| lease["spec"]["renewTime"].as_str()?.parse().ok())
        .max()
}

/// The cluster's own time: the header's where the nodes agree with it or tell nothing, else theirs.
fn clusters_time(date: Option<Timestamp>, lease: Option<Timestamp>) -> Option<Timestamp> {
    match (date, lease) {
        (Some(date), Some(lease)) => {
            let apart = (date.as_second() - lease.as_second()).abs();
            Some(if apart <= CLOCK_SLACK_S { date } else { lease })
        }
        (date, lease) => date.or(lease),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clusters_time_is_the_headers_unless_the_nodes_contradict_it() {
        let at = |second| Timestamp::from_second(second).ok();
        assert_eq!(clusters_time(at(1000), at(995)), at(1000));
        assert_eq!(clusters_time(at(900_000), at(995)), at(995));
        assert_eq!(clusters_time(None, at(995)), at(995));
        assert_eq!(clusters_time(at(1000), None), at(1000));
        assert_eq!(clusters_time(None, None), None);
    }

    #[test]
    fn only_streams_may_take_as_long_as_they_want() {
        assert!(is_endless("resourceVersion=1&watch=true"));
        assert!(is_endless("watch=1"));
        assert!(is_endless("follow=true"));
        for ordinary in ["", "watch=false", "labelSelector=watch", "limit=5"] {
            assert!(!is_endless(ordinary), "{ordinary}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_is_given_up_on_after_the_limit_and_a_watch_is_not() {
        let hanging = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, BoxError>>()
        });
        let service = limited(Session::over(kube::Client::new(hanging, "default")));
        let ask = |path: &'static str| {
            let service = service.clone();
            async move {
                let request = http::Request::get(path).body(Body::empty()).unwrap();
                tower::ServiceExt::oneshot(service, request).await.err()
            }
        };
        let started = Instant::now();
        let error = ask("/version").await.unwrap();
        assert_eq!(started.elapsed(), REQUEST_LIMIT);
        assert!(
            error.to_string().contains("no answer within 30 s"),
            "{error}"
        );
        let day = Duration::from_secs(86_400);
        let watch = tokio::time::timeout(day, ask("/api/v1/pods?watch=true"));
        assert!(watch.await.is_err(), "a watch ended by itself");
    }
}
