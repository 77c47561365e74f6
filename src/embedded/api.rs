//! The API server: routes, verbs, patches, validation, defaulting, admission, watches, Status errors.

use std::sync::Arc;

use crate::embedded::cluster::Shared;

/// The router that answers Kubernetes paths for a cluster.
pub fn router(shared: Arc<Shared>) -> axum::Router {
    axum::Router::new().with_state(shared)
}
