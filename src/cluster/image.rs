//! The image of our fixtures' services, as our own binary carries it.

/// How manifests name it.
pub const REFERENCE: &str = acme_services::IMAGE;
