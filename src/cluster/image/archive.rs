//! An image as one file that every importer takes: an OCI layout and a docker-save archive at once.
//!
//! Both formats find their parts by path in the same tar, so one set of files serves both.

use std::collections::HashMap;

use oci_spec::image::{
    ANNOTATION_REF_NAME, ImageIndexBuilder, MediaType, OciLayoutBuilder, SCHEMA_VERSION,
};
use serde_json::json;
use tar::{Builder, EntryType};

use crate::cluster::image::name::Reference;
use crate::cluster::image::pack::{PackError, Packed, header, json as json_bytes};

/// What containerd and those who follow it name an imported image by. The specification's own annotation holds only
/// the tag by their custom.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// The whole archive. After its import the image is called `name`.
///
/// # Errors
/// None that a valid image gives; they are those of the libraries.
pub fn write(packed: &Packed, name: &Reference) -> Result<Vec<u8>, PackError> {
    let layout = OciLayoutBuilder::default()
        .image_layout_version("1.0.0")
        .build()
        .map_err(PackError::Description)?;
    let path = |hex: &str| format!("blobs/sha256/{hex}");
    let saved = json!([{
        "Config": path(packed.config.hex()),
        "RepoTags": [name.whole()],
        "Layers": [path(packed.layer.hex())],
    }]);
    let mut tar = Builder::new(Vec::new());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = header(EntryType::Regular, 0o644);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, path, bytes)
            .map_err(PackError::Tar)
    };
    add("oci-layout", &json_bytes(&layout)?)?;
    add("index.json", &index(packed, name)?)?;
    add("manifest.json", &json_bytes(&saved)?)?;
    for blob in packed.blobs() {
        add(&path(blob.hex()), &blob.bytes)?;
    }
    tar.into_inner().map_err(PackError::Tar)
}

fn index(packed: &Packed, name: &Reference) -> Result<Vec<u8>, PackError> {
    let mut manifest = packed.manifest.descriptor();
    let mut annotations = HashMap::from([(CONTAINERD_NAME.to_owned(), name.whole())]);
    if let Some(tag) = name.tag() {
        annotations.insert(ANNOTATION_REF_NAME.to_owned(), tag.to_owned());
    }
    manifest.set_annotations(Some(annotations));
    let index = ImageIndexBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageIndex)
        .manifests(vec![manifest])
        .build()
        .map_err(PackError::Description)?;
    json_bytes(&index)
}
