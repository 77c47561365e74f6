//! What a young but not newborn cluster holds.

/// The only node's name.
pub const NODE: &str = "node-1";
