//! `breakage scenario`: list, show, validate, qualify and begin scenario files.

mod compare;
mod new;
mod qualify;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::failure::{Failure, USAGE};
use crate::cli::output::Output;
use crate::cli::scenario::view::{Row, View, word};
use crate::cluster::fixture::Fixtures;
use crate::config::{ConfigError, Workspace};
use crate::scenario::library::{Library, LibraryError};
use crate::scenario::model::{Scenario, Status};
use crate::scenario::problem::Problem;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: ScenarioCommand,
}

#[derive(Subcommand, Debug)]
pub enum ScenarioCommand {
    /// List the scenarios: those compiled in and the workspace's
    ///
    /// Example:  breakage scenario list --tier anchor
    #[command(verbatim_doc_comment)]
    List(ListArgs),
    /// Show one scenario with its truth (not for the eyes of an agent)
    ///
    /// Example:  breakage scenario show secret-missing-key-advocate
    #[command(verbatim_doc_comment)]
    Show(ShowArgs),
    /// Check scenario files: every problem of every file as file:line:column, exit code 1 if there is any
    ///
    /// A file that passes here is one that `breakage run` accepts, and the other way round.
    ///
    /// Example:  breakage scenario validate scenarios/anchor/*.yaml
    #[command(verbatim_doc_comment)]
    Validate(ValidateArgs),
    /// Prove scenarios: the fault bites and lasts, its repair counts, cheating does not pay
    ///
    /// Exit code 2 when a check misses. The result is kept in the workspace: runs of a qualified scenario say so.
    ///
    /// Examples:  breakage scenario qualify --all
    ///            breakage scenario qualify ./my-scenario.yaml
    ///            breakage scenario qualify --published
    ///            breakage scenario qualify replicas-zero-advocate --context lab --depth repair
    #[command(verbatim_doc_comment)]
    Qualify(qualify::Args),
    Compare(compare::Args),
    /// Write a commented scenario file to start from, which validates and qualifies as it is
    ///
    /// Example:  breakage scenario new my-scenario
    #[command(verbatim_doc_comment)]
    New(new::Args),
}

#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// Only this tier
    #[arg(long, value_parser = ["anchor", "coverage", "retired"])]
    pub tier: Option<String>,
    /// The published benchmark's faults instead, which are there to be audited
    #[arg(long)]
    pub published: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct ShowArgs {
    /// Id of a scenario, or the path of a file
    pub scenario: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args, Debug)]
pub struct ValidateArgs {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        ScenarioCommand::List(args) => list(context, &open_library(context)?, args),
        ScenarioCommand::Show(args) => show(context, &open_library(context)?, args),
        ScenarioCommand::Validate(args) => validate(context, &open_library(context)?, args),
        ScenarioCommand::Qualify(args) => qualify::run(context, args),
        ScenarioCommand::Compare(args) => compare::run(context, args),
        ScenarioCommand::New(args) => new::run(context, args),
    }
}

/// What is compiled in, with the workspace's overrides; a person without a data folder has none.
pub fn open_library(context: &Context) -> Result<Library, Failure> {
    let workspace = match Workspace::locate(context.global.workspace.as_deref()) {
        Ok(workspace) => Some(workspace),
        Err(ConfigError::NoDataFolder) => None,
        Err(error) => return Err(Failure::input(error)),
    };
    let library =
        Library::open(workspace.as_ref().map(Workspace::folder)).map_err(Failure::input)?;
    for path in library.overrides() {
        context
            .output
            .note(&format!("in use from the workspace: {}", path.display()));
    }
    Ok(library)
}

/// The fixtures compiled in and the workspace's.
fn open_fixtures(context: &Context) -> Result<Fixtures, Failure> {
    match Workspace::locate(context.global.workspace.as_deref()) {
        Ok(workspace) => Fixtures::open(workspace.folder()).map_err(Failure::input),
        Err(ConfigError::NoDataFolder) => Ok(Fixtures::compiled_in()),
        Err(error) => Err(Failure::input(error)),
    }
}

fn list(context: &Context, library: &Library, args: &ListArgs) -> Result<ExitCode, Failure> {
    let scenarios: Vec<&Scenario> = if args.published {
        library.published().collect()
    } else {
        library.scenarios().collect()
    };
    let rows: Vec<Row<'_>> = scenarios
        .into_iter()
        .map(Row::of)
        .filter(|row| {
            args.tier
                .as_deref()
                .is_none_or(|tier| word(&row.tier) == tier)
        })
        .collect();
    for problems in library.broken() {
        context.output.note(&format!(
            "not listed, because it does not load:\n{problems}"
        ));
    }
    if args.json {
        context
            .output
            .json(&json!({"count": rows.len(), "scenarios": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Output::table_keeping(&["id", "tier", "symptom", "difficulty", "notes"], &[0]);
    for row in &rows {
        table.add_row([
            row.id,
            &word(&row.tier),
            row.symptom_class,
            row.difficulty,
            &notes(row),
        ]);
    }
    context.output.print(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// What is particular about a scenario, in few words.
fn notes(row: &Row<'_>) -> String {
    let mut notes = Vec::new();
    if row.status != Status::Active {
        notes.push(word(&row.status));
    }
    if !row.needs.is_empty() {
        notes.push(format!("needs {}", row.needs.join(", ")));
    }
    if row.is_override {
        notes.push("override".to_owned());
    }
    notes.join("; ")
}

fn show(context: &Context, library: &Library, args: &ShowArgs) -> Result<ExitCode, Failure> {
    let loaded = library.loaded(&args.scenario).map_err(unusable)?;
    let view = View::of(&loaded.scenario);
    if args.json {
        context.output.json(&view)?;
    } else {
        context.output.print(&view.text())?;
    }
    for warning in &loaded.warnings {
        context
            .output
            .note(&format!("warning: {}", warning.line(&args.scenario)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A library's error as a failed command, with what to type next.
pub fn unusable(error: LibraryError) -> Failure {
    let unknown = matches!(
        error,
        LibraryError::NotFound {
            what: "scenario",
            ..
        }
    );
    let failure = Failure::input(error);
    if unknown {
        failure.hint("`breakage scenario list` shows every id; a file is given by its path")
    } else {
        failure
    }
}

fn validate(
    context: &Context,
    library: &Library,
    args: &ValidateArgs,
) -> Result<ExitCode, Failure> {
    let fixtures = open_fixtures(context)?;
    let mut reports = Vec::new();
    let mut lines = Vec::new();
    let mut bad = 0;
    for file in &args.files {
        let name = file.display().to_string();
        let (problems, warnings) = match library.load_file(file) {
            Ok(loaded) => match fixtures.load(&loaded.scenario.fixture) {
                Ok(_) => (Vec::new(), loaded.warnings),
                // A scenario that waits for something else, such as the OpenTelemetry demo, says so in `needs`.
                Err(_) if !loaded.scenario.needs.is_empty() => (Vec::new(), loaded.warnings),
                Err(error) => {
                    lines.push(format!("{name}: fixture: {error}"));
                    reports.push(json!({"file": name, "valid": false, "error": error.to_string()}));
                    bad += 1;
                    continue;
                }
            },
            Err(LibraryError::Problems(problems)) => (problems.items, Vec::new()),
            Err(other) => {
                let cause = anyhow!(other);
                lines.push(format!("{name}: {cause:#}"));
                reports.push(json!({"file": name, "valid": false, "error": format!("{cause:#}")}));
                bad += 1;
                continue;
            }
        };
        bad += usize::from(!problems.is_empty());
        lines.extend(problems.iter().map(|problem| problem.line(&name)));
        lines.extend(
            warnings
                .iter()
                .map(|warning| format!("{} (warning)", warning.line(&name))),
        );
        reports.push(json!({
            "file": name,
            "valid": problems.is_empty(),
            "problems": problems.iter().map(located).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(located).collect::<Vec<_>>(),
        }));
    }
    if args.json {
        context
            .output
            .json(&json!({"files": reports, "invalid": bad}))?;
    } else {
        let count = args.files.len();
        lines.push(match bad {
            0 => format!("{count} file(s) valid"),
            bad => format!("{bad} of {count} file(s) invalid"),
        });
        context.output.print(&lines.join("\n"))?;
    }
    Ok(if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(USAGE)
    })
}

fn located(problem: &Problem) -> Value {
    json!({
        "line": problem.at.line,
        "column": problem.at.column,
        "field": problem.field,
        "message": problem.message,
    })
}
