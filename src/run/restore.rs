//! The stages after the verdict: our fault is taken back, and the namespaces are proven to be as they were.

use crate::cluster::reset;
use crate::cluster::state::Difference;
use crate::inject;
use crate::record::FrameworkCode;
use crate::run::Proven;
use crate::run::stage::{Failed, Run, Stage};

/// Changes by others that are named in a run's record; the rest is counted.
const TOLD: usize = 5;

impl Run<'_> {
    /// Takes back the fault and only that.
    pub(super) async fn undo(&mut self) -> Result<Stage, Failed> {
        let Some(plan) = &self.plan else {
            return Ok(Stage::Clean);
        };
        self.record.undo.attempted = true;
        let undone = inject::undo::undo(&self.client, plan).await;
        self.record.undo.succeeded = undone.is_complete();
        self.record.undo.kept = undone.kept.clone();
        if !undone.is_complete() {
            self.record.undo.error = Some(undone.failed.join("; "));
        }
        Ok(Stage::Clean)
    }

    /// Makes the owned namespaces equal to the state before the fault and proves it by the hash.
    pub(super) async fn clean(&mut self) -> Result<Stage, Failed> {
        let (Some(reference), Some(fixture)) = (&self.reference, &self.fixture) else {
            return Ok(Stage::Done);
        };
        let reached = reset::to_reference(&self.client, fixture, &mut self.owned, reference).await;
        let mut by_others = Vec::new();
        let failure = match reached {
            Ok(state) => {
                let (state, others) = self.reach().apart(reference, state);
                by_others = others;
                let hash = state.hash();
                let equal = self.record.state_hash_before.as_ref() == Some(&hash);
                self.record.state_hash_after = Some(hash);
                let differences = reference.differences(&state);
                (!equal).then(|| {
                    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
                    format!("not as before the fault: {}", told.join("; "))
                })
            }
            Err(error) => Some(crate::run::stage::chain(&error)),
        };
        if !by_others.is_empty() {
            self.tell_others(&by_others);
        }
        if failure.is_none() && self.record.undo.error.is_none() {
            self.proven = Proven::Restored;
        }
        match failure {
            None => Ok(Stage::Done),
            Some(reason) => {
                self.close_cluster(&reason);
                Err(Failed::new(FrameworkCode::ResetNotProven, reason))
            }
        }
    }

    /// Says what others changed elsewhere during the run, which is neither the agent's nor ours to mend.
    fn tell_others(&mut self, others: &[Difference]) {
        let named: Vec<String> = others.iter().take(TOLD).map(ToString::to_string).collect();
        let more = others.len().saturating_sub(TOLD);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        self.note = Some(format!("elsewhere, by others: {}{more}", named.join("; ")));
    }

    /// Closes the cluster to further runs. One that ends with the process needs no such note, nor its journal entry.
    fn close_cluster(&mut self, reason: &str) {
        match self.target.lasting() {
            None => self.proven = Proven::Restored,
            Some(remote) => {
                self.proven = Proven::Open;
                // The record says so too; a store that cannot be written fails the run when the record is kept.
                let _ = self.setting.store.quarantine(&remote.uid, reason);
            }
        }
    }
}
