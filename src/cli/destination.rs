//! Where an export goes: a file as a whole or not at all, or straight through to a device or pipe.
//!
//! Never replaces the workspace's store, and a file only when asked to.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use crate::cli::failure::Failure;
use crate::store::STORE_FILE;

/// The name that means standard output.
pub const STANDARD_OUTPUT: &str = "-";

/// Links to links beyond these are a circle; systems stop there too.
const MAX_LINKS: usize = 40;

/// Writes `bytes` to what `file` names, links followed. `workspace` is the folder whose store must stay.
///
/// # Errors
/// The store, a folder, a file that is there already unless `force`, and what cannot be written.
pub fn write(file: &Path, workspace: &Path, force: bool, bytes: &[u8]) -> Result<(), Failure> {
    let there = match fs::metadata(file) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            let failed = anyhow!(error).context(format!("{} cannot be written", file.display()));
            return Err(Failure::input(failed));
        }
    };
    if is_store(file, there.as_ref(), workspace) {
        let refused = anyhow!(
            "{} is this workspace's store; an export does not replace it",
            file.display()
        );
        return Err(Failure::input(refused).hint("name another file"));
    }
    match &there {
        Some(metadata) if metadata.is_dir() => {
            let refused = anyhow!("{} is a folder", file.display());
            Err(Failure::input(refused).hint("name a file in it"))
        }
        Some(metadata) if !metadata.is_file() => through(file, bytes).map_err(Failure::input),
        Some(_) if !force => {
            let refused = anyhow!("{} exists and was left as it is", file.display());
            Err(Failure::input(refused).hint("`--force` replaces it"))
        }
        _ => whole(&followed(file), there.as_ref(), bytes).map_err(Failure::input),
    }
}

/// A device or a pipe takes the bytes as they come; there is nothing to move into place.
fn through(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(file)
        .and_then(|mut opened| {
            opened.write_all(bytes)?;
            opened.flush()
        })
        .with_context(|| format!("{} cannot be written", file.display()))
}

/// The whole file or none of it: written beside its place and moved there, with the mode of what it replaces.
fn whole(file: &Path, replaced: Option<&Metadata>, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = folder_of(file);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".breakage-export-");
    let readable = for_new_files();
    if let Some(permissions) = &readable {
        builder.permissions(permissions.clone());
    }
    let mut draft = builder
        .tempfile_in(folder)
        .with_context(|| format!("{} cannot be written to", folder.display()))?;
    draft
        .write_all(bytes)
        .and_then(|()| match replaced {
            Some(metadata) => as_before(draft.as_file(), metadata),
            None => Ok(()),
        })
        .and_then(|()| draft.as_file().sync_all())
        .with_context(|| format!("{} cannot be written", file.display()))?;
    match replaced {
        Some(_) => draft.persist(file),
        // Somebody may have made the file since it was looked at.
        None => draft.persist_noclobber(file),
    }
    .with_context(|| format!("{} cannot be replaced", file.display()))?;
    Ok(())
}

/// What any program's new file has, less what the user's mask takes away.
#[cfg(unix)]
fn for_new_files() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn for_new_files() -> Option<Permissions> {
    None
}

/// Gives a draft the mode of the file that it replaces, and its owner where the user may.
#[cfg(unix)]
fn as_before(draft: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    // Only an administrator may give files away; everybody else's file is their own already.
    let _ = fchown(draft, Some(replaced.uid()), Some(replaced.gid()));
    draft.set_permissions(replaced.permissions())
}

#[cfg(not(unix))]
fn as_before(draft: &File, replaced: &Metadata) -> io::Result<()> {
    draft.set_permissions(replaced.permissions())
}

/// Whether a path leads to the workspace's store, or to where it would be made.
fn is_store(file: &Path, there: Option<&Metadata>, workspace: &Path) -> bool {
    let store = followed(&workspace.join(STORE_FILE));
    let same_file = match (there, fs::metadata(&store)) {
        (Some(there), Ok(store)) => same(there, &store),
        _ => false,
    };
    same_file || followed(file) == store
}

/// A second name (hard link) of one file counts as that file.
#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same(_one: &Metadata, _other: &Metadata) -> bool {
    false
}

/// The path itself, without links, also when nothing is there yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(whole) = fs::canonicalize(&path) {
            return whole;
        }
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => break,
        }
    }
    match (fs::canonicalize(folder_of(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
