//! `breakage corpus`: what the experience base holds and what it would serve.

mod account;
mod calibrate;
mod sealed;
mod search;
mod transfer;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::cli::corpus::sealed::Sealed;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::scenario::open_library;
use crate::cli::{Context, printable};
use crate::config::Workspace;
use crate::embed::{BuiltIn, Embedder};
use crate::experience::entry::{Entry, duplicates};
use crate::experience::policy::Policy;
use crate::experience::{ExperienceError, Origin, Reader, seeds};
use crate::ids::{CategoryId, PostmortemId, ScenarioId};
use crate::record::{Outcome, Source};
use crate::scenario::near::did_you_mean;
use crate::store::Store;

/// Past incidents that agents are shown: list, search, carry in and out.
///
/// A workspace that holds none yet is served by the seed postmortems compiled into the program.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: CorpusCommand,
}

impl Args {
    /// Whether the command leaves the store as it is and writes no file.
    pub fn only_reads(&self) -> bool {
        matches!(
            self.command,
            CorpusCommand::List(_) | CorpusCommand::Show(_) | CorpusCommand::Search(_)
        )
    }
}

#[derive(Subcommand, Debug)]
enum CorpusCommand {
    /// List the postmortems
    ///
    /// Example:  breakage corpus list --source production --category probe-misconfigured
    List(ListArgs),
    /// Show one postmortem whole
    ///
    /// Example:  breakage corpus show seed-courier-key-removed
    Show(ShowArgs),
    /// Show what an agent would be served for a text, with distances
    ///
    /// Example:  breakage corpus search "pod crash loops after secret change" --k 5
    Search(SearchArgs),
    /// Store the compiled-in seed postmortems in the workspace; doing it twice changes nothing
    ///
    /// Example:  breakage corpus seed
    Seed(SeedArgs),
    /// Write all postmortems as JSON Lines, in the order of their ids
    ///
    /// Example:  breakage corpus export corpus.jsonl
    Export(ExportArgs),
    /// Store postmortems from a JSON Lines file: all of them, or none when a line is wrong
    ///
    /// Example:  breakage corpus import corpus.jsonl
    Import(ImportArgs),
    /// Compute all vectors of an embedder anew
    ///
    /// Example:  breakage corpus reembed --embedder control
    Reembed(ReembedArgs),
    /// Print the distances that an embedder's threshold is taken from
    #[command(hide = true)]
    Calibrate(EmbedderArg),
}

#[derive(clap::Args, Debug)]
struct EmbedderArg {
    /// Which embedder; control is the published deterministic one and carries no meaning
    #[arg(
        long,
        env = "BREAKAGE_EMBEDDER",
        default_value = "lexical",
        value_name = "NAME"
    )]
    embedder: BuiltIn,
}

#[derive(clap::Args, Debug)]
struct FilterArgs {
    /// Only postmortems from this kind of source; may be given several times
    #[arg(long, value_enum, value_name = "SOURCE")]
    source: Vec<SourceArg>,
    /// Only postmortems with this primary category; may be given several times
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<String>,
    /// Also those in quarantine (from runs without --learn)
    #[arg(long)]
    quarantined: bool,
}

#[derive(clap::Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ShowArgs {
    /// The postmortem's id
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct SearchArgs {
    /// What an agent would ask
    text: String,
    /// How many at most
    #[arg(long, default_value_t = crate::experience::policy::DEFAULT_K, value_name = "N")]
    k: usize,
    /// Cosine distance beyond which nothing is served [default: the embedder's own]
    #[arg(long, env = "BREAKAGE_RETRIEVAL_MAX_DISTANCE", value_name = "DISTANCE")]
    max_distance: Option<f64>,
    /// How many of the nearest are looked at before the distance is applied [default: k]
    #[arg(long, env = "BREAKAGE_RETRIEVAL_POOL_CAP", value_name = "N")]
    pool_cap: Option<usize>,
    /// Leave out postmortems that came from this scenario; may be given several times
    #[arg(long, value_name = "SCENARIO")]
    exclude_scenario: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    embedder: EmbedderArg,
    /// Print JSON, as an agent receives it
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct SeedArgs {
    #[command(flatten)]
    embedder: EmbedderArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ExportArgs {
    /// The file to write; - is standard output [default: -]
    file: Option<PathBuf>,
    /// Replace the file when it exists
    #[arg(long, requires = "file")]
    force: bool,
    /// Print JSON about what was written to the file
    #[arg(long, requires = "file")]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ImportArgs {
    /// The file to read; - is standard input
    file: PathBuf,
    #[command(flatten)]
    embedder: EmbedderArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ReembedArgs {
    #[command(flatten)]
    embedder: EmbedderArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SourceArg {
    IncidentLog,
    Scenario,
    Production,
}

impl SourceArg {
    fn source(self) -> Source {
        match self {
            SourceArg::IncidentLog => Source::IncidentLog,
            SourceArg::Scenario => Source::Scenario,
            SourceArg::Production => Source::Production,
        }
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        CorpusCommand::List(args) => list(context, args)?,
        CorpusCommand::Show(args) => show(context, args)?,
        CorpusCommand::Search(args) => search::run(context, args)?,
        CorpusCommand::Seed(args) => transfer::seed(context, args)?,
        CorpusCommand::Export(args) => transfer::export(context, args)?,
        CorpusCommand::Import(args) => transfer::import(context, args)?,
        CorpusCommand::Reembed(args) => transfer::reembed(context, args)?,
        CorpusCommand::Calibrate(args) => calibrate::run(context, args.embedder)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let reader = reader(context)?;
    let (entries, origin) = reader.entries().map_err(failed)?;
    // Distance and number play no part in a list; the embedder only completes the policy.
    let policy = policy(&args.filter, BuiltIn::Lexical.embedder().as_ref());
    check_filter(context, &policy, &reader)?;
    let sealed = Sealed::among(&reader, &entries)?;
    let entries: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| !sealed.has(&entry.id))
        .collect();
    sealed.note(context);
    let doubles = duplicates(&entries);
    let shown: Vec<&Entry> = entries
        .iter()
        .filter(|entry| policy.admits(entry))
        .collect();
    if args.json {
        let all =
            json!({"count": shown.len(), "origin": origin_name(origin), "postmortems": shown});
        return context.output.json(&all);
    }
    context.output.print(&table_of(&shown, &doubles))?;
    let hidden = entries.len() - shown.len();
    let rest = match hidden {
        0 => String::new(),
        n => format!("; {n} more do not match or are in quarantine"),
    };
    context.output.note(&format!(
        "{} postmortems, {}{rest}",
        shown.len(),
        origin_sentence(origin)
    ));
    Ok(())
}

/// One entry a line; notes have a column only when there are any, so that categories have room.
fn table_of(shown: &[&Entry], doubles: &[(PostmortemId, PostmortemId)]) -> String {
    let notes: Vec<String> = shown
        .iter()
        .map(|entry| {
            let double = doubles.iter().find(|(id, _)| *id == entry.id);
            list_notes(entry, double.map(|(_, first)| first))
        })
        .collect();
    let mut headings = vec!["id", "outcome", "source", "category"];
    let noted = notes.iter().any(|notes| !notes.is_empty());
    if noted {
        headings.push("notes");
    }
    let mut table = Output::table_keeping(&headings, &[0, 1, 2]);
    for (entry, notes) in shown.iter().zip(notes) {
        let mut row = vec![
            entry.id.to_string(),
            outcome_name(entry.outcome).to_owned(),
            source_name(entry.source).to_owned(),
            printable::line(entry.postmortem.primary_category.as_str()),
        ];
        if noted {
            row.push(notes);
        }
        table.add_row(row);
    }
    table.to_string()
}

/// What sets an entry apart from the others.
fn list_notes(entry: &Entry, double_of: Option<&PostmortemId>) -> String {
    let mut notes = Vec::new();
    if entry.quarantined {
        notes.push("in quarantine".to_owned());
    }
    if entry.review {
        notes.push("to be reviewed".to_owned());
    }
    if let Some(first) = double_of {
        notes.push(format!("same text as {first}"));
    }
    notes.join(", ")
}

fn show(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let reader = reader(context)?;
    let (entries, _) = reader.entries().map_err(failed)?;
    let Some(entry) = entries.iter().find(|entry| entry.id.as_str() == args.id) else {
        let ids = entries.iter().map(|entry| entry.id.as_str());
        let unknown = anyhow!(
            "there is no postmortem {:?}{}",
            args.id,
            did_you_mean(&args.id, ids)
        );
        return Err(Failure::input(unknown).hint("`breakage corpus list` shows the ids"));
    };
    Sealed::among(&reader, std::slice::from_ref(entry))?.allow(entry)?;
    if args.json {
        return context.output.json(entry);
    }
    context.output.print(&account::of(entry))
}

fn policy(filter: &FilterArgs, embedder: &dyn Embedder) -> Policy {
    Policy {
        sources: filter.source.iter().map(|source| source.source()).collect(),
        categories: filter
            .category
            .iter()
            .map(CategoryId::new)
            .collect::<BTreeSet<_>>(),
        include_quarantined: filter.quarantined,
        ..Policy::default_for(embedder)
    }
}

/// Refuses categories and scenarios that nobody knows: a misspelt filter would quietly filter something else. What the
/// postmortems themselves say counts as known, as they may come from another vocabulary.
fn check_filter(context: &Context, policy: &Policy, reader: &Reader) -> Result<(), Failure> {
    if policy.categories.is_empty() && policy.excluded_scenarios.is_empty() {
        return Ok(());
    }
    let library = open_library(context)?;
    let (entries, _) = reader.entries().map_err(failed)?;
    let mut categories: BTreeSet<&str> = entries
        .iter()
        .map(|entry| entry.postmortem.primary_category.as_str())
        .collect();
    categories.extend(
        library
            .vocabulary()
            .categories
            .iter()
            .map(|c| c.id.as_str()),
    );
    for category in &policy.categories {
        known("category", category.as_str(), &categories, "vocab list")?;
    }
    let mut scenarios: BTreeSet<&str> = entries
        .iter()
        .filter_map(|entry| entry.scenario_id.as_ref())
        .map(ScenarioId::as_str)
        .collect();
    scenarios.extend(library.scenarios().map(|scenario| scenario.id.as_str()));
    for scenario in &policy.excluded_scenarios {
        known("scenario", scenario.as_str(), &scenarios, "scenario list")?;
    }
    Ok(())
}

fn known(what: &str, id: &str, all: &BTreeSet<&str>, command: &str) -> Result<(), Failure> {
    if all.contains(id) {
        return Ok(());
    }
    let guess = did_you_mean(id, all.iter().copied());
    let unknown = anyhow!("there is no {what} {id:?}{guess}");
    Err(Failure::usage(unknown).hint(format!("`breakage {command}` shows them")))
}

fn workspace(context: &Context) -> Result<Workspace, Failure> {
    Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)
}

/// Reading creates no workspace.
fn reader(context: &Context) -> Result<Reader, Failure> {
    let workspace = workspace(context)?;
    let store = context.existing_store(&workspace)?;
    let seeds = seeds::of_workspace(workspace.folder()).map_err(Failure::input)?;
    Ok(Reader::new(store).with_seeds(seeds))
}

fn store(context: &Context) -> Result<Arc<Store>, Failure> {
    let store = workspace(context)?.store().map_err(Failure::input)?;
    Ok(Arc::new(store))
}

fn failed(error: ExperienceError) -> Failure {
    Failure::input(error)
}

/// Says what to type when the base was embedded by another embedder.
fn not_embedded(error: ExperienceError, embedder: BuiltIn) -> Failure {
    let mends = matches!(error, ExperienceError::NotEmbedded { .. });
    let failure = failed(error);
    if mends {
        failure.hint(format!(
            "`breakage corpus reembed --embedder {}` computes them; nothing else is changed",
            embedder.name()
        ))
    } else {
        failure
    }
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Stored => "stored",
        Origin::CompiledIn => "compiled-in",
    }
}

fn origin_sentence(origin: Origin) -> &'static str {
    match origin {
        Origin::Stored => "from this workspace",
        Origin::CompiledIn => "compiled in, as this workspace holds none",
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Resolved => "resolved",
        Outcome::Regressed => "regressed",
        Outcome::Inconclusive => "inconclusive",
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::IncidentLog => "incident-log",
        Source::Scenario => "scenario",
        Source::Production => "production",
    }
}
