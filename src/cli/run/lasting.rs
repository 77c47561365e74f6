//! `breakage run --context`: runs in a cluster that outlives the process, after whatever earlier ones left is undone.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use crate::agent::choice::Choice;
use crate::cli::context::{Purpose, connect, restore_command};
use crate::cli::failure::Failure;
use crate::cli::run::{Args, ended, plan, repetitions};
use crate::cli::{Context, recovery};
use crate::clock;
use crate::cluster::coverage;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::target::Target;
use crate::inject::journal::Place;
use crate::run::Setting;
use crate::run::recover::recover;
use crate::run::repeat::in_turn;
use crate::scenario::model::Scenario;
use crate::store::Store;

/// What to say when the process ends without having undone.
pub(in crate::cli) fn left(context: &Context, chosen: &Chosen) -> String {
    let place = Place {
        context: Some(chosen.context.clone()),
        kubeconfig: chosen.kubeconfig.clone(),
        ..Place::default()
    };
    format!(
        "the fault may still be in the cluster; undo it with: {}",
        restore_command(context, &place)
    )
}

pub(super) fn run(
    context: &Context,
    args: &Args,
    agent: &Choice,
    setting: &Setting,
    scenario: Arc<Scenario>,
    chosen: Chosen,
) -> Result<ExitCode, Failure> {
    clock::block_on(chosen.pace, async {
        let target = connect(context, chosen, Purpose::Use(&setting.store)).await?;
        make_ready(context, &setting.store, &target).await?;
        let make = || agent.make();
        let plan = plan(args, setting, &scenario, target.facts(), &make)?;
        let started = Instant::now();
        let mut printer = repetitions::Printer::new(context, args, &scenario);
        let tell = |progress| printer.progress(progress);
        let unbegun = in_turn(setting, &plan, &target, tell).await;
        let place = Place::of(&target);
        tell_closed(context, &setting.store, &place);
        printer.finish(started.elapsed(), ended(setting, unbegun))
    })
    .map_err(Failure::internal)?
}

/// Says that the cluster is closed now, if it is.
pub(in crate::cli) fn tell_closed(context: &Context, store: &Store, place: &Place) {
    if let Ok(Some(reason)) = store.quarantine_reason(&place.cluster_uid) {
        context.output.note(&format!(
            "warning: the cluster is closed to runs ({reason}); {}",
            restore_command(context, place)
        ));
    }
}

/// Refuses a closed cluster; undoes what runs left that were cut off.
pub(in crate::cli) async fn make_ready(
    context: &Context,
    store: &Arc<Store>,
    target: &Target,
) -> Result<(), Failure> {
    let place = Place::of(target);
    let closed = store
        .quarantine_reason(&place.cluster_uid)
        .map_err(Failure::input)?;
    if let Some(reason) = closed {
        return Err(Failure::cluster(anyhow::anyhow!(
            "the cluster of context {} is closed to runs: {reason}",
            place.context.as_deref().unwrap_or_default()
        ))
        .hint(restore_command(context, &place)));
    }
    let found = recover(store, Some(target)).await.map_err(Failure::input)?;
    for line in recovery::lines(context, &found) {
        context.output.note(&line);
    }
    // What cannot be read at all the run itself meets, and says so with its own code.
    for line in coverage::gaps(&target.client()).await.unwrap_or_default() {
        context.output.note(&line);
    }
    match found.left {
        None => Ok(()),
        Some(reason) => Err(Failure::cluster(anyhow::anyhow!(
            "what an earlier run left in the cluster could not be undone: {reason}"
        ))
        .hint(restore_command(context, &place))),
    }
}
