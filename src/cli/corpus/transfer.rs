//! `breakage corpus seed|export|import|reembed`: postmortems in and out of a workspace.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde_json::json;

use crate::cli::Context;
use crate::cli::corpus::sealed::Sealed;
use crate::cli::corpus::{
    ExportArgs, ImportArgs, ReembedArgs, SeedArgs, failed, origin_sentence, reader, store,
    workspace,
};
use crate::cli::destination::{self, STANDARD_OUTPUT};
use crate::cli::failure::Failure;
use crate::cli::printable;
use crate::cli::scenario::open_library;
use crate::embed::BuiltIn;
use crate::experience::entry::Entry;
use crate::experience::learner::Learner;
use crate::experience::transfer::{Imported, read_lines, write_lines};
use crate::experience::{Origin, seeds};
use crate::ids::{CategoryId, MechanismId};
use crate::scenario::near::did_you_mean;

/// An import is read whole; a hundred thousand postmortems of usual size are a third of this.
const MAX_IMPORT_BYTES: u64 = 1 << 30;

/// Characters of a list in a note; the rest is in the file.
const NOTED_CHARS: usize = 400;

const NOTHING_IMPORTED: &str = "nothing was imported";

pub(super) fn seed(context: &Context, args: &SeedArgs) -> Result<(), Failure> {
    let workspace = workspace(context)?;
    let seeds = seeds::of_workspace(workspace.folder()).map_err(Failure::input)?;
    let imported = add(context, args.embedder.embedder, &seeds)?;
    report(context, &imported, args.json)
}

pub(super) fn import(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    let text = read_import(&args.file).map_err(Failure::input)?;
    let entries = read_lines(&args.file.display().to_string(), &text)
        .map_err(|error| Failure::input(error).hint(NOTHING_IMPORTED))?;
    check_words(context, &args.file, &text, &entries)?;
    let imported = add(context, args.embedder.embedder, &entries)?;
    report(context, &imported, args.json)
}

/// Refuses an empty file and mechanisms off the closed list. Categories off the vocabulary are kept, as they may be an
/// agent's own words, but the person is told.
fn check_words(
    context: &Context,
    file: &Path,
    text: &str,
    entries: &[Entry],
) -> Result<(), Failure> {
    if entries.is_empty() {
        let empty = anyhow!("{} holds no postmortem", file.display());
        return Err(Failure::input(empty).hint(NOTHING_IMPORTED));
    }
    let library = open_library(context)?;
    let vocabulary = library.vocabulary();
    let mechanisms: BTreeSet<&str> = vocabulary
        .mechanisms
        .iter()
        .map(|m| m.id.as_str())
        .collect();
    let categories: BTreeSet<&str> = vocabulary
        .categories
        .iter()
        .map(|c| c.id.as_str())
        .collect();
    // Entries stand in the order of the lines that are not blank.
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let mut strange: BTreeSet<&str> = BTreeSet::new();
    for (entry, (_, line)) in entries.iter().zip(lines) {
        let mechanism = entry.mechanism.as_ref().map(MechanismId::as_str);
        if let Some(mechanism) = mechanism.filter(|id| !mechanisms.contains(id)) {
            let guess = did_you_mean(mechanism, mechanisms.iter().copied());
            let unknown = anyhow!(
                "{}:{line}: postmortem {} has the unknown mechanism {mechanism:?}{guess}",
                file.display(),
                entry.id
            );
            return Err(Failure::input(unknown)
                .hint("`breakage vocab list --mechanisms` shows them")
                .hint(NOTHING_IMPORTED));
        }
        let said = &entry.postmortem;
        let all = std::iter::once(&said.primary_category).chain(&said.secondary_categories);
        strange.extend(
            all.map(CategoryId::as_str)
                .filter(|id| !categories.contains(id)),
        );
    }
    if !strange.is_empty() {
        let all: Vec<String> = strange.into_iter().map(printable::line).collect();
        context.output.note(&format!(
            "note: kept as written, though not in the vocabulary (`breakage vocab list`): {}",
            printable::short(&all.join(", "), NOTED_CHARS)
        ));
    }
    Ok(())
}

fn read_import(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_IMPORT_BYTES + 1;
    if file == Path::new(STANDARD_OUTPUT) {
        std::io::stdin()
            .take(limit)
            .read_to_end(&mut bytes)
            .context("standard input cannot be read")?;
    } else {
        std::fs::File::open(file)
            .and_then(|opened| opened.take(limit).read_to_end(&mut bytes))
            .with_context(|| format!("{} cannot be read", file.display()))?;
    }
    if bytes.len() as u64 > MAX_IMPORT_BYTES {
        return Err(anyhow!(
            "{} is larger than {MAX_IMPORT_BYTES} bytes",
            file.display()
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let read = error.as_bytes();
        let at = error.utf8_error().valid_up_to();
        let line = read[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow!("{}:{line}: not UTF-8", file.display())
    })
}

fn add(context: &Context, embedder: BuiltIn, entries: &[Entry]) -> Result<Imported, Failure> {
    let learner = Learner::new(store(context)?, embedder.embedder());
    let bar = context.output.progress(entries.len() as u64, "embedding");
    let imported = learner
        .import(entries, |done| bar.set_position(done as u64))
        .map_err(failed);
    bar.finish_and_clear();
    imported
}

fn report(context: &Context, imported: &Imported, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return context.output.json(&json!({
            "added": imported.added, "known": imported.known, "without_vector": imported.without_vector
        }));
    }
    context.output.print(&format!(
        "{} postmortems added, {} were known",
        imported.added, imported.known
    ))?;
    if imported.without_vector > 0 {
        context.output.note(&format!(
            "{} could not be embedded and cannot be found until `breakage corpus reembed`",
            imported.without_vector
        ));
    }
    Ok(())
}

pub(super) fn export(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let to_file = args
        .file
        .as_deref()
        .filter(|file| *file != Path::new(STANDARD_OUTPUT));
    if args.json && to_file.is_none() {
        let both = anyhow!("--json tells about a file, and standard output is the export itself");
        return Err(Failure::usage(both));
    }
    let reader = reader(context)?;
    let (mut entries, origin) = reader.entries().map_err(failed)?;
    let sealed = Sealed::among(&reader, &entries)?;
    entries.retain(|entry| !sealed.has(&entry.id));
    sealed.note(context);
    let text = write_lines(&entries).map_err(failed)?;
    if origin == Origin::CompiledIn {
        context.output.note(&format!(
            "note: these are the seed postmortems {}",
            origin_sentence(origin)
        ));
    }
    let Some(file) = to_file else {
        return context.output.print(&text);
    };
    let workspace = workspace(context)?;
    destination::write(file, workspace.folder(), args.force, text.as_bytes())?;
    if args.json {
        let written = json!({"written": entries.len(), "file": file.display().to_string()});
        return context.output.json(&written);
    }
    context.output.print(&format!(
        "{} postmortems written to {}",
        entries.len(),
        printable::line(&file.display().to_string())
    ))
}

pub(super) fn reembed(context: &Context, args: &ReembedArgs) -> Result<(), Failure> {
    let embedder = args.embedder.embedder.embedder();
    let identity = embedder.identity();
    let store = store(context)?;
    let total = store.postmortem_count().map_err(Failure::input)?;
    let bar = context.output.progress(total, "embedding");
    let result = Learner::new(store, embedder).reembed(|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let result = result.map_err(failed)?;
    if args.json {
        let failures: Vec<_> = result
            .failed
            .iter()
            .map(|(id, reason)| json!({"id": id, "reason": reason}))
            .collect();
        return context
            .output
            .json(&json!({"embedder": identity, "embedded": result.embedded, "failed": failures}));
    }
    for (id, reason) in &result.failed {
        context
            .output
            .note(&format!("{id} could not be embedded: {reason}"));
    }
    context.output.print(&format!(
        "{} of {total} postmortems embedded by {identity}",
        result.embedded
    ))
}
