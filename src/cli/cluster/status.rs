//! `breakage cluster status`: what is ours in the clusters that the workspace knows.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::cluster::place::{self, PlaceArgs};
use crate::cli::context::{Purpose, connect, restore_command};
use crate::cli::failure::{Failure, INVALID_RUNS};
use crate::clock;
use crate::cluster::image::REFERENCE;
use crate::cluster::known::{self, KnownCluster};
use crate::cluster::ownership::Owned;
use crate::cluster::state;
use crate::cluster::target::Target;
use crate::cluster::{ClusterError, resource};
use crate::config::Workspace;
use crate::inject::journal::{JournalEntry, Place};
use crate::run::{recover, standing};
use crate::store::Store;

/// Show what is breakage's in the clusters that this workspace knows, and whether it is at rest
///
/// Reads only. Without --context every cluster that was agreed to, prepared or run in is looked at.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every cluster was looked at; 1 wrong usage; 3 one cannot be reached."
)]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is ours in one cluster.
struct Found {
    place: Place,
    version: String,
    known: Option<KnownCluster>,
    /// What was made to stand there last.
    fixture: Option<String>,
    /// Namespaces of ours that are there.
    namespaces: Vec<String>,
    /// Namespaces of ours that somebody removed.
    gone: Vec<String>,
    /// Workloads of ours that are not at rest, with the reason.
    moving: Vec<String>,
    /// Runs whose fault may be there.
    journal: Vec<String>,
    unfinished: bool,
    closed: Option<String>,
}

/// A cluster that was looked at, or why it could not be.
type Visit = (Place, Result<Found, Failure>);

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let named = args.place.named()?;
    let store = match workspace.existing_store().map_err(Failure::input)? {
        Some(store) => store,
        None => Store::in_memory().map_err(Failure::internal)?,
    };
    let store = Arc::new(store);
    let visits: Vec<Visit> = match named {
        Some(chosen) => {
            let place = Place {
                context: Some(chosen.context.clone()),
                kubeconfig: chosen.kubeconfig.clone(),
                ..Place::default()
            };
            let found = clock::block_on(chosen.pace, async {
                let target = connect(context, chosen, Purpose::LookOrRestore).await?;
                look(&store, &target).await
            });
            vec![(place, found.map_err(Failure::internal)?)]
        }
        None => place::known(&store)?
            .into_iter()
            .map(|place| {
                let found = visit(context, &store, &place);
                (place, found)
            })
            .collect(),
    };
    let begun = known::announced_k3d(&store).map_err(Failure::input)?;
    tell(context, args, &visits, &begun)?;
    Ok(if visits.iter().all(|(_, found)| found.is_ok()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INVALID_RUNS)
    })
}

fn visit(context: &Context, store: &Arc<Store>, place: &Place) -> Result<Found, Failure> {
    let chosen = place::chosen(place)?;
    clock::block_on(chosen.pace, async {
        let target = connect(context, chosen, Purpose::LookOrRestore).await?;
        let uid = Place::of(&target).cluster_uid;
        if uid != place.cluster_uid {
            return Err(Failure::cluster(anyhow::anyhow!(
                "the context leads to another cluster by now (uid {uid})"
            )));
        }
        look(store, &target).await
    })
    .map_err(Failure::internal)?
}

async fn look(store: &Arc<Store>, target: &Target) -> Result<Found, Failure> {
    let place = Place::of(target);
    let uid = place.cluster_uid.as_str();
    let owned = Owned::of_cluster(store.clone(), uid).map_err(Failure::input)?;
    let (namespaces, gone) = there(target, &owned).await.map_err(Failure::cluster)?;
    let workloads = state::read_workloads(&target.client())
        .await
        .map_err(Failure::cluster)?;
    let ours = namespaces.iter().cloned().collect();
    let pending = recover::pending_places(store).map_err(Failure::input)?;
    let journal = JournalEntry::all(store).map_err(Failure::input)?;
    let stood = standing::standing(store, uid).map_err(Failure::input)?;
    Ok(Found {
        version: target.facts().version,
        known: KnownCluster::of(store, uid).map_err(Failure::input)?,
        fixture: stood.map(|standing| standing.fixture.name),
        moving: workloads.within(&ours).unsettled(),
        journal: journal
            .into_iter()
            .filter(|entry| entry.place.cluster_uid == uid)
            .map(|entry| entry.run_id.to_string())
            .collect(),
        unfinished: pending.iter().any(|one| one.cluster_uid == uid),
        closed: store.quarantine_reason(uid).map_err(Failure::input)?,
        namespaces,
        gone,
        place,
    })
}

/// Names of our namespaces: those that are there by uid, and those that are not any more.
async fn there(target: &Target, owned: &Owned) -> Result<(Vec<String>, Vec<String>), ClusterError> {
    let live = resource::of_kind("Namespace")?
        .list(&target.client(), "")
        .await?;
    let mut there = Vec::new();
    let mut gone = Vec::new();
    for (uid, name) in &owned.namespaces {
        let is_there = live.iter().any(|one| one["metadata"]["uid"] == **uid);
        if is_there { &mut there } else { &mut gone }.push(name.clone());
    }
    there.sort();
    gone.sort();
    Ok((there, gone))
}

fn tell(context: &Context, args: &Args, visits: &[Visit], begun: &[String]) -> Result<(), Failure> {
    if args.json {
        let clusters: Vec<Value> = visits
            .iter()
            .map(|(place, found)| match found {
                Ok(found) => as_json(context, found),
                Err(failure) => json!({
                    "context": place.context, "cluster_uid": place.cluster_uid,
                    "error": format!("{:#}", failure.source), "hints": failure.hints,
                }),
            })
            .collect();
        return context
            .output
            .json(&json!({"clusters": clusters, "k3d_begun": begun}));
    }
    let mut blocks: Vec<String> = visits
        .iter()
        .map(|(place, found)| match found {
            Ok(found) => as_text(context, found),
            Err(failure) => {
                let mut lines = vec![format!(
                    "context {}: {:#}",
                    place.context.as_deref().unwrap_or_default(),
                    failure.source
                )];
                lines.extend(failure.hints.iter().map(|hint| format!("  hint: {hint}")));
                lines.join("\n")
            }
        })
        .collect();
    blocks.extend(begun.iter().map(|name| {
        format!("k3d cluster {name}: begun and not finished; breakage cluster up goes on, breakage cluster down removes it")
    }));
    if blocks.is_empty() {
        blocks.push(
            "This workspace knows no cluster. breakage cluster up makes or prepares one."
                .to_owned(),
        );
    }
    context.output.print(&blocks.join("\n\n"))
}

fn as_text(context: &Context, found: &Found) -> String {
    let name = found.place.context.as_deref().unwrap_or_default();
    let mut lines = vec![format!(
        "context {name}: {}, cluster uid {}",
        found.version, found.place.cluster_uid
    )];
    let mut line = |what: &str, text: String| lines.push(format!("  {what:<12}{text}"));
    if let Some(known) = &found.known {
        line(
            "agreed",
            format!("{} to {}", known.agreed_at, known.agreed_by),
        );
        if let Some(name) = &known.k3d {
            line("made", format!("k3d cluster {name}"));
        }
    }
    line("image", image(found).to_owned());
    line(
        "fixture",
        found.fixture.clone().unwrap_or_else(|| "none".to_owned()),
    );
    let namespaces = match found.namespaces.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    line("namespaces", namespaces);
    if !found.gone.is_empty() {
        line(
            "gone",
            format!("{} (somebody removed them)", found.gone.join(", ")),
        );
    }
    if !found.namespaces.is_empty() {
        let rest = match found.moving.as_slice() {
            [] => "everything is at rest".to_owned(),
            moving => format!("not at rest: {}", moving.join("; ")),
        };
        line("state", rest);
    }
    for run in &found.journal {
        line("open", format!("the fault of run {run} may be there"));
    }
    if let Some(reason) = &found.closed {
        line("closed", reason.clone());
    }
    if found.unfinished {
        line("to do", restore_command(context, &found.place));
    }
    lines.join("\n")
}

fn image(found: &Found) -> &str {
    let known = found.known.as_ref();
    known
        .and_then(|known| known.image.as_deref())
        .unwrap_or(REFERENCE)
}

fn as_json(context: &Context, found: &Found) -> Value {
    json!({
        "context": found.place.context,
        "kubeconfig": found.place.kubeconfig,
        "cluster_uid": found.place.cluster_uid,
        "version": found.version,
        "agreed_at": found.known.as_ref().map(|known| &known.agreed_at),
        "agreed_by": found.known.as_ref().map(|known| &known.agreed_by),
        "k3d": found.known.as_ref().and_then(|known| known.k3d.as_ref()),
        "image": image(found),
        "fixture": found.fixture,
        "namespaces": found.namespaces,
        "gone": found.gone,
        "at_rest": found.moving.is_empty(),
        "moving": found.moving,
        "open_journal": found.journal,
        "closed": found.closed,
        "restore": found.unfinished.then(|| restore_command(context, &found.place)),
    })
}
