//! The API server: routes, verbs, patches, validation, defaulting, admission, watches, Status errors.
//!
//! A synchronous core (`read`, `write`, `delete`) works on the [`World`](crate::embedded::world::World) and is
//! what controllers call as well; `handle` is the thin HTTP skin over it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};

use crate::embedded::cluster::Shared;

pub mod admission;
pub mod apply;
pub mod canonical;
pub mod defaults;
pub mod delete;
pub mod discovery;
pub mod eviction;
pub mod field;
pub mod handle;
pub mod log;
pub mod managed;
pub mod metrics;
pub mod openapi;
pub mod protobuf;
pub mod read;
pub mod request;
pub mod review;
pub mod scale;
pub mod selector;
pub mod shape;
pub mod status;
pub mod subresource;
pub mod table;
pub mod typed;
pub mod validate;
pub mod watch;
pub mod write;

#[cfg(test)]
mod tests;

/// The router that answers Kubernetes paths for a cluster.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .fallback(
            |State(shared): State<Arc<Shared>>, request: Request| async move {
                handle::handle(shared, request).await
            },
        )
        .with_state(shared)
}
