//! Which namespaces of a cluster are ours: by uid, and for a cluster that outlives the process in the store too.
//!
//! A namespace is ours when we created it, never because of what is written on it. Between the request that creates it
//! and the note of its uid a process may be killed. So the creation is announced in the store first, and the namespace
//! carries the announcement's token as an everyday annotation until its uid is noted: a later process knows it by that,
//! and a namespace that somebody else created in the meantime is not taken for ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use serde_json::Value;

use crate::cluster::ClusterError;
use crate::cluster::resource::{self, Resource};
use crate::store::{Batch, Store, StoreError};

/// Where a creation's token stands until the uid is noted: an annotation that deployment tools write on anything.
const TOKEN_ANNOTATION: &str = "kubernetes.io/change-cause";

/// The namespaces that we created in one cluster, by uid.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    pub namespaces: BTreeMap<String, String>,
    /// Nothing for a cluster that ends with the process.
    ledger: Option<Ledger>,
}

/// Where ownership outlives the process.
#[derive(Clone)]
struct Ledger {
    store: Arc<Store>,
    cluster_uid: String,
    /// Announced creations that are not known to have ended: namespace and token.
    announced: BTreeMap<String, String>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("cluster_uid", &self.cluster_uid)
            .field("announced", &self.announced)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    fn owner(&self, namespace: &str) -> String {
        format!("{}/{namespace}", self.cluster_uid)
    }
}

impl Owned {
    /// What the store knows of a cluster, and from here on notes of it.
    pub fn of_cluster(store: Arc<Store>, cluster_uid: &str) -> Result<Owned, StoreError> {
        let prefix = format!("{cluster_uid}/");
        let namespaces = store
            .owned()?
            .into_iter()
            .filter_map(|(uid, owner)| Some((uid, owner.strip_prefix(&prefix)?.to_owned())))
            .collect();
        let announced = store
            .creating()?
            .into_iter()
            .filter_map(|(key, token)| Some((key.strip_prefix(&prefix)?.to_owned(), token)))
            .collect();
        Ok(Owned {
            namespaces,
            ledger: Some(Ledger {
                store,
                cluster_uid: cluster_uid.to_owned(),
                announced,
            }),
        })
    }

    /// The names, each once.
    pub fn names(&self) -> BTreeSet<String> {
        self.namespaces.values().cloned().collect()
    }

    /// Creates a namespace, which becomes ours. One that somebody else was faster with is refused.
    pub(super) async fn create(
        &mut self,
        client: &kube::Client,
        name: &str,
    ) -> Result<(), ClusterError> {
        let resource = resource::of_kind("Namespace")?;
        let mut manifest = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        if let Some(token) = self.announce(name)? {
            manifest["metadata"]["annotations"][TOKEN_ANNOTATION] = token.into();
        }
        let created = match resource.create(client, "", &manifest).await {
            // The one that is there may be ours all the same, when the first answer was lost.
            Err(ClusterError::Api { code: 409, .. }) => resource.get(client, "", name).await?,
            other => Some(other?),
        };
        let created = created.filter(|live| self.ledger.is_none() || self.is_announced(name, live));
        let Some(created) = created else {
            self.withdraw(name)?;
            return Err(ClusterError::NotOurs {
                namespace: name.to_owned(),
            });
        };
        self.note(name, uid(&created))?;
        self.remove_token(client, resource, name, &created).await
    }

    /// Whether a live namespace is ours. One whose creation was announced is taken in, its uid noted.
    pub(super) async fn recognise(
        &mut self,
        client: &kube::Client,
        name: &str,
        live: &Value,
    ) -> Result<bool, ClusterError> {
        let known = self.namespaces.contains_key(uid(live));
        if !known {
            if !self.is_announced(name, live) {
                return Ok(false);
            }
            self.note(name, uid(live))?;
        }
        let resource = resource::of_kind("Namespace")?;
        self.remove_token(client, resource, name, live).await?;
        Ok(true)
    }

    /// Settles every announced creation: what came of it is ours, what did not come is forgotten.
    pub(super) async fn settle(&mut self, client: &kube::Client) -> Result<(), ClusterError> {
        let resource = resource::of_kind("Namespace")?;
        let announced: Vec<String> = self
            .ledger
            .iter()
            .flat_map(|ledger| ledger.announced.keys().cloned())
            .collect();
        for name in announced {
            let ours = match resource.get(client, "", &name).await? {
                Some(live) => self.recognise(client, &name, &live).await?,
                None => false,
            };
            if !ours {
                self.withdraw(&name)?;
            }
        }
        Ok(())
    }

    /// Forgets a namespace that is gone.
    pub(super) fn forget(&mut self, name: &str) -> Result<(), StoreError> {
        let uids: Vec<String> = self
            .namespaces
            .iter()
            .filter(|(_, owned)| *owned == name)
            .map(|(uid, _)| uid.clone())
            .collect();
        if let Some(ledger) = &self.ledger {
            let mut batch = Batch::default();
            for uid in &uids {
                batch.disown(uid);
            }
            ledger.store.write(&batch)?;
        }
        for uid in &uids {
            self.namespaces.remove(uid);
        }
        Ok(())
    }

    /// Announces a creation where it must outlive the process; answers the token that the namespace must carry.
    fn announce(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let Some(ledger) = &mut self.ledger else {
            return Ok(None);
        };
        // Unique among processes and machines, which no seed can be; it decides nothing but whose the namespace is.
        let token = format!(
            "rollout {:016x}",
            RandomState::new().build_hasher().finish()
        );
        ledger.store.note_creating(&ledger.owner(name), &token)?;
        ledger.announced.insert(name.to_owned(), token.clone());
        Ok(Some(token))
    }

    fn is_announced(&self, name: &str, live: &Value) -> bool {
        let token = self
            .ledger
            .as_ref()
            .and_then(|ledger| ledger.announced.get(name));
        token.is_some_and(|token| live["metadata"]["annotations"][TOKEN_ANNOTATION] == **token)
    }

    fn withdraw(&mut self, name: &str) -> Result<(), StoreError> {
        if let Some(ledger) = &mut self.ledger {
            let mut batch = Batch::default();
            batch.erase_creating(&ledger.owner(name));
            ledger.store.write(&batch)?;
            ledger.announced.remove(name);
        }
        Ok(())
    }

    /// Takes a uid in, in one commit with the end of its announcement. Earlier ones of the name are gone.
    fn note(&mut self, name: &str, uid: &str) -> Result<(), StoreError> {
        let earlier: Vec<String> = self
            .namespaces
            .iter()
            .filter(|(_, owned)| *owned == name)
            .map(|(uid, _)| uid.clone())
            .collect();
        if let Some(ledger) = &mut self.ledger {
            let mut batch = Batch::default();
            for uid in &earlier {
                batch.disown(uid);
            }
            batch.own(uid, &ledger.owner(name));
            batch.erase_creating(&ledger.owner(name));
            ledger.store.write(&batch)?;
            ledger.announced.remove(name);
            for uid in &earlier {
                self.namespaces.remove(uid);
            }
        }
        self.namespaces.insert(uid.to_owned(), name.to_owned());
        Ok(())
    }

    /// Takes the token off a namespace whose uid is noted, so that nothing of us is left on it.
    async fn remove_token(
        &self,
        client: &kube::Client,
        resource: &Resource,
        name: &str,
        live: &Value,
    ) -> Result<(), ClusterError> {
        let annotations = &live["metadata"]["annotations"];
        if self.ledger.is_none() || annotations.get(TOKEN_ANNOTATION).is_none() {
            return Ok(());
        }
        let mut object = live.clone();
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(TOKEN_ANNOTATION);
        }
        resource.replace(client, "", name, &object).await.map(drop)
    }
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
