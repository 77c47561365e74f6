//! `breakage experiment run`: carries out a locked experiment, from wherever it stands.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;
use serde_json::json;
use tokio::sync::watch;

use crate::cli::context::{Asked, Purpose, agree, connect, find as find_context, restore_command};
use crate::cli::experiment::status::{StatusFile, text};
use crate::cli::experiment::{find, now_text};
use crate::cli::failure::{Failure, INTERRUPTED, INVALID_RUNS};
use crate::cli::run::lasting;
use crate::cli::scenario::open_library;
use crate::cli::{Context, interrupt, owner, recovery};
use crate::clock;
use crate::cluster::fixture::Fixtures;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::target::Target;
use crate::config::Workspace;
use crate::experiment::execute::{ExecuteError, Execution, Materials, Segment, Told};
use crate::experiment::locked::{Locked, short};
use crate::experiment::status::Progress;
use crate::inject::journal::Place;
use crate::run::recover::recover;
use crate::store::Store;

/// Threads; more than any machine has cores for.
const MAX_JOBS: i64 = 1024;

/// Carry out a locked experiment, or go on with one that was stopped or cut off
///
/// Blocks go one after another, the arms within a block in an order that follows from the registration's hash. Every finished
/// run is kept at once; what a crash or Ctrl-C cut off is undone and run again with the same seeds, which uses up none of the
/// registered retries. Scores are sealed until the end: progress shows counts and our own failures only.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment run my-experiment
  breakage experiment run 3f2a --jobs 4
While it runs, `breakage experiment status` and other commands that only read are answered by it.")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// Runs at the same time on embedded clusters, 1 to 1024 [default: one per core]. Runs with a context go one by one
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=MAX_JOBS))]
    pub jobs: Option<u16>,
    /// The kubeconfig that has the arms' contexts [default: as kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "BREAKAGE_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Use the clusters of the arms' contexts without being asked about them
    #[arg(long)]
    pub yes: bool,
    /// Print the status at the end as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = workspace.store().map_err(Failure::input)?;
    let store = Arc::new(store);
    let locked = find(&store, &args.experiment)?;
    let library = open_library(context)?;
    let contexts = contexts(&locked, args.kubeconfig.as_deref())?;
    let fixtures = fixtures(context, args, &store, &contexts, workspace.folder())?;
    let (stop, interrupted) = watch::channel(false);
    match contexts.first() {
        Some(chosen) => interrupt::listen_leaving(stop, lasting::left(context, chosen)),
        None => interrupt::listen(stop),
    }
    recovered(context, &store, &contexts)?;
    let _answers = match owner::serve(workspace.folder(), &store) {
        Ok(owner) => Some(owner),
        Err(error) => {
            context.output.note(&format!(
                "other commands of this workspace have to wait for this one, for its socket cannot be made: {error}"
            ));
            None
        }
    };
    let materials = Materials {
        store,
        library: &library,
        fixtures: Arc::new(fixtures),
        interrupted: interrupted.clone(),
        now: Arc::new(now_text),
    };
    let execution = Execution::prepare(&materials, locked).map_err(failure)?;
    let cluster = match contexts.as_slice() {
        [] => "embedded".to_owned(),
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.context.as_str()).collect();
            names.join(", ")
        }
    };
    let mut watcher = Watcher::new(context, args, &execution, workspace.folder(), &cluster);
    let jobs = args.jobs.map_or_else(crate::cli::run::cores, usize::from);
    let outcome = carry_out(context, &execution, &contexts, jobs, &mut watcher);
    let outcome = outcome.and_then(|()| execution.finish().map_err(failure));
    watcher.finish(&execution)?;
    let finished = outcome?;
    Ok(if finished {
        ExitCode::SUCCESS
    } else if *interrupted.borrow() {
        context.output.note(&format!(
            "stopped; breakage experiment run {} goes on where it stands",
            execution.locked.short()
        ));
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::from(INVALID_RUNS)
    })
}

fn carry_out(
    context: &Context,
    execution: &Execution,
    contexts: &[Chosen],
    jobs: usize,
    watcher: &mut Watcher<'_>,
) -> Result<(), Failure> {
    let segments = execution.segments();
    if segments.is_empty() {
        return Ok(());
    }
    execution.start().map_err(failure)?;
    for segment in segments {
        if watcher.is_stopped() {
            return Ok(());
        }
        match &segment.context {
            None => execution
                .embedded(&segment, jobs, |told| watcher.told(&told))
                .map_err(failure)?,
            Some(name) => {
                let chosen = contexts.iter().find(|one| one.context == *name);
                // Every context of the plan was found before anything began.
                if let Some(chosen) = chosen {
                    lasting_segment(context, execution, &segment, chosen.clone(), watcher)?;
                }
            }
        }
    }
    Ok(())
}

fn lasting_segment(
    context: &Context,
    execution: &Execution,
    segment: &Segment,
    chosen: Chosen,
    watcher: &mut Watcher<'_>,
) -> Result<(), Failure> {
    let pace = chosen.pace;
    clock::block_on(pace, async {
        let target = crate::cli::context::reached(chosen).await?;
        let outcome = execution.in_turn(segment, &target, |told| watcher.told(&told));
        outcome.await.map_err(|error| {
            let place = Place::of(&target);
            match error {
                ExecuteError::Closed(..) => {
                    Failure::cluster(error).hint(restore_command(context, &place))
                }
                other => failure(other),
            }
        })
    })
    .map_err(Failure::internal)?
}

/// The contexts that the plan's arms name, each once.
fn contexts(locked: &Locked, kubeconfig: Option<&Path>) -> Result<Vec<Chosen>, Failure> {
    // Kept with the run, so that a later command finds it from any folder.
    let kubeconfig = kubeconfig.map(std::path::absolute).transpose();
    let kubeconfig = kubeconfig.map_err(Failure::input)?;
    let mut chosen: Vec<Chosen> = Vec::new();
    for arm in &locked.registration.plan.arms {
        let name = arm.context.as_deref().filter(|name| *name != "embedded");
        if let Some(name) = name.filter(|name| chosen.iter().all(|one| one.context != *name)) {
            chosen.push(find_context(name, kubeconfig.as_deref())?);
        }
    }
    Ok(chosen)
}

/// The fixtures, with the image that the clusters' nodes get the services from.
fn fixtures(
    context: &Context,
    args: &Args,
    store: &Store,
    contexts: &[Chosen],
    workspace: &Path,
) -> Result<Fixtures, Failure> {
    let mut fixtures = Fixtures::open(workspace).map_err(Failure::input)?;
    for chosen in contexts {
        let asked = Asked {
            command: "breakage experiment run",
            yes: args.yes,
        };
        let known = agree(context, chosen, store, &asked)?;
        fixtures = fixtures.with_image(known.and_then(|known| known.image));
    }
    Ok(fixtures)
}

/// Undoes what runs left that were cut off, and gives them their records.
fn recovered(context: &Context, store: &Arc<Store>, contexts: &[Chosen]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Failure::internal)?;
    let found = runtime
        .block_on(recover(store, None))
        .map_err(Failure::input)?;
    if contexts.is_empty() {
        for line in recovery::lines(context, &found) {
            context.output.note(&line);
        }
    }
    for chosen in contexts {
        clock::block_on(chosen.pace, async {
            let target: Target = connect(context, chosen.clone(), Purpose::Use(store)).await?;
            lasting::make_ready(context, store, &target).await
        })
        .map_err(Failure::internal)??;
    }
    Ok(())
}

fn failure(error: ExecuteError) -> Failure {
    match error {
        ExecuteError::Changed(_) => Failure::input(error)
            .hint("put it back as it was, or lock the plan again: that is another experiment")
            .hint("breakage experiment amend HASH PLAN.yaml --reason TEXT begins anew with the changed inputs; the runs so far stay with the old plan"),
        ExecuteError::Closed(..) => Failure::cluster(error),
        ExecuteError::Runtime(_) => Failure::internal(error),
        ExecuteError::Amended(ref hash) => {
            let hint = format!("breakage experiment run {}", short(hash));
            Failure::input(error).hint(hint)
        }
        ExecuteError::Ledger(_) | ExecuteError::Adopt(_) => {
            Failure::input(error).hint("breakage experiment verify names the place")
        }
        other => Failure::input(other),
    }
}

/// Shows runs as they are kept: a bar on a terminal, a line a block elsewhere; never a score.
struct Watcher<'a> {
    context: &'a Context,
    json: bool,
    locked: &'a Locked,
    progress: Progress,
    file: StatusFile,
    bar: ProgressBar,
    began: Instant,
    kept: u64,
    stopped: bool,
}

impl<'a> Watcher<'a> {
    fn new(
        context: &'a Context,
        args: &Args,
        execution: &'a Execution,
        workspace: &Path,
        cluster: &str,
    ) -> Watcher<'a> {
        let locked = &execution.locked;
        let progress = Progress::of(&locked.registration.plan, &execution.entries());
        let bar = context.output.progress(progress.planned, "runs");
        bar.set_position(progress.ended);
        bar.reset_eta();
        let file = StatusFile::new(workspace, locked, cluster, progress.ended);
        file.write(locked, &progress, true);
        Watcher {
            context,
            json: args.json,
            locked,
            progress,
            file,
            bar,
            began: Instant::now(),
            kept: 0,
            stopped: false,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn told(&mut self, told: &Told) {
        self.kept += 1;
        self.progress.add(&told.run);
        if told.run.is_final {
            self.bar.inc(1);
        } else if told.run.outcome.code() == Some(crate::record::FrameworkCode::Interrupted) {
            self.stopped = true;
        }
        if let Some(block) = told.block_complete {
            self.progress.blocks_complete += 1;
            if self.bar.is_hidden() {
                let eta = self.file.eta_s(&self.progress);
                let eta = eta.map_or_else(String::new, |eta| format!(", about {eta} s left"));
                self.context.output.note(&format!(
                    "block {} of {} ended: {} of {} runs{eta}",
                    block + 1,
                    self.progress.blocks,
                    self.progress.ended,
                    self.progress.planned
                ));
            }
        }
        self.file.write(self.locked, &self.progress, true);
    }

    fn finish(self, execution: &Execution) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let progress = Progress::of(&self.locked.registration.plan, &execution.entries());
        self.file.write(self.locked, &progress, false);
        let took = self.began.elapsed().as_secs_f64();
        let output = &self.context.output;
        output.note(&format!("{} runs in {took:.1} s of wall time", self.kept));
        if self.json {
            return output.json(&json!({
                "registration": self.locked.hash,
                "id": self.locked.registration.plan.id,
                "progress": progress,
            }));
        }
        output.print(&text(self.locked, &progress))?;
        if progress.finished {
            output.note(&format!(
                "breakage experiment report {} shows what it says",
                self.locked.short()
            ));
        }
        Ok(())
    }
}
