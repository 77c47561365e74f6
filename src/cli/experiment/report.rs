//! `breakage experiment report`: everything that an experiment says, as text, Markdown, HTML, JSON or CSV.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cli::Context;
use crate::cli::experiment::analyze::{Asked, analysis};
use crate::cli::experiment::reading;
use crate::cli::failure::Failure;
use crate::cli::printable;
use crate::config::Workspace;
use crate::experiment::analysis::model::Analysis;
use crate::experiment::calibrate;
use crate::experiment::locked::short;
use crate::report::experiment;

/// Folder of a workspace that reports are written to.
const REPORTS: &str = "reports";

/// Write the report of an experiment: verdict, every run's fate, every test, every check
///
/// HTML is one file with its plots inside; it is written to the workspace's folder `reports` where no file is named.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment report my-experiment
  breakage experiment report 4b1f0d2c --format html --open
  breakage experiment report 4b1f0d2c --format csv --output runs.csv      one row per run, for R or Python
  breakage experiment report 4b1f0d2c --format results-csv                one row per comparison and scenario")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// text, md, html, json, csv (runs) or results-csv [default: by the ending of --output, else text]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,
    /// Write to a file instead of printing
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write HTML and open it in the browser
    #[arg(long)]
    pub open: bool,
    /// Read the scores before the end; the ledger says so for ever, and the report is exploratory
    #[arg(long)]
    pub unseal: bool,
    /// Name the arms of a blinded plan; the ledger says so for ever
    #[arg(long)]
    pub unblind: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Md,
    Html,
    Json,
    Csv,
    ResultsCsv,
}

impl Format {
    fn write(self, analysis: &Analysis) -> String {
        match self {
            Format::Text => experiment::text(analysis),
            Format::Md => experiment::markdown(analysis),
            Format::Html => experiment::html(analysis),
            Format::Json => experiment::json(analysis),
            Format::Csv => experiment::csv(analysis),
            Format::ResultsCsv => experiment::csv_results(analysis),
        }
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let format = chosen(args)?;
    let asked = Asked {
        unseal: args.unseal,
        unblind: args.unblind,
    };
    let mut analysis = analysis(context, &args.experiment, "experiment report", asked)?;
    // What this build was last seen to do; no part of the ledger, and so none of `analyze`.
    if let Ok(store) = reading(context) {
        analysis.calibration = calibrate::kept(&store).map_err(Failure::input)?;
    }
    let text = format.write(&analysis);
    let file = match (&args.output, format) {
        (Some(file), _) => file.clone(),
        (None, Format::Html) => default_file(context, &analysis)?,
        (None, _) => {
            context.output.print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    write(&file, &text)?;
    context
        .output
        .print(&printable::line(&file.display().to_string()))?;
    if args.open {
        open(context, &file);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(args: &Args) -> Result<Format, Failure> {
    match args.format {
        Some(Format::Html) => Ok(Format::Html),
        None if args.open => Ok(Format::Html),
        None => Ok(by_ending(args.output.as_deref())),
        Some(_) if args.open => Err(Failure::usage(anyhow::anyhow!("--open shows HTML only"))
            .hint("leave --format out, or say --format html")),
        Some(other) => Ok(other),
    }
}

/// What a file's name asks for; text where it does not say.
fn by_ending(file: Option<&Path>) -> Format {
    let ending = file
        .and_then(Path::extension)
        .and_then(|ending| ending.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => Format::Html,
        Some("md") => Format::Md,
        Some("json") => Format::Json,
        Some("csv") => Format::Csv,
        _ => Format::Text,
    }
}

/// `<workspace>/reports/<id>-<first digits of the hash>.html`.
fn default_file(context: &Context, analysis: &Analysis) -> Result<PathBuf, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let note = &analysis.registration;
    let name = format!("{}-{}.html", note.id, short(note.hash.as_str()));
    Ok(workspace.folder().join(REPORTS).join(name))
}

pub(in crate::cli) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let what = format!("{} cannot be written", file.display());
        Failure::input(anyhow::Error::new(error).context(what)).hint("--output names another file")
    };
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(file, text).map_err(failed)
}

/// Hands the file to whatever the system opens HTML with, and does not wait for it.
fn open(context: &Context, file: &Path) {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        // The empty text is the title that `start` takes a first quoted argument for.
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(before)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        // The report is written all the same.
        context.output.note(&format!(
            "{program} cannot be started ({error}); open the file yourself"
        ));
    }
}
