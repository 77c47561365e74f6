//! `breakage cluster down`: removes what is ours from a cluster, and the cluster where we made it.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::cli::Context;
use crate::cli::cluster::made;
use crate::cli::cluster::place::{self, PlaceArgs};
use crate::cli::context::{Purpose, connect, restore_command};
use crate::cli::failure::Failure;
use crate::clock;
use crate::cluster::known::{self, KnownCluster};
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::ownership::Owned;
use crate::config::Workspace;
use crate::inject::journal::Place;
use crate::run::{recover, standing};
use crate::store::{Store, StoreError};

/// Remove everything that is breakage's from a cluster; delete the cluster if `cluster up` made it
///
/// Only namespaces whose uids this workspace noted when it created them are removed. Refused while a run is unfinished:
/// `breakage runs restore` ends it first. A k3d cluster is deleted only by the workspace that made it.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 nothing of ours is left there; 1 wrong usage; 3 not everything could be removed."
)]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was removed.
#[derive(Default)]
struct Removed {
    context: Option<String>,
    namespaces: BTreeSet<String>,
    k3d: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let named = args.place.named()?;
    let store = match Store::open(&workspace.store_path()) {
        Ok(store) => Arc::new(store),
        Err(StoreError::Missing { .. }) => {
            return tell(context, args, &Removed::default());
        }
        Err(error) => return Err(Failure::input(error)),
    };
    let begun = known::announced_k3d(&store).map_err(Failure::input)?;
    let chosen = match named {
        Some(chosen) => chosen,
        None => match only_one(&store, &begun)? {
            Some(Only::Known(place)) => place::chosen(&place)?,
            Some(Only::Begun(name)) => {
                made::delete(&workspace, &name)?;
                known::withdraw_k3d(&store, &name).map_err(Failure::input)?;
                let removed = Removed {
                    k3d: Some(name),
                    ..Removed::default()
                };
                return tell(context, args, &removed);
            }
            None => return tell(context, args, &Removed::default()),
        },
    };
    let removed = remove(context, &workspace, &store, chosen)?;
    tell(context, args, &removed)
}

/// What `down` means where no cluster is named.
enum Only {
    Known(Place),
    /// A k3d cluster whose making was begun.
    Begun(String),
}

fn only_one(store: &Store, begun: &[String]) -> Result<Option<Only>, Failure> {
    let mut known = place::known(store)?;
    match (known.len(), begun) {
        (0, []) => Ok(None),
        (0, [name]) => Ok(Some(Only::Begun(name.clone()))),
        (1, []) => Ok(known.pop().map(Only::Known)),
        _ => {
            let contexts = known.iter().filter_map(|place| place.context.as_deref());
            let names: Vec<&str> = contexts.chain(begun.iter().map(String::as_str)).collect();
            Err(Failure::usage(anyhow::anyhow!(
                "this workspace knows several clusters: {}",
                names.join(", ")
            ))
            .hint("--context NAME says which one"))
        }
    }
}

fn remove(
    context: &Context,
    workspace: &Workspace,
    store: &Arc<Store>,
    chosen: Chosen,
) -> Result<Removed, Failure> {
    let name = chosen.context.clone();
    let (uid, namespaces) = clock::block_on(chosen.pace, async {
        let target = connect(context, chosen, Purpose::LookOrRestore).await?;
        let place = Place::of(&target);
        let pending = recover::pending_places(store).map_err(Failure::input)?;
        if pending.iter().any(|one| one.cluster_uid == place.cluster_uid) {
            return Err(Failure::cluster(anyhow::anyhow!(
                "a run in the cluster of context {name} is unfinished, or the cluster is closed to runs; nothing was removed"
            ))
            .hint(restore_command(context, &place)));
        }
        let owned = Owned::of_cluster(store.clone(), &place.cluster_uid).map_err(Failure::input)?;
        standing::remove(store, &target)
            .await
            .map_err(|error| Failure::cluster(error).hint("give the command again; what is left is known"))?;
        Ok((place.cluster_uid, owned.names()))
    })
    .map_err(Failure::internal)??;
    let known = KnownCluster::of(store, &uid).map_err(Failure::input)?;
    let k3d = known.and_then(|known| known.k3d);
    if let Some(name) = &k3d {
        made::delete(workspace, name)?;
        store.forget_cluster(&uid).map_err(Failure::input)?;
    }
    Ok(Removed {
        context: Some(name),
        namespaces,
        k3d,
    })
}

fn tell(context: &Context, args: &Args, removed: &Removed) -> Result<ExitCode, Failure> {
    if args.json {
        context.output.json(&json!({
            "context": removed.context, "namespaces": removed.namespaces, "k3d": removed.k3d,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Vec::new();
    if let Some(name) = &removed.context {
        let names: Vec<&str> = removed.namespaces.iter().map(String::as_str).collect();
        lines.push(match names.as_slice() {
            [] => format!("context {name}: nothing of ours was there"),
            names => format!("context {name}: removed {}", names.join(", ")),
        });
    }
    if let Some(name) = &removed.k3d {
        lines.push(format!("deleted the k3d cluster {name}"));
    }
    if lines.is_empty() {
        lines.push("This workspace knows no cluster; there is nothing to remove.".to_owned());
    }
    context.output.print(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
