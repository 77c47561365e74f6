//! Clusters that a person agreed to use from a workspace, and what is remembered of each.
//!
//! Asked about once, since a kubeconfig may name clusters that others depend on. Known by uid: a context may lead
//! elsewhere tomorrow.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::cluster::target::Target;
use crate::store::{Batch, Store, StoreError};

/// Version of the JSON. Later ones are refused: what they say may be what must not be overlooked.
const FORMAT: u32 = 1;

/// What the workspace remembers of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownCluster {
    #[serde(deserialize_with = "known_format")]
    format: u32,
    /// The kubeconfig context that led there last. It may lead elsewhere by now.
    pub context: String,
    /// The kubeconfig, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    pub server: String,
    /// The cluster's own time at which its use was agreed to, RFC 3339.
    pub agreed_at: String,
    /// The command that asked.
    pub agreed_by: String,
    /// What the services of fixtures run from there, in place of the built-in reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The name of the k3d cluster, where we made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k3d: Option<String>,
}

impl KnownCluster {
    /// What is known from the moment of agreement. Nothing for a cluster that ends with the process.
    pub fn agreed(target: &Target, server: &str, command: &str) -> Option<KnownCluster> {
        let remote = target.lasting()?;
        Some(KnownCluster {
            format: FORMAT,
            context: remote.facts.name.clone(),
            kubeconfig: remote.kubeconfig.clone(),
            server: server.to_owned(),
            agreed_at: target.now_text(),
            agreed_by: command.to_owned(),
            image: None,
            k3d: None,
        })
    }

    pub fn of(store: &Store, uid: &str) -> Result<Option<KnownCluster>, StoreError> {
        store.cluster(uid)
    }

    /// Every one, by uid.
    pub fn all(store: &Store) -> Result<Vec<(String, KnownCluster)>, StoreError> {
        let rows: Vec<(String, serde_json::Value)> = store.clusters()?;
        let uids = rows
            .into_iter()
            .map(|(key, _)| key)
            .filter(|key| !key.starts_with(ANNOUNCED));
        uids.map(|uid| Ok((uid.clone(), KnownCluster::of(store, &uid)?)))
            .filter_map(|row: Result<_, StoreError>| match row {
                Ok((uid, known)) => Some(Ok((uid, known?))),
                Err(error) => Some(Err(error)),
            })
            .collect()
    }

    /// Keeps a k3d cluster that was made here, in one commit with the end of its announcement.
    pub fn put_made(&self, store: &Store, uid: &str, name: &str) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put_cluster(uid, self)?;
        batch.forget_cluster(&announced(name));
        store.write(&batch).map(drop)
    }

    pub fn put(&self, store: &Store, uid: &str) -> Result<(), StoreError> {
        store.put_cluster(uid, self)
    }
}

/// How keys begin of k3d clusters that are being made: their uids are not known yet.
const ANNOUNCED: &str = "k3d/";

fn announced(name: &str) -> String {
    format!("{ANNOUNCED}{name}")
}

/// Notes that a k3d cluster is about to be made, so that one which a crash leaves is known to be ours.
pub fn announce_k3d(store: &Store, name: &str) -> Result<(), StoreError> {
    store.put_cluster(&announced(name), &serde_json::json!({"format": FORMAT}))
}

/// The names of k3d clusters whose making was begun and is not known to have ended.
pub fn announced_k3d(store: &Store) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String, serde_json::Value)> = store.clusters()?;
    let keys = rows.into_iter().map(|(key, _)| key);
    Ok(keys
        .filter_map(|key| key.strip_prefix(ANNOUNCED).map(str::to_owned))
        .collect())
}

/// Forgets that a k3d cluster was being made.
pub fn withdraw_k3d(store: &Store, name: &str) -> Result<(), StoreError> {
    store.forget_cluster(&announced(name)).map(drop)
}

/// Whether this workspace made, or began to make, the k3d cluster of a name.
pub fn is_k3d_of_ours(store: &Store, name: &str) -> Result<bool, StoreError> {
    let made = KnownCluster::all(store)?
        .iter()
        .any(|(_, known)| known.k3d.as_deref() == Some(name));
    Ok(made || announced_k3d(store)?.iter().any(|one| one == name))
}

fn known_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        FORMAT => Ok(FORMAT),
        other => Err(D::Error::custom(format!(
            "it has format {other}, this breakage knows {FORMAT}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownCluster {
        KnownCluster {
            format: FORMAT,
            context: "lab".to_owned(),
            kubeconfig: None,
            server: "https://10.0.0.1:6443".to_owned(),
            agreed_at: "2026-03-02T06:00:00Z".to_owned(),
            agreed_by: "breakage run".to_owned(),
            image: None,
            k3d: None,
        }
    }

    #[test]
    fn what_is_known_comes_back_by_uid() {
        let store = Store::in_memory().unwrap();
        assert_eq!(KnownCluster::of(&store, "u").unwrap(), None);
        known().put(&store, "u").unwrap();
        assert_eq!(KnownCluster::of(&store, "u").unwrap(), Some(known()));
        assert_eq!(KnownCluster::of(&store, "v").unwrap(), None);
    }

    #[test]
    fn a_k3d_cluster_is_ours_from_before_it_is_made() {
        let store = Store::in_memory().unwrap();
        let ours = |name: &str| is_k3d_of_ours(&store, name).unwrap();
        assert!(!ours("lab"));
        announce_k3d(&store, "lab").unwrap();
        assert!(ours("lab") && !ours("other"));
        assert!(KnownCluster::all(&store).unwrap().is_empty());
        let made = KnownCluster {
            k3d: Some("lab".to_owned()),
            ..known()
        };
        made.put_made(&store, "u", "lab").unwrap();
        assert!(ours("lab"));
        assert!(announced_k3d(&store).unwrap().is_empty());
        assert_eq!(KnownCluster::all(&store).unwrap(), [("u".to_owned(), made)]);
    }

    #[test]
    fn a_later_format_is_refused_and_not_guessed_at() {
        let store = Store::in_memory().unwrap();
        let mut later = serde_json::to_value(known()).unwrap();
        later["format"] = 2.into();
        store.put_cluster("u", &later).unwrap();
        assert!(KnownCluster::of(&store, "u").is_err());
    }
}
