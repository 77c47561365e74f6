//! `breakage runs`: the records that runs left, scoring them again, and undoing what a run left that was cut off.

mod give_up;
mod restore;
mod sealed;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::run::account;
use crate::cli::scenario::open_library;
use crate::config::Workspace;
use crate::experiment::seal;
use crate::ids::RunId;
use crate::record::{Record, RunState};
use crate::run::Finished;
use crate::run::summary::{Summary, state_of};
use crate::scenario::library::{DEFAULT_RUBRIC, Library};
use crate::scenario::load;
use crate::scenario::model::Scenario;
use crate::score::{self, Score};
use crate::store::Store;

/// List, show and rescore the records of runs, undo what a run left that was cut off
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// List every run, oldest first, scored under the rubric that it was run with
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one run
    Show {
        /// The run's id, its beginning when that is unique, or `last`
        id: String,
        /// Show a run of an experiment that has not ended. The ledger keeps that for ever
        #[arg(long)]
        unseal: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Score a run's evidence under a rubric; the record stays as it is
    Rescore {
        /// The run's id, its beginning when that is unique, or `last`
        id: String,
        /// The rubric
        #[arg(long, default_value = DEFAULT_RUBRIC)]
        rubric: String,
        /// Score a run of an experiment that has not ended. The ledger keeps that for ever
        #[arg(long)]
        unseal: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Restore(restore::Args),
}

impl Args {
    /// Whether the command leaves the store as it is, but for a broken seal.
    pub fn only_reads(&self) -> bool {
        !matches!(self.command, Command::Restore(_))
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    // It writes, so it opens the store for itself.
    if let Command::Restore(args) = &args.command {
        return restore::run(context, args);
    }
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let library = open_library(context)?;
    let store = context.existing_store(&workspace)?;
    let store = store.as_ref();
    match &args.command {
        Command::List { json } => list(context, &library, store, *json)?,
        Command::Show { id, unseal, json } => {
            let record = find(store, id)?;
            sealed::allow(store, &record, "runs show", *unseal)?;
            let rubric = record.rubric.to_string();
            show(context, &library, record, &rubric, *json)?;
        }
        Command::Rescore {
            id,
            rubric,
            unseal,
            json,
        } => {
            let record = find(store, id)?;
            sealed::allow(store, &record, "runs rescore", *unseal)?;
            show(context, &library, record, rubric, *json)?;
        }
        Command::Restore(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn list(
    context: &Context,
    library: &Library,
    store: Option<&Arc<Store>>,
    json: bool,
) -> Result<(), Failure> {
    let records = match store {
        Some(store) => store.records().map_err(Failure::input)?,
        None => Vec::new(),
    };
    let sealed = match store {
        Some(store) => seal::sealed(store).map_err(Failure::input)?,
        None => BTreeSet::new(),
    };
    let is_sealed = |record: &Record| {
        let place = record.experiment.as_ref();
        place.is_some_and(|place| sealed.contains(&place.registration))
    };
    let rows: Vec<(Record, Option<Score>)> = records
        .into_iter()
        .map(|record| {
            if is_sealed(&record) {
                return (record, None);
            }
            let rubric = record.rubric.to_string();
            let score = rescore(library, &record, &rubric).ok().flatten();
            (record, score)
        })
        .collect();
    if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(record, score)| row(record, score, is_sealed(record)))
            .collect();
        return context.output.json(&rows);
    }
    if rows.is_empty() {
        return context
            .output
            .print("No runs yet. Start with: breakage run secret-missing-key-advocate");
    }
    table(context, &rows, is_sealed)
}

/// A scored run and one that ran out of time are told apart by what the agent did, which a seal covers too.
const SEALED: &str = "sealed";

fn table(
    context: &Context,
    rows: &[(Record, Option<Score>)],
    is_sealed: impl Fn(&Record) -> bool,
) -> Result<(), Failure> {
    let mut table = Output::table_keeping(
        &["run", "agent", "state", "rubric", "total", "qualified"],
        &[0, 2],
    );
    let longest = rows.iter().map(|(record, _)| record.run_id.as_str().len());
    Output::widen_for_id(&mut table, longest.max().unwrap_or(0));
    let mut unscorable = 0;
    for (record, score) in rows {
        let (state, code, _) = state_of(&record.state);
        let counts = matches!(record.state, RunState::Scored | RunState::Timeout);
        let hidden = counts && is_sealed(record);
        table.add_row([
            record.run_id.to_string(),
            record.agent.label(),
            // A framework error's code says more than the word, and no state has the name of a code.
            (if hidden {
                SEALED
            } else {
                code.unwrap_or(state)
            })
            .to_owned(),
            record.rubric.to_string(),
            match score {
                Some(score) => score.total.to_string(),
                None if hidden => SEALED.to_owned(),
                None => "-".to_owned(),
            },
            (if record.qualified { "yes" } else { "no" }).to_owned(),
        ]);
        unscorable += usize::from(counts && score.is_none() && !hidden);
    }
    context.output.print(&table.to_string())?;
    if unscorable > 0 {
        context.output.note(&format!(
            "{unscorable} runs have no total, because their rubric or vocabulary is not here any more; \
             breakage runs rescore ID --rubric {DEFAULT_RUBRIC} scores them under another"
        ));
    }
    Ok(())
}

fn row(record: &Record, score: &Option<Score>, sealed: bool) -> serde_json::Value {
    let (mut state, code, _) = state_of(&record.state);
    if sealed && matches!(record.state, RunState::Scored | RunState::Timeout) {
        state = SEALED;
    }
    json!({
        "run_id": record.run_id,
        "scenario_id": record.scenario_id,
        "seed": record.seed,
        "agent": record.agent.name,
        "agent_simulation": record.agent.simulation,
        "rubric": record.rubric,
        "state": state,
        "state_code": code,
        "qualified": record.qualified,
        "healthy": record.healthy,
        "experiment": record.experiment,
        "sealed": sealed,
        "total": score.as_ref().map(|score| score.total.as_f64()),
        "ran_at": record.ran_at,
    })
}

fn show(
    context: &Context,
    library: &Library,
    record: Record,
    rubric: &str,
    json: bool,
) -> Result<(), Failure> {
    let score = rescore(library, &record, rubric)?;
    if json {
        return context.output.json(&Summary::of(&record, score.as_ref()));
    }
    let scenario = scenario_of(library, &record)?;
    let finished = Finished { record, score };
    context.output.print(&account::of(&scenario, &finished))
}

/// What stands for the newest run.
const NEWEST: &str = "last";

/// Ids named in full when a beginning is ambiguous; more do not help.
const IDS_NAMED: usize = 5;

/// The newest record of a run id, of the only run whose id begins so, or of all (`last`).
fn find(store: Option<&Arc<Store>>, id: &str) -> Result<Record, Failure> {
    let missing =
        || Failure::input(anyhow::anyhow!("there is no run {id}")).hint("breakage runs list");
    let store = store.ok_or_else(missing)?;
    if let Some(record) = store.record(&RunId::new(id)).map_err(Failure::input)? {
        return Ok(record);
    }
    let mut records = store.records().map_err(Failure::input)?;
    if id == NEWEST {
        return records.pop().ok_or_else(missing);
    }
    let mut matching: Vec<Record> = records
        .into_iter()
        .filter(|record| record.run_id.as_str().starts_with(id))
        .collect();
    let first = matching.first().map(|record| record.run_id.clone());
    if matching
        .iter()
        .any(|record| Some(&record.run_id) != first.as_ref())
    {
        let named = matching.iter().take(IDS_NAMED);
        let ids: Vec<&str> = named.map(|record| record.run_id.as_str()).collect();
        let more = match matching.len().saturating_sub(IDS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Err(Failure::input(anyhow::anyhow!(
            "{id} begins {} runs: {}{more}",
            matching.len(),
            ids.join(", ")
        ))
        .hint("name more of the id (breakage runs list), or `last` for the newest run"));
    }
    matching.pop().ok_or_else(missing)
}

/// Scores a record under a rubric; nothing for runs that do not count.
pub(in crate::cli) fn rescore(
    library: &Library,
    record: &Record,
    rubric: &str,
) -> Result<Option<Score>, Failure> {
    let rubric = library.rubric(rubric).map_err(|error| {
        let known: Vec<&str> = library.rubrics().map(|rubric| rubric.id.as_str()).collect();
        Failure::input(error).hint(format!("--rubric takes one of {}", known.join(", ")))
    })?;
    let scenario = scenario_of(library, record)?;
    Ok(score::score(&scenario, record, rubric, library.vocabulary()).ok())
}

/// The scenario that a record came from: the very text that ran, whatever became of its file since.
pub(in crate::cli) fn scenario_of(library: &Library, record: &Record) -> Result<Scenario, Failure> {
    if record.scenario_text.is_empty() {
        return unkept_scenario(library, record);
    }
    let file = format!("{} (as kept in the record)", record.scenario_id);
    let loaded = load::scenario(&record.scenario_text, &file, library.vocabulary())
        .map_err(|problems| {
            Failure::input(anyhow::anyhow!("{problems}"))
                .hint("a vocabulary in the workspace may lack what the scenario names: breakage vocab list")
        })?;
    let mut scenario = loaded.scenario;
    scenario.is_override = record.scenario_override;
    Ok(scenario)
}

/// For records from before the text was kept: the library's scenario, if it still is the same text.
fn unkept_scenario(library: &Library, record: &Record) -> Result<Scenario, Failure> {
    let scenario = library
        .scenario(record.scenario_id.as_str())
        .map_err(Failure::input)?;
    if scenario.sha256 == record.scenario_sha256 {
        return Ok(scenario);
    }
    Err(Failure::input(anyhow::anyhow!(
        "scenario {} has changed since run {}, and the record does not hold its text",
        record.scenario_id,
        record.run_id
    )))
}
