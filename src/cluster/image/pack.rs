//! From a program to an OCI image: one layer, its configuration and its manifest, the same bytes for the same program.

use acme_services::{NAMES, SERVE, USER};
use bytes::Bytes;
use oci_spec::OciSpecError;
use oci_spec::image::{
    Arch, ConfigBuilder, Descriptor, ImageConfigurationBuilder, ImageManifestBuilder, MediaType,
    Os, RootFsBuilder, SCHEMA_VERSION, Sha256Digest,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header, HeaderMode};

/// Folder of the program inside the image.
const BIN: &str = "bin";

/// When everything in the image was made. Fixed, since the bytes must not depend on the day of packing, and not the
/// start of the epoch, which some tools take for "no time". 2025-06-02T08:00:00Z, once as text and once in seconds.
const CREATED: &str = "2025-06-02T08:00:00Z";
const CREATED_S: u64 = 1_748_851_200;

/// One file of an image, known by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub media_type: MediaType,
    /// `sha256:` and 64 hex digits.
    pub digest: String,
    pub bytes: Bytes,
}

/// An image, ready to be written or pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// As images call it: `amd64` or `arm64`.
    pub architecture: Arch,
    pub layer: Blob,
    pub config: Blob,
    pub manifest: Blob,
}

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("this build of breakage carries no image for the fixtures' services")]
    NoProgram,
    #[error("the program for the image is not a 64-bit Linux program for x86_64 or aarch64")]
    NotAProgram,
    #[error("the image's files cannot be packed")]
    Tar(#[source] std::io::Error),
    #[error("the image's description cannot be made")]
    Description(#[source] OciSpecError),
    #[error("the image's description cannot be written")]
    Json(#[source] serde_json::Error),
}

impl PackError {
    /// What to do about it, where the person can do something.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            PackError::NoProgram => Some(
                "build on Linux with glibc and default features (`cargo install --path . --locked`), or name a program \
                 that was built there: BREAKAGE_FIXTURE_PROGRAM=PATH cargo install --path . --locked",
            ),
            PackError::NotAProgram => {
                Some("BREAKAGE_FIXTURE_PROGRAM named another kind of file when breakage was built")
            }
            _ => None,
        }
    }
}

impl Packed {
    /// The digest that pulls show and that pins the image: that of its manifest.
    pub fn digest(&self) -> &str {
        &self.manifest.digest
    }

    /// The digest that nodes and engines show as the image's id: that of its configuration.
    pub fn id(&self) -> &str {
        &self.config.digest
    }

    /// What a pull transfers, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.blobs().iter().map(|blob| blob.size_bytes()).sum()
    }

    /// All parts, each after what it names.
    pub fn blobs(&self) -> [&Blob; 3] {
        [&self.layer, &self.config, &self.manifest]
    }
}

impl Blob {
    fn new(media_type: MediaType, bytes: Vec<u8>) -> Blob {
        Blob {
            media_type,
            digest: format!("sha256:{}", hex::encode(Sha256::digest(&bytes))),
            bytes: bytes.into(),
        }
    }

    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The 64 hex digits of the digest, which name the file in a layout.
    pub fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }

    pub(super) fn descriptor(&self) -> Descriptor {
        let digest: Sha256Digest = self
            .hex()
            .parse()
            .expect("a digest of ours has 64 hex digits");
        Descriptor::new(self.media_type.clone(), self.size_bytes(), digest)
    }
}

/// Packs `program`, a static ELF file.
///
/// # Errors
/// A file that no node could start.
pub fn pack(program: &[u8]) -> Result<Packed, PackError> {
    let architecture = architecture(program).ok_or(PackError::NotAProgram)?;
    // Not compressed: the layer's digest is then that of its content, engines need it so in the older archives, and
    // the bytes do not change with a new version of a compressor. It is 2 MB.
    let layer = Blob::new(
        MediaType::ImageLayer,
        layer(program).map_err(PackError::Tar)?,
    );
    let config = Blob::new(MediaType::ImageConfig, config(&architecture, &layer)?);
    let manifest = Blob::new(MediaType::ImageManifest, manifest(&config, &layer)?);
    Ok(Packed {
        architecture,
        layer,
        config,
        manifest,
    })
}

/// Reads from an ELF header what machine a program is for.
fn architecture(program: &[u8]) -> Option<Arch> {
    const CLASS_64_LITTLE: &[u8] = &[2, 1];
    let header = program.strip_prefix(b"\x7fELF")?;
    if header.get(..2)? != CLASS_64_LITTLE {
        return None;
    }
    // The machine stands 18 bytes from the file's start.
    match u16::from_le_bytes(header.get(14..16)?.try_into().ok()?) {
        62 => Some(Arch::Amd64),
        183 => Some(Arch::ARM64),
        _ => None,
    }
}

/// The file system: the program under its names and a place for temporary files; nothing else, so that there is
/// nothing in a container to look around with.
fn layer(program: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    tar.mode(HeaderMode::Deterministic);
    folder(&mut tar, BIN, 0o755)?;
    // One file and links to it: the program does what the name says that it is started under.
    let (first, others) = NAMES.split_first().expect("the program has names");
    let file = format!("{BIN}/{first}");
    let mut header = header(EntryType::Regular, 0o755);
    header.set_size(program.len() as u64);
    tar.append_data(&mut header, &file, program)?;
    for name in others {
        // Hard links: a process is then seen under the name that it was started under.
        let mut header = self::header(EntryType::Link, 0o755);
        tar.append_link(&mut header, format!("{BIN}/{name}"), &file)?;
    }
    folder(&mut tar, "tmp", 0o1777)?;
    tar.into_inner()
}

fn folder(tar: &mut Builder<Vec<u8>>, name: &str, mode: u32) -> std::io::Result<()> {
    let mut header = header(EntryType::Directory, mode);
    tar.append_data(&mut header, format!("{name}/"), std::io::empty())
}

/// Owned by root, made at the fixed time, empty.
pub(super) fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(CREATED_S);
    header.set_size(0);
    header
}

fn config(architecture: &Arch, layer: &Blob) -> Result<Vec<u8>, PackError> {
    let first = NAMES.first().expect("the program has names");
    let started = ConfigBuilder::default()
        .user(USER)
        .env(vec![format!("PATH=/{BIN}")])
        .entrypoint(vec![format!("/{BIN}/{first}")])
        .cmd(vec![SERVE.to_owned()])
        .working_dir("/")
        .build()
        .map_err(PackError::Description)?;
    let files = RootFsBuilder::default()
        .typ("layers")
        .diff_ids(vec![layer.digest.clone()])
        .build()
        .map_err(PackError::Description)?;
    let config = ImageConfigurationBuilder::default()
        .created(CREATED)
        .architecture(architecture.clone())
        .os(Os::Linux)
        .config(started)
        .rootfs(files)
        .build()
        .map_err(PackError::Description)?;
    json(&config)
}

fn manifest(config: &Blob, layer: &Blob) -> Result<Vec<u8>, PackError> {
    let manifest = ImageManifestBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageManifest)
        .config(config.descriptor())
        .layers(vec![layer.descriptor()])
        .build()
        .map_err(PackError::Description)?;
    json(&manifest)
}

/// The same bytes each time: some of the types hold hash maps, whose order changes; a JSON value sorts its keys.
pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, PackError> {
    serde_json::to_value(value)
        .and_then(|value| serde_json::to_vec(&value))
        .map_err(PackError::Json)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// As much of a program as packing looks at.
    fn program(machine: u8) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
        bytes.extend([machine, 0]);
        bytes.resize(700, 7);
        bytes
    }

    #[test]
    fn the_layer_holds_the_program_under_its_names_and_nothing_to_look_around_with() {
        let packed = pack(&program(62)).unwrap();
        let mut archive = tar::Archive::new(&packed.layer.bytes[..]);
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let link = entry.link_name().unwrap().map(|l| l.display().to_string());
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            assert_eq!(
                (header.uid().unwrap(), header.gid().unwrap()),
                (0, 0),
                "{path}"
            );
            assert_eq!(header.mtime().unwrap(), CREATED_S, "{path}");
            if path == "bin/advocate-api" {
                assert_eq!(content, program(62));
            }
            seen.push((path, header.mode().unwrap(), link));
        }
        let expected = [
            ("bin/", 0o755, None),
            ("bin/advocate-api", 0o755, None),
            ("bin/advocate-db", 0o755, Some("bin/advocate-api")),
            ("bin/invoice-web", 0o755, Some("bin/advocate-api")),
            ("bin/invoice-cache", 0o755, Some("bin/advocate-api")),
            ("tmp/", 0o1777, None),
        ]
        .map(|(path, mode, link)| (path.to_owned(), mode, link.map(str::to_owned)));
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_configuration_starts_the_service_as_a_numbered_user() {
        let packed = pack(&program(183)).unwrap();
        let config: serde_json::Value = serde_json::from_slice(&packed.config.bytes).unwrap();
        assert_eq!(
            config,
            serde_json::json!({
                "architecture": "arm64", "os": "linux", "created": CREATED,
                "config": {
                    "User": "1000", "Env": ["PATH=/bin"], "WorkingDir": "/",
                    "Entrypoint": ["/bin/advocate-api"], "Cmd": ["serve"],
                },
                "rootfs": {"type": "layers", "diff_ids": [packed.layer.digest]},
            })
        );
        assert_eq!(
            CREATED.parse::<jiff::Timestamp>().unwrap().as_second(),
            CREATED_S as i64
        );
    }

    #[test]
    fn the_same_program_gives_the_same_bytes_and_another_program_another_digest() {
        let first = pack(&program(62)).unwrap();
        assert_eq!(first, pack(&program(62)).unwrap());
        let mut other = program(62);
        other[600] ^= 1;
        assert_ne!(first.digest(), pack(&other).unwrap().digest());
    }

    #[test]
    fn what_no_node_could_start_is_refused() {
        let mut wide = program(62);
        wide[4] = 1;
        for bytes in [
            b"#!/bin/sh\n".to_vec(),
            b"\x7fELF".to_vec(),
            program(40),
            wide,
        ] {
            assert!(matches!(pack(&bytes), Err(PackError::NotAProgram)));
        }
    }
}
