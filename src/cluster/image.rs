//! The image of our fixtures' services, as our own binary carries it.

/// How manifests name it.
pub const REFERENCE: &str = acme_services::IMAGE;

/// What build.rs left: empty where there is no program.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/program"));

/// The services' program for the nodes of a real cluster: one static ELF file of several names. None in a build
/// without the feature `fixture-image`, or on a platform that cannot build it.
pub fn program() -> Option<&'static [u8]> {
    Some(PROGRAM).filter(|program| !program.is_empty())
}
