//! What stands in a cluster that outlives the process, and the state that it must come back to.
//!
//! Noted in the store before the first write, so that whoever comes after a crash knows what the namespaces should hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterError;
use crate::cluster::fixture::Fixture;
use crate::cluster::reset::{self, Owned};
use crate::cluster::state::{self, ClusterState, Difference};
use crate::cluster::target::Target;
use crate::inject::journal::Place;
use crate::record::FrameworkCode;
use crate::run::event::Event;
use crate::run::stage::{Failed, Run};
use crate::store::{Batch, Store, StoreError};

/// Version of the JSON of what is kept here.
const FORMAT: u32 = 1;

/// The fixture that stands in a cluster, or is being made to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub format: u32,
    pub place: Place,
    /// With its manifests: those of the workspace may be edited before somebody looks again.
    pub fixture: Fixture,
}

/// The state of a cluster with a fixture at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    pub format: u32,
    pub state: ClusterState,
}

/// What was reached in a cluster, and how it was proven.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// No run of this workspace ever made anything stand there.
    NothingStood,
    /// The fixture had never been at rest; every namespace that was made for it is gone.
    Removed,
    /// The namespaces are as they were before the fault.
    AsReference {
        fixture: String,
        before: String,
        after: String,
        /// Differences outside the namespaces that are ours, which are not ours to mend.
        elsewhere: Vec<Difference>,
    },
}

fn key(cluster_uid: &str, fixture: &Fixture) -> String {
    format!("{cluster_uid}/{}", fixture.sha256)
}

/// The state that a cluster must come back to with a fixture, once it was at rest with it.
fn reference(
    store: &Store,
    cluster_uid: &str,
    fixture: &Fixture,
) -> Result<Option<ClusterState>, StoreError> {
    let kept: Option<Reference> = store.reference(&key(cluster_uid, fixture))?;
    Ok(kept.map(|kept| kept.state.as_it_counts_now()))
}

/// Makes a fixture stand outside a run, with the same notes as a run makes: the next run finds it as it needs it.
pub async fn prepare(
    store: &Arc<Store>,
    target: &Target,
    fixture: &Fixture,
) -> Result<ClusterState, ClusterError> {
    let place = Place::of(target);
    let uid = place.cluster_uid.clone();
    let mut owned = Owned::of_cluster(store.clone(), &uid)?;
    let standing = Standing {
        format: FORMAT,
        place,
        fixture: fixture.clone(),
    };
    store.put_standing(&uid, &standing)?;
    let known = reference(store, &uid, fixture)?;
    let state = reset::make_stand(&target.client(), fixture, &mut owned, known.as_ref()).await?;
    let reference = Reference {
        format: FORMAT,
        state: state.clone(),
    };
    store.put_reference(&key(&uid, fixture), &reference)?;
    Ok(state)
}

/// What the workspace made stand in a cluster last.
pub fn standing(store: &Store, cluster_uid: &str) -> Result<Option<Standing>, StoreError> {
    store.standing(cluster_uid)
}

/// The clusters in which something was made to stand.
pub fn places(store: &Store) -> Result<Vec<Place>, StoreError> {
    let mut places = Vec::new();
    for uid in store.standing_clusters()? {
        places.extend(standing(store, &uid)?.map(|standing| standing.place));
    }
    Ok(places)
}

/// Removes everything of ours from a cluster and forgets what stood there, in this order.
pub async fn remove(store: &Arc<Store>, target: &Target) -> Result<(), ClusterError> {
    let uid = Place::of(target).cluster_uid;
    let mut owned = Owned::of_cluster(store.clone(), &uid)?;
    reset::remove_all(&target.client(), &mut owned).await?;
    forget(store, &uid)?;
    Ok(())
}

/// Forgets what stood in a cluster, and why it was closed: nothing of ours is there any more.
pub fn forget(store: &Store, cluster_uid: &str) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    let prefix = format!("{cluster_uid}/");
    for key in store.reference_keys()? {
        if key.starts_with(&prefix) {
            batch.erase_reference(&key);
        }
    }
    for (uid, owner) in store.owned()? {
        if owner.starts_with(&prefix) {
            batch.disown(&uid);
        }
    }
    for (key, _) in store.creating()? {
        if key.starts_with(&prefix) {
            batch.erase_creating(&key);
        }
    }
    batch.erase_standing(cluster_uid);
    batch.lift_quarantine(cluster_uid);
    store.write(&batch).map(drop)
}

/// Brings the namespaces of ours in a cluster back to the reference, or away where there never was one. Can be repeated.
pub async fn bring_back(
    store: &Arc<Store>,
    client: &kube::Client,
    cluster_uid: &str,
) -> Result<Proof, ClusterError> {
    let mut owned = Owned::of_cluster(store.clone(), cluster_uid)?;
    let Some(standing) = store.standing::<Standing>(cluster_uid)? else {
        return Ok(Proof::NothingStood);
    };
    let fixture = standing.fixture;
    let Some(reference) = reference(store, cluster_uid, &fixture)? else {
        reset::remove_all(client, &mut owned).await?;
        return Ok(Proof::Removed);
    };
    reset::make_stand(client, &fixture, &mut owned, Some(&reference)).await?;
    // Read once more: what is told is what the cluster says when everything is done.
    let now = state::read(client).await?;
    let ours = |difference: &Difference| {
        let key = &difference.key;
        fixture.namespaces.contains(&key.namespace)
            || (key.kind == "Namespace" && fixture.namespaces.contains(&key.name))
    };
    let elsewhere = reference.differences(&now);
    Ok(Proof::AsReference {
        fixture: fixture.name.clone(),
        before: reference.hash(),
        after: now.hash(),
        elsewhere: elsewhere.into_iter().filter(|d| !ours(d)).collect(),
    })
}

impl Run<'_> {
    /// As applying the fixture, in a cluster in which earlier runs may have left it, or another one.
    pub(super) async fn make_stand(
        &mut self,
        cluster_uid: &str,
        fixture: &Fixture,
    ) -> Result<ClusterState, Failed> {
        let unnoted = |error: StoreError| Failed::because(FrameworkCode::StoreUnavailable, &error);
        let store = self.setting.store.clone();
        if let Some(reason) = store.quarantine_reason(cluster_uid).map_err(unnoted)? {
            return Err(Failed::new(
                FrameworkCode::ResetNotProven,
                format!("the cluster is closed to runs ({reason}); breakage runs restore opens it"),
            ));
        }
        self.owned = Owned::of_cluster(store.clone(), cluster_uid).map_err(unnoted)?;
        let standing = Standing {
            format: FORMAT,
            place: Place::of(self.target),
            fixture: fixture.clone(),
        };
        store
            .put_standing(cluster_uid, &standing)
            .map_err(unnoted)?;
        let known = reference(&store, cluster_uid, fixture).map_err(unnoted)?;
        if known.is_none() {
            (self.emit)(Event::Notice {
                text: format!(
                    "making fixture {} in {}",
                    fixture.name,
                    self.target.facts().name
                ),
            });
        }
        let made = reset::make_stand(&self.client, fixture, &mut self.owned, known.as_ref());
        let state = made.await.map_err(|error| {
            let code = match &error {
                ClusterError::Store(_) => FrameworkCode::StoreUnavailable,
                _ => FrameworkCode::ResetNotProven,
            };
            Failed::because(code, &error)
        })?;
        let reference = Reference {
            format: FORMAT,
            state: state.clone(),
        };
        store
            .put_reference(&key(cluster_uid, fixture), &reference)
            .map_err(unnoted)?;
        Ok(state)
    }
}
