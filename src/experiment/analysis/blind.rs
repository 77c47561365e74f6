//! Results without the names of the arms: whoever checks runs, exclusions and drift does not know yet which arm is which.
//!
//! The arms are called `arm-1`, `arm-2` ... in an order that the registration's hash decides, and the first takes the
//! control's place, whichever it is. What would give them away is left out: agents, retrieval, what was served, and the
//! decision, whose sign would be the other's as often as not.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::experiment::analysis::model::Analysis;
use crate::experiment::analysis::{AnalysisError, analyze};
use crate::experiment::ledger::{Entry, Event, Exposure};
use crate::experiment::plan::Retrieval;
use crate::experiment::registration::Registration;
use crate::ids::{ArmId, RegistrationHash};

/// Stands where something would give an arm away.
const HIDDEN: &str = "hidden";

/// Whether the arms' names are to be kept back: the plan says so, and nobody has unblinded it.
pub fn is_blinded(registration: &Registration, entries: &[Entry]) -> bool {
    let unblinded = |entry: &Entry| matches!(entry.event, Event::Unblinded { .. });
    registration.plan.blinded && !entries.iter().any(unblinded)
}

/// As [`analyze`], without the names. A treatment that was not delivered is told all the same: then there is nothing to
/// be blind for.
pub fn analyze_blinded(
    hash: &RegistrationHash,
    registration: &Registration,
    entries: &[Entry],
) -> Result<Analysis, AnalysisError> {
    let open = analyze(hash, registration, entries)?;
    if !open.manipulation.passed {
        return Ok(open);
    }
    let names = names(hash, registration);
    let blinded = renamed(registration, &names);
    let entries: Vec<Entry> = entries
        .iter()
        .map(|one| renamed_entry(one, &names))
        .collect();
    let mut analysis = analyze(hash, &blinded, &entries)?;
    analysis.manipulation = open.manipulation;
    analysis.manipulation.exposure.clear();
    analysis.manipulation.checks.clear();
    for arm in &mut analysis.registration.arms {
        arm.agent = HIDDEN.to_owned();
        arm.agent_version = HIDDEN.to_owned();
        arm.retrieval = HIDDEN.to_owned();
        arm.context = None;
    }
    analysis.decision.row = None;
    analysis.decision.decision = "not told while the arms are blinded".to_owned();
    analysis.decision.because =
        "arms are named by chance, and so is the sign of every difference; --unblind names them, which the ledger then tells"
            .to_owned();
    Ok(analysis)
}

/// Arms in the order of SHA-256 of `blind:<hash>:<arm>`, with the names that they go by.
fn names(hash: &RegistrationHash, registration: &Registration) -> BTreeMap<ArmId, ArmId> {
    let mut arms: Vec<&ArmId> = registration.plan.arms.iter().map(|arm| &arm.id).collect();
    arms.sort_by_cached_key(|arm| -> [u8; 32] {
        Sha256::digest(format!("blind:{hash}:{arm}").as_bytes()).into()
    });
    arms.into_iter()
        .zip(1..)
        .map(|(arm, number)| (arm.clone(), ArmId::new(format!("arm-{number}"))))
        .collect()
}

fn renamed(registration: &Registration, names: &BTreeMap<ArmId, ArmId>) -> Registration {
    let mut renamed = registration.clone();
    let plan = &mut renamed.plan;
    for arm in &mut plan.arms {
        arm.retrieval = Retrieval::Off;
        arm.id = name(&arm.id, names);
    }
    plan.arms.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(first) = plan.arms.first() {
        plan.control = first.id.clone();
    }
    for arm in &mut renamed.arms {
        arm.id = name(&arm.id, names);
    }
    renamed
}

fn renamed_entry(entry: &Entry, names: &BTreeMap<ArmId, ArmId>) -> Entry {
    let mut renamed = entry.clone();
    if let Event::Ran(run) = &mut renamed.event {
        run.cell.arm = name(&run.cell.arm, names);
        run.exposure = Exposure::default();
    }
    renamed
}

fn name(arm: &ArmId, names: &BTreeMap<ArmId, ArmId>) -> ArmId {
    names.get(arm).cloned().unwrap_or_else(|| arm.clone())
}
