//! ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::controllers::deployment::safe_hash;
use crate::embedded::controllers::object::{
    controlled_by, name, namespace, number, owner_reference, uid,
};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// The label by which a pod names its revision.
pub(super) const LABEL: &str = "controller-revision-hash";

/// The name of the ControllerRevision of the present template, made or moved to the top if need be.
pub(super) fn of(world: &mut World, owner: &Value) -> String {
    let ns = namespace(owner);
    let mut template = owner["spec"]["template"].clone();
    template["$patch"] = "replace".into();
    let data = json!({"spec": {"template": template}});
    let mine: Vec<Arc<Value>> = world
        .store
        .within(Kind::ControllerRevision, ns)
        .filter(|revision| controlled_by(revision, uid(owner)))
        .cloned()
        .collect();
    let highest = mine
        .iter()
        .map(|r| number(&r["revision"]))
        .max()
        .unwrap_or(0);
    if let Some(same) = mine.iter().find(|revision| revision["data"] == data) {
        if number(&same["revision"]) < highest {
            world.update(Kind::ControllerRevision, ns, name(same), |stored| {
                stored["revision"] = (highest + 1).into();
            });
        }
        return name(same).to_owned();
    }
    let hash = safe_hash(data.to_string().as_bytes());
    let revision_name = format!("{}-{hash}", name(owner));
    let mut labels = owner["spec"]["template"]["metadata"]["labels"].clone();
    labels["controller.kubernetes.io/hash"] = hash.into();
    let revision = json!({
        "metadata": {
            "name": revision_name,
            "namespace": ns,
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": highest + 1,
    });
    // An equal name means an equal template.
    let _ = world.create(Kind::ControllerRevision, revision);
    trim_history(world, owner, mine, &revision_name);
    revision_name
}

/// Removes the oldest revisions beyond the limit that no pod and no status names.
fn trim_history(world: &mut World, owner: &Value, mut old: Vec<Arc<Value>>, newest: &str) {
    let limit = owner["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10);
    let ns = namespace(owner);
    old.retain(|revision| {
        let revision = name(revision);
        let live = world.store.within(Kind::Pod, ns).any(|pod| {
            let label = pod["metadata"]["labels"][LABEL]
                .as_str()
                .unwrap_or_default();
            !label.is_empty() && revision.ends_with(label)
        });
        !live && revision != newest && owner["status"]["currentRevision"] != revision
    });
    old.sort_by_key(|revision| number(&revision["revision"]));
    let surplus = old
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    for revision in old.into_iter().take(surplus) {
        // Read in this round.
        let _ = world
            .store
            .remove(Kind::ControllerRevision, ns, name(&revision));
    }
}
