//! Opening and creating the file: what is there is looked at before the database library may touch it.
//!
//! A new file is built under another name and moved into place, so that a process killed while creating it leaves
//! either nothing or a complete store.

use std::cell::Cell;
use std::fs::{DirEntry, File, OpenOptions};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, SystemTime};

use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase, StorageBackend,
    StorageError, TableError,
};

use crate::store::batch::begin_write;
use crate::store::error::{StoreError, read_failed, write_failed};
use crate::store::tables::{
    FIRST_TEXT_TABLES, FOURTH_TEXT_TABLES, KIND, LEDGER, META, RECORDS, RUNS, SECOND_TEXT_TABLES,
    THIRD_TEXT_TABLES, TextTable, VECTORS,
};
use crate::store::{OLDEST_FORMAT, STORE_FORMAT};

/// How a file of the database library begins.
const MAGIC: &[u8] = b"redb";

/// Memory for cached pages. The library's own default of 1 GiB suits servers, not a command that lives for a second.
const CACHE_BYTES: usize = 64 << 20;

/// How the names of stores that are being made begin.
const DRAFT_PREFIX: &str = ".breakage-new-";

/// A store is made within milliseconds; a draft untouched for this long belongs to nobody.
const DRAFT_AGE: Duration = Duration::from_secs(60);

/// Whether the path names anything at all, readable or not.
pub(super) fn something_is_at(path: &Path) -> Result<bool, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io(path, error)),
    }
}

pub(super) fn existing(path: &Path) -> Result<Database, StoreError> {
    look_at(path)?;
    OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(|e| io(path, e))?;
    unless_damaged(path, || {
        // Reading comes first because opening for writing changes the file, and it may be another program's. A file
        // that a crash left in need of repair cannot be read yet; it is checked after the repair.
        match builder().open_read_only(path) {
            Ok(reader) => {
                check_format(path, &reader)?;
            }
            Err(DatabaseError::RepairAborted) => {}
            Err(error) => return Err(refused(path, error)),
        }
        let database = builder().open(path).map_err(|e| refused(path, e))?;
        if check_format(path, &database)? < STORE_FORMAT {
            raise_format(&database)?;
        }
        Ok(database)
    })
}

/// Without writing a byte. A file in need of repair cannot be opened so.
pub(super) fn read_only(path: &Path) -> Result<ReadOnlyDatabase, StoreError> {
    look_at(path)?;
    unless_damaged(path, || match builder().open_read_only(path) {
        Ok(database) => check_format(path, &database).map(|_| database),
        Err(DatabaseError::RepairAborted) => Err(StoreError::ReadOnly {
            path: path.to_owned(),
        }),
        Err(error) => Err(refused(path, error)),
    })
}

thread_local! {
    /// Whether a panic on this thread is awaited, and told by us.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The library may panic on a file that was altered behind its back; to us that is one more damaged file, told in one
/// line and without the panic's own.
fn unless_damaged<T>(
    path: &Path,
    open: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let opened = catch_unwind(AssertUnwindSafe(open));
    QUIET.set(false);
    opened.unwrap_or_else(|_| {
        Err(StoreError::Damaged {
            path: path.to_owned(),
            source: "its pages contradict each other".into(),
        })
    })
}

pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    std::fs::create_dir_all(folder).map_err(|e| io(folder, e))?;
    // Created with mode 0600 on Unix: the journal holds the old values of secrets.
    let draft = tempfile::Builder::new()
        .prefix(DRAFT_PREFIX)
        .tempfile_in(folder)
        .map_err(|e| io(folder, e))?;
    let database = builder()
        .create(draft.path())
        .map_err(|e| refused(path, e))?;
    initialise(&database)?;
    drop(database);
    match draft.persist_noclobber(path) {
        Ok(file) => {
            file.sync_all().map_err(|e| io(path, e))?;
            sync_folder(folder)
        }
        // Somebody else was faster; theirs is opened and checked like any other.
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(path, error.error)),
    }
}

/// Removes drafts beside an open store that killed processes left. One that is young or held by a process stays, and
/// what cannot be removed stays too: it is litter and no reason to fail.
pub(super) fn remove_leftovers(path: &Path) {
    // Opening has just touched the store, so that its time is the file system's "now".
    let opened = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let (Ok(opened), Ok(entries)) = (opened, std::fs::read_dir(folder_of(path))) else {
        return;
    };
    for entry in entries.flatten() {
        let is_draft = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(DRAFT_PREFIX));
        if is_draft && is_abandoned(&entry, opened).unwrap_or(false) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_abandoned(entry: &DirEntry, now: SystemTime) -> std::io::Result<bool> {
    // Of the name itself: a link is none of ours.
    let metadata = entry.metadata()?;
    let old = metadata.modified()? + DRAFT_AGE < now;
    Ok(metadata.is_file() && old && File::open(entry.path())?.try_lock().is_ok())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A store on whatever keeps bytes; tables are made unless it holds some.
pub(super) fn over_backend(backend: impl StorageBackend) -> Result<Database, StoreError> {
    let database = builder()
        .create_with_backend(backend)
        .map_err(|e| write_failed("the backend", e))?;
    let reading = database.begin_read().map_err(|e| read_failed("meta", e))?;
    let is_new = matches!(
        reading.open_table(META),
        Err(TableError::TableDoesNotExist(_))
    );
    drop(reading);
    if is_new {
        initialise(&database)?;
    }
    Ok(database)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    // Every page's checksum, so that later reads never meet a page that was altered behind the library's back.
    builder.set_check_integrity_on_open(true);
    builder
}

/// Every table is made at once, so that readers never have to tell "no table" from "no rows".
fn initialise(database: &Database) -> Result<(), StoreError> {
    let txn = begin_write(database)?;
    {
        let mut meta = txn.open_table(META).map_err(|e| write_failed("meta", e))?;
        let format = STORE_FORMAT.to_string();
        for (key, value) in [
            ("kind", KIND),
            ("format", format.as_str()),
            ("created_by", env!("CARGO_PKG_VERSION")),
        ] {
            meta.insert(key, value)
                .map_err(|e| write_failed("meta", e))?;
        }
        for table in FIRST_TEXT_TABLES.iter().chain(later_text_tables()) {
            txn.open_table(*table)
                .map_err(|e| write_failed("a table", e))?;
        }
        txn.open_table(RECORDS)
            .map_err(|e| write_failed("records", e))?;
        txn.open_table(RUNS).map_err(|e| write_failed("runs", e))?;
        txn.open_table(VECTORS)
            .map_err(|e| write_failed("vectors", e))?;
        txn.open_table(LEDGER)
            .map_err(|e| write_failed("ledger", e))?;
    }
    txn.commit().map_err(|e| write_failed("a commit", e))
}

fn later_text_tables() -> impl Iterator<Item = &'static TextTable> {
    SECOND_TEXT_TABLES
        .iter()
        .chain(THIRD_TEXT_TABLES)
        .chain(FOURTH_TEXT_TABLES)
}

/// Gives an older file the tables that came later. What it holds keeps its meaning.
fn raise_format(database: &Database) -> Result<(), StoreError> {
    let txn = begin_write(database)?;
    {
        for table in later_text_tables() {
            txn.open_table(*table)
                .map_err(|e| write_failed("a table", e))?;
        }
        txn.open_table(LEDGER)
            .map_err(|e| write_failed("ledger", e))?;
        let mut meta = txn.open_table(META).map_err(|e| write_failed("meta", e))?;
        meta.insert("format", STORE_FORMAT.to_string().as_str())
            .map_err(|e| write_failed("meta", e))?;
    }
    txn.commit().map_err(|e| write_failed("a commit", e))
}

/// Refuses what cannot be a store before the database library sees it: it would format an empty file.
fn look_at(path: &Path) -> Result<(), StoreError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::Missing {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(io(path, error)),
    };
    let not_ours = |found| {
        Err(StoreError::NotOurs {
            path: path.to_owned(),
            found,
        })
    };
    if metadata.is_dir() {
        return not_ours("a folder");
    }
    if !metadata.is_file() {
        return not_ours("not a regular file");
    }
    if metadata.len() == 0 {
        return Err(StoreError::EmptyFile {
            path: path.to_owned(),
        });
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head))
        .map_err(|e| io(path, e))?;
    if head != MAGIC {
        return not_ours("another kind of file");
    }
    Ok(())
}

/// The file's format, if it is one of those that this build reads.
fn check_format(path: &Path, database: &impl ReadableDatabase) -> Result<u32, StoreError> {
    let txn = database.begin_read().map_err(|e| read_failed("meta", e))?;
    let foreign = || StoreError::NotOurs {
        path: path.to_owned(),
        found: "another program's database",
    };
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(damaged(path, error)),
        Err(_) => return Err(foreign()),
    };
    let value = |key: &str| -> Result<Option<String>, StoreError> {
        let guard = meta.get(key).map_err(|e| damaged(path, e))?;
        Ok(guard.map(|text| text.value().to_owned()))
    };
    if value("kind")?.as_deref() != Some(KIND) {
        return Err(foreign());
    }
    let found = value("format")?.unwrap_or_default();
    match found.parse() {
        Ok(format) if (OLDEST_FORMAT..=STORE_FORMAT).contains(&format) => Ok(format),
        _ => Err(StoreError::OtherFormat {
            path: path.to_owned(),
            found,
            known: STORE_FORMAT,
        }),
    }
}

fn refused(path: &Path, error: DatabaseError) -> StoreError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            let holder = holder_of(&path);
            StoreError::Locked { path, holder }
        }
        DatabaseError::UpgradeRequired(version) => StoreError::OtherFormat {
            path,
            found: format!("file version {version} of the database library"),
            known: STORE_FORMAT,
        },
        DatabaseError::Storage(error) => damaged(&path, error),
        other => StoreError::Damaged {
            path,
            source: Box::new(other),
        },
    }
}

fn damaged(path: &Path, error: StorageError) -> StoreError {
    match error {
        // A cut or short file is damage and not trouble with the disk.
        StorageError::Io(source)
            if !matches!(
                source.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData
            ) =>
        {
            io(path, source)
        }
        other => StoreError::Damaged {
            path: path.to_owned(),
            source: Box::new(other),
        },
    }
}

fn io(path: &Path, source: std::io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { path }
        }
        _ => StoreError::Io { path, source },
    }
}

/// ` (process 123)` where the system tells who holds the lock, else nothing.
#[cfg(target_os = "linux")]
fn holder_of(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let (Ok(metadata), Ok(locks)) = (
        std::fs::metadata(path),
        std::fs::read_to_string("/proc/locks"),
    ) else {
        return String::new();
    };
    // `1: FLOCK  ADVISORY  WRITE 4242 08:01:1835042 0 EOF`; the pid stands before the device and inode.
    let inode = format!(":{}", metadata.ino());
    let pid = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| word.ends_with(&inode))?;
        words.get(at.checked_sub(1)?)?.parse::<u32>().ok()
    });
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

#[cfg(not(target_os = "linux"))]
fn holder_of(_path: &Path) -> String {
    String::new()
}

/// Makes the new name itself durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| io(folder, e))
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<(), StoreError> {
    Ok(())
}
