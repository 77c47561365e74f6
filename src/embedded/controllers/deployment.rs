//! The Deployment controller: which ReplicaSet is the current one, revisions, pause, history, conditions.
//!
//! How many pods each ReplicaSet may have stands in `rollout`.

pub(super) use revision::{old_pods_left, safe_hash, sync_or_create};

mod revision;
mod status;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::controllers::object::{
    annotation, condition, controlled_by, controller, created, deleting, generation, items, name,
    namespace, number, owner_reference, replicas, scaled, selects, time, uid,
};
use crate::embedded::controllers::{Key, rollout, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

pub(super) const COMPONENT: &str = "deployment-controller";

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// A progress deadline of this many seconds means none.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// A Deployment and its ReplicaSets as read at the start of a round; `refresh` reads them again.
pub(super) struct Rollout {
    pub deployment: Arc<Value>,
    /// The ReplicaSet of the current template.
    pub new: Option<Arc<Value>>,
    /// All others, oldest first.
    pub old: Vec<Arc<Value>>,
}

impl Rollout {
    pub fn wanted(&self) -> i64 {
        replicas(&self.deployment)
    }

    pub fn recreates(&self) -> bool {
        self.deployment["spec"]["strategy"]["type"] == "Recreate"
    }

    /// Pods above the wanted number that a rolling update may make.
    pub fn max_surge(&self) -> i64 {
        self.bounds().0
    }

    /// Pods below the wanted number that a rolling update may leave.
    pub fn max_unavailable(&self) -> i64 {
        self.bounds().1.min(self.wanted())
    }

    fn bounds(&self) -> (i64, i64) {
        if self.recreates() {
            return (0, 0);
        }
        let rolling = &self.deployment["spec"]["strategy"]["rollingUpdate"];
        let default = json!("25%");
        let or_default = |field: &str| rolling.get(field).unwrap_or(&default).clone();
        let surge = scaled(&or_default("maxSurge"), self.wanted(), true);
        let unavailable = scaled(&or_default("maxUnavailable"), self.wanted(), false);
        if surge == 0 && unavailable == 0 {
            (0, 1)
        } else {
            (surge, unavailable)
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.old.iter().chain(self.new.iter())
    }

    /// Reads everything again after writes.
    pub fn refresh(&mut self, world: &World) {
        let ns = namespace(&self.deployment).to_owned();
        if let Some(d) = world
            .store
            .get(Kind::Deployment, &ns, name(&self.deployment))
        {
            self.deployment = d.clone();
        }
        let again = |rs: &Arc<Value>| world.store.get(Kind::ReplicaSet, &ns, name(rs)).cloned();
        self.new = self.new.as_ref().and_then(again);
        self.old = self.old.iter().filter_map(again).collect();
    }
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(deployment) = world
        .store
        .get(Kind::Deployment, &key.namespace, &key.name)
        .cloned()
    else {
        return;
    };
    let mut sets = owned_sets(world, &deployment);
    sets.sort_by(|a, b| {
        created(a)
            .cmp(&created(b))
            .then_with(|| name(a).cmp(name(b)))
    });
    let template = &deployment["spec"]["template"];
    let new = sets
        .iter()
        .find(|rs| revision::same_template(&rs["spec"]["template"], template))
        .cloned();
    let old = sets
        .iter()
        .filter(|rs| new.as_ref().is_none_or(|new| uid(new) != uid(rs)))
        .cloned()
        .collect();
    let mut rollout = Rollout {
        deployment,
        new,
        old,
    };
    if deleting(&rollout.deployment) {
        status::write(world, &rollout);
        return;
    }
    note_pause(world, &mut rollout);
    if rollout.deployment["spec"]["paused"] == true {
        revision::sync(world, &mut rollout);
        rollout::scale(world, &mut rollout);
        clean_up(world, &rollout);
        rollout.refresh(world);
        status::write(world, &rollout);
        return;
    }
    if scaling(&rollout) {
        revision::sync(world, &mut rollout);
        rollout::scale(world, &mut rollout);
        rollout.refresh(world);
        status::write(world, &rollout);
        return;
    }
    let done = if rollout.recreates() {
        rollout::recreate(world, &mut rollout)
    } else {
        rollout::roll(world, &mut rollout)
    };
    rollout.refresh(world);
    status::write_progress(world, &rollout);
    rollout.refresh(world);
    if done && complete(&rollout) {
        clean_up(world, &rollout);
    }
    watch_deadline(world, key);
}

/// The ReplicaSets of a Deployment; matching orphans are adopted.
fn owned_sets(world: &mut World, deployment: &Value) -> Vec<Arc<Value>> {
    let selector = &deployment["spec"]["selector"];
    let owner_uid = uid(deployment);
    let ns = namespace(deployment);
    let orphans: Vec<String> = world
        .store
        .within(Kind::ReplicaSet, ns)
        .filter(|rs| {
            controller(rs).is_none()
                && !deleting(rs)
                && !deleting(deployment)
                && selects(selector, &rs["metadata"]["labels"])
        })
        .map(|rs| name(rs).to_owned())
        .collect();
    for orphan in orphans {
        world.update(Kind::ReplicaSet, ns, &orphan, |rs| {
            let mut owners = items(&rs["metadata"]["ownerReferences"]).to_vec();
            owners.push(owner_reference(deployment));
            rs["metadata"]["ownerReferences"] = owners.into();
        });
    }
    world
        .store
        .within(Kind::ReplicaSet, ns)
        .filter(|rs| controlled_by(rs, owner_uid))
        .cloned()
        .collect()
}

/// Whether the wanted number changed since the ReplicaSets were last scaled.
fn scaling(rollout: &Rollout) -> bool {
    let wanted = rollout.wanted().to_string();
    rollout
        .all()
        .filter(|rs| replicas(rs) > 0)
        .any(|rs| annotation(rs, DESIRED).is_some_and(|desired| desired != wanted))
}

/// Notes pausing and resuming in the Progressing condition, so that a pause does not run into the deadline.
fn note_pause(world: &mut World, rollout: &mut Rollout) {
    if !has_deadline(&rollout.deployment) {
        return;
    }
    let reason = condition(&rollout.deployment, "Progressing")
        .and_then(|c| c["reason"].as_str())
        .unwrap_or_default();
    let paused = rollout.deployment["spec"]["paused"] == true;
    let (reason, message) = match (paused, reason) {
        (_, "ProgressDeadlineExceeded") => return,
        (true, reason) if reason != "DeploymentPaused" => {
            ("DeploymentPaused", "Deployment is paused")
        }
        (false, "DeploymentPaused") => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    status::set_condition(world, rollout, "Progressing", "Unknown", reason, message);
}

pub(super) fn has_deadline(deployment: &Value) -> bool {
    deployment["spec"]["progressDeadlineSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds != NO_DEADLINE)
}

/// All wanted pods are of the current template and available, and no others are left.
pub(super) fn complete(rollout: &Rollout) -> bool {
    let status = &rollout.deployment["status"];
    let wanted = rollout.wanted();
    number(&status["updatedReplicas"]) == wanted
        && number(&status["replicas"]) == wanted
        && number(&status["availableReplicas"]) == wanted
        && number(&status["observedGeneration"]) >= generation(&rollout.deployment)
}

/// Deletes the oldest ReplicaSets beyond the history limit that have no pods.
fn clean_up(world: &mut World, rollout: &Rollout) {
    let Some(limit) = rollout.deployment["spec"]["revisionHistoryLimit"].as_u64() else {
        return;
    };
    let mut old: Vec<&Arc<Value>> = rollout.old.iter().filter(|rs| !deleting(rs)).collect();
    let surplus = old
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    old.sort_by_key(|rs| revision::number_of(rs));
    for rs in old.into_iter().take(surplus) {
        let idle = number(&rs["status"]["replicas"]) == 0
            && replicas(rs) == 0
            && generation(rs) <= number(&rs["status"]["observedGeneration"]);
        if idle {
            // It was read from the store in this round.
            let _ = world
                .store
                .remove(Kind::ReplicaSet, namespace(rs), name(rs));
        }
    }
}

/// Comes back when the progress deadline is over; a second late, as there.
fn watch_deadline(world: &mut World, key: &Key) {
    let Some(deployment) = world.store.get(Kind::Deployment, &key.namespace, &key.name) else {
        return;
    };
    let Some(progressing) = condition(deployment, "Progressing") else {
        return;
    };
    let settled = matches!(
        progressing["reason"].as_str(),
        Some("NewReplicaSetAvailable" | "ProgressDeadlineExceeded")
    );
    let deadline = number(&deployment["spec"]["progressDeadlineSeconds"]);
    if settled || !has_deadline(deployment) || deployment["spec"]["paused"] == true {
        return;
    }
    if let Some(since) = time(&progressing["lastUpdateTime"]) {
        let wait = Duration::from_secs(u64::try_from(deadline + 1).unwrap_or(0));
        wake_at(world, key, since + wait);
    }
}

/// Records an event about a Deployment.
pub(super) fn tell(world: &mut World, deployment: &Value, reason: &str, message: String) {
    events::record(
        world,
        NewEvent {
            about: deployment,
            field_path: None,
            warning: false,
            reason,
            message,
            component: COMPONENT,
            host: None,
        },
    );
}

#[cfg(test)]
mod tests;
