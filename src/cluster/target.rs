//! Where a cluster and its clients come from: the embedded cluster, or one that a kubeconfig names.
//!
//! A target hands out our own client and the service below it, around which the gateway puts its recording layer for
//! the agent's. It decides nothing about runs.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::USER_AGENT;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;
use tower::util::{BoxCloneSyncService, MapErr, MapRequest, MapResponse};

use crate::cluster::images;
use crate::cluster::remote::Remote;
use crate::cluster::retry::Versions;
use crate::embedded::bootstrap;
use crate::embedded::cluster::{Cluster, ClusterConfig};
use crate::embedded::kubelet::policy::Denied;
use crate::embedded::time::Time;
use crate::ids::Seed;
use crate::record::{ClusterFacts, ClusterKind};

/// The moment at which the first embedded cluster could have been made: 2026-03-02T06:00:00Z. A fixed day, so that
/// equal seeds give equal times.
const EPOCH: Time = Time::from_micros(1_772_431_200_000_000);
/// Seeds spread the start over four weeks, so that an agent cannot learn a date.
const SPREAD_S: u64 = 28 * 24 * 3600;

/// What our own requests say they come from: an operator's ordinary tool, for the server's audit and the managers of
/// fields must not give the game away.
const OUR_USER_AGENT: HeaderValue =
    HeaderValue::from_static("kubectl/v1.34.4 (linux/amd64) kubernetes/4ea3a11");

/// The Kubernetes release that the embedded cluster speaks as.
const EMBEDDED_VERSION: &str = "v1.34.4";

/// Answers Kubernetes paths, whatever cluster is behind it.
pub type Service = BoxCloneSyncService<
    http::Request<kube::client::Body>,
    http::Response<UnsyncBoxBody<Bytes, BoxError>>,
    BoxError,
>;

/// A cluster to run against. Must be made inside a tokio runtime.
#[derive(Clone)]
pub struct Target {
    /// Answers Kubernetes paths, with whatever layers were put around the cluster.
    service: Service,
    /// What our clients have seen of its versions, so that none of them takes the past for the present.
    versions: Versions,
    place: Place,
}

/// What stands behind the service.
#[derive(Clone)]
enum Place {
    Embedded(Cluster),
    /// One that outlives the process.
    Remote(Box<Remote>),
}

impl Target {
    /// A fresh embedded cluster whose ids, names, jitter and date derive from the seed.
    pub fn embedded(seed: Seed) -> Target {
        let cluster = Cluster::new(ClusterConfig {
            seed: seed.child("cluster", 0).0,
            start: embedded_start(seed),
            images: images::registry(),
            denied: Denied::default(),
        });
        cluster.with(bootstrap::populate);
        let answers = MapResponse::new(cluster.router(), boxed);
        Target {
            service: BoxCloneSyncService::new(MapErr::new(answers, BoxError::from)),
            versions: Versions::default(),
            place: Place::Embedded(cluster),
        }
    }

    /// The same cluster behind a layer that sees, and may change, every request of ours and of the agent.
    pub fn behind(mut self, layer: impl FnOnce(Service) -> Service) -> Target {
        self.service = layer(self.service);
        self
    }

    /// A cluster that outlives the process, behind its client's stack.
    pub(super) fn remote(service: Service, remote: Remote) -> Target {
        Target {
            service,
            versions: Versions::default(),
            place: Place::Remote(Box::new(remote)),
        }
    }

    /// Lets the fixture grow old where the cluster's time is ours, so that nothing looks as if made for the occasion.
    pub fn grow_older(&self, by: Duration) {
        if let Place::Embedded(cluster) = &self.place {
            cluster.grow_older(by);
        }
    }

    /// Whether the cluster ends with this process, so that nothing is left of it after a crash.
    pub fn ends_with_process(&self) -> bool {
        self.lasting().is_none()
    }

    /// What is known of a cluster that outlives the process.
    pub fn lasting(&self) -> Option<&Remote> {
        match &self.place {
            Place::Embedded(_) => None,
            Place::Remote(remote) => Some(remote),
        }
    }

    /// The service that answers Kubernetes paths, for a client with a layer around it.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// A client for our own work.
    pub fn client(&self) -> kube::Client {
        let service = MapRequest::new(
            self.service(),
            |mut request: http::Request<kube::client::Body>| {
                request.headers_mut().insert(USER_AGENT, OUR_USER_AGENT);
                request
            },
        );
        let versions = self.versions.clone();
        let service = MapResponse::new(service, move |mut response: http::Response<_>| {
            response.extensions_mut().insert(versions);
            response
        });
        kube::Client::new(service, "default")
    }

    /// The newest versions that are known to exist in the cluster.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    pub fn facts(&self) -> ClusterFacts {
        match &self.place {
            Place::Embedded(_) => embedded_facts(),
            Place::Remote(remote) => remote.facts.clone(),
        }
    }

    /// The cluster's wall-clock time, RFC 3339 to the second.
    pub fn now_text(&self) -> String {
        match &self.place {
            Place::Embedded(cluster) => cluster.now().seconds_text(),
            Place::Remote(remote) => remote.now_text(),
        }
    }
}

/// What a record says of an embedded cluster.
pub fn embedded_facts() -> ClusterFacts {
    ClusterFacts {
        name: "embedded".to_owned(),
        kind: ClusterKind::Embedded,
        version: EMBEDDED_VERSION.to_owned(),
    }
}

/// When the embedded cluster of a seed starts, RFC 3339 to the second.
pub fn embedded_start_text(seed: Seed) -> String {
    embedded_start(seed).seconds_text()
}

fn embedded_start(seed: Seed) -> Time {
    let offset = seed.child("cluster start", 0).0 % (SPREAD_S * 1000);
    EPOCH + Duration::from_millis(offset)
}

/// Gives the body a type that does not name the server below.
fn boxed<B>(response: http::Response<B>) -> http::Response<UnsyncBoxBody<Bytes, BoxError>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}
