//! `breakage experiment verify`: whether registration, ledger and records are what they were.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::experiment::{lock, reading, transfer};
use crate::cli::failure::{BELOW_THRESHOLD, Failure};
use crate::cli::output::Output;
use crate::cli::printable;
use crate::cli::scenario::open_library;
use crate::config::Workspace;
use crate::experiment::adopt;
use crate::experiment::verify::{Copy, Source, Verification, verify};
use crate::ids::{RegistrationHash, RunId};
use crate::scenario::model::Vocabulary;
use crate::store::Store;

/// How the names of bundles end.
const BUNDLE: &str = ".tar.zst";

/// Check that nothing of an experiment was altered, left out or added
///
/// Everything is computed again: the registration's hash, the ledger's chain, every record's SHA-256 and score, the allocation
/// of every run. The first place that is wrong is named. Looks, broken seals and deviations are listed; they are no damage.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment verify my-experiment
  breakage experiment verify their-bundle.tar.zst --json
Exit code 2 when something is wrong.")]
pub struct Args {
    /// The registration's hash, a beginning of it, the experiment's id, or a bundle's file
    pub experiment: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Whether a bundle is meant.
    pub(super) fn names_a_file(&self) -> bool {
        self.experiment.ends_with(BUNDLE) || Path::new(&self.experiment).is_file()
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let library = open_library(context)?;
    let found = if args.names_a_file() {
        let bundle = transfer::read(Path::new(&args.experiment))?;
        bundle.verify(library.vocabulary())
    } else {
        of_store(context, &args.experiment, library.vocabulary())?
    };
    tell(context, &found, args.json)
}

/// Prints what was found; answers the exit code.
pub(super) fn tell(
    context: &Context,
    found: &Verification,
    json: bool,
) -> Result<ExitCode, Failure> {
    if json {
        context.output.json(found)?;
    } else {
        context.output.print(&text(found))?;
    }
    Ok(if found.intact {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BELOW_THRESHOLD)
    })
}

fn of_store(
    context: &Context,
    experiment: &str,
    vocabulary: &Vocabulary,
) -> Result<Verification, Failure> {
    let store = reading(context)?;
    let hash = kept_as(&store, experiment)?;
    let registration = store.registration(&hash).map_err(Failure::input)?;
    let registration = registration.unwrap_or_default();
    let ledger = store.ledger(&hash).map_err(Failure::input)?;
    let corpus = corpus_of(&registration);
    let corpus = match corpus {
        Some(sha256) => store.experiment_corpus(&sha256).map_err(Failure::input)?,
        None => None,
    };
    let record = |run: &RunId| {
        let text = store.record_as_kept(run);
        text.map_err(|error| error.to_string())
    };
    Ok(verify(&Source {
        kept: adopt::kept(&store, &RegistrationHash::new(hash.as_str())).map_err(Failure::input)?,
        copy: Some(copy_of(context, &hash)?),
        hash,
        registration,
        ledger,
        record: &record,
        corpus,
        vocabulary,
    }))
}

/// The registration as `lock` wrote it into the workspace.
fn copy_of(context: &Context, hash: &str) -> Result<Copy, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let file = lock::registration_file(workspace.folder(), hash);
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let error = anyhow::Error::new(error);
            return Err(Failure::input(
                error.context(format!("{} cannot be read", file.display())),
            ));
        }
    };
    Ok(Copy {
        path: printable::line(&file.display().to_string()),
        bytes,
    })
}

/// The hash under which a registration is kept, also where its text was altered.
fn kept_as(store: &Store, text: &str) -> Result<String, Failure> {
    match super::find(store, text) {
        Ok(locked) => Ok(locked.hash.to_string()),
        Err(failure) => {
            let all = store.registrations().map_err(Failure::input)?;
            let hashes = all.iter().map(|(hash, _)| hash);
            let mut named = hashes.filter(|hash| text.len() >= 4 && hash.starts_with(text));
            match (named.next(), named.next()) {
                (Some(only), None) => Ok(only.clone()),
                _ => Err(failure),
            }
        }
    }
}

/// The hash of the corpus that a registration's text names.
pub(super) fn corpus_of(registration: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(registration).ok()?;
    value["corpus"]["sha256"].as_str().map(str::to_owned)
}

fn text(found: &Verification) -> String {
    let mut lines = vec![match found.broken.first() {
        None => format!("{}: intact", found.id),
        Some(first) => format!(
            "NOT INTACT: {}: {}",
            printable::line(&first.place),
            printable::line(&first.why)
        ),
    }];
    lines.push(format!("registration  {}", found.registration));
    lines.push(format!(
        "ledger        {} entries, {} of {} planned runs ended{}",
        found.entries,
        found.progress.ended,
        found.progress.planned,
        if found.progress.finished {
            ", finished"
        } else {
            ""
        }
    ));
    lines.push(match found.rescored {
        Some(rescored) => format!(
            "records       {} as the ledger has them, {rescored} scored again with the same result",
            found.records
        ),
        None => format!("records       {} as the ledger has them", found.records),
    });
    if found.broken.len() > 1 {
        let mut table = Output::table(&["place", "what is wrong"]);
        for broken in &found.broken {
            table.add_row([printable::line(&broken.place), printable::line(&broken.why)]);
        }
        lines.push(String::new());
        lines.push(table.to_string());
    }
    if !found.notes.is_empty() {
        lines.push(String::new());
        let notes = found.notes.iter();
        lines.extend(notes.map(|note| format!("note: {}", printable::line(note))));
    }
    lines.join("\n")
}
