//! `breakage runs restore`: undoes whatever a run that was cut off left, proves it, and gives every run its record.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::context::{Purpose, connect, find, restore_command};
use crate::cli::failure::{Failure, INVALID_RUNS};
use crate::cli::runs::give_up;
use crate::cli::{Context, recovery};
use crate::clock::{self, Pace};
use crate::config::Workspace;
use crate::inject::journal::Place;
use crate::run::recover::{Outcome, Recovery, pending_places, recover};
use crate::store::{Store, StoreError};

/// Undo whatever cut-off runs of this workspace left in any cluster, and prove it
///
/// Takes back faults field by field, makes the namespaces that breakage created equal to their fixture, reads the state
/// back, gives every planned run its record and opens closed clusters again. It may be cut off itself and repeated.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 everything is restored; 3 something is left, and what to do about it is told."
)]
pub struct Args {
    /// Only the cluster of this kubeconfig context [default: every one in which something may be left]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig that has the context [default: the one that the run was given, else as kubectl]
    #[arg(long, value_name = "FILE", env = "BREAKAGE_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Give up clusters that cannot be restored because they are gone for good: says what is left undone, asks, and
    /// records their runs as crashed
    #[arg(long)]
    pub give_up: bool,
    /// Do not ask before giving up
    #[arg(long, requires = "give_up")]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A cluster that was looked at, and what came of it.
struct Visit {
    place: Place,
    outcome: Result<Recovery, Failure>,
}

impl Visit {
    fn is_restored(&self) -> bool {
        self.outcome
            .as_ref()
            .is_ok_and(|recovery| recovery.left.is_none())
    }
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let store = match Store::open(&workspace.store_path()) {
        Ok(store) => Arc::new(store),
        Err(StoreError::Missing { .. }) => {
            tell(context, args, &Recovery::default(), &[], &[])?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(Failure::input(error)),
    };
    let mut passing = clock::block_on(Pace::Real, recover(&store, None))
        .map_err(Failure::internal)?
        .map_err(Failure::input)?;
    passing.runs.retain(|run| run.outcome != Outcome::Elsewhere);
    let visits: Vec<Visit> = wanted(args, &store)?
        .into_iter()
        .map(|place| Visit {
            outcome: visit(context, &store, &place),
            place,
        })
        .collect();
    let mut left = pending_places(&store).map_err(Failure::input)?;
    if !args.give_up {
        tell(context, args, &passing, &visits, &left)?;
        return Ok(code(args, &visits, &left));
    }
    let named = |place: &&Place| args.context.is_none() || place.context == args.context;
    let lost: Vec<Place> = left.iter().filter(named).cloned().collect();
    let given_up = give_up::give_up(context, &store, &lost, args.yes)?;
    left.retain(|place| {
        !given_up
            .iter()
            .any(|up| up.cluster_uid == place.cluster_uid)
    });
    if args.json {
        let mut told = as_json(context, &passing, &visits, &left);
        told["given_up"] = given_up.iter().map(give_up::as_json).collect();
        context.output.json(&told)?;
    } else {
        tell(context, args, &passing, &visits, &left)?;
        let told = format!("{} cluster(s) given up", given_up.len());
        context.output.print(&told)?;
    }
    Ok(if left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INVALID_RUNS)
    })
}

fn code(args: &Args, visits: &[Visit], left: &[Place]) -> ExitCode {
    let restored = visits.iter().all(Visit::is_restored);
    // Whoever names one cluster asks for that one.
    if restored && (args.context.is_some() || left.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INVALID_RUNS)
    }
}

/// The clusters to look at: the one that was named, else every one in which something may be left.
fn wanted(args: &Args, store: &Store) -> Result<Vec<Place>, Failure> {
    if let Some(name) = &args.context {
        return Ok(vec![Place {
            context: Some(name.clone()),
            kubeconfig: args.kubeconfig.clone(),
            ..Place::default()
        }]);
    }
    let mut places = pending_places(store).map_err(Failure::input)?;
    for place in &mut places {
        place.kubeconfig = args.kubeconfig.clone().or(place.kubeconfig.take());
    }
    Ok(places)
}

fn visit(context: &Context, store: &Arc<Store>, place: &Place) -> Result<Recovery, Failure> {
    let name = place.context.as_deref().unwrap_or_default();
    let chosen = find(name, place.kubeconfig.as_deref().map(Path::new))?;
    clock::block_on(chosen.pace, async {
        let target = connect(context, chosen, Purpose::LookOrRestore).await?;
        let mut recovery = recover(store, Some(&target))
            .await
            .map_err(Failure::input)?;
        recovery
            .runs
            .retain(|run| run.outcome != Outcome::Elsewhere);
        Ok(recovery)
    })
    .map_err(Failure::internal)?
}

fn tell(
    context: &Context,
    args: &Args,
    passing: &Recovery,
    visits: &[Visit],
    left: &[Place],
) -> Result<(), Failure> {
    if args.json {
        return context
            .output
            .json(&as_json(context, passing, visits, left));
    }
    let mut lines = recovery::lines(context, passing);
    for visit in visits {
        match &visit.outcome {
            Ok(recovery) => lines.extend(recovery::lines(context, recovery)),
            Err(failure) => lines.push(format!(
                "warning: context {} cannot be used: {:#}",
                visit.place.context.as_deref().unwrap_or_default(),
                failure.source
            )),
        }
    }
    for place in left {
        lines.push(format!(
            "left: something in cluster {}; once it can be reached: {}; if it is gone for good, the same with --give-up",
            place.cluster_uid,
            restore_command(context, place)
        ));
    }
    if lines.is_empty() {
        lines.push("Nothing is left of any run.".to_owned());
    }
    context.output.print(&lines.join("\n"))
}

fn as_json(context: &Context, passing: &Recovery, visits: &[Visit], left: &[Place]) -> Value {
    let clusters: Vec<Value> = visits
        .iter()
        .map(|visit| {
            let mut value = match &visit.outcome {
                Ok(recovery) => recovery::as_json(context, recovery),
                Err(failure) => json!({"left": format!("{:#}", failure.source)}),
            };
            value["context"] = json!(visit.place.context);
            value["restored"] = json!(visit.is_restored());
            value
        })
        .collect();
    let left: Vec<Value> = left
        .iter()
        .map(|place| {
            json!({
                "cluster_uid": place.cluster_uid,
                "context": place.context,
                "hint": restore_command(context, place),
            })
        })
        .collect();
    json!({
        "embedded": recovery::as_json(context, passing)["runs"],
        "clusters": clusters,
        "left": left,
    })
}
