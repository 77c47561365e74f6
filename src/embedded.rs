//! The embedded cluster: a small Kubernetes inside the process, in virtual or real time.
//!
//! An axum router answers Kubernetes paths over one [`world::World`]; `kube::Client` talks to it without a
//! socket. It knows none of this crate's other modules: it speaks Kubernetes only, so it cannot favour us.
//! Behaviour comes from the object model and from what images hold, never from a fault's or scenario's name.

pub mod api;
pub mod bootstrap;
pub mod cluster;
pub mod controllers;
pub mod events;
pub mod image;
pub mod kind;
pub mod kubelet;
pub mod patch;
pub mod quantity;
pub mod scheduler;
pub mod serve;
pub mod store;
pub mod time;
pub mod world;
