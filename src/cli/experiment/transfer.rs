//! `breakage experiment export` and `import`: an experiment as a file for a reviewer.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Context;
use crate::cli::destination;
use crate::cli::experiment::{find, now_text, reading};
use crate::cli::failure::Failure;
use crate::cli::printable;
use crate::cli::scenario::open_library;
use crate::config::Workspace;
use crate::experiment::bundle::{Bundle, BundleError};
use crate::experiment::ledger::chain::Ledger;
use crate::experiment::seal::{self, SealError};

/// Larger files are no bundles.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Write an experiment with its ledger, records and corpus to a file that anybody can verify
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:
  breakage experiment export my-experiment my-experiment.tar.zst
The same experiment gives the same bytes. README.txt inside says how to check it without breakage.")]
pub struct ExportArgs {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// The file to write
    #[arg(value_name = "OUT.tar.zst")]
    pub file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// Export an experiment that has not ended, with its scores. The ledger keeps that for ever
    #[arg(long)]
    pub unseal: bool,
}

/// Take in an experiment that somebody exported, after verifying all of it
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:
  breakage experiment import their-experiment.tar.zst")]
pub struct ImportArgs {
    /// The file
    #[arg(value_name = "FILE.tar.zst")]
    pub file: PathBuf,
}

pub fn export(context: &Context, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = reading(context)?;
    let locked = find(&store, &args.experiment)?;
    let mut ledger = Ledger::open(store.clone(), locked.hash.clone()).map_err(Failure::input)?;
    let whole = seal::open(
        &mut ledger,
        &locked,
        "experiment export",
        args.unseal,
        now_text,
    );
    match whole {
        Ok(opened) if !matches!(opened.how, seal::How::Look { .. }) => {}
        Ok(_) => {
            return Err(sealed(anyhow::anyhow!(
                "the experiment has not ended: a registered look shows its first blocks and not its records"
            )));
        }
        Err(error @ SealError::Sealed { .. }) => return Err(sealed(error.into())),
        Err(error) => return Err(Failure::input(error)),
    }
    let bundle = Bundle::of_store(&store, &locked).map_err(Failure::input)?;
    let bytes = bundle.pack().map_err(Failure::input)?;
    destination::write(&args.file, workspace.folder(), args.force, &bytes)?;
    context.output.note(&format!(
        "{} entries and {} records, {} bytes: {}",
        bundle.ledger.len(),
        bundle.records.len(),
        bytes.len(),
        args.file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn sealed(error: anyhow::Error) -> Failure {
    Failure::input(error).hint(
        "--unseal exports it all the same; the ledger keeps that, and every report is exploratory then",
    )
}

/// Reads a bundle's file.
pub(super) fn read(file: &Path) -> Result<Bundle, Failure> {
    let failed = |error: std::io::Error| {
        Failure::input(
            anyhow::Error::new(error).context(format!("{} cannot be read", file.display())),
        )
    };
    let size = std::fs::metadata(file).map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        return Err(Failure::input(anyhow::anyhow!(
            "{} has {size} bytes; bundles have at most {MAX_FILE_BYTES}",
            file.display()
        )));
    }
    let bytes = std::fs::read(file).map_err(failed)?;
    Bundle::unpack(&bytes).map_err(|error| {
        Failure::input(
            anyhow::Error::new(error).context(format!("{} cannot be used", file.display())),
        )
    })
}

pub fn import(context: &Context, args: &ImportArgs) -> Result<ExitCode, Failure> {
    let bundle = read(&args.file)?;
    let library = open_library(context)?;
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let found = bundle.verify(library.vocabulary());
    if let Some(first) = found.broken.first() {
        return Err(Failure::input(anyhow::anyhow!(
            "{} is not intact, and nothing was imported: {}: {}",
            args.file.display(),
            first.place,
            first.why
        ))
        .hint(format!(
            "breakage experiment verify {} lists everything that is wrong",
            args.file.display()
        )));
    }
    let store = Arc::new(workspace.store().map_err(Failure::input)?);
    let is_new = bundle
        .import(&store, library.vocabulary())
        .map_err(|error| match error {
            BundleError::Other(_) => Failure::input(error)
                .hint("name another --workspace to import it beside the one that is here"),
            other => Failure::input(other),
        })?;
    for note in &found.notes {
        context
            .output
            .note(&format!("note: {}", printable::line(note)));
    }
    context.output.note(&if is_new {
        format!(
            "imported {} ({} records); breakage experiment report {} shows what it says",
            found.id,
            found.records,
            bundle.hash.chars().take(8).collect::<String>()
        )
    } else {
        format!("{} is here already, the very same", found.id)
    });
    Ok(ExitCode::SUCCESS)
}
