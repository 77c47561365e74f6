//! The kubelet and what stands below it: images, containers, probes, back-off, logs, the simulated network.

use crate::embedded::image::Registry;
use crate::embedded::store::Change;
use crate::embedded::world::World;

/// Due work of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {}

/// Pods on the node, their containers, images and back-offs.
#[derive(Debug)]
pub struct State {
    pub images: Registry,
}

impl State {
    pub fn new(images: Registry) -> State {
        State { images }
    }
}

/// What `GET …/pods/NAME/log` asks for.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    pub container: Option<String>,
    pub previous: bool,
    pub tail_lines: Option<usize>,
    pub since_seconds: Option<u64>,
    pub timestamps: bool,
    pub limit_bytes: Option<usize>,
}

/// The text of a container's log, or the message of the API's 400 BadRequest.
pub fn logs(
    _world: &World,
    _namespace: &str,
    _pod: &str,
    _request: &LogRequest,
) -> Result<String, String> {
    Ok(String::new())
}

pub fn on_change(_world: &mut World, _change: &Change) {}

pub fn work(_world: &mut World, work: Work) {
    match work {}
}
