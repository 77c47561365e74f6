//! Where a workspace is: flag over environment over the nearest `.breakage/` upwards over the user's data folder.
//!
//! Locating creates nothing; what needs a file there creates it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;

use crate::store::{STORE_FILE, Store, StoreError};

/// The folder name that marks a workspace, looked for from the current folder upwards.
pub const WORKSPACE_FOLDER: &str = ".breakage";

/// The folder with the experience base, records and overriding files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("workspace {} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("the current folder cannot be read")]
    CurrentFolder(#[source] std::io::Error),
    #[error("this user has no data folder; name a workspace with --workspace")]
    NoDataFolder,
}

impl Workspace {
    /// The workspace of this call. `flag` holds `--workspace` or `BREAKAGE_WORKSPACE` (the command line joins them).
    pub fn locate(flag: Option<&Path>) -> Result<Workspace, ConfigError> {
        if let Some(folder) = flag.filter(|path| !path.as_os_str().is_empty()) {
            if folder.exists() && !folder.is_dir() {
                return Err(ConfigError::NotAFolder {
                    path: folder.to_owned(),
                });
            }
            return Ok(Workspace::at(folder));
        }
        let here = std::env::current_dir().map_err(ConfigError::CurrentFolder)?;
        match nearest(&here) {
            Some(folder) => Ok(Workspace { folder }),
            None => {
                let user =
                    etcetera::choose_base_strategy().map_err(|_| ConfigError::NoDataFolder)?;
                Ok(Workspace::at(user.data_dir().join("breakage")))
            }
        }
    }

    /// A workspace at exactly this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Workspace {
        Workspace {
            folder: folder.into(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn store_path(&self) -> PathBuf {
        self.folder.join(STORE_FILE)
    }

    /// The store, created when the workspace has none.
    pub fn store(&self) -> Result<Store, StoreError> {
        patiently(|| Store::open_or_create(&self.store_path()))
    }

    /// The store, or nothing when the workspace has none: for commands that only read.
    pub fn existing_store(&self) -> Result<Option<Store>, StoreError> {
        match patiently(|| Store::open_for_reading(&self.store_path())) {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A command that only reads holds the store for some milliseconds; one that comes meanwhile waits instead of failing.
const HELD_BRIEFLY: Duration = Duration::from_millis(400);
const ATTEMPT_EVERY: Duration = Duration::from_millis(20);

fn patiently(open: impl Fn() -> Result<Store, StoreError>) -> Result<Store, StoreError> {
    let attempts = HELD_BRIEFLY.as_millis() / ATTEMPT_EVERY.as_millis();
    for _ in 0..attempts {
        match open() {
            Err(StoreError::Locked { .. }) => std::thread::sleep(ATTEMPT_EVERY),
            other => return other,
        }
    }
    open()
}

fn nearest(from: &Path) -> Option<PathBuf> {
    from.ancestors()
        .map(|folder| folder.join(WORKSPACE_FOLDER))
        .find(|candidate| candidate.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_held_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::locate(Some(folder.path())).unwrap();
        let held = workspace.store().unwrap();
        let holder = std::thread::spawn(move || {
            std::thread::sleep(ATTEMPT_EVERY * 5);
            drop(held);
        });
        assert!(workspace.existing_store().unwrap().is_some());
        holder.join().unwrap();
    }

    #[test]
    fn the_nearest_marked_folder_upwards_is_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(root.path().join("a/.breakage")).unwrap();
        assert_eq!(nearest(&deep), Some(root.path().join("a/.breakage")));
    }

    #[test]
    fn a_flag_wins_and_need_not_exist_yet() {
        let workspace = Workspace::locate(Some(Path::new("not/there/yet"))).unwrap();
        assert_eq!(
            workspace.store_path(),
            Path::new("not/there/yet/breakage.redb")
        );
        assert!(workspace.existing_store().unwrap().is_none());
    }

    #[test]
    fn a_file_is_no_workspace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Workspace::locate(Some(file.path())).unwrap_err();
        assert!(error.to_string().ends_with("is not a folder"), "{error}");
    }
}
