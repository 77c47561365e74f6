//! `breakage corpus search`: what an agent would be served for a text, and how much else lies near.

use serde::Serialize;

use crate::cli::Context;
use crate::cli::corpus::sealed::Sealed;
use crate::cli::corpus::{
    SearchArgs, account, check_filter, failed, not_embedded, origin_sentence, outcome_name, policy,
    reader,
};
use crate::cli::failure::Failure;
use crate::cli::printable;
use crate::experience::policy::Policy;
use crate::experience::snapshot::{Hit, Snapshot};
use crate::ids::ScenarioId;
use crate::record::Exemplar;

/// Characters of a diagnosis in a search's answer: one line of a table beside the distance.
const DIAGNOSIS_CHARS: usize = 90;

/// The largest cosine distance: everything is within it.
const ANY_DISTANCE: f64 = 2.0;

/// What an agent receives for a text.
#[derive(Serialize)]
struct Answer {
    count: usize,
    results: Vec<Exemplar>,
}

pub(super) fn run(context: &Context, args: &SearchArgs) -> Result<(), Failure> {
    let embedder = args.embedder.embedder.embedder();
    let policy = Policy {
        k: args.k,
        max_distance: args
            .max_distance
            .unwrap_or_else(|| embedder.default_max_distance()),
        pool_cap: args.pool_cap,
        excluded_scenarios: args.exclude_scenario.iter().map(ScenarioId::new).collect(),
        ..policy(&args.filter, embedder.as_ref())
    };
    policy.check().map_err(Failure::usage)?;
    let reader = reader(context)?;
    check_filter(context, &policy, &reader)?;
    let snapshot = reader
        .snapshot(embedder.as_ref())
        .map_err(|error| not_embedded(error, args.embedder.embedder))?;
    let (entries, _) = reader.entries().map_err(failed)?;
    let sealed = Sealed::among(&reader, &entries)?;
    let snapshot = snapshot.without(|entry| sealed.has(&entry.id));
    sealed.note(context);
    let hits = snapshot
        .similar_to(embedder.as_ref(), &args.text, &policy)
        .map_err(failed)?;
    if args.json {
        let results: Vec<Exemplar> = hits.iter().map(Hit::exemplar).collect();
        return context.output.json(&Answer {
            count: results.len(),
            results,
        });
    }
    if !hits.is_empty() {
        let rows = hits.iter().flat_map(found).collect();
        context.output.print(&account::wrapped(rows))?;
    }
    let everything = Policy {
        k: usize::MAX,
        max_distance: ANY_DISTANCE,
        pool_cap: None,
        ..policy.clone()
    };
    let by_distance = snapshot
        .similar_to(embedder.as_ref(), &args.text, &everything)
        .map_err(failed)?;
    context
        .output
        .note(&note(&snapshot, &policy, &by_distance, hits.len()));
    Ok(())
}

/// A hit in two rows: what it is, what it says.
fn found(hit: &Hit<'_>) -> [(String, String); 2] {
    let what = format!(
        "{}  {}  {}",
        hit.entry.id,
        outcome_name(hit.entry.outcome),
        printable::line(hit.entry.postmortem.primary_category.as_str()),
    );
    let says = printable::short(&hit.entry.postmortem.final_diagnosis, DIAGNOSIS_CHARS);
    [
        (format!("{:.3}", hit.distance), what),
        (String::new(), says),
    ]
}

/// What was searched, how many lie near enough and how many of them are shown, and the nearest when none is near enough.
fn note(snapshot: &Snapshot, policy: &Policy, by_distance: &[Hit<'_>], shown: usize) -> String {
    let within = by_distance
        .iter()
        .filter(|hit| hit.distance <= policy.max_distance)
        .count();
    let of_them = match shown {
        _ if within == 0 => String::new(),
        0 if policy.k == 0 => ", none shown as k is 0".to_owned(),
        all if all == within => ", all shown".to_owned(),
        some => format!(", the nearest {some} shown"),
    };
    let mut note = format!(
        "{within} of {} postmortems within {}{of_them} ({}, {})",
        snapshot.eligible(policy),
        policy.max_distance,
        snapshot.embedder(),
        origin_sentence(snapshot.origin()),
    );
    if !snapshot.without_vector().is_empty() {
        note.push_str(&format!(
            "; {} cannot be found until `breakage corpus reembed`",
            snapshot.without_vector().len()
        ));
    }
    if let (0, Some(hit)) = (within, by_distance.first()) {
        note.push_str(&format!(
            "; the nearest is {} at {:.3}",
            hit.entry.id, hit.distance
        ));
    }
    note
}
