//! Why the store could not be opened, read or written: one line each, naming the file and what to do.

use std::path::PathBuf;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What to do about a store that does not hold what it should.
pub const MENDING: &str = "set the file aside (rename it) or restore a copy";

/// A failure of the store. "Empty" and "could not be opened" are never the same answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error(
        "{} is open in another breakage process{holder}; wait for it to end or use another --workspace",
        path.display()
    )]
    Locked { path: PathBuf, holder: String },
    #[error("{} is {found}, not a breakage store; it was left as it is, choose another --workspace", path.display())]
    NotOurs { path: PathBuf, found: &'static str },
    #[error("{} is empty; if nothing is writing it, remove it and it will be created anew", path.display())]
    EmptyFile { path: PathBuf },
    #[error("{} is damaged and was left as it is; set it aside (rename it) or restore a copy", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("{} may not be written; make it and its folder writable for you", path.display())]
    ReadOnly { path: PathBuf },
    #[error(
        "{} has format {found}, this breakage knows {known}; use the version of breakage that wrote it",
        path.display()
    )]
    OtherFormat {
        path: PathBuf,
        found: String,
        known: u32,
    },
    #[error("{} cannot be used", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{what} of the store could not be read")]
    Read {
        what: &'static str,
        #[source]
        source: Cause,
    },
    #[error("{what} of the store could not be written")]
    Write {
        what: &'static str,
        #[source]
        source: Cause,
    },
    /// A row that is there but does not hold what it should.
    #[error(
        "row {key:?} of table {table} in {store} is unreadable; if a newer breakage wrote it, use that one, else {MENDING}"
    )]
    Unreadable {
        /// The file.
        store: String,
        table: &'static str,
        key: String,
        #[source]
        source: Cause,
    },
    /// Somebody else wrote meanwhile, or a caller counted wrong; nothing was written.
    #[error("entry {seq} cannot be added to the ledger of {registration}: the next is {next}")]
    NotNext {
        registration: String,
        seq: u64,
        next: u64,
    },
    /// A value of ours that has no JSON form, such as a number that is not finite.
    #[error("{what} has no JSON form")]
    Unwritable {
        what: String,
        #[source]
        source: serde_json::Error,
    },
}

pub(super) fn read_failed(what: &'static str, source: impl Into<redb::Error>) -> StoreError {
    StoreError::Read {
        what,
        source: Box::new(source.into()),
    }
}

pub(super) fn write_failed(what: &'static str, source: impl Into<redb::Error>) -> StoreError {
    StoreError::Write {
        what,
        source: Box::new(source.into()),
    }
}
