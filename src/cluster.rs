//! Where a client comes from, and the namespaces that we own in a cluster: fixtures, reset, state hash.
//!
//! Everything beyond [`target`] works through `kube::Client` alone and does not know which cluster it is. It never
//! knows scenarios or faults: a fixture is what a healthy cluster holds.

pub mod fixture;
pub mod images;
pub mod reset;
pub mod resource;
pub mod state;
pub mod target;

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
    #[error("no request can be made of the path {path}")]
    Request {
        path: String,
        #[source]
        source: http::Error,
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
    #[error("namespace {namespace} exists and was not created by breakage")]
    NotOurs { namespace: String },
    #[error("not settled after {seconds} s: {what}")]
    NotSettled { seconds: u64, what: String },
}

impl ClusterError {
    /// Tells the server's refusals from its silence.
    pub fn from_kube(request: String, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => ClusterError::Api {
                request,
                code: status.code,
                message: status.message,
            },
            other => ClusterError::Unreachable {
                request,
                source: Box::new(other),
            },
        }
    }
}
