//! `breakage runs restore --give-up`: ends the runs of clusters that are gone for good, after saying what is left undone.

use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::context::is_yes;
use crate::cli::failure::Failure;
use crate::inject::journal::Place;
use crate::run::abandon::{LeftUndone, abandon, look};
use crate::store::Store;

/// Gives up the clusters of these places, each after a question unless `yes`. Answers what was left in those that were
/// given up.
pub(super) fn give_up(
    context: &Context,
    store: &Store,
    places: &[Place],
    yes: bool,
) -> Result<Vec<LeftUndone>, Failure> {
    let mut given_up = Vec::new();
    for place in places {
        let left = look(store, &place.cluster_uid).map_err(Failure::input)?;
        for line in lines(place, &left) {
            context.output.note(&line);
        }
        if !yes && !agreed()? {
            context.output.note("not given up");
            continue;
        }
        abandon(store, &place.cluster_uid).map_err(Failure::input)?;
        given_up.push(left);
    }
    Ok(given_up)
}

/// Asks; where nobody can answer that is wrong usage.
fn agreed() -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(anyhow::anyhow!(
            "giving a cluster up cannot be taken back, and there is nobody to ask"
        ))
        .hint("breakage runs restore --give-up --yes"));
    }
    anstream::eprint!("Give this cluster up for good? [y/N] ");
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(Failure::input)?;
    Ok(is_yes(&answer))
}

/// What will not be done.
fn lines(place: &Place, left: &LeftUndone) -> Vec<String> {
    let context = place.context.as_deref().unwrap_or("of no known context");
    let mut lines = vec![format!(
        "cluster {} (context {context}) could not be restored; giving it up leaves undone:",
        left.cluster_uid
    )];
    for (run, parts) in &left.faults {
        lines.push(format!("  the fault of run {run}: {}", parts.join(", ")));
    }
    if !left.namespaces.is_empty() {
        lines.push(format!(
            "  the namespaces that breakage made there: {}",
            left.namespaces.join(", ")
        ));
    }
    lines.push(format!(
        "  {} run(s) are recorded as crashed, {} as not run",
        left.crashed.len(),
        left.not_run
    ));
    lines
}

pub(super) fn as_json(left: &LeftUndone) -> Value {
    let faults: Vec<Value> = left
        .faults
        .iter()
        .map(|(run, parts)| json!({"run_id": run, "left": parts}))
        .collect();
    json!({
        "cluster_uid": left.cluster_uid,
        "faults": faults,
        "namespaces": left.namespaces,
        "crashed": left.crashed,
        "not_run": left.not_run,
    })
}
