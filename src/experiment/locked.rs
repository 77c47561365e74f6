//! Finding a registration in the store by what a person types.

use crate::experiment::canonical;
use crate::experiment::registration::Registration;
use crate::ids::RegistrationHash;
use crate::store::{Store, StoreError};

/// Fewer digits of a hash are taken for an id that does not exist.
const MIN_PREFIX: usize = 4;
/// Digits by which a registration is called where the whole hash is too long.
const SHORT: usize = 8;

/// A registration as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Locked {
    pub hash: RegistrationHash,
    /// The canonical JSON, of which the hash is.
    pub text: String,
    pub registration: Registration,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("the registrations cannot be read")]
    Store(#[from] StoreError),
    #[error("there is no locked experiment {0:?}")]
    Unknown(String),
    #[error("{text:?} may be {}", several.join(" or "))]
    Ambiguous { text: String, several: Vec<String> },
    #[error(
        "registration {0} was altered after it was locked: its text does not have its hash any more"
    )]
    Altered(RegistrationHash),
    #[error("registration {hash} is none that this breakage reads")]
    Unreadable {
        hash: RegistrationHash,
        #[source]
        source: serde_json::Error,
    },
}

impl Locked {
    /// By the whole hash, by the experiment's id, which is the newest amendment of that name, or by a beginning of a hash
    /// of at least four digits that is one registration's only. An id wins over a beginning: there is no other way to
    /// say it, where a hash can be given longer.
    pub fn find(store: &Store, text: &str) -> Result<Locked, FindError> {
        let all = store.registrations()?;
        let whole: Vec<&(String, String)> = all.iter().filter(|(hash, _)| hash == text).collect();
        let hex = text.len() >= MIN_PREFIX && text.bytes().all(|b| b.is_ascii_hexdigit());
        let by_hash = all.iter().filter(|(hash, _)| hex && hash.starts_with(text));
        let mut found = whole;
        if found.is_empty() {
            found = of_id(&all, text);
        }
        if found.is_empty() {
            found = by_hash.collect();
        }
        match found.as_slice() {
            [] => Err(FindError::Unknown(text.to_owned())),
            [(hash, json)] => Locked::read(hash, json),
            several => Err(FindError::Ambiguous {
                text: text.to_owned(),
                several: several.iter().map(|(hash, _)| short(hash)).collect(),
            }),
        }
    }

    /// Checks the hash, then reads.
    pub fn read(hash: &str, text: &str) -> Result<Locked, FindError> {
        let hash = RegistrationHash::new(hash);
        if canonical::sha256_hex(text) != hash.as_str() {
            return Err(FindError::Altered(hash));
        }
        match serde_json::from_str(text) {
            Ok(registration) => Ok(Locked {
                hash,
                text: text.to_owned(),
                registration,
            }),
            Err(source) => Err(FindError::Unreadable { hash, source }),
        }
    }

    /// The first digits of the hash.
    pub fn short(&self) -> String {
        short(self.hash.as_str())
    }
}

/// The first digits of a hash, by which folders and tables call it.
pub fn short(hash: &str) -> String {
    hash.chars().take(SHORT).collect()
}

/// The registrations of an id that no other one amends.
fn of_id<'a>(all: &'a [(String, String)], id: &str) -> Vec<&'a (String, String)> {
    let read: Vec<(&(String, String), Registration)> = all
        .iter()
        .filter_map(|row| Some((row, serde_json::from_str(&row.1).ok()?)))
        .collect();
    let of_id = read
        .iter()
        .filter(|(_, registration)| registration.plan.id.as_str() == id);
    of_id
        .filter(|((hash, _), _)| {
            let amends = |other: &Registration| other.amends.as_deref() == Some(hash);
            !read.iter().any(|(_, other)| amends(other))
        })
        .map(|(row, _)| *row)
        .collect()
}
