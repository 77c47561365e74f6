//! After a crash: takes faults back, brings namespaces back, and gives every planned run its record.
//!
//! Whether a fault was written is told by comparing the live fields with the plan, so that every moment of a crash is
//! met, also one within the undo or within an earlier recovery. What belongs to another cluster is left alone and told;
//! what belonged to a cluster that ended with its process is gone with it.

use std::sync::Arc;

use crate::cluster::ClusterError;
use crate::cluster::resource;
use crate::cluster::target::Target;
use crate::ids::RunId;
use crate::inject::journal::{JournalEntry, Place};
use crate::inject::undo::{Undone, undo};
use crate::record::Record;
use crate::run::planned::{Keeping, Planned};
use crate::run::stage::chain;
use crate::run::standing::{self, Proof, Standing};
use crate::store::{Batch, Store, StoreError};

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    pub runs: Vec<RecoveredRun>,
    /// How the cluster at hand was proven to be as it should, if anything was to be done there.
    pub proof: Option<Proof>,
    /// Why the cluster at hand was closed until now.
    pub reopened: Option<String>,
    /// Why the cluster at hand could not be restored. It is closed to runs then.
    pub left: Option<String>,
}

/// One run without a record, or with a fault that was not proven to be gone.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveredRun {
    pub run: RunId,
    pub place: Place,
    pub outcome: Outcome,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its cluster ended with the process that made it.
    Gone,
    /// Its fault was taken back, or had never been written.
    Undone(Undone),
    /// It was cut off without a fault in the cluster.
    CutOff,
    /// It had been planned and never began.
    NotRun,
    /// Not everything could be taken back; what is needed to do so stays.
    Failed { reason: String },
    /// It belongs to another cluster than the one at hand; what is needed stays.
    Elsewhere,
}

impl Recovery {
    fn note(&mut self, run: RunId, place: &Place, outcome: Outcome) {
        self.runs.push(RecoveredRun {
            run,
            place: place.clone(),
            outcome,
        });
    }
}

/// Everything that waits for a recovery.
struct Pending {
    plans: Vec<Planned>,
    entries: Vec<JournalEntry>,
}

impl Pending {
    fn of(store: &Store, wanted: impl Fn(&Place) -> bool) -> Result<Pending, StoreError> {
        let (mut plans, mut entries) = (Planned::all(store)?, JournalEntry::all(store)?);
        plans.retain(|plan| wanted(&plan.place));
        entries.retain(|entry| wanted(&entry.place));
        Ok(Pending { plans, entries })
    }

    fn is_empty(&self) -> bool {
        self.plans.is_empty() && self.entries.is_empty()
    }

    fn entry(&self, run: &RunId) -> Option<&JournalEntry> {
        self.entries.iter().find(|entry| entry.run_id == *run)
    }

    /// The ids of runs of which something may be left in a cluster, each with its place.
    fn touched(&self) -> Vec<(RunId, Place)> {
        let mut runs: Vec<(RunId, Place)> = self
            .entries
            .iter()
            .map(|entry| (entry.run_id.clone(), entry.place.clone()))
            .collect();
        for plan in &self.plans {
            for (index, _) in plan.open().filter(|(_, begun)| *begun) {
                let run = plan.run_id(index);
                if self.entry(&run).is_none() {
                    runs.push((run, plan.place.clone()));
                }
            }
        }
        runs
    }
}

/// The clusters that outlive the process and in which something may be left, or which are closed to runs.
pub fn pending_places(store: &Store) -> Result<Vec<Place>, StoreError> {
    let pending = Pending::of(store, |place| !place.ends_with_process)?;
    let plans = pending.plans.into_iter().map(|plan| plan.place);
    let entries = pending.entries.into_iter().map(|entry| entry.place);
    let mut places: Vec<Place> = Vec::new();
    let mut closed = Vec::new();
    for (uid, _) in store.quarantined()? {
        let standing: Option<Standing> = store.standing(&uid)?;
        closed.push(standing.map_or_else(
            || Place {
                cluster_uid: uid,
                ..Place::default()
            },
            |standing| standing.place,
        ));
    }
    for place in plans.chain(entries).chain(closed) {
        if places
            .iter()
            .all(|known| known.cluster_uid != place.cluster_uid)
        {
            places.push(place);
        }
    }
    Ok(places)
}

/// Recovers every unfinished run. `target` is the cluster at hand; without one, only runs whose cluster is gone come to
/// their end. Can be repeated, whatever cut it off.
pub async fn recover(store: &Arc<Store>, target: Option<&Target>) -> Result<Recovery, StoreError> {
    let mut recovery = Recovery::default();
    let gone = Pending::of(store, |place| place.ends_with_process)?;
    if !gone.is_empty() {
        settle_gone(store, &gone, &mut recovery)?;
    }
    let here = match target {
        Some(target) => identity(target).await,
        None => None,
    };
    let others = Pending::of(store, |place| {
        !place.ends_with_process && here.as_ref() != Some(&place.cluster_uid)
    })?;
    for (run, place) in others.touched() {
        recovery.note(run, &place, Outcome::Elsewhere);
    }
    if let (Some(target), Some(uid)) = (target, here) {
        settle_here(store, target, &uid, &mut recovery).await?;
    }
    Ok(recovery)
}

/// The uid of a target's `kube-system` namespace; nothing where it does not tell.
async fn identity(target: &Target) -> Option<String> {
    if let Some(remote) = target.lasting() {
        return Some(remote.uid.clone());
    }
    let namespaces = resource::of_kind("Namespace").ok()?;
    let system = namespaces.get(&target.client(), "", "kube-system").await;
    let uid = system.ok()??["metadata"]["uid"].as_str()?.to_owned();
    (!uid.is_empty()).then_some(uid)
}

/// Runs on clusters that ended with their process: nothing is left of them but their records.
fn settle_gone(
    store: &Store,
    pending: &Pending,
    recovery: &mut Recovery,
) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    for entry in &pending.entries {
        batch.journal_erase(entry.run_id.as_str());
        recovery.note(entry.run_id.clone(), &entry.place, Outcome::Gone);
    }
    for plan in &pending.plans {
        for (index, begun) in plan.open() {
            let run = plan.run_id(index);
            let had_entry = pending.entry(&run).is_some();
            let record = if begun || had_entry {
                plan.crashed(
                    index,
                    None,
                    "the process was cut off; its embedded cluster ended with it",
                )
            } else {
                plan.not_run(
                    index,
                    None,
                    "the command was cut off before this run was kept",
                )
            };
            if plan.keeping == Keeping::Records {
                batch.record(&record)?;
            }
            if !had_entry {
                let outcome = if begun {
                    Outcome::Gone
                } else {
                    Outcome::NotRun
                };
                recovery.note(run, &plan.place, outcome);
            }
        }
        batch.erase_planned(&plan.id());
    }
    store.write(&batch).map(drop)
}

/// Undo, reset and proof in the cluster at hand; then records, plans, journal and quarantine in one commit.
async fn settle_here(
    store: &Arc<Store>,
    target: &Target,
    uid: &str,
    recovery: &mut Recovery,
) -> Result<(), StoreError> {
    let pending = Pending::of(store, |place| {
        !place.ends_with_process && place.cluster_uid == uid
    })?;
    let closed = store.quarantine_reason(uid)?;
    if pending.is_empty() && closed.is_none() {
        return Ok(());
    }
    let client = target.client();
    let mut undone = Vec::new();
    for entry in &pending.entries {
        undone.push(undo(&client, &entry.plan).await);
    }
    let failures: Vec<&str> = undone
        .iter()
        .flat_map(|undone| undone.failed.iter().map(String::as_str))
        .collect();
    let proof = if failures.is_empty() {
        brought_back(store, &client, uid).await
    } else {
        Err(failures.join("; "))
    };
    match proof {
        Ok(proof) => {
            let ended = Ended {
                pending: &pending,
                undone: &undone,
                proof: &proof,
                ran_at: target.now_text(),
            };
            ended.keep(store, uid, recovery)?;
            recovery.proof = Some(proof);
            recovery.reopened = closed;
        }
        Err(reason) => {
            for (run, place) in pending.touched() {
                let reason = reason.clone();
                recovery.note(run, &place, Outcome::Failed { reason });
            }
            store.quarantine(uid, &reason)?;
            recovery.left = Some(reason);
        }
    }
    Ok(())
}

async fn brought_back(
    store: &Arc<Store>,
    client: &kube::Client,
    uid: &str,
) -> Result<Proof, String> {
    let proof = standing::bring_back(store, client, uid).await;
    proof.map_err(|error: ClusterError| chain(&error))
}

/// Runs whose cluster is proven to be as it was.
struct Ended<'a> {
    pending: &'a Pending,
    /// One for each entry.
    undone: &'a [Undone],
    proof: &'a Proof,
    ran_at: String,
}

impl Ended<'_> {
    fn keep(&self, store: &Store, uid: &str, recovery: &mut Recovery) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        for (entry, undone) in self.pending.entries.iter().zip(self.undone) {
            batch.journal_erase(entry.run_id.as_str());
            let outcome = Outcome::Undone(undone.clone());
            recovery.note(entry.run_id.clone(), &entry.place, outcome);
        }
        for plan in &self.pending.plans {
            for (index, begun) in plan.open() {
                let run = plan.run_id(index);
                let had_entry = self.pending.entry(&run).is_some();
                if plan.keeping == Keeping::Records {
                    batch.record(&self.record(plan, index, &run, begun))?;
                }
                if !had_entry {
                    let outcome = if begun {
                        Outcome::CutOff
                    } else {
                        Outcome::NotRun
                    };
                    recovery.note(run, &plan.place, outcome);
                }
            }
            batch.erase_planned(&plan.id());
        }
        if *self.proof == Proof::Removed {
            batch.erase_standing(uid);
        }
        batch.lift_quarantine(uid);
        store.write(&batch).map(drop)
    }

    fn record(&self, plan: &Planned, index: u64, run: &RunId, begun: bool) -> Record {
        let at = Some(self.ran_at.clone());
        let mut entries = self.pending.entries.iter().zip(self.undone);
        let undone = entries.find(|(entry, _)| entry.run_id == *run);
        if undone.is_none() && !begun {
            return plan.not_run(index, at, "the command was cut off before this run began");
        }
        let message = "the process was cut off; a later one restored the cluster";
        let mut record = plan.crashed(index, at, message);
        if let Some((_, undone)) = undone {
            record.undo.attempted = true;
            record.undo.succeeded = true;
            record.undo.kept = undone.kept.clone();
        }
        if let Proof::AsReference { before, after, .. } = self.proof {
            record.state_hash_before = Some(before.clone());
            record.state_hash_after = Some(after.clone());
        }
        record
    }
}
