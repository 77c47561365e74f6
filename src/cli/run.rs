//! `breakage run`: one scenario through one or more whole runs.

pub(in crate::cli) mod account;
pub(in crate::cli) mod agents;
mod dry_run;
pub(in crate::cli) mod lasting;
mod repetitions;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::agent::Agent;
use crate::agent::choice::Choice;
use crate::cli::context::{Asked, ContextArgs, agree};
use crate::cli::failure::{BELOW_THRESHOLD, Failure, INTERRUPTED, INVALID_RUNS};
use crate::cli::prometheus::PrometheusArgs;
use crate::cli::scenario::open_library;
use crate::cli::{Context, interrupt, recovery};
use crate::cluster::fixture::{self, Fixtures};
use crate::cluster::target;
use crate::config::Workspace;
use crate::embed::{BuiltIn, Embedder};
use crate::experience::entry::Entry;
use crate::experience::learner::Learner;
use crate::experience::policy::Policy;
use crate::experience::snapshot::Snapshot;
use crate::experience::{ExperienceError, Reader, seeds};
use crate::ids::Seed;
use crate::qualify::keep;
use crate::record::{ClusterFacts, FrameworkCode, RunState};
use crate::run::recover::recover;
use crate::run::repeat::{RepeatError, Repetitions, repeat};
use crate::run::summary::Summary;
use crate::run::{Finished, RunKind, Setting, Watching};
use crate::scenario::library::{DEFAULT_RUBRIC, Library};
use crate::scenario::load::PROMETHEUS;
use crate::scenario::model::Scenario;
use crate::scenario::near;
use crate::store::Store;

/// Repetitions of one command; more would fill a store that nobody can read any more.
const MAX_REPS: u64 = 100_000;
/// Threads; more than any machine has cores for.
const MAX_JOBS: i64 = 1024;
/// A mean of points is exact to a millionth; what a sum of decimals adds is no shortfall.
const ROUNDING: f64 = 1e-9;

/// Take a scenario through one whole run and keep a scored record
///
/// The embedded cluster is made for the run, inside this process and in its own time: a run of ten minutes takes a moment,
/// and the same seed gives the same run. With --context the run takes place in a cluster that outlives the process, in its
/// time; breakage creates the namespaces that it uses and touches no others. Wall time goes to stderr. The agent may
/// look up past incidents; what earlier runs of this very scenario left is not served to it, unless --same-scenario asks
/// for that.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage run secret-missing-key-advocate
  breakage run cpu-limit-throttling-advocate --seed 7 --reps 20 --json
  breakage run ./my-scenario.yaml --agent noop
  breakage run oom-advocate-api-k8s-only --dry-run
  breakage run replicas-zero-advocate --healthy --rubric observed")]
pub struct Args {
    /// A scenario's id (see `breakage scenario list`) or the path of a file
    pub scenario: String,
    /// The agent that responds
    #[arg(long, default_value = "rules", value_parser = agents::Names)]
    pub agent: String,
    /// Everything random derives from it; repetitions count up from it
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub seed: u64,
    /// How many runs, 1 to 100000, each on a cluster of its own
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u64).range(1..=MAX_REPS))]
    pub reps: u64,
    /// Runs at the same time, 1 to 1024 [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=MAX_JOBS))]
    pub jobs: Option<u16>,
    /// The rubric to score under: v0.1, article, observed, or one of the workspace
    #[arg(long, default_value = DEFAULT_RUBRIC)]
    pub rubric: String,
    /// Serve this run's postmortem to later runs of other scenarios (else it is kept in quarantine)
    #[arg(long)]
    pub learn: bool,
    /// Exit with code 2 when the mean total of the scored and timed-out runs is below this, 0 to 1
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true, value_parser = threshold)]
    pub fail_under: Option<f64>,
    /// A control run: call the agent although nothing is broken. What it then names or changes is a false alarm
    #[arg(long, conflicts_with_all = ["dry_run", "learn", "fail_under"])]
    pub healthy: bool,
    /// Show what would be changed and how it would be undone; change nothing
    #[arg(long, conflicts_with_all = ["reps", "jobs", "learn", "fail_under"])]
    pub dry_run: bool,
    /// Print one JSON object per run
    #[arg(long)]
    pub json: bool,
    // Last, because their headings would take in the flags that follow.
    #[command(flatten)]
    pub place: ContextArgs,
    #[command(flatten)]
    pub metrics: PrometheusArgs,
    #[command(flatten)]
    pub retrieval: RetrievalArgs,
}

/// What past incidents the agent may be shown.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Retrieval of past incidents")]
pub struct RetrievalArgs {
    /// Past incidents per question [default: 3]
    #[arg(long, value_name = "N")]
    pub k: Option<usize>,
    /// Largest cosine distance [default: the embedder's]
    #[arg(long, value_name = "D", env = "BREAKAGE_RETRIEVAL_MAX_DISTANCE")]
    pub max_distance: Option<f64>,
    /// Nearest candidates looked at before the distance applies [default: k]
    #[arg(long, value_name = "N", env = "BREAKAGE_RETRIEVAL_POOL_CAP")]
    pub pool_cap: Option<usize>,
    /// lexical, or control (the deterministic control of the published experiments)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "lexical",
        env = "BREAKAGE_EMBEDDER"
    )]
    pub embedder: BuiltIn,
    /// Serve nothing
    #[arg(long, conflicts_with_all = ["k", "max_distance", "pool_cap", "same_scenario"])]
    pub no_retrieval: bool,
    /// Serve also what earlier runs of the same scenario learned: the agent may be handed its own solution
    #[arg(long)]
    pub same_scenario: bool,
}

/// A total to stay above, 0 to 1.
fn threshold(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err("a score is between 0 and 1".to_owned())
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let library = open_library(context)?;
    let agent = agents::chosen(&args.agent)?;
    let fixtures = Fixtures::open(workspace.folder()).map_err(Failure::input)?;
    tell_fixture_overrides(context, &fixtures);
    let loaded = library
        .loaded(&args.scenario)
        .map_err(|error| Failure::input(error).hint("breakage scenario list"))?;
    for warning in &loaded.warnings {
        context
            .output
            .note(&format!("warning: {}", warning.line(&args.scenario)));
    }
    let scenario = Arc::new(loaded.scenario);
    refuse_unavailable(&scenario)?;
    refuse_unknown_fixture(&fixtures, &scenario)?;
    if args.seed.checked_add(args.reps - 1).is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--seed {} leaves no room for --reps {}: seeds count up to {}",
            args.seed,
            args.reps,
            u64::MAX
        )));
    }
    let chosen = args.place.chosen()?;
    let prometheus = args.metrics.chosen(chosen.is_some())?;
    refuse_unanswerable(&scenario, prometheus.is_some())?;
    if let (Some(chosen), Some(2..)) = (&chosen, args.jobs) {
        return Err(Failure::usage(anyhow::anyhow!(
            "runs in one lasting cluster ({}) go one after another, for they would break each other's; leave --jobs out",
            chosen.context
        )));
    }
    if args.dry_run {
        return dry_run::run(context, args, &fixtures, &scenario, chosen);
    }
    let store = Arc::new(workspace.store().map_err(Failure::input)?);
    let mut fixtures = fixtures;
    if let Some(chosen) = &chosen {
        let asked = Asked {
            command: "breakage run",
            yes: args.place.yes,
        };
        let known = agree(context, chosen, &store, &asked)?;
        fixtures = fixtures.with_image(known.and_then(|known| known.image));
    }
    let (stop, interrupted) = watch::channel(false);
    match &chosen {
        Some(chosen) => interrupt::listen_leaving(stop, lasting::left(context, chosen)),
        None => interrupt::listen(stop),
    }
    let seeds = seeds::of_workspace(workspace.folder()).map_err(Failure::input)?;
    let mut setting = setting(context, args, &library, &seeds, store, interrupted)?;
    if !args.retrieval.same_scenario {
        let excluded = &mut setting.policy.excluded_scenarios;
        excluded.insert(scenario.id.clone());
    }
    setting.fixtures = Arc::new(fixtures);
    setting.prometheus = prometheus;
    match chosen {
        Some(chosen) => lasting::run(context, args, &agent, &setting, scenario, chosen),
        None => {
            tell_recovered(context, &setting.store)?;
            run_all(context, args, &agent, &setting, scenario)
        }
    }
}

/// Says on stderr which fixtures of the workspace take the place of those compiled in; the library tells its own.
fn tell_fixture_overrides(context: &Context, fixtures: &Fixtures) {
    for id in fixtures.overrides() {
        context
            .output
            .note(&format!("in use from the workspace: fixture {id}"));
    }
}

/// A scenario that waits for more than Prometheus, which its conditions are asked about one by one.
fn refuse_unavailable(scenario: &Scenario) -> Result<(), Failure> {
    if scenario.needs.iter().all(|need| need == PROMETHEUS) {
        return Ok(());
    }
    Err(Failure::input(anyhow::anyhow!(
        "scenario {} waits for what the embedded cluster does not have: {}",
        scenario.id,
        scenario.needs.join(", ")
    ))
    .hint("breakage scenario list shows which scenarios run"))
}

pub(in crate::cli) fn refuse_unknown_fixture(
    fixtures: &Fixtures,
    scenario: &Scenario,
) -> Result<(), Failure> {
    let known: Vec<String> = fixture::known()
        .map(|(id, _)| id.to_string())
        .chain(fixtures.overrides().map(ToString::to_string))
        .collect();
    for id in &scenario.fixture {
        if let Err(error) = fixtures.load(std::slice::from_ref(id)) {
            let failure = Failure::input(error);
            let near = near::near(id.as_str(), known.iter().map(String::as_str));
            return Err(match near.first() {
                Some(meant) => failure.hint(format!("did you mean fixture {meant}?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Conditions that ask for what runs do not have, and may not be skipped.
fn refuse_unanswerable(scenario: &Scenario, has_prometheus: bool) -> Result<(), Failure> {
    let detector = &scenario.detector;
    let conditions = detector.fixed_when.iter();
    let mut conditions = conditions
        .chain(&detector.regressed_when)
        .chain(&scenario.manifest_when);
    let unanswerable = conditions.find(|condition| {
        !condition.expression.is_answerable(has_prometheus) && !condition.skip_if_unevaluable
    });
    unanswerable.map_or(Ok(()), |condition| {
        Err(Failure::input(anyhow::anyhow!(
            "scenario {} asks Prometheus, which this run does not have: {}",
            scenario.id,
            condition.text
        ))
        .hint("name one that scrapes the cluster: --context NAME --prometheus URL")
        .hint("or give the condition skip_if_unevaluable: true, or ask for what the cluster itself tells"))
    })
}

/// Gives runs on embedded clusters that were cut off their records; those of other clusters are told.
fn tell_recovered(context: &Context, store: &Arc<Store>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Failure::internal)?;
    let found = runtime
        .block_on(recover(store, None))
        .map_err(Failure::input)?;
    for line in recovery::lines(context, &found) {
        context.output.note(&line);
    }
    Ok(())
}

fn setting(
    context: &Context,
    args: &Args,
    library: &Library,
    seeds: &[Entry],
    store: Arc<Store>,
    interrupted: watch::Receiver<bool>,
) -> Result<Setting, Failure> {
    let retrieval = &args.retrieval;
    let embedder = retrieval.embedder.embedder();
    let mut policy = if retrieval.no_retrieval {
        Policy::off(embedder.as_ref())
    } else {
        Policy::default_for(embedder.as_ref())
    };
    if let Some(k) = retrieval.k {
        policy.k = k;
    }
    if let Some(max_distance) = retrieval.max_distance {
        policy.max_distance = max_distance;
    }
    policy.pool_cap = retrieval.pool_cap;
    policy.check().map_err(Failure::usage)?;
    let snapshot = snapshot(context, seeds, &store, &embedder)?;
    if !snapshot.without_vector().is_empty() {
        context.output.note(&format!(
            "{} postmortems have no vector of this embedder and cannot be found; breakage corpus reembed mends that",
            snapshot.without_vector().len()
        ));
    }
    Ok(Setting {
        store,
        vocabulary: Arc::new(library.vocabulary().clone()),
        fixtures: Arc::default(),
        rubric: library
            .rubric(&args.rubric)
            .map_err(Failure::input)?
            .clone(),
        embedder,
        policy,
        snapshot: Arc::new(snapshot),
        learn: args.learn,
        prometheus: None,
        interrupted,
    })
}

/// What can be retrieved, with a first run's seeds and a new embedder's vectors made on the way.
pub(in crate::cli) fn snapshot(
    context: &Context,
    seeds: &[Entry],
    store: &Arc<Store>,
    embedder: &Arc<dyn Embedder>,
) -> Result<Snapshot, Failure> {
    let learner = Learner::new(store.clone(), embedder.clone());
    if store.postmortem_count().map_err(Failure::input)? == 0 {
        // Otherwise the first postmortem of a run would take the place of those compiled in.
        learner.import(seeds, |_| ()).map_err(Failure::input)?;
    }
    let reader = Reader::new(Some(store.clone()));
    match reader.snapshot(embedder.as_ref()) {
        Err(ExperienceError::NotEmbedded {
            entries,
            embedder: name,
        }) => {
            context
                .output
                .note(&format!("embedding {entries} postmortems with {name}"));
            learner.reembed(|_| ()).map_err(Failure::input)?;
            reader.snapshot(embedder.as_ref())
        }
        other => other,
    }
    .map_err(Failure::input)
}

fn run_all(
    context: &Context,
    args: &Args,
    agent: &Choice,
    setting: &Setting,
    scenario: Arc<Scenario>,
) -> Result<ExitCode, Failure> {
    let make = || agent.make();
    let plan = plan(args, setting, &scenario, target::embedded_facts(), &make)?;
    let started = Instant::now();
    let mut printer = repetitions::Printer::new(context, args, &scenario);
    let unbegun = repeat(setting, &plan, |progress| printer.progress(progress));
    printer.finish(started.elapsed(), ended(setting, unbegun))
}

/// The runs of the command.
fn plan<'a>(
    args: &Args,
    setting: &Setting,
    scenario: &Arc<Scenario>,
    cluster: ClusterFacts,
    agent: &'a (dyn Fn() -> Box<dyn Agent> + Sync),
) -> Result<Repetitions<'a>, Failure> {
    let qualified = keep::is_qualified(&setting.store, scenario, &setting.fixtures, &cluster);
    Ok(Repetitions {
        scenario: scenario.clone(),
        qualified: qualified.map_err(Failure::input)?,
        kind: if args.healthy {
            RunKind::Healthy
        } else {
            RunKind::Incident
        },
        watching: Watching::AsNeeded,
        base: Seed(args.seed),
        count: args.reps,
        jobs: args.jobs.map_or_else(cores, usize::from),
        agent,
    })
}

/// How a command's runs came to their end.
struct Ended {
    /// Planned runs that did not begin.
    unbegun: u64,
    /// The user wanted to stop.
    interrupted: bool,
}

fn ended(setting: &Setting, unbegun: u64) -> Ended {
    Ended {
        unbegun,
        interrupted: *setting.interrupted.borrow(),
    }
}

pub(in crate::cli) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The mean total of the runs that have a score.
fn mean_total(finished: &[Finished]) -> Option<f64> {
    let scores = finished.iter().filter_map(|one| one.score.as_ref());
    let totals: Vec<f64> = scores.map(|score| score.total.as_f64()).collect();
    (!totals.is_empty()).then(|| totals.iter().sum::<f64>() / totals.len() as f64)
}

/// The exit code of runs: interrupted over invalid over below the threshold over done.
fn exit_code(finished: &[Finished], fail_under: Option<f64>) -> ExitCode {
    let codes = || {
        finished.iter().filter_map(|one| match &one.record.state {
            RunState::FrameworkError { code, .. } => Some(*code),
            _ => None,
        })
    };
    if codes().any(|code| code == FrameworkCode::Interrupted) {
        ExitCode::from(INTERRUPTED)
    } else if codes().next().is_some() {
        ExitCode::from(INVALID_RUNS)
    } else if let (Some(wanted), Some(mean)) = (fail_under, mean_total(finished))
        && mean + ROUNDING < wanted
    {
        ExitCode::from(BELOW_THRESHOLD)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints one run as a line of JSON.
fn print_json(context: &Context, finished: &Finished) -> Result<(), Failure> {
    context
        .output
        .json_line(&Summary::of(&finished.record, finished.score.as_ref()))
}

fn not_kept(error: RepeatError) -> Failure {
    match error {
        RepeatError::NotKept { .. } | RepeatError::NotPlanned(_) => Failure::input(error),
        RepeatError::Runtime(_) => Failure::internal(error),
    }
}
