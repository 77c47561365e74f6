//! Registrations, ledgers and frozen corpora of experiments, and the records of their runs as they are kept.

use redb::ReadableTable;

use crate::ids::RunId;
use crate::store::error::read_failed;
use crate::store::tables::{EXPERIMENT_CORPORA, LEDGER, RECORDS, REGISTRATIONS, RUNS};
use crate::store::{Store, StoreError};

impl Store {
    /// A registration's canonical JSON.
    pub fn registration(&self, hash: &str) -> Result<Option<String>, StoreError> {
        self.text(REGISTRATIONS, "registrations", hash)
    }

    /// Every registration's hash and canonical JSON, by hash.
    pub fn registrations(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.texts(REGISTRATIONS, "registrations")
    }

    /// A frozen corpus' JSON by the hash of its contents.
    pub fn experiment_corpus(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.text(EXPERIMENT_CORPORA, "experiment_corpora", sha256)
    }

    /// Every entry of a registration's ledger with its place, in order.
    pub fn ledger(&self, registration: &str) -> Result<Vec<(u64, String)>, StoreError> {
        self.ledger_from(registration, 0)
    }

    /// The entries from a place on.
    pub fn ledger_from(
        &self,
        registration: &str,
        first: u64,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        let txn = self.begin_read()?;
        let table = txn
            .open_table(LEDGER)
            .map_err(|e| read_failed("ledger", e))?;
        let rows = table
            .range((registration, first)..=(registration, u64::MAX))
            .map_err(|e| read_failed("ledger", e))?;
        rows.map(|row| {
            let (key, text) = row.map_err(|e| read_failed("ledger", e))?;
            Ok((key.value().1, text.value().to_owned()))
        })
        .collect()
    }

    /// The newest record of a run id as it is kept.
    pub fn record_as_kept(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let txn = self.begin_read()?;
        let runs = txn.open_table(RUNS).map_err(|e| read_failed("runs", e))?;
        let order = runs
            .get(run.as_str())
            .map_err(|e| read_failed("runs", e))?
            .map(|guard| guard.value());
        let Some(order) = order else {
            return Ok(None);
        };
        let records = txn
            .open_table(RECORDS)
            .map_err(|e| read_failed("records", e))?;
        let text = records.get(order).map_err(|e| read_failed("records", e))?;
        Ok(text.map(|text| text.value().to_owned()))
    }

    /// Every record as it is kept that holds a text, oldest first.
    pub fn records_with(&self, needle: &str) -> Result<Vec<String>, StoreError> {
        let txn = self.begin_read()?;
        let table = txn
            .open_table(RECORDS)
            .map_err(|e| read_failed("records", e))?;
        let rows = table.iter().map_err(|e| read_failed("records", e))?;
        let mut found = Vec::new();
        for row in rows {
            let (_, text) = row.map_err(|e| read_failed("records", e))?;
            if text.value().contains(needle) {
                found.push(text.value().to_owned());
            }
        }
        Ok(found)
    }
}
