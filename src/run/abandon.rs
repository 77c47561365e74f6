//! Giving up a cluster that is gone for good: what is left undone there is told, and the runs that wait for it end.
//!
//! Everything that the store knows of the cluster goes in one commit: plans, undo entries, what stands there, whose
//! namespaces are ours, and that it is closed. Afterwards breakage would refuse the namespaces there as somebody else's,
//! so this is for clusters that nobody will see again.

use crate::ids::RunId;
use crate::inject::field;
use crate::inject::journal::JournalEntry;
use crate::run::planned::{Keeping, Planned};
use crate::store::{Batch, Store, StoreError};

/// What is left in a cluster that is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftUndone {
    pub cluster_uid: String,
    /// Faults that may still be there, as fields and objects, by run.
    pub faults: Vec<(RunId, Vec<String>)>,
    /// Namespaces that we made there.
    pub namespaces: Vec<String>,
    /// Runs that get their record now: those that were under way, and those that never began.
    pub crashed: Vec<RunId>,
    pub not_run: u64,
}

/// What would be left of a cluster.
pub fn look(store: &Store, cluster_uid: &str) -> Result<LeftUndone, StoreError> {
    let mut left = LeftUndone {
        cluster_uid: cluster_uid.to_owned(),
        ..LeftUndone::default()
    };
    for entry in entries(store, cluster_uid)? {
        let mut parts: Vec<String> = entry
            .plan
            .changes
            .iter()
            .flat_map(|change| {
                let fields = change.fields.iter();
                fields.map(|one| format!("{} {}", change.object, field::dotted(&one.path)))
            })
            .collect();
        let created = entry.plan.created.iter();
        parts.extend(created.map(|one| format!("{} was created", one.object)));
        left.faults.push((entry.run_id, parts));
    }
    left.namespaces = owned(store, cluster_uid)?
        .into_iter()
        .map(|(_, namespace)| namespace)
        .collect();
    left.namespaces.sort();
    let entries = entries(store, cluster_uid)?;
    for plan in plans(store, cluster_uid)? {
        for (index, begun) in plan.open() {
            let run = plan.run_id(index);
            if begun || entries.iter().any(|entry| entry.run_id == run) {
                left.crashed.push(run);
            } else {
                left.not_run += 1;
            }
        }
    }
    Ok(left)
}

/// Gives every run that waits for the cluster its record and forgets the cluster.
pub fn abandon(store: &Store, cluster_uid: &str) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    let entries = entries(store, cluster_uid)?;
    for entry in &entries {
        batch.journal_erase(entry.run_id.as_str());
    }
    for plan in plans(store, cluster_uid)? {
        for (index, begun) in plan.open().filter(|_| plan.keeping == Keeping::Records) {
            let run = plan.run_id(index);
            let entry = entries.iter().find(|entry| entry.run_id == run);
            let record = if begun || entry.is_some() {
                let message = "the process was cut off, and its cluster was given up: the fault was not undone";
                let mut record = plan.crashed(index, None, message);
                record.undo.quarantined = true;
                record
            } else {
                plan.not_run(index, None, "its cluster was given up before it began")
            };
            batch.record(&record)?;
        }
        batch.erase_planned(&plan.id());
    }
    for (uid, _) in owned(store, cluster_uid)? {
        batch.disown(&uid);
    }
    let prefix = format!("{cluster_uid}/");
    for (key, _) in store.creating()? {
        if key.starts_with(&prefix) {
            batch.erase_creating(&key);
        }
    }
    batch.erase_standing(cluster_uid);
    batch.lift_quarantine(cluster_uid);
    store.write(&batch).map(drop)
}

fn entries(store: &Store, cluster_uid: &str) -> Result<Vec<JournalEntry>, StoreError> {
    let mut entries = JournalEntry::all(store)?;
    entries.retain(|entry| entry.place.cluster_uid == cluster_uid);
    Ok(entries)
}

fn plans(store: &Store, cluster_uid: &str) -> Result<Vec<Planned>, StoreError> {
    let mut plans = Planned::all(store)?;
    plans.retain(|plan| plan.place.cluster_uid == cluster_uid);
    Ok(plans)
}

/// Uid and name of the namespaces that are ours there.
fn owned(store: &Store, cluster_uid: &str) -> Result<Vec<(String, String)>, StoreError> {
    let prefix = format!("{cluster_uid}/");
    let owned = store.owned()?.into_iter();
    Ok(owned
        .filter_map(|(uid, owner)| Some((uid, owner.strip_prefix(&prefix)?.to_owned())))
        .collect())
}
