//! The image of our fixtures' services: carried in this binary as one program, packed when it is asked for.
//!
//! No engine and no network is needed to make it, and the same program gives the same bytes everywhere, so that a
//! digest tells which services a cluster runs.

pub mod archive;
pub mod login;
pub mod name;
pub mod pack;
pub mod push;

use crate::cluster::image::pack::{PackError, Packed};

/// How manifests name it.
pub const REFERENCE: &str = acme_services::IMAGE;

/// What build.rs left: empty where there is no program.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/program"));

/// The services' program for the nodes of a real cluster: one static ELF file of several names. None in a build
/// without the feature `fixture-image`, or on a platform that cannot build it.
pub fn program() -> Option<&'static [u8]> {
    Some(PROGRAM).filter(|program| !program.is_empty())
}

/// The image that this build carries.
///
/// # Errors
/// A build that carries no program, and one whose given program is not what a node could start.
pub fn packed() -> Result<Packed, PackError> {
    pack::pack(program().ok_or(PackError::NoProgram)?)
}
