//! A plan file as a command takes it: read, loaded, resolved against the workspace, and where it comes from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};

use crate::cli::context::{find as find_context, reached};
use crate::cli::experiment::now_text;
use crate::cli::failure::Failure;
use crate::cli::run::snapshot;
use crate::cli::scenario::open_library;
use crate::cli::{Context, output::Output};
use crate::clock;
use crate::cluster::fixture::Fixtures;
use crate::config::Workspace;
use crate::embed::BuiltIn;
use crate::experience::seeds;
use crate::experiment::load::{self, Loaded};
use crate::experiment::lock::{self, LockError, Materials, Provenance, Resolved};
use crate::experiment::locked::short;
use crate::experiment::plan::Plan;
use crate::qualify::keep;
use crate::record::ClusterFacts;
use crate::scenario::library::Library;
use crate::scenario::yaml::{self, MAX_FILE_BYTES};
use crate::store::Store;

/// Reads and loads a plan; its warnings go to stderr.
pub(super) fn open(context: &Context, file: &Path) -> Result<(Loaded, Library), Failure> {
    let library = open_library(context)?;
    let loaded = load(file, &library)?;
    warn(&context.output, &loaded, file);
    Ok((loaded, library))
}

fn load(file: &Path, library: &Library) -> Result<Loaded, Failure> {
    let name = file.display().to_string();
    let cannot = || format!("plan {name} cannot be read");
    let hint =
        "breakage experiment init lists plans to start from; docs/experiments.md has every field";
    let size = std::fs::metadata(file)
        .with_context(cannot)
        .map_err(|error| Failure::input(error).hint(hint))?
        .len();
    if size > MAX_FILE_BYTES as u64 {
        return Err(Failure::input(anyhow!(
            "{name} has {size} bytes, more than the {MAX_FILE_BYTES} that are read"
        )));
    }
    let bytes = std::fs::read(file)
        .with_context(cannot)
        .map_err(Failure::input)?;
    let text = yaml::from_bytes(&bytes, &name).map_err(Failure::input)?;
    load::plan(&text, &name, library).map_err(|problems| {
        let count = problems.items.len();
        let told = anyhow!("the plan has {count} problem(s)\n{problems}");
        Failure::input(told).hint(hint)
    })
}

fn warn(output: &Output, loaded: &Loaded, file: &Path) {
    for warning in &loaded.warnings {
        let line = warning.line(&file.display().to_string());
        output.note(&format!("warning: {line}"));
    }
}

/// A workspace to lock into.
pub(super) struct Place {
    pub workspace: PathBuf,
    pub store: Arc<Store>,
}

pub(super) fn place(context: &Context) -> Result<Place, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    Ok(Place {
        store: Arc::new(workspace.store().map_err(Failure::input)?),
        workspace: workspace.folder().to_owned(),
    })
}

/// Resolves a plan against a workspace: its corpus, its fixtures, what is qualified where.
pub(super) fn resolve(
    context: &Context,
    place: &Place,
    loaded: &Loaded,
    library: &Library,
) -> Result<Resolved, Failure> {
    let embedder: BuiltIn = loaded
        .plan
        .corpus
        .embedder
        .parse()
        .map_err(Failure::input)?;
    let seeds = seeds::of_workspace(&place.workspace).map_err(Failure::input)?;
    let snapshot = snapshot(context, &seeds, &place.store, &embedder.embedder())?;
    let fixtures = Fixtures::open(&place.workspace).map_err(Failure::input)?;
    let materials = Materials {
        library,
        fixtures: &fixtures,
        store: &place.store,
        snapshot: snapshot.without_quarantined(),
        clusters: clusters(&loaded.plan)?,
    };
    lock::resolve(loaded, &materials).map_err(|error| failure(error, None))
}

/// The facts of every cluster that an arm names. Contexts are connected to, and nothing is written there.
fn clusters(plan: &Plan) -> Result<BTreeMap<Option<String>, ClusterFacts>, Failure> {
    let mut clusters = BTreeMap::new();
    for arm in &plan.arms {
        if clusters.contains_key(&arm.context) {
            continue;
        }
        let facts = match &arm.context {
            None => keep::embedded(),
            Some(name) => {
                let chosen = find_context(name, None)?;
                clock::block_on(chosen.pace, async { reached(chosen).await })
                    .map_err(Failure::internal)??
                    .facts()
            }
        };
        clusters.insert(arm.context.clone(), facts);
    }
    Ok(clusters)
}

/// When and from where: the commit of the workspace's repository, else of the current folder's.
pub(super) fn provenance(workspace: &Path) -> Provenance {
    let repository = git_top(workspace).or_else(|| git_top(Path::new(".")));
    let (git_commit, git_dirty) = match &repository {
        Some(top) => (git(top, &["rev-parse", "HEAD"]), is_dirty(top, workspace)),
        None => (None, false),
    };
    Provenance {
        at: now_text(),
        git_commit,
        git_dirty,
    }
}

fn git_top(folder: &Path) -> Option<PathBuf> {
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    Some(PathBuf::from(top))
}

/// Whether anything but the workspace itself, which every command changes, is uncommitted.
fn is_dirty(top: &Path, workspace: &Path) -> bool {
    let changed = git(top, &["status", "--porcelain", "--untracked-files=all"]);
    let (Ok(top), Ok(workspace)) = (top.canonicalize(), workspace.canonicalize()) else {
        return changed.is_some_and(|lines| !lines.is_empty());
    };
    let own = workspace.strip_prefix(&top).ok();
    let is_other = |line: &str| {
        let path = line.get(3..).unwrap_or_default().trim_matches('"');
        own.is_none_or(|own| own.as_os_str().is_empty() || !Path::new(path).starts_with(own))
    };
    changed.is_some_and(|lines| lines.lines().any(is_other))
}

/// What git says there; nothing without git, or outside of a repository.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(args)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// A lock's error as a failed command, with what to type next. `file` is the plan's.
pub(super) fn failure(error: LockError, file: Option<&Path>) -> Failure {
    let hints: Vec<String> = match &error {
        LockError::Unqualified(_) => vec![
            "breakage scenario qualify ID proves a scenario".to_owned(),
            "or give the reason in the plan: {id: ID, unqualified_because: WHY}; it is printed with every report"
                .to_owned(),
        ],
        LockError::Taken { hash, .. } => {
            let file = file.map_or_else(|| "PLAN.yaml".to_owned(), |file| file.display().to_string());
            vec![
                format!(
                    "breakage experiment amend {} {file} --reason TEXT   dates the change and splits the data at it",
                    short(hash.as_str())
                ),
                "or give the plan another id: then it is another experiment".to_owned(),
            ]
        }
        LockError::Finished(_) => {
            vec!["give the plan another id and lock it: that is another experiment".to_owned()]
        }
        LockError::AmendedAlready { to, .. } => vec![format!(
            "amend the last one: breakage experiment amend {}",
            short(to.as_str())
        )],
        LockError::NoReason => {
            vec!["--reason TEXT; it is dated, kept and printed with every report".to_owned()]
        }
        LockError::OtherId { .. } => {
            vec!["breakage experiment lock PLAN.yaml locks it as an experiment of its own".to_owned()]
        }
        LockError::Agent { source, .. } => vec![source.hint()],
        LockError::Find(_) | LockError::Ledger(_) => {
            vec!["breakage experiment verify HASH names what was altered".to_owned()]
        }
        _ => Vec::new(),
    };
    let failure = match error {
        LockError::Canonical(_) => Failure::internal(error),
        other => Failure::input(other),
    };
    hints.into_iter().fold(failure, Failure::hint)
}
