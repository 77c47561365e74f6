//! What the services of a measured cluster do, as facts: the program beside it does it on a real node, the embedded
//! cluster plays it. One source for both, so that they cannot drift apart.

/// How manifests name the image.
pub const IMAGE: &str = "ghcr.io/acme/services:2.4.1";
/// What the program says it is.
pub const VERSION: &str = "2.4.1";
