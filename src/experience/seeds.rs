//! The seed postmortems that are compiled in: incidents of services that no fixture of ours resembles.

use std::path::{Path, PathBuf};

use crate::experience::entry::Entry;
use crate::experience::transfer::{LineError, read_lines};

/// The file as it is kept in the repository; the same form as an export.
pub const SEED_LINES: &str = include_str!("../../data/seed-postmortems.jsonl");

/// Where a workspace holds seeds of its own, and where the repository holds ours.
pub const SEED_FILE: &str = "data/seed-postmortems.jsonl";

/// The seeds of a workspace: its own file when it has one, else those compiled in.
///
/// # Errors
/// A file of its own that cannot be read or has a line that is no postmortem.
pub fn of_workspace(folder: &Path) -> Result<Vec<Entry>, SeedError> {
    let path = folder.join(SEED_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(entries()),
        Err(source) => return Err(SeedError::Unreadable { path, source }),
    };
    let mut entries = read_lines(&path.display().to_string(), &text)?;
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(entries)
}

/// Why the seeds of a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Every compiled-in seed postmortem, by id.
pub fn entries() -> Vec<Entry> {
    let mut entries = read_lines(SEED_FILE, SEED_LINES)
        .expect("the compiled-in seed postmortems are checked by a test");
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries
}
