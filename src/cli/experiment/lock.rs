//! `breakage experiment lock`: writes a plan down so that nobody can change it unseen.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::experiment::plan_file::{self, Place};
use crate::cli::experiment::plan_text;
use crate::cli::failure::Failure;
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain;
use crate::experiment::lock::{self, Outcome, Resolved};
use crate::experiment::locked::short;
use crate::experiment::power::{self, Forecast};
use crate::ids::RegistrationHash;
use crate::store::Store;

/// Where a workspace keeps what belongs to its experiments.
const EXPERIMENTS: &str = "experiments";
/// The canonical JSON, byte for byte: its SHA-256 is the registration's hash.
const REGISTRATION_FILE: &str = "registration.json";

/// Lock a plan: check it, resolve what it names, print it, and keep it under its hash
///
/// Scenarios, rubric, vocabulary, agents and the corpus are kept with their hashes. The same plan a second time changes
/// nothing; another plan under the same id is refused.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment lock my.yaml
  breakage experiment lock my.yaml --json | jq -r .publish")]
pub struct Args {
    /// The plan
    #[arg(value_name = "PLAN.yaml")]
    pub plan: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let (loaded, library) = plan_file::open(context, &args.plan)?;
    let place = plan_file::place(context)?;
    let resolved = plan_file::resolve(context, &place, &loaded, &library)?;
    let provenance = plan_file::provenance(&place.workspace);
    let outcome = lock::lock(&place.store, &resolved, &provenance)
        .map_err(|error| plan_file::failure(error, Some(&args.plan)))?;
    let note = if outcome.is_new {
        "locked"
    } else {
        "was locked already, nothing changed:"
    };
    told(context, &place, &resolved, &outcome, note, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what was locked, and writes the registration where a person finds it.
pub(super) fn told(
    context: &Context,
    place: &Place,
    resolved: &Resolved,
    outcome: &Outcome,
    note: &str,
    as_json: bool,
) -> Result<(), Failure> {
    let text = kept(&place.store, &outcome.hash)?;
    let file = write_registration(&place.workspace, &outcome.hash, &text)?;
    let plan = &resolved.registration.plan;
    let forecast = power::forecast(plan);
    let publish = publish(&place.store, plan.id.as_str(), &outcome.hash)?;
    if as_json {
        let mut answer = answer(resolved, outcome, &forecast);
        answer["file"] = json!(file);
        answer["publish"] = json!(publish);
        return context.output.json(&answer);
    }
    let plan_lines = plan_text::plan(&resolved.registration);
    let operating = plan_text::operating(plan, &resolved.registration.operating);
    let short = short(outcome.hash.as_str());
    context.output.print(&format!(
        "{plan_lines}\n\n{operating}\n\n{note} {}\nregistration: {}\n\npublish before the first run (docs/experiments.md says \
         where):\n  {publish}\n\nnext:  breakage experiment run {short}",
        outcome.hash,
        file.display()
    ))?;
    warn(context, resolved, &forecast);
    Ok(())
}

fn warn(context: &Context, resolved: &Resolved, forecast: &Forecast) {
    let output = &context.output;
    for (scenario, reason) in &resolved.exceptions {
        output.note(&format!("warning: {scenario} is not qualified: {reason}"));
    }
    for line in plan_text::dead(&resolved.dead) {
        output.note(&format!("warning: {line}"));
    }
    for warning in &forecast.warnings {
        output.note(&format!("warning: {warning}"));
    }
    if resolved.registration.arms.iter().any(|arm| arm.simulation) {
        output.note(
            "note: an agent of this plan only plays one; its results are no evidence about agents",
        );
    }
}

fn answer(resolved: &Resolved, outcome: &Outcome, forecast: &Forecast) -> Value {
    let registration = &resolved.registration;
    let exceptions: Vec<Value> = resolved
        .exceptions
        .iter()
        .map(|(scenario, reason)| json!({"scenario": scenario, "reason": reason}))
        .collect();
    json!({
        "registration": outcome.hash,
        "id": registration.plan.id,
        "new": outcome.is_new,
        "amends": registration.amends,
        "runs": registration.plan.runs(),
        "corpus": registration.corpus,
        "operating": registration.operating,
        "dead_axes": resolved.dead,
        "unqualified": exceptions,
        "power": forecast,
    })
}

fn kept(store: &Store, hash: &RegistrationHash) -> Result<String, Failure> {
    let text = store.registration(hash.as_str()).map_err(Failure::input)?;
    text.ok_or_else(|| Failure::internal(anyhow::anyhow!("registration {hash} was not kept")))
}

/// Where the workspace keeps the copy of a registration.
pub(super) fn registration_file(workspace: &Path, hash: &str) -> PathBuf {
    let folder = workspace.join(EXPERIMENTS).join(short(hash));
    folder.join(REGISTRATION_FILE)
}

/// Writes the canonical JSON into the workspace, through a temporary neighbour.
fn write_registration(
    workspace: &Path,
    hash: &RegistrationHash,
    text: &str,
) -> Result<PathBuf, Failure> {
    let file = registration_file(workspace, hash.as_str());
    let folder = file.parent().unwrap_or(workspace).to_owned();
    let written = (|| {
        std::fs::create_dir_all(&folder)?;
        let mut out = tempfile::NamedTempFile::new_in(&folder)?;
        out.write_all(text.as_bytes())?;
        out.persist(&file)?;
        Ok::<(), std::io::Error>(())
    })();
    written
        .with_context(|| {
            format!(
                "experiment {} is locked, but {} cannot be written; give the command again",
                short(hash.as_str()),
                file.display()
            )
        })
        .map_err(Failure::input)?;
    Ok(file)
}

/// One line that pins the registration wherever it is published: id, hash, when it was locked.
pub(super) fn publish(store: &Store, id: &str, hash: &RegistrationHash) -> Result<String, Failure> {
    let entries = chain::read(store, hash).map_err(Failure::input)?;
    let at = entries
        .iter()
        .find(|entry| matches!(entry.event, Event::Locked { .. }))
        .map_or("", |entry| &entry.at);
    let date = at.get(..10).unwrap_or(at);
    Ok(format!("{id} sha256:{hash} {date}"))
}
