//! `breakage scenario qualify`: proves scenarios before anything is measured with them.

mod lasting;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;

use crate::cli::context::{Asked, ContextArgs, agree};
use crate::cli::failure::{BELOW_THRESHOLD, Failure, INTERRUPTED};
use crate::cli::output::Output;
use crate::cli::prometheus::PrometheusArgs;
use crate::cli::run::lasting::left;
use crate::cli::run::refuse_unknown_fixture;
use crate::cli::scenario::{open_fixtures, open_library, unusable};
use crate::cli::{Context, interrupt};
use crate::cluster::fixture::Fixtures;
use crate::config::Workspace;
use crate::qualify::check::{Check, Qualification, Standing};
use crate::qualify::keep::{self, Sheet};
use crate::qualify::published::{self, Compared};
use crate::qualify::{Depth, Materials, QualifyError, qualify, runs_of};
use crate::scenario::library::Library;
use crate::scenario::model::{RepairStep, Scenario};

/// Threads; more than any machine has cores for.
const MAX_JOBS: i64 = 1024;
/// Letters of a text in the table; `scenario qualify ID` shows all of it.
const CELL: usize = 160;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// Scenarios' ids, or paths of files
    #[arg(required_unless_present_any = ["all", "published"], value_name = "ID")]
    pub scenarios: Vec<String>,
    /// Every scenario of the library
    #[arg(long, conflicts_with_all = ["scenarios", "published"])]
    pub all: bool,
    /// The published benchmark's faults, beside what a real cluster showed; exit code 2 when they differ
    #[arg(long, conflicts_with = "scenarios")]
    pub published: bool,
    /// How much is asked: `fault` (does it show and last), `repair` (and can it be repaired), `whole`. Only the whole
    /// qualifies and is kept
    #[arg(long, value_name = "DEPTH", default_value = "whole", value_parser = depth)]
    pub depth: Depth,
    /// Ask again what is known of this kind of cluster already (embedded clusters are always asked again)
    #[arg(long)]
    pub again: bool,
    /// Runs at the same time, 1 to 1024 [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=MAX_JOBS))]
    pub jobs: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    // Last, because its heading would take in the flags that follow.
    #[command(flatten)]
    pub place: ContextArgs,
    #[command(flatten)]
    pub metrics: PrometheusArgs,
}

fn depth(text: &str) -> Result<Depth, String> {
    let all = [Depth::Fault, Depth::Repair, Depth::Whole];
    let found = all.into_iter().find(|depth| depth.as_str() == text);
    found.ok_or_else(|| "give fault, repair or whole".to_owned())
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let library = open_library(context)?;
    let scenarios = chosen(&library, args)?;
    let (stop, interrupted) = watch::channel(false);
    let mut materials = Materials::new(&library, open_fixtures(context)?, interrupted)
        .map_err(Failure::internal)?;
    for scenario in scenarios
        .iter()
        .filter(|scenario| scenario.needs.is_empty())
    {
        refuse_unknown_fixture(&materials.fixtures, scenario)?;
    }
    let place = args.place.chosen()?;
    materials.prometheus = args.metrics.chosen(place.is_some())?;
    if let Some(chosen) = place {
        let store = Arc::new(workspace.store().map_err(Failure::input)?);
        let asked = Asked {
            command: "breakage scenario qualify",
            yes: args.place.yes,
        };
        let known = agree(context, &chosen, &store, &asked)?;
        let image = known.and_then(|known| known.image);
        let fixtures = materials.fixtures.as_ref().clone().with_image(image);
        let scenarios: Vec<_> = scenarios
            .iter()
            .map(|scenario| Arc::new(with_image(&fixtures, scenario)))
            .collect();
        materials.fixtures = Arc::new(fixtures);
        interrupt::listen_leaving(stop, left(context, &chosen));
        return lasting::run(context, args, &materials, &scenarios, (store, chosen));
    }
    let store = workspace.store().map_err(Failure::input)?;
    interrupt::listen(stop);
    let jobs = args
        .jobs
        .and_then(|jobs| NonZeroUsize::new(usize::from(jobs)))
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let runs = runs_of(&scenarios, args.depth);
    let started = Instant::now();
    let bar = context
        .output
        .progress(u64::try_from(runs).unwrap_or(u64::MAX), "runs");
    let qualified = qualify(&materials, &scenarios, args.depth, jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let qualifications = match qualified {
        Err(QualifyError::Interrupted) => {
            context.output.note(&QualifyError::Interrupted.to_string());
            return Ok(ExitCode::from(INTERRUPTED));
        }
        other => other.map_err(Failure::internal)?,
    };
    for qualification in &qualifications {
        keep::keep(&store, qualification).map_err(Failure::input)?;
    }
    let code = if args.published {
        tell_audit(context, args, &materials, &scenarios, qualifications)?
    } else {
        tell(context, args, qualifications)?
    };
    context.output.note(&format!(
        "{runs} runs in {:.1} s of wall time",
        started.elapsed().as_secs_f64()
    ));
    Ok(code)
}

/// The scenario with the image in its repairs that the cluster's fixtures run from.
fn with_image(fixtures: &Fixtures, scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for step in &mut scenario.reference_repair {
        if let RepairStep::Patch { body, .. } = step {
            *body = fixtures.image_in(body.take());
        }
    }
    scenario
}

fn chosen(library: &Library, args: &Args) -> Result<Vec<Arc<Scenario>>, Failure> {
    if args.published {
        return Ok(library.published().cloned().map(Arc::new).collect());
    }
    if args.all {
        return Ok(library.scenarios().cloned().map(Arc::new).collect());
    }
    let found = args.scenarios.iter().map(|id| {
        let scenario = library.scenario(id).map_err(unusable)?;
        Ok(Arc::new(scenario))
    });
    found.collect()
}

fn tell(
    context: &Context,
    args: &Args,
    qualifications: Vec<Qualification>,
) -> Result<ExitCode, Failure> {
    let missed = qualifications
        .iter()
        .any(|one| one.standing() == Standing::Missed);
    if args.json {
        match qualifications.as_slice() {
            [only] if !args.all => context.output.json(only)?,
            _ => context.output.json(&Sheet { qualifications })?,
        }
    } else {
        let text = match qualifications.as_slice() {
            [only] => details(only),
            many => table(many),
        };
        context.output.print(&text)?;
    }
    Ok(if missed {
        ExitCode::from(BELOW_THRESHOLD)
    } else {
        ExitCode::SUCCESS
    })
}

/// One line a scenario.
fn table(qualifications: &[Qualification]) -> String {
    let headings = ["scenario", "checks", "worst cheat", "result"];
    let mut table = Output::table_keeping(&headings, &[0, 1]);
    for one in qualifications {
        let checks = match one.standing() {
            Standing::Waits => "-".to_owned(),
            _ => format!("{}/{}", one.passed(), one.checks.len()),
        };
        table.add_row([one.scenario.to_string(), checks, worst(one), result(one)]);
    }
    let count = |standing| {
        qualifications
            .iter()
            .filter(|one| one.standing() == standing)
            .count()
    };
    Output::keep_whole(&mut table, &[0, 1]);
    let whole = qualifications.iter().all(|one| one.depth == Depth::Whole);
    format!(
        "{table}\n\n{} {}, {} missed, {} waiting",
        count(Standing::Qualified),
        if whole { "qualified" } else { "passing so far" },
        count(Standing::Missed),
        count(Standing::Waits)
    )
}

fn worst(one: &Qualification) -> String {
    match one.worst_cheat() {
        Some((name, total)) if one.standing() != Standing::Waits => format!("{total:.3} {name}"),
        _ => "-".to_owned(),
    }
}

fn result(one: &Qualification) -> String {
    match (one.standing(), one.first_miss()) {
        (Standing::Qualified, _) if one.depth != Depth::Whole => {
            format!("passes as far as asked ({})", one.depth.as_str())
        }
        (Standing::Qualified, _) => "qualified".to_owned(),
        (Standing::Waits, _) => format!("waits for {}", one.waits_for.join(", ")),
        (Standing::Missed, Some(check)) => format!(
            "{}: {}; required: {}",
            check.id,
            shortened(&check.observed),
            check.required
        ),
        (Standing::Missed, None) => "not every check was asked".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= CELL {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(CELL).collect();
    short.push('…');
    short
}

/// Everything about one scenario.
fn details(one: &Qualification) -> String {
    let mut text = format!(
        "{}  on {} {}{}  fixture {}\n",
        one.scenario,
        one.cluster,
        one.version,
        one.context
            .as_ref()
            .map_or_else(String::new, |name| format!(" (context {name})")),
        one.fixture
    );
    if one.standing() == Standing::Waits {
        text.push_str(&format!("waits for {}", one.waits_for.join(", ")));
        return text;
    }
    let mut table = Output::table(&["check", "", "observed", "required"]);
    for check in &one.checks {
        table.add_row([
            check.id.as_str(),
            verdict(check),
            &check.observed,
            &check.required,
        ]);
    }
    Output::keep_whole(&mut table, &[0, 1]);
    text.push_str(&format!("\n{table}\n\n"));
    if !one.skipped.is_empty() {
        text.push_str("skipped, because they cannot be evaluated here:\n");
        for condition in &one.skipped {
            text.push_str(&format!("  {condition}\n"));
        }
        text.push('\n');
    }
    text.push_str(match one.standing() {
        Standing::Qualified if one.depth == Depth::Whole => "qualified",
        Standing::Qualified => "passes as far as asked; --depth whole qualifies",
        _ => "not qualified",
    });
    text
}

fn verdict(check: &Check) -> &'static str {
    match check.pass {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    }
}

/// What `--published --json` prints.
#[derive(Serialize)]
struct Audit {
    source: String,
    watched_s: u64,
    compared: Vec<Compared>,
    qualifications: Vec<Qualification>,
}

fn tell_audit(
    context: &Context,
    args: &Args,
    materials: &Materials,
    scenarios: &[Arc<Scenario>],
    qualifications: Vec<Qualification>,
) -> Result<ExitCode, Failure> {
    let measured = published::measured().map_err(Failure::internal)?;
    let by_id: BTreeMap<&str, &Arc<Scenario>> = scenarios
        .iter()
        .map(|scenario| (scenario.id.as_str(), scenario))
        .collect();
    let mut compared = Vec::new();
    for row in &measured.rows {
        if let Some(scenario) = by_id.get(row.scenario.as_str()) {
            let one = published::compare(materials, scenario, row, measured.watched_s);
            compared.push(one.map_err(Failure::internal)?);
        }
    }
    let agrees = compared.iter().all(|one| one.agrees);
    let audit = Audit {
        source: measured.source,
        watched_s: measured.watched_s,
        compared,
        qualifications,
    };
    if args.json {
        context.output.json(&audit)?;
    } else {
        context.output.print(&audit_table(&audit))?;
    }
    Ok(if agrees {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BELOW_THRESHOLD)
    })
}

fn audit_table(audit: &Audit) -> String {
    let headings = ["scenario", "real", "here", "first miss", "worst cheat"];
    let mut table = Output::table(&headings);
    let seconds = |after: Option<u64>| match after {
        Some(seconds) => format!("{seconds} s"),
        None => "bites".to_owned(),
    };
    for one in &audit.compared {
        let found = audit
            .qualifications
            .iter()
            .find(|other| other.scenario == one.scenario);
        let miss = found
            .and_then(Qualification::first_miss)
            .map_or("-", |check| check.id.as_str());
        // What a cheat earns on a fault that heals by itself says nothing.
        let cheat = found
            .filter(|one| one.bites())
            .map_or("-".to_owned(), worst);
        table.add_row([
            one.scenario.to_string(),
            seconds(one.real_fixed_after_s),
            one.failed
                .clone()
                .unwrap_or_else(|| seconds(one.here_fixed_after_s)),
            miss.to_owned(),
            cheat,
        ]);
    }
    Output::keep_whole(&mut table, &[0, 1, 2]);
    let heal = audit
        .compared
        .iter()
        .filter(|one| one.here_fixed_after_s.is_some())
        .count();
    let same = audit.compared.iter().filter(|one| one.agrees).count();
    let mut head = Output::table(&[]);
    head.add_row([format!(
        "left alone for {} s; real: {}",
        audit.watched_s, audit.source
    )]);
    format!(
        "{head}\n\n{table}\n\n{heal} heal by themselves here; {same} of {} as on the real cluster",
        audit.compared.len()
    )
}
