//! The chain itself: what an entry's hash covers, reading a ledger, and adding to it.

use std::sync::Arc;

use serde::Serialize;

use crate::experiment::canonical::{self, CanonicalError};
use crate::experiment::ledger::{Entry, Event};
use crate::ids::RegistrationHash;
use crate::store::{Batch, Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the ledger cannot be used")]
    Store(#[from] StoreError),
    #[error("an entry of the ledger has no canonical JSON")]
    Canonical(#[from] CanonicalError),
    #[error("entry {seq} of the ledger of {registration} is no ledger entry")]
    Unreadable {
        registration: RegistrationHash,
        seq: u64,
        #[source]
        source: serde_json::Error,
    },
    #[error(
        "entry {seq} of the ledger of {registration} does not follow from the one before: {why}"
    )]
    Broken {
        registration: RegistrationHash,
        seq: u64,
        why: String,
    },
}

/// What an entry's hash is taken of.
#[derive(Serialize)]
struct Hashed<'a> {
    seq: u64,
    at: &'a str,
    event: &'a Event,
    prev: &'a str,
}

impl Entry {
    /// The entry after `last`, or the first. `at` is RFC 3339, for display.
    pub fn after(
        last: Option<&Entry>,
        registration: &RegistrationHash,
        at: String,
        event: Event,
    ) -> Result<Entry, CanonicalError> {
        let mut entry = Entry {
            seq: last.map_or(0, |last| last.seq + 1),
            at,
            event,
            prev: last
                .map_or(registration.as_str(), |last| &last.hash)
                .to_owned(),
            hash: String::new(),
        };
        entry.hash = entry.digest()?;
        Ok(entry)
    }

    /// What `hash` must be.
    pub fn digest(&self) -> Result<String, CanonicalError> {
        let text = canonical::to_string(&Hashed {
            seq: self.seq,
            at: &self.at,
            event: &self.event,
            prev: &self.prev,
        })?;
        Ok(canonical::sha256_hex(&text))
    }

    /// As the store and a bundle keep it.
    pub fn text(&self) -> Result<String, CanonicalError> {
        canonical::to_string(self)
    }
}

/// Every entry of a ledger, without looking at the chain.
pub fn read(store: &Store, registration: &RegistrationHash) -> Result<Vec<Entry>, LedgerError> {
    let rows = store.ledger(registration.as_str())?;
    rows.into_iter()
        .map(|(seq, text)| {
            serde_json::from_str(&text).map_err(|source| LedgerError::Unreadable {
                registration: registration.clone(),
                seq,
                source,
            })
        })
        .collect()
}

/// A ledger that is added to. One process has the store, so that nobody else adds meanwhile.
pub struct Ledger {
    store: Arc<Store>,
    registration: RegistrationHash,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Opens it and checks the chain: nothing is added to a broken one.
    pub fn open(store: Arc<Store>, registration: RegistrationHash) -> Result<Ledger, LedgerError> {
        let entries = read(&store, &registration)?;
        let mut prev = registration.as_str();
        for (seq, entry) in (0u64..).zip(&entries) {
            let broken = |why: &str| LedgerError::Broken {
                registration: registration.clone(),
                seq,
                why: why.to_owned(),
            };
            if entry.seq != seq {
                return Err(broken("its number is not its place"));
            }
            if entry.prev != prev {
                return Err(broken("`prev` is not the hash of the one before"));
            }
            if entry.digest()? != entry.hash {
                return Err(broken("its contents do not have its hash"));
            }
            prev = &entry.hash;
        }
        Ok(Ledger {
            store,
            registration,
            entries,
        })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn registration(&self) -> &RegistrationHash {
        &self.registration
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Reads what another thread has added meanwhile, such as a look.
    pub fn refresh(&mut self) -> Result<(), LedgerError> {
        let rows = self
            .store
            .ledger_from(self.registration.as_str(), self.entries.len() as u64)?;
        for (seq, text) in rows {
            let entry = serde_json::from_str(&text).map_err(|source| LedgerError::Unreadable {
                registration: self.registration.clone(),
                seq,
                source,
            })?;
            self.entries.push(entry);
        }
        Ok(())
    }

    /// Adds an event in a commit of its own.
    pub fn append(&mut self, at: String, event: Event) -> Result<(), LedgerError> {
        let mut batch = Batch::default();
        let entry = self.prepare(&mut batch, at, event)?;
        self.store.write(&batch)?;
        self.entries.push(entry);
        Ok(())
    }

    /// Puts the next entry into a batch. It is the last one once [`Ledger::kept`] has been told of it.
    pub fn prepare(
        &self,
        batch: &mut Batch,
        at: String,
        event: Event,
    ) -> Result<Entry, CanonicalError> {
        let entry = Entry::after(self.entries.last(), &self.registration, at, event)?;
        batch.ledger(self.registration.as_str(), entry.seq, entry.text()?);
        Ok(entry)
    }

    /// The batch with this entry is on disk.
    pub fn kept(&mut self, entry: Entry) {
        self.entries.push(entry);
    }
}

/// Puts the first entries of a ledger into a batch, such as `Locked` together with its registration.
///
/// # Errors
/// An event without canonical JSON.
pub fn begin(
    batch: &mut Batch,
    registration: &RegistrationHash,
    at: &str,
    events: impl IntoIterator<Item = Event>,
) -> Result<(), CanonicalError> {
    let mut last = None;
    for event in events {
        let entry = Entry::after(last.as_ref(), registration, at.to_owned(), event)?;
        batch.ledger(registration.as_str(), entry.seq, entry.text()?);
        last = Some(entry);
    }
    Ok(())
}
