//! Makes the namespaces that we own equal to a fixture, and proves it.
//!
//! A namespace is ours when we created it, known by uid and never by what is written on it. Whatever in it differs
//! from the reference is deleted or made anew: a good repair is a difference too, and so is a longer rollout history,
//! which the next agent could read. Nothing outside owned namespaces is ever written.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::ClusterError;
use crate::cluster::fixture::Fixture;
pub use crate::cluster::ownership::Owned;
use crate::cluster::resource::{self, Resource};
use crate::cluster::retry;
use crate::cluster::state::{self, ClusterState, ObjectKey};
use crate::record::StateChangeKind;

/// How long workloads may take to come to rest. A database start, an image pull and a 30 s grace period fit twice.
pub const REST_DEADLINE: Duration = Duration::from_secs(180);
/// How long a deleted object may take to be gone; the default grace period of a pod is 30 s.
pub const GONE_DEADLINE: Duration = Duration::from_secs(90);
/// Controllers act within a second or two; asking more often only costs the server.
const POLL: Duration = Duration::from_secs(2);

/// Creates what is missing of the fixture: first what stands still, then databases, then services, each at rest
/// before the next, and limits of the namespace last, so that a fixture can hold one that was tightened below present
/// use. A namespace of that name that is not ours is refused before anything is written.
pub async fn apply(
    client: &kube::Client,
    fixture: &Fixture,
    owned: &mut Owned,
) -> Result<(), ClusterError> {
    let mut missing = Vec::new();
    for name in &fixture.namespaces {
        if !stands(client, name, owned).await? {
            missing.push(name);
        }
    }
    for name in missing {
        owned.create(client, name).await?;
    }
    for wave in [
        Wave::Still,
        Wave::StatefulSets,
        Wave::Workloads,
        Wave::Limits,
    ] {
        let mut created = false;
        if wave == Wave::Limits && fixture.objects.iter().any(is_limit) {
            workloads_at_rest(client, REST_DEADLINE, &fixture.namespaces).await?;
        }
        for object in &fixture.objects {
            if Wave::of(object) == wave {
                created |= create_if_absent(client, object).await?;
            }
        }
        if created && matches!(wave, Wave::StatefulSets | Wave::Workloads) {
            workloads_at_rest(client, REST_DEADLINE, &fixture.namespaces).await?;
        }
    }
    Ok(())
}

/// Makes the owned namespaces equal to the reference and answers the state that was reached and at rest.
pub async fn to_reference(
    client: &kube::Client,
    fixture: &Fixture,
    owned: &mut Owned,
    reference: &ClusterState,
) -> Result<ClusterState, ClusterError> {
    // Whose the namespaces are is asked before anything in them is deleted, and what is deleted is named by its uid.
    for name in &fixture.namespaces {
        stands(client, name, owned).await?;
    }
    let live = state::read(client).await?;
    let mut keys = to_remake(reference, &live, &fixture.namespaces);
    keys.extend(held_back(&live, &fixture.namespaces));
    for key in keys {
        if let Some(found) = live.objects.get(&key) {
            remove(client, &key, &found.uid).await?;
        }
    }
    restore_namespaces(client, fixture, reference, &live).await?;
    apply(client, fixture, owned).await?;
    at_rest(client, REST_DEADLINE, &fixture.namespaces).await
}

/// Makes a fixture stand in a cluster that may hold what earlier runs left, and answers the state at rest. With a
/// reference the namespaces are made equal to it, and that is proven. Without one they are made anew.
pub async fn make_stand(
    client: &kube::Client,
    fixture: &Fixture,
    owned: &mut Owned,
    reference: Option<&ClusterState>,
) -> Result<ClusterState, ClusterError> {
    owned.settle(client).await?;
    // Before anything is taken away: a namespace that is somebody else's refuses the whole.
    for name in &fixture.namespaces {
        stands(client, name, owned).await?;
    }
    let others: BTreeSet<String> = owned
        .names()
        .into_iter()
        .filter(|name| reference.is_none() || !fixture.namespaces.contains(name))
        .collect();
    remove_namespaces(client, owned, &others).await?;
    let Some(reference) = reference else {
        apply(client, fixture, owned).await?;
        return at_rest(client, REST_DEADLINE, &fixture.namespaces).await;
    };
    let wanted = reference.within(&fixture.namespaces);
    let live = state::read(client).await?.within(&fixture.namespaces);
    let standing = live.unsettled().is_empty()
        && wanted.hash() == live.hash()
        && to_remake(&wanted, &live, &fixture.namespaces).is_empty();
    let state = if standing {
        // Whose they are is looked at all the same.
        for name in &fixture.namespaces {
            stands(client, name, owned).await?;
        }
        at_rest(client, REST_DEADLINE, &fixture.namespaces).await?
    } else {
        to_reference(client, fixture, owned, reference).await?
    };
    let differences = wanted.differences(&state.within(&fixture.namespaces));
    let left: Vec<String> = differences
        .iter()
        .filter(|difference| difference.what != StateChangeKind::Recreated)
        .map(ToString::to_string)
        .collect();
    if left.is_empty() {
        Ok(state)
    } else {
        Err(ClusterError::Differs {
            what: left.join("; "),
        })
    }
}

/// Deletes namespaces of ours and waits until they are gone.
pub async fn remove_namespaces(
    client: &kube::Client,
    owned: &mut Owned,
    names: &BTreeSet<String>,
) -> Result<(), ClusterError> {
    let resource = resource::of_kind("Namespace")?;
    for name in names {
        // By uid: one of the same name that somebody else made since is left alone.
        if let Some(live) = resource.get(client, "", name).await?
            && owned.recognise(client, name, &live).await?
        {
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
            resource.delete_this(client, "", name, uid).await?;
            gone(client, resource, "", name).await?;
        }
        owned.forget(name)?;
    }
    Ok(())
}

/// Deletes every namespace of ours, also one whose creation was cut off, and proves that nothing is left in them.
pub async fn remove_all(client: &kube::Client, owned: &mut Owned) -> Result<(), ClusterError> {
    owned.settle(client).await?;
    let names = owned.names();
    remove_namespaces(client, owned, &names).await?;
    let left = state::read(client).await?.within(&names);
    match left.objects.keys().next() {
        None => Ok(()),
        Some(object) => Err(ClusterError::Differs {
            what: format!("{object} is still there although its namespace was deleted"),
        }),
    }
}

/// Waits until every workload of some namespaces is at rest; answers the whole state then. What other people's
/// workloads are waiting for is not ours to wait for.
pub async fn at_rest(
    client: &kube::Client,
    within: Duration,
    namespaces: &BTreeSet<String>,
) -> Result<ClusterState, ClusterError> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        workloads_at_rest(client, left, namespaces).await?;
        let state = state::read(client).await?;
        // Something may have moved between the two readings.
        let moving = state.within(namespaces).unsettled();
        if moving.is_empty() {
            return Ok(state);
        }
        if Instant::now() >= deadline {
            return Err(not_settled(within, &moving));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The wait without the whole state, for what comes before.
async fn workloads_at_rest(
    client: &kube::Client,
    within: Duration,
    namespaces: &BTreeSet<String>,
) -> Result<(), ClusterError> {
    let deadline = Instant::now() + within;
    loop {
        let workloads = state::read_workloads(client).await?;
        let moving = workloads.within(namespaces).unsettled();
        if moving.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(not_settled(within, &moving));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn not_settled(within: Duration, moving: &[String]) -> ClusterError {
    ClusterError::NotSettled {
        seconds: within.as_secs(),
        what: moving.join("; "),
    }
}

/// What a manifest is applied together with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wave {
    Still,
    StatefulSets,
    Workloads,
    Limits,
}

/// Whether an object limits what may be created in its namespace.
fn is_limit(object: &Value) -> bool {
    Wave::of(object) == Wave::Limits
}

impl Wave {
    fn of(object: &Value) -> Wave {
        Wave::of_kind(object["kind"].as_str().unwrap_or_default())
    }

    fn of_kind(kind: &str) -> Wave {
        match kind {
            "StatefulSet" => Wave::StatefulSets,
            "Deployment" | "DaemonSet" | "Job" | "CronJob" | "Pod" => Wave::Workloads,
            "ResourceQuota" | "LimitRange" => Wave::Limits,
            _ => Wave::Still,
        }
    }
}

/// The objects that must go (and come back, if the fixture has them): strangers, what differs, and workloads whose
/// rollout history is not the reference's.
fn to_remake(
    reference: &ClusterState,
    live: &ClusterState,
    namespaces: &BTreeSet<String>,
) -> BTreeSet<ObjectKey> {
    let ours = |key: &ObjectKey| namespaces.contains(&key.namespace);
    let mut keys: BTreeSet<ObjectKey> = reference
        .differences(live)
        .into_iter()
        .filter(|difference| {
            matches!(
                difference.what,
                StateChangeKind::Created | StateChangeKind::FieldChanged
            )
        })
        .map(|difference| difference.key)
        .filter(ours)
        .collect();
    for (key, state) in reference.objects.iter().filter(|(key, _)| ours(key)) {
        if live
            .objects
            .get(key)
            .is_some_and(|now| now.revision != state.revision)
        {
            keys.insert(key.clone());
        }
    }
    // Replica sets go and come with their deployments, also where a deployment was made anew over the remains of its
    // predecessor and its replica set had to take another name. One that a person made goes by itself. One that only has
    // another uid came with its deployment when that was made anew by the last reset, and is as it should be.
    let sets: Vec<ObjectKey> = reference
        .differences(live)
        .into_iter()
        .filter(|difference| {
            matches!(
                difference.what,
                StateChangeKind::Created | StateChangeKind::Deleted
            )
        })
        .map(|difference| difference.key)
        .filter(|key| key.kind == REPLICA_SET && ours(key))
        .collect();
    keys.retain(|key| key.kind != REPLICA_SET);
    for set in sets {
        let owner = deployment_of(&set);
        let stands =
            |key: &ObjectKey| live.objects.contains_key(key) || reference.objects.contains_key(key);
        match owner.filter(stands) {
            Some(owner) => keys.insert(owner),
            None => keys.insert(set),
        };
    }
    keys
}

const REPLICA_SET: &str = "ReplicaSet";

/// The deployment that a replica set's name belongs to: the controller appends the hash of the template.
fn deployment_of(set: &ObjectKey) -> Option<ObjectKey> {
    let (name, _) = set.name.rsplit_once('-')?;
    Some(ObjectKey {
        kind: "Deployment".to_owned(),
        namespace: set.namespace.clone(),
        name: name.to_owned(),
    })
}

/// Limits of the namespaces, since they may stand in the way of what must come back, and with them the workloads that
/// they may have kept from coming to rest: a controller that was refused for long tries again after minutes.
fn held_back(live: &ClusterState, namespaces: &BTreeSet<String>) -> BTreeSet<ObjectKey> {
    let ours = live
        .objects
        .iter()
        .filter(|(key, _)| namespaces.contains(&key.namespace));
    let is_limit = |key: &ObjectKey| Wave::of_kind(&key.kind) == Wave::Limits;
    if !ours.clone().any(|(key, _)| is_limit(key)) {
        return BTreeSet::new();
    }
    ours.filter(|(key, state)| {
        is_limit(key) || (state.unsettled.is_some() && key.kind != REPLICA_SET)
    })
    .map(|(key, _)| key.clone())
    .collect()
}

async fn remove(client: &kube::Client, key: &ObjectKey, uid: &str) -> Result<(), ClusterError> {
    let resource = resource::of_kind(&key.kind)?;
    resource
        .delete_this(client, &key.namespace, &key.name, uid)
        .await?;
    gone(client, resource, &key.namespace, &key.name).await
}

/// Waits until an object is gone; a pod may take its grace period, a finalizer may hold it for ever.
async fn gone(
    client: &kube::Client,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), ClusterError> {
    let deadline = Instant::now() + GONE_DEADLINE;
    loop {
        let Some(object) = resource.get(client, namespace, name).await? else {
            return Ok(());
        };
        // Controllers put some objects (a namespace's default service account) back at once.
        if object["metadata"].get("deletionTimestamp").is_none() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(ClusterError::NotSettled {
                seconds: GONE_DEADLINE.as_secs(),
                what: format!(
                    "{} {namespace}/{name} is still being deleted",
                    resource.kind
                ),
            });
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether a namespace of ours stands. One on its way out is waited for; one that is not ours is refused.
async fn stands(
    client: &kube::Client,
    name: &str,
    owned: &mut Owned,
) -> Result<bool, ClusterError> {
    let resource = resource::of_kind("Namespace")?;
    let Some(live) = resource.get(client, "", name).await? else {
        return Ok(false);
    };
    if live["metadata"].get("deletionTimestamp").is_some() {
        gone(client, resource, "", name).await?;
        return Ok(false);
    }
    if owned.recognise(client, name, &live).await? {
        return Ok(true);
    }
    Err(ClusterError::NotOurs {
        namespace: name.to_owned(),
    })
}

/// Puts back labels and annotations of owned namespaces that somebody changed.
async fn restore_namespaces(
    client: &kube::Client,
    fixture: &Fixture,
    reference: &ClusterState,
    live: &ClusterState,
) -> Result<(), ClusterError> {
    let resource = resource::of_kind("Namespace")?;
    for name in &fixture.namespaces {
        let key = ObjectKey {
            kind: "Namespace".to_owned(),
            namespace: String::new(),
            name: name.clone(),
        };
        let (Some(then), Some(now)) = (reference.objects.get(&key), live.objects.get(&key)) else {
            continue;
        };
        if then.content == now.content {
            continue;
        }
        for attempt in 1.. {
            let Some(mut object) = resource.get(client, "", name).await? else {
                break;
            };
            for field in ["labels", "annotations"] {
                object["metadata"][field] = then.content["metadata"][field].clone();
            }
            match resource.replace(client, "", name, &object).await {
                Err(error) if error.is_conflict() && attempt < retry::ATTEMPTS => {
                    tokio::time::sleep(retry::back_off(attempt)).await;
                }
                answer => {
                    answer?;
                    break;
                }
            }
        }
    }
    Ok(())
}

async fn create_if_absent(client: &kube::Client, object: &Value) -> Result<bool, ClusterError> {
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = resource::of_kind(&part(&object["kind"]))?;
    let namespace = part(&object["metadata"]["namespace"]);
    match resource.create(client, &namespace, object).await {
        Ok(_) => Ok(true),
        // Already there; whether it is as it should be, the state hash tells.
        Err(ClusterError::Api { code: 409, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
