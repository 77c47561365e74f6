//! Recording of Events: count-up of repeats, the clients' burst limits, both event shapes.

use serde_json::Value;

use crate::embedded::world::World;

/// Aggregation memory of the event clients.
#[derive(Debug, Default)]
pub struct State {}

/// An event to record.
#[derive(Clone, Debug)]
pub struct NewEvent<'a> {
    /// The involved object (kind, apiVersion, metadata).
    pub about: &'a Value,
    /// Such as `spec.containers{api}`.
    pub field_path: Option<String>,
    pub warning: bool,
    pub reason: &'a str,
    pub message: String,
    /// Such as `kubelet`, `deployment-controller`, `default-scheduler`.
    pub component: &'a str,
    /// Node name, for the kubelet's.
    pub host: Option<&'a str>,
}

/// Records an event or counts an earlier equal one up.
pub fn record(_world: &mut World, _event: NewEvent<'_>) {}
