//! The recording layer between an agent and a cluster: what an agent did is observed here, never believed.
//!
//! [`layer`] wraps any tower service that answers Kubernetes paths, so that a `kube::Client` made from the result
//! leaves one [`crate::record::Action`] per request. It passes answers on unchanged, keeps no values of Secrets,
//! and after [`record::Recorder::revoke`] answers 401 like an API server that no longer knows the credential.
//! `request` reads what a request asks for, `tools` has the one table of tools, tiers and reversibility,
//! `summary` words what a write touched.

pub mod record;
pub mod request;
pub mod service;
pub mod summary;
pub mod tools;

pub use service::{RecordLayer, Recorded, layer};
