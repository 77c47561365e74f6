//! What a recovery found and did, in words and as JSON.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::context::restore_command;
use crate::run::recover::{Outcome, RecoveredRun, Recovery};
use crate::run::standing::Proof;

/// Fields and differences named in a line; more are counted.
const NAMED: usize = 5;

/// One line for each thing that a person should know. Runs that never began are told as one number.
pub fn lines(context: &Context, recovery: &Recovery) -> Vec<String> {
    let mut lines: Vec<String> = recovery
        .runs
        .iter()
        .filter_map(|run| line(context, run))
        .collect();
    let unbegun = recovery
        .runs
        .iter()
        .filter(|run| run.outcome == Outcome::NotRun);
    match unbegun.count() {
        0 => {}
        1 => lines.push("1 planned run had not been kept; it is recorded as not_run".to_owned()),
        many => lines.push(format!(
            "{many} planned runs had not been kept; they are recorded as not_run"
        )),
    }
    lines.extend(recovery.proof.iter().flat_map(proven));
    if recovery.reopened.is_some() {
        lines.push("the cluster is open to runs again".to_owned());
    }
    if let Some(reason) = &recovery.left {
        lines.push(format!("warning: the cluster is not restored: {reason}"));
    }
    lines
}

fn line(context: &Context, recovered: &RecoveredRun) -> Option<String> {
    let RecoveredRun {
        run,
        place,
        outcome,
    } = recovered;
    Some(match outcome {
        Outcome::Gone => {
            format!("run {run} was cut off; its embedded cluster ended with it, nothing is left")
        }
        Outcome::Undone(undone) if undone.restored.is_empty() => {
            format!("run {run} was cut off; its fault was not, or no longer, in the cluster")
        }
        Outcome::Undone(undone) => format!(
            "run {run} was cut off; its fault is undone: {}",
            named(&undone.restored)
        ),
        Outcome::CutOff => format!("run {run} was cut off before its fault was written"),
        Outcome::NotRun => return None,
        Outcome::Failed { .. } => format!("warning: the fault of run {run} may still be there"),
        Outcome::Elsewhere => format!(
            "warning: run {run} was cut off on another cluster ({}); there: {}",
            place.cluster_uid,
            restore_command(context, place)
        ),
    })
}

fn named(all: &[String]) -> String {
    let shown = all
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn proven(proof: &Proof) -> Vec<String> {
    match proof {
        Proof::NothingStood => Vec::new(),
        Proof::Removed => {
            vec!["the fixture had never stood whole; its namespaces are removed".to_owned()]
        }
        Proof::AsReference {
            fixture,
            before,
            after,
            elsewhere,
        } => {
            let mut lines = vec![if before == after {
                format!("fixture {fixture} is as it was: state hash {after}")
            } else {
                format!("the namespaces of fixture {fixture} are as they were")
            }];
            if !elsewhere.is_empty() {
                let told: Vec<String> = elsewhere.iter().map(ToString::to_string).collect();
                lines.push(format!(
                    "warning: other namespaces differ from before the run, and are not breakage's to mend: {}",
                    named(&told)
                ));
            }
            lines
        }
    }
}

/// The same for programs.
pub fn as_json(context: &Context, recovery: &Recovery) -> Value {
    let runs: Vec<Value> = recovery
        .runs
        .iter()
        .map(|recovered| {
            let mut value = json!({
                "run_id": recovered.run,
                "context": recovered.place.context,
                "outcome": word(&recovered.outcome),
            });
            match &recovered.outcome {
                Outcome::Undone(undone) => {
                    value["restored"] = json!(undone.restored);
                    value["kept"] = json!(undone.kept);
                }
                Outcome::Failed { reason } => value["reason"] = json!(reason),
                Outcome::Elsewhere => {
                    value["hint"] = json!(restore_command(context, &recovered.place));
                }
                Outcome::Gone | Outcome::CutOff | Outcome::NotRun => {}
            }
            value
        })
        .collect();
    let proof = recovery.proof.as_ref().map(|proof| match proof {
        Proof::NothingStood => json!({"state": "nothing-stood"}),
        Proof::Removed => json!({"state": "removed"}),
        Proof::AsReference {
            fixture,
            before,
            after,
            elsewhere,
        } => json!({
            "state": "as-reference",
            "fixture": fixture,
            "state_hash_before": before,
            "state_hash_after": after,
            "elsewhere": elsewhere.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
    });
    json!({
        "runs": runs,
        "proof": proof,
        "reopened": recovery.reopened.is_some(),
        "left": recovery.left,
    })
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Gone => "gone",
        Outcome::Undone(_) => "undone",
        Outcome::CutOff => "cut-off",
        Outcome::NotRun => "not-run",
        Outcome::Failed { .. } => "left",
        Outcome::Elsewhere => "elsewhere",
    }
}
