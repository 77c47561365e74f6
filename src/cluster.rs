//! Where a client comes from, and the namespaces that we own in a cluster: fixtures, reset, state hash.
//!
//! Everything beyond [`target`] works through `kube::Client` alone and does not know which cluster it is. It never
//! knows scenarios or faults: a fixture is what a healthy cluster holds.

pub mod access;
pub mod churn;
pub mod coverage;
pub mod eviction;
pub mod examine;
pub mod fixture;
pub mod image;
pub mod images;
pub mod in_cluster;
pub mod k3d;
pub mod known;
pub mod kubeconfig;
pub mod ownership;
pub mod pull;
pub mod remote;
pub mod reset;
pub mod resource;
pub mod retry;
pub mod session;
pub mod state;
pub mod target;
pub mod tls;
pub mod trouble;

use crate::store::StoreError;

/// A cluster that cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server answered with a refusal.
    #[error("{request}: the server answered {code}: {message}")]
    Api {
        request: String,
        code: u16,
        message: String,
    },
    #[error("{request}: the cluster did not answer")]
    Unreachable {
        request: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("{request}: no answer within {seconds} s")]
    NoAnswer { request: String, seconds: u64 },
    #[error("{request}: the answer is not what an API server says: {reason}")]
    Garbled { request: String, reason: String },
    #[error("{request}: the answer is of version {version}, although version {newest} exists")]
    Stale {
        request: String,
        version: u64,
        newest: u64,
    },
    #[error("no request can be made of the path {path}")]
    Request {
        path: String,
        #[source]
        source: http::Error,
    },
    #[error("the label selector {selector:?} cannot be asked for")]
    Selector {
        selector: String,
        #[source]
        source: Box<kube::core::request::Error>,
    },
    #[error("kind {kind} is not one that fixtures may hold")]
    UnknownKind { kind: String },
    #[error("no fixture is called {name}; there are {known}")]
    UnknownFixture { name: String, known: String },
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: std::path::PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("fixture {name} cannot be read")]
    Fixture {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    #[error(
        "namespace {namespace} exists and was not created by breakage from this workspace; use the workspace that \
         created it, or another cluster"
    )]
    NotOurs { namespace: String },
    #[error(
        "{server} tells no uid of its namespace kube-system, so it cannot be told from other clusters"
    )]
    NoIdentity { server: String },
    #[error("not as the reference is: {what}")]
    Differs { what: String },
    #[error("the store could not note it")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::KubeconfigProblem),
    #[error("not settled after {seconds} s: {what}")]
    NotSettled { seconds: u64, what: String },
}

impl ClusterError {
    /// The server refused without looking at the request: it is certain that nothing was done.
    pub fn is_busy(&self) -> bool {
        matches!(self, ClusterError::Api { code: 429, .. })
    }

    /// The request met another state of the object than it was made for.
    pub fn is_conflict(&self) -> bool {
        matches!(self, ClusterError::Api { code: 409, .. })
    }

    /// Whether the server may have done what was asked and could not say so.
    pub fn is_unclear(&self) -> bool {
        match self {
            ClusterError::Unreachable { .. }
            | ClusterError::NoAnswer { .. }
            | ClusterError::Garbled { .. } => true,
            ClusterError::Api { code, .. } => *code == 408 || *code >= 500,
            _ => false,
        }
    }

    /// The cluster cannot be worked with at present, whatever is asked of it: silence, errors of its own, nonsense,
    /// answers of the past. Anything else is its word on the request.
    pub fn is_outage(&self) -> bool {
        self.is_busy() || self.is_unclear() || matches!(self, ClusterError::Stale { .. })
    }
}
