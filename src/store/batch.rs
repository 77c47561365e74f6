//! Several writes as one commit: all of them are on disk when it returns, or none is.

use redb::{Database, Durability, ReadableTable, WriteTransaction};
use serde::Serialize;

use crate::ids::{EmbedderId, PostmortemId, RunId};
use crate::record::Record;
use crate::store::error::{StoreError, write_failed};
use crate::store::tables::{
    CLUSTERS, CREATING, EXPERIMENT_CORPORA, JOURNAL, LEDGER, OWNERSHIP, PLANNED, POSTMORTEMS,
    QUALIFICATIONS, QUARANTINE, RECORDS, REFERENCES, REGISTRATIONS, RUNS, STANDING, TextTable,
    VECTORS, bytes,
};

/// What became of a record that was given to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The first of its run id.
    New,
    /// The run id was known with other contents; both stay, this one is the newest.
    Newer,
    /// The very same record is the newest of its run id already.
    Already,
}

/// Writes to be committed together, in the order in which they were added.
#[derive(Default)]
pub struct Batch {
    writes: Vec<Write>,
}

enum Write {
    Record {
        run: String,
        text: String,
    },
    Text {
        table: TextTable,
        name: &'static str,
        key: String,
        value: String,
    },
    EraseText {
        table: TextTable,
        name: &'static str,
        key: String,
    },
    Vector {
        embedder: String,
        id: String,
        bytes: Vec<u8>,
    },
    EraseVectors {
        embedder: String,
    },
    Ledger {
        registration: String,
        seq: u64,
        text: String,
    },
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.writes.len()
    }

    pub fn record(&mut self, record: &Record) -> Result<(), StoreError> {
        let run = record.run_id.as_str().to_owned();
        let text = record_text(record)?;
        self.writes.push(Write::Record { run, text });
        Ok(())
    }

    /// A record as another store kept it.
    pub fn record_as_kept(&mut self, run: &RunId, text: String) {
        let run = run.as_str().to_owned();
        self.writes.push(Write::Record { run, text });
    }

    pub fn journal_put<T: Serialize>(&mut self, id: &str, entry: &T) -> Result<(), StoreError> {
        let text = encode(&format!("undo entry {id}"), entry)?;
        self.text(JOURNAL, "journal", id, text);
        Ok(())
    }

    pub fn journal_erase(&mut self, id: &str) {
        self.erase_text(JOURNAL, "journal", id);
    }

    pub fn quarantine(&mut self, cluster: &str, reason: &str) {
        self.text(QUARANTINE, "quarantine", cluster, reason.to_owned());
    }

    pub fn lift_quarantine(&mut self, cluster: &str) {
        self.erase_text(QUARANTINE, "quarantine", cluster);
    }

    pub fn put_planned<T: Serialize>(&mut self, id: &str, plan: &T) -> Result<(), StoreError> {
        let text = encode(&format!("plan {id}"), plan)?;
        self.text(PLANNED, "planned", id, text);
        Ok(())
    }

    pub fn erase_planned(&mut self, id: &str) {
        self.erase_text(PLANNED, "planned", id);
    }

    pub fn note_creating(&mut self, key: &str, token: &str) {
        self.text(CREATING, "creating", key, token.to_owned());
    }

    pub fn erase_creating(&mut self, key: &str) {
        self.erase_text(CREATING, "creating", key);
    }

    pub fn put_reference<T: Serialize>(&mut self, key: &str, state: &T) -> Result<(), StoreError> {
        let text = encode(&format!("reference {key}"), state)?;
        self.text(REFERENCES, "references", key, text);
        Ok(())
    }

    pub fn erase_reference(&mut self, key: &str) {
        self.erase_text(REFERENCES, "references", key);
    }

    pub fn put_standing<T: Serialize>(
        &mut self,
        cluster: &str,
        what: &T,
    ) -> Result<(), StoreError> {
        let text = encode(&format!("what stands in {cluster}"), what)?;
        self.text(STANDING, "standing", cluster, text);
        Ok(())
    }

    pub fn erase_standing(&mut self, cluster: &str) {
        self.erase_text(STANDING, "standing", cluster);
    }

    pub fn put_cluster<T: Serialize>(
        &mut self,
        cluster: &str,
        known: &T,
    ) -> Result<(), StoreError> {
        let text = encode(&format!("cluster {cluster}"), known)?;
        self.text(CLUSTERS, "clusters", cluster, text);
        Ok(())
    }

    pub fn forget_cluster(&mut self, cluster: &str) {
        self.erase_text(CLUSTERS, "clusters", cluster);
    }

    pub fn own(&mut self, uid: &str, owner: &str) {
        self.text(OWNERSHIP, "ownership", uid, owner.to_owned());
    }

    pub fn disown(&mut self, uid: &str) {
        self.erase_text(OWNERSHIP, "ownership", uid);
    }

    /// Forgets what is kept under a qualification's key.
    pub fn erase_qualification(&mut self, key: &str) {
        self.erase_text(QUALIFICATIONS, "qualifications", key);
    }

    pub fn qualification<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), StoreError> {
        let text = encode(&format!("qualification {key}"), value)?;
        self.text(QUALIFICATIONS, "qualifications", key, text);
        Ok(())
    }

    /// A postmortem entry as JSON; one of the same id is replaced.
    pub fn postmortem(&mut self, id: &PostmortemId, json: String) {
        self.text(POSTMORTEMS, "postmortems", id.as_str(), json);
    }

    /// The vector of a postmortem under one embedder.
    pub fn vector(&mut self, embedder: &EmbedderId, id: &PostmortemId, vector: &[f32]) {
        self.writes.push(Write::Vector {
            embedder: embedder.as_str().to_owned(),
            id: id.as_str().to_owned(),
            bytes: bytes(vector),
        });
    }

    /// Drops every vector of one embedder; the postmortems stay.
    pub fn erase_vectors(&mut self, embedder: &EmbedderId) {
        self.writes.push(Write::EraseVectors {
            embedder: embedder.as_str().to_owned(),
        });
    }

    /// A registration's canonical JSON under its hash.
    pub fn registration(&mut self, hash: &str, text: String) {
        self.text(REGISTRATIONS, "registrations", hash, text);
    }

    /// A frozen corpus under the hash of its contents.
    pub fn experiment_corpus(&mut self, sha256: &str, json: String) {
        self.text(EXPERIMENT_CORPORA, "experiment_corpora", sha256, json);
    }

    /// The next entry of a registration's ledger. A ledger only grows: the commit fails where `seq` is not the next.
    pub fn ledger(&mut self, registration: &str, seq: u64, text: String) {
        self.writes.push(Write::Ledger {
            registration: registration.to_owned(),
            seq,
            text,
        });
    }

    pub(super) fn erase_text(&mut self, table: TextTable, name: &'static str, key: &str) {
        self.writes.push(Write::EraseText {
            table,
            name,
            key: key.to_owned(),
        });
    }

    fn text(&mut self, table: TextTable, name: &'static str, key: &str, value: String) {
        self.writes.push(Write::Text {
            table,
            name,
            key: key.to_owned(),
            value,
        });
    }

    pub(super) fn commit(&self, database: &Database) -> Result<Vec<Kept>, StoreError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let txn = begin_write(database)?;
        let mut kept = Vec::new();
        for write in &self.writes {
            match write {
                Write::Record { run, text } => kept.push(put_record(&txn, run, text)?),
                other => other.apply(&txn)?,
            }
        }
        if kept.len() == self.writes.len() && kept.iter().all(|k| *k == Kept::Already) {
            txn.abort().map_err(|e| write_failed("a commit", e))?;
            return Ok(kept);
        }
        txn.commit().map_err(|e| write_failed("a commit", e))?;
        Ok(kept)
    }
}

/// A transaction whose commit is on disk when it returns, and after which a killed process costs no repair on open.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction, StoreError> {
    let mut txn = database
        .begin_write()
        .map_err(|e| write_failed("a transaction", e))?;
    txn.set_durability(Durability::Immediate)
        .map_err(|e| write_failed("a transaction", e))?;
    txn.set_quick_repair(true);
    Ok(txn)
}

impl Write {
    fn apply(&self, txn: &WriteTransaction) -> Result<(), StoreError> {
        match self {
            Write::Record { .. } => {}
            Write::Text {
                table,
                name,
                key,
                value,
            } => {
                let mut rows = txn.open_table(*table).map_err(|e| write_failed(name, e))?;
                rows.insert(key.as_str(), value.as_str())
                    .map_err(|e| write_failed(name, e))?;
            }
            Write::EraseText { table, name, key } => {
                let mut rows = txn.open_table(*table).map_err(|e| write_failed(name, e))?;
                rows.remove(key.as_str())
                    .map_err(|e| write_failed(name, e))?;
            }
            Write::Vector {
                embedder,
                id,
                bytes,
            } => {
                let mut rows = txn
                    .open_table(VECTORS)
                    .map_err(|e| write_failed("vectors", e))?;
                rows.insert((embedder.as_str(), id.as_str()), bytes.as_slice())
                    .map_err(|e| write_failed("vectors", e))?;
            }
            Write::Ledger {
                registration,
                seq,
                text,
            } => append(txn, registration, *seq, text)?,
            Write::EraseVectors { embedder } => {
                let mut rows = txn
                    .open_table(VECTORS)
                    .map_err(|e| write_failed("vectors", e))?;
                rows.retain(|(of, _), _| of != embedder.as_str())
                    .map_err(|e| write_failed("vectors", e))?;
            }
        }
        Ok(())
    }
}

fn append(
    txn: &WriteTransaction,
    registration: &str,
    seq: u64,
    text: &str,
) -> Result<(), StoreError> {
    let mut rows = txn
        .open_table(LEDGER)
        .map_err(|e| write_failed("ledger", e))?;
    let next = rows
        .range((registration, 0)..=(registration, u64::MAX))
        .map_err(|e| write_failed("ledger", e))?
        .next_back()
        .transpose()
        .map_err(|e| write_failed("ledger", e))?
        .map_or(0, |(key, _)| key.value().1 + 1);
    if seq != next {
        return Err(StoreError::NotNext {
            registration: registration.to_owned(),
            seq,
            next,
        });
    }
    rows.insert((registration, seq), text)
        .map_err(|e| write_failed("ledger", e))?;
    Ok(())
}

fn put_record(txn: &WriteTransaction, run: &str, text: &str) -> Result<Kept, StoreError> {
    let mut runs = txn.open_table(RUNS).map_err(|e| write_failed("runs", e))?;
    let mut records = txn
        .open_table(RECORDS)
        .map_err(|e| write_failed("records", e))?;
    let newest = runs
        .get(run)
        .map_err(|e| write_failed("runs", e))?
        .map(|guard| guard.value());
    if let Some(order) = newest {
        let same = records
            .get(order)
            .map_err(|e| write_failed("records", e))?
            .is_some_and(|old| old.value() == text);
        if same {
            return Ok(Kept::Already);
        }
    }
    let order = records
        .last()
        .map_err(|e| write_failed("records", e))?
        .map_or(0, |(last, _)| last.value() + 1);
    records
        .insert(order, text)
        .map_err(|e| write_failed("records", e))?;
    runs.insert(run, order)
        .map_err(|e| write_failed("runs", e))?;
    Ok(if newest.is_some() {
        Kept::Newer
    } else {
        Kept::New
    })
}

/// A record as it is kept.
pub fn record_text(record: &Record) -> Result<String, StoreError> {
    encode(&format!("the record of run {}", record.run_id), record)
}

fn encode<T: Serialize>(what: &str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Unwritable {
        what: what.to_owned(),
        source,
    })
}
