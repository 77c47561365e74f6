//! The workspace's one file: records, postmortems, vectors, qualifications, and what a crash must not lose: planned
//! runs, the undo journal, ownership, the state to come back to, quarantine.
//!
//! The only module that names the database library. It keeps and returns texts and typed evidence; it never judges,
//! embeds or searches. Every write is on disk before the call returns, and nothing that was not created here is ever
//! overwritten. `docs/format.md` describes the file completely.

mod batch;
mod error;
mod experiments;
mod open;
mod tables;

use std::path::{Path, PathBuf};

use redb::{Database, ReadOnlyDatabase, ReadableDatabase, ReadableTable, ReadableTableMetadata};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::store::batch::{Batch, Kept, record_text};
pub use crate::store::error::{MENDING, StoreError};

use crate::ids::{EmbedderId, PostmortemId, RunId};
use crate::record::Record;
use crate::store::error::read_failed;
use crate::store::tables::{
    CLUSTERS, CREATING, JOURNAL, OWNERSHIP, PLANNED, POSTMORTEMS, QUALIFICATIONS, QUARANTINE,
    RECORDS, REFERENCES, RUNS, STANDING, TextTable, VECTORS,
};

/// The file's name inside a workspace.
pub const STORE_FILE: &str = "breakage.redb";

/// The format that this build writes and reads; raised when a table, key or encoding changes.
pub const STORE_FORMAT: u32 = 4;

/// The oldest format that this build takes over: older ones lack tables and are otherwise the same.
pub const OLDEST_FORMAT: u32 = 1;

/// An open store. One process owns it; threads share it by reference.
pub struct Store {
    access: Access,
    /// Nothing for a store in memory.
    path: Option<PathBuf>,
}

/// What may be done with the file.
enum Access {
    All(Database),
    Reading(ReadOnlyDatabase),
}

impl Store {
    /// Opens a file that exists. It is never changed when it turns out not to be a store of ours.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let database = open::existing(path)?;
        Ok(Store {
            access: Access::All(database),
            path: Some(path.to_owned()),
        })
    }

    /// As [`Store::open`], for reading only where the file may not be written. Writes to it then fail.
    pub fn open_for_reading(path: &Path) -> Result<Store, StoreError> {
        match Store::open(path) {
            Err(StoreError::ReadOnly { .. }) => Store::open_read_only(path),
            other => other,
        }
    }

    fn open_read_only(path: &Path) -> Result<Store, StoreError> {
        Ok(Store {
            access: Access::Reading(open::read_only(path)?),
            path: Some(path.to_owned()),
        })
    }

    /// Opens the file, or creates it (mode 0600) when nothing has that name; its folder is created too.
    pub fn open_or_create(path: &Path) -> Result<Store, StoreError> {
        if !open::something_is_at(path)? {
            open::create(path)?;
        }
        let store = Store::open(path)?;
        open::remove_leftovers(path);
        Ok(store)
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Result<Store, StoreError> {
        Store::over_backend(redb::backends::InMemoryBackend::new())
    }

    /// A store on whatever keeps bytes, so that a test can have a disk that fails.
    pub fn over_backend(backend: impl redb::StorageBackend) -> Result<Store, StoreError> {
        Ok(Store {
            access: Access::All(open::over_backend(backend)?),
            path: None,
        })
    }

    /// The file, or nothing for a store in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Keeps a run's record. Evidence is never overwritten: a record that differs from an earlier one of the same run
    /// id is added as a newer one, an identical one is kept once.
    pub fn put_record(&self, record: &Record) -> Result<Kept, StoreError> {
        let mut batch = Batch::default();
        batch.record(record)?;
        let kept = self.write(&batch)?;
        Ok(kept.first().copied().unwrap_or(Kept::Already))
    }

    /// The newest record of a run id.
    pub fn record(&self, run: &RunId) -> Result<Option<Record>, StoreError> {
        let txn = self.begin_read()?;
        let runs = txn.open_table(RUNS).map_err(|e| read_failed("runs", e))?;
        let Some(order) = runs
            .get(run.as_str())
            .map_err(|e| read_failed("runs", e))?
            .map(|guard| guard.value())
        else {
            return Ok(None);
        };
        let records = txn
            .open_table(RECORDS)
            .map_err(|e| read_failed("records", e))?;
        let text = records.get(order).map_err(|e| read_failed("records", e))?;
        text.map(|text| self.decode("records", run.as_str(), text.value()))
            .transpose()
    }

    /// Every record in the order in which it was kept, oldest first.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        let txn = self.begin_read()?;
        let table = txn
            .open_table(RECORDS)
            .map_err(|e| read_failed("records", e))?;
        let rows = table.iter().map_err(|e| read_failed("records", e))?;
        rows.map(|row| {
            let (order, text) = row.map_err(|e| read_failed("records", e))?;
            self.decode("records", &order.value().to_string(), text.value())
        })
        .collect()
    }

    /// Writes an undo entry; it is on disk when this returns. An entry of the same id is replaced.
    pub fn journal_put<T: Serialize>(&self, id: &str, entry: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.journal_put(id, entry)?;
        self.write(&batch).map(drop)
    }

    /// Every undo entry, by id.
    pub fn journal<T: DeserializeOwned>(&self) -> Result<Vec<(String, T)>, StoreError> {
        self.texts(JOURNAL, "journal")?
            .into_iter()
            .map(|(id, text)| self.decode("journal", &id, &text).map(|entry| (id, entry)))
            .collect()
    }

    /// Forgets an undo entry, once the undo is proven. False when there was none.
    pub fn journal_erase(&self, id: &str) -> Result<bool, StoreError> {
        self.erase(JOURNAL, "journal", id)
    }

    /// Keeps what is to be done before its first request. A plan of the same id is replaced.
    pub fn put_planned<T: Serialize>(&self, id: &str, plan: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put_planned(id, plan)?;
        self.write(&batch).map(drop)
    }

    /// Every plan that has not come to its end, by id.
    pub fn planned<T: DeserializeOwned>(&self) -> Result<Vec<(String, T)>, StoreError> {
        self.texts(PLANNED, "planned")?
            .into_iter()
            .map(|(id, text)| self.decode("planned", &id, &text).map(|plan| (id, plan)))
            .collect()
    }

    /// Notes that a namespace is about to be created. `key` names cluster and namespace, `token` is what tells the
    /// namespace from one that somebody else creates.
    pub fn note_creating(&self, key: &str, token: &str) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.note_creating(key, token);
        self.write(&batch).map(drop)
    }

    /// Key and token of namespaces whose creation was begun and is not known to have ended.
    pub fn creating(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.texts(CREATING, "creating")
    }

    /// Keeps the state that a cluster must come back to.
    pub fn put_reference<T: Serialize>(&self, key: &str, state: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put_reference(key, state)?;
        self.write(&batch).map(drop)
    }

    pub fn reference<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        self.text(REFERENCES, "references", key)?
            .map(|text| self.decode("references", key, &text))
            .transpose()
    }

    /// The keys of the states that clusters must come back to.
    pub fn reference_keys(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.texts(REFERENCES, "references")?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    /// Notes what is being made to stand in a cluster.
    pub fn put_standing<T: Serialize>(&self, cluster: &str, what: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put_standing(cluster, what)?;
        self.write(&batch).map(drop)
    }

    pub fn standing<T: DeserializeOwned>(&self, cluster: &str) -> Result<Option<T>, StoreError> {
        self.text(STANDING, "standing", cluster)?
            .map(|text| self.decode("standing", cluster, &text))
            .transpose()
    }

    /// The uids of the clusters in which something was made to stand.
    pub fn standing_clusters(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.texts(STANDING, "standing")?;
        Ok(rows.into_iter().map(|(uid, _)| uid).collect())
    }

    /// Notes that a person agreed to the use of a cluster, with what is known of it.
    pub fn put_cluster<T: Serialize>(&self, cluster: &str, known: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put_cluster(cluster, known)?;
        self.write(&batch).map(drop)
    }

    /// What is known of a cluster that a person agreed to use.
    pub fn cluster<T: DeserializeOwned>(&self, cluster: &str) -> Result<Option<T>, StoreError> {
        self.text(CLUSTERS, "clusters", cluster)?
            .map(|text| self.decode("clusters", cluster, &text))
            .transpose()
    }

    /// Every cluster that a person agreed to use, by uid.
    pub fn clusters<T: DeserializeOwned>(&self) -> Result<Vec<(String, T)>, StoreError> {
        self.texts(CLUSTERS, "clusters")?
            .into_iter()
            .map(|(uid, text)| {
                self.decode("clusters", &uid, &text)
                    .map(|known| (uid, known))
            })
            .collect()
    }

    /// Forgets a cluster: it is asked about again. False when it was not known.
    pub fn forget_cluster(&self, cluster: &str) -> Result<bool, StoreError> {
        self.erase(CLUSTERS, "clusters", cluster)
    }

    /// Closes a cluster to further runs.
    pub fn quarantine(&self, cluster: &str, reason: &str) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.quarantine(cluster, reason);
        self.write(&batch).map(drop)
    }

    /// Why a cluster is closed, if it is.
    pub fn quarantine_reason(&self, cluster: &str) -> Result<Option<String>, StoreError> {
        self.text(QUARANTINE, "quarantine", cluster)
    }

    /// Every closed cluster with the reason.
    pub fn quarantined(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.texts(QUARANTINE, "quarantine")
    }

    /// Opens a cluster again. False when it was not closed.
    pub fn lift_quarantine(&self, cluster: &str) -> Result<bool, StoreError> {
        self.erase(QUARANTINE, "quarantine", cluster)
    }

    /// Notes who created the object with this uid. Ownership is known here and never by labels on objects.
    pub fn own(&self, uid: &str, owner: &str) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.own(uid, owner);
        self.write(&batch).map(drop)
    }

    pub fn owner_of(&self, uid: &str) -> Result<Option<String>, StoreError> {
        self.text(OWNERSHIP, "ownership", uid)
    }

    /// Every owned uid with its owner, by uid.
    pub fn owned(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.texts(OWNERSHIP, "ownership")
    }

    pub fn disown(&self, uid: &str) -> Result<bool, StoreError> {
        self.erase(OWNERSHIP, "ownership", uid)
    }

    /// Keeps a qualification under its key (scenario hash, fixture, cluster kind and version, joined by the caller).
    pub fn put_qualification<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.qualification(key, value)?;
        self.write(&batch).map(drop)
    }

    pub fn qualification<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        self.text(QUALIFICATIONS, "qualifications", key)?
            .map(|text| self.decode("qualifications", key, &text))
            .transpose()
    }

    /// One postmortem's JSON.
    pub fn postmortem(&self, id: &PostmortemId) -> Result<Option<String>, StoreError> {
        self.text(POSTMORTEMS, "postmortems", id.as_str())
    }

    /// Every postmortem's id and JSON, by id.
    pub fn postmortems(&self) -> Result<Vec<(PostmortemId, String)>, StoreError> {
        Ok(self
            .texts(POSTMORTEMS, "postmortems")?
            .into_iter()
            .map(|(id, text)| (PostmortemId::new(id), text))
            .collect())
    }

    pub fn postmortem_count(&self) -> Result<u64, StoreError> {
        let txn = self.begin_read()?;
        let table = txn
            .open_table(POSTMORTEMS)
            .map_err(|e| read_failed("postmortems", e))?;
        table.len().map_err(|e| read_failed("postmortems", e))
    }

    /// Every vector of one embedder, by postmortem id. Vectors of other embedders are never returned with them.
    pub fn vectors(
        &self,
        embedder: &EmbedderId,
    ) -> Result<Vec<(PostmortemId, Vec<f32>)>, StoreError> {
        let txn = self.begin_read()?;
        let table = txn
            .open_table(VECTORS)
            .map_err(|e| read_failed("vectors", e))?;
        // Every id of this embedder sorts at or after the empty text; the first foreign key ends the scan.
        let rows = table
            .range((embedder.as_str(), "")..)
            .map_err(|e| read_failed("vectors", e))?;
        let mut found = Vec::new();
        for row in rows {
            let (key, bytes) = row.map_err(|e| read_failed("vectors", e))?;
            let (of, id) = key.value();
            if of != embedder.as_str() {
                break;
            }
            let vector = tables::floats(bytes.value()).ok_or_else(|| StoreError::Unreadable {
                store: self.name(),
                table: "vectors",
                key: id.to_owned(),
                source: "its length is not a multiple of four bytes".into(),
            })?;
            found.push((PostmortemId::new(id), vector));
        }
        Ok(found)
    }

    /// Commits everything in the batch, or nothing of it. Answers one [`Kept`] per record, in order.
    pub fn write(&self, batch: &Batch) -> Result<Vec<Kept>, StoreError> {
        match (&self.access, &self.path) {
            (Access::All(database), _) => batch.commit(database),
            (Access::Reading(_), path) => Err(StoreError::ReadOnly {
                path: path.clone().unwrap_or_default(),
            }),
        }
    }

    /// The file, for messages.
    pub fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "the store in memory".to_owned(),
        }
    }

    fn decode<T: DeserializeOwned>(
        &self,
        table: &'static str,
        key: &str,
        text: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|source| StoreError::Unreadable {
            store: self.name(),
            table,
            key: key.to_owned(),
            source: Box::new(source),
        })
    }

    fn begin_read(&self) -> Result<redb::ReadTransaction, StoreError> {
        match &self.access {
            Access::All(database) => database.begin_read(),
            Access::Reading(database) => database.begin_read(),
        }
        .map_err(|e| read_failed("a transaction", e))
    }

    fn text(
        &self,
        table: TextTable,
        name: &'static str,
        key: &str,
    ) -> Result<Option<String>, StoreError> {
        let txn = self.begin_read()?;
        let rows = txn.open_table(table).map_err(|e| read_failed(name, e))?;
        let value = rows.get(key).map_err(|e| read_failed(name, e))?;
        Ok(value.map(|guard| guard.value().to_owned()))
    }

    fn texts(
        &self,
        table: TextTable,
        name: &'static str,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let txn = self.begin_read()?;
        let rows = txn.open_table(table).map_err(|e| read_failed(name, e))?;
        let rows = rows.iter().map_err(|e| read_failed(name, e))?;
        rows.map(|row| {
            let (key, value) = row.map_err(|e| read_failed(name, e))?;
            Ok((key.value().to_owned(), value.value().to_owned()))
        })
        .collect()
    }

    fn erase(&self, table: TextTable, name: &'static str, key: &str) -> Result<bool, StoreError> {
        let known = self.text(table, name, key)?.is_some();
        if known {
            let mut batch = Batch::default();
            batch.erase_text(table, name, key);
            self.write(&batch)?;
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
