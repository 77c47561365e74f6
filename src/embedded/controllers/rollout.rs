//! How a Deployment's pods are spread over its ReplicaSets: recreate, rolling update, scaling in proportion.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::embedded::controllers::deployment::{
    DESIRED, MAX, Rollout, old_pods_left, sync_or_create, tell,
};
use crate::embedded::controllers::object::{
    annotation, created, name, namespace, number, replicas,
};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// Old pods go first, all of them, then the new ones come. True when nothing was left to scale.
pub(super) fn recreate(world: &mut World, rollout: &mut Rollout) -> bool {
    if rollout.new.is_some() {
        sync_or_create(world, rollout);
    }
    let mut scaled_down = false;
    for rs in rollout.old.clone() {
        if replicas(&rs) > 0 {
            scale_set(world, rollout, &rs, 0);
            scaled_down = true;
        }
    }
    if scaled_down || old_pods_left(world, rollout) {
        return false;
    }
    sync_or_create(world, rollout);
    if let Some(new) = rollout.new.clone()
        && replicas(&new) != rollout.wanted()
    {
        let wanted = rollout.wanted();
        scale_set(world, rollout, &new, wanted);
    }
    true
}

/// One step of a rolling update. True when nothing was left to scale.
pub(super) fn roll(world: &mut World, rollout: &mut Rollout) -> bool {
    sync_or_create(world, rollout);
    let Some(new) = rollout.new.clone() else {
        return false;
    };
    let size = if replicas(&new) > rollout.wanted() {
        rollout.wanted()
    } else {
        new_size(rollout, replicas(&new))
    };
    if size != replicas(&new) {
        scale_set(world, rollout, &new, size);
        return false;
    }
    !scale_down_old(world, rollout, &new)
}

/// The size of the current ReplicaSet that its present size and the limits allow.
pub(super) fn new_size(rollout: &Rollout, present: i64) -> i64 {
    let wanted = rollout.wanted();
    if rollout.recreates() {
        return wanted;
    }
    let most = wanted + rollout.max_surge();
    let pods: i64 = rollout.all().map(|rs| replicas(rs)).sum();
    if pods >= most {
        return present;
    }
    present + (most - pods).min(wanted - present)
}

/// Takes pods from the old ReplicaSets as far as availability allows, unhealthy ones first.
fn scale_down_old(world: &mut World, rollout: &mut Rollout, new: &Value) -> bool {
    let old: i64 = rollout.old.iter().map(|rs| replicas(rs)).sum();
    if old == 0 {
        return false;
    }
    let needed = rollout.wanted() - rollout.max_unavailable();
    let new_unavailable = replicas(new) - available(new);
    let room = old + replicas(new) - needed - new_unavailable;
    if room <= 0 {
        return false;
    }
    let mut taken = 0;
    for rs in rollout.old.clone() {
        let unhealthy = replicas(&rs) - available(&rs);
        let take = unhealthy.min(room - taken);
        if replicas(&rs) > 0 && take > 0 {
            scale_set(world, rollout, &rs, replicas(&rs) - take);
            taken += take;
        }
    }
    rollout.refresh(world);
    let spare = rollout.all().map(|rs| available(rs)).sum::<i64>() - needed;
    let mut healthy = 0;
    for rs in rollout.old.clone() {
        let take = replicas(&rs).min(spare - healthy);
        if take > 0 {
            scale_set(world, rollout, &rs, replicas(&rs) - take);
            healthy += take;
        }
    }
    taken + healthy > 0
}

fn available(rs: &Value) -> i64 {
    number(&rs["status"]["availableReplicas"])
}

/// Follows a change of the wanted number without rolling anything out.
pub(super) fn scale(world: &mut World, rollout: &mut Rollout) {
    let wanted = rollout.wanted();
    let active: Vec<Arc<Value>> = rollout
        .all()
        .filter(|rs| replicas(rs) > 0)
        .cloned()
        .collect();
    let single = match active.as_slice() {
        [] => rollout.new.clone().or_else(|| rollout.old.last().cloned()),
        [one] => Some(one.clone()),
        _ => None,
    };
    if let Some(rs) = single {
        if replicas(&rs) != wanted {
            scale_set(world, rollout, &rs, wanted);
        }
        return;
    }
    if rollout
        .new
        .as_ref()
        .is_some_and(|new| saturated(rollout, new))
    {
        for rs in rollout.old.clone() {
            if replicas(&rs) > 0 {
                scale_set(world, rollout, &rs, 0);
            }
        }
        return;
    }
    if !rollout.recreates() {
        scale_in_proportion(world, rollout, active);
    }
}

fn saturated(rollout: &Rollout, new: &Value) -> bool {
    let desired = annotation(new, DESIRED).and_then(|text| text.parse::<i64>().ok());
    let wanted = rollout.wanted();
    replicas(new) == wanted && desired == Some(wanted) && available(new) == wanted
}

/// Spreads the difference over the active ReplicaSets by their sizes; the largest takes the remainder.
fn scale_in_proportion(world: &mut World, rollout: &mut Rollout, mut active: Vec<Arc<Value>>) {
    let wanted = rollout.wanted();
    let most = if wanted > 0 {
        wanted + rollout.max_surge()
    } else {
        0
    };
    let to_add = most - active.iter().map(|rs| replicas(rs)).sum::<i64>();
    if to_add > 0 {
        active.sort_by_key(|rs| (Reverse(replicas(rs)), Reverse(created(rs))));
    } else {
        active.sort_by_key(|rs| (Reverse(replicas(rs)), created(rs)));
    }
    let mut added = 0;
    let mut sizes = Vec::new();
    for rs in &active {
        let share = share_of(rollout, rs, to_add, added);
        added += share;
        sizes.push(replicas(rs) + share);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    for (rs, size) in active.iter().zip(sizes) {
        scale_set(world, rollout, rs, size);
    }
}

fn share_of(rollout: &Rollout, rs: &Value, to_add: i64, added: i64) -> i64 {
    if to_add == 0 || to_add == added {
        return 0;
    }
    let wanted = rollout.wanted();
    let fraction = if wanted == 0 {
        -replicas(rs)
    } else {
        let before = annotation(rs, MAX)
            .and_then(|text| text.parse::<i64>().ok())
            .filter(|before| *before > 0)
            .unwrap_or_else(|| number(&rollout.deployment["status"]["replicas"]).max(1));
        let product = replicas(rs) * (wanted + rollout.max_surge());
        // Rounds to the nearest whole pod.
        (2 * product + before) / (2 * before) - replicas(rs)
    };
    let allowed = to_add - added;
    if to_add > 0 {
        fraction.min(allowed)
    } else {
        fraction.max(allowed)
    }
}

/// The annotations that remember the sizes a ReplicaSet was last scaled for.
pub(super) fn note_sizes(rollout: &Rollout, annotations: &mut Map<String, Value>) {
    let most = rollout.wanted() + rollout.max_surge();
    annotations.insert(DESIRED.to_owned(), rollout.wanted().to_string().into());
    annotations.insert(MAX.to_owned(), most.to_string().into());
}

fn scale_set(world: &mut World, rollout: &mut Rollout, rs: &Value, size: i64) {
    let before = replicas(rs);
    let mut sizes = Map::new();
    note_sizes(rollout, &mut sizes);
    world.update(Kind::ReplicaSet, namespace(rs), name(rs), |stored| {
        stored["spec"]["replicas"] = size.into();
        for (key, value) in sizes {
            stored["metadata"]["annotations"][key] = value;
        }
    });
    if before != size {
        let direction = if before < size { "up" } else { "down" };
        let message = format!(
            "Scaled {direction} replica set {} from {before} to {size}",
            name(rs)
        );
        tell(world, &rollout.deployment, "ScalingReplicaSet", message);
    }
    rollout.refresh(world);
}
