//! `breakage init`: a workspace with everything compiled in written out to edit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cluster::fixture;
use crate::config::WORKSPACE_FOLDER;
use crate::experience::seeds::{SEED_FILE, SEED_LINES};
use crate::scenario::builtin;

/// Create a workspace in this folder and write the built-in scenarios, vocabulary, rubrics, fixtures and seed corpus into it.
///
/// A file edited there overrides the built-in one of the same id, and every command says so. Files that are
/// already there are never overwritten without --force.
///
/// Example:  breakage init && $EDITOR .breakage/scenarios/anchor/secret-missing-key-advocate.yaml
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder to make the workspace in [default: --workspace, else ./.breakage]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write the built-in text over files that differ from it
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default, Serialize)]
struct Done {
    workspace: PathBuf,
    written: Vec<String>,
    unchanged: Vec<String>,
    /// There, different, and kept.
    kept: Vec<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let folder = args
        .folder
        .clone()
        .or_else(|| context.global.workspace.clone())
        .unwrap_or_else(|| PathBuf::from(WORKSPACE_FOLDER));
    let mut done = Done {
        workspace: folder.clone(),
        ..Done::default()
    };
    let mut files: Vec<(String, String)> = builtin::files()
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect();
    files.push((SEED_FILE.to_owned(), SEED_LINES.to_owned()));
    for (id, _) in fixture::known() {
        files.push(fixture::written_out(&id).map_err(Failure::internal)?);
    }
    for (path, text) in files {
        write_out(&folder, &path, &text, args.force, &mut done).map_err(|error| {
            Failure::input(error).hint("name another folder: breakage init DIR")
        })?;
    }
    if args.json {
        context.output.json(&done)?;
    } else {
        context.output.print(&told(&done))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one file through a temporary neighbour, so that an interrupted call leaves no half of it.
fn write_out(
    folder: &Path,
    path: &str,
    text: &str,
    force: bool,
    done: &mut Done,
) -> anyhow::Result<()> {
    let target = folder.join(path);
    match fs::read_to_string(&target) {
        Ok(there) if there == text => {
            done.unchanged.push(path.to_owned());
            return Ok(());
        }
        Ok(_) if !force => {
            done.kept.push(path.to_owned());
            return Ok(());
        }
        _ => {}
    }
    let parent = target.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .with_context(|| format!("the folder {} cannot be made", parent.display()))?;
    let cannot = || format!("{} cannot be written", target.display());
    let mut file = tempfile::NamedTempFile::new_in(parent).with_context(cannot)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).with_context(cannot)?;
    file.persist(&target).with_context(cannot)?;
    done.written.push(path.to_owned());
    Ok(())
}

fn told(done: &Done) -> String {
    let mut text = format!(
        "workspace {}: {} files written, {} already there and the same",
        done.workspace.display(),
        done.written.len(),
        done.unchanged.len()
    );
    for path in &done.kept {
        text.push_str(&format!(
            "\nkept as you have it: {path} (--force writes the built-in text over it)"
        ));
    }
    text.push_str(
        "\n\nnext:  breakage scenario list\n       breakage run secret-missing-key-advocate",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_edited_is_kept_unless_forced() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut done = Done::default();
        write_out(folder.path(), "a/b.yaml", "built-in", false, &mut done).expect("written");
        fs::write(folder.path().join("a/b.yaml"), "edited").expect("edited");
        write_out(folder.path(), "a/b.yaml", "built-in", false, &mut done).expect("kept");
        assert_eq!(done.kept, ["a/b.yaml"]);
        let read = || fs::read_to_string(folder.path().join("a/b.yaml")).expect("it is there");
        assert_eq!(read(), "edited");
        write_out(folder.path(), "a/b.yaml", "built-in", true, &mut done).expect("written over");
        assert_eq!(read(), "built-in");
    }
}
