//! What image registries hold: images as data, given to the cluster when it is made.

/// The registries that a cluster's node can reach.
#[derive(Clone, Debug, Default)]
pub struct Registry {}
