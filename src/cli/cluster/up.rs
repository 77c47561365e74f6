//! `breakage cluster up`: a cluster that runs can take place in, made or prepared.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::cluster::made;
use crate::cli::cluster::place::PlaceArgs;
use crate::cli::context::{Asked, Purpose, agree, connect, restore_command};
use crate::cli::failure::Failure;
use crate::clock;
use crate::cluster::examine::{self, Finding, Grade};
use crate::cluster::fixture::{Fixture, Fixtures};
use crate::cluster::image::REFERENCE;
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::ownership::Owned;
use crate::cluster::pull;
use crate::cluster::target::Target;
use crate::config::Workspace;
use crate::ids::FixtureId;
use crate::inject::journal::Place;
use crate::run::{recover, standing};
use crate::store::Store;

/// Make a cluster ready for runs: rights, image, fixtures
///
/// With --context any cluster is prepared: its identity is shown and asked about once, the rights are checked, a pod on each
/// node shows that the services' image can be had, and fixtures are made to stand in namespaces that breakage creates and
/// owns. Nothing else is written. Without --context a k3d cluster is made on this machine first, if a Docker engine and
/// k3d are there; its kubeconfig is kept in the workspace and never put into yours.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage cluster up                                   # k3d on this machine
  breakage cluster up --context lab --image registry.lab:5000/acme/services:2.4.1
  breakage run secret-missing-key-advocate --context lab

Exit codes: 0 ready; 1 wrong usage, or no agreement; 3 not ready, and what to do about it is told.")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Use the cluster of the context without being asked about it
    #[arg(long)]
    yes: bool,
    /// What nodes pull the services of fixtures from; remembered for the cluster [default: what the binary carries,
    /// ghcr.io/acme/services:2.4.1, brought to the nodes]
    #[arg(long, value_name = "REF", value_parser = image_reference)]
    image: Option<String>,
    /// A fixture to make stand; may be given several times, then each stands in turn and the last stays
    #[arg(long, value_name = "ID", default_value = "advocate")]
    fixture: Vec<String>,
    #[command(flatten)]
    k3d: made::K3dArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn image_reference(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        Err("not a reference such as registry.lab:5000/acme/services:2.4.1".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// What was reached.
struct Ready {
    target: Target,
    image: String,
    checked: Vec<Finding>,
    /// Name, digest and state hash of each fixture that stood, in turn.
    stood: Vec<(Fixture, String)>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let fixtures = Fixtures::open(workspace.folder()).map_err(Failure::input)?;
    let ids: Vec<FixtureId> = args.fixture.iter().map(FixtureId::new).collect();
    for id in &ids {
        fixtures
            .load(std::slice::from_ref(id))
            .map_err(Failure::input)?;
    }
    let store = Arc::new(workspace.store().map_err(Failure::input)?);
    let (chosen, made) = match args.place.named()? {
        Some(chosen) => (chosen, None),
        None => {
            let (chosen, name) = made::make(context, &workspace, &store, &args.k3d)?;
            (chosen, Some(name))
        }
    };
    let asked = Asked {
        command: "breakage cluster up",
        // Nobody else has anything in a cluster that was made a moment ago.
        yes: args.yes || made.is_some(),
    };
    agree(context, &chosen, &store, &asked)?;
    let ready = clock::block_on(chosen.pace, async {
        let served = chosen.served;
        let target = connect(context, chosen.clone(), Purpose::Use(&store)).await?;
        let known = remember(args, &store, &target, &chosen, made.as_deref())?;
        refuse_unfinished(context, &store, &target)?;
        prepare(context, &store, target, (fixtures, &ids), known, served).await
    })
    .map_err(Failure::internal)??;
    tell(context, args, &ready)?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps what the flags say of the cluster; answers what is known of it.
fn remember(
    args: &Args,
    store: &Store,
    target: &Target,
    chosen: &Chosen,
    made: Option<&str>,
) -> Result<Option<KnownCluster>, Failure> {
    let uid = Place::of(target).cluster_uid;
    let server = chosen.config.cluster_url.to_string();
    let agreed =
        || KnownCluster::agreed(target, server.trim_end_matches('/'), "breakage cluster up");
    let known = KnownCluster::of(store, &uid).map_err(Failure::input)?;
    let Some(mut known) = known.or_else(agreed) else {
        return Ok(None);
    };
    known.context.clone_from(&chosen.context);
    known.kubeconfig.clone_from(&chosen.kubeconfig);
    match made {
        Some(name) => {
            known.k3d = Some(name.to_owned());
            made::keep(store, &uid, &known, name).map_err(Failure::input)?;
        }
        None => known.put(store, &uid).map_err(Failure::input)?,
    }
    // Kept once nodes have shown that they get it.
    if let Some(image) = &args.image {
        known.image = Some(image.clone()).filter(|image| image != REFERENCE);
    }
    Ok(Some(known))
}

fn refuse_unfinished(context: &Context, store: &Store, target: &Target) -> Result<(), Failure> {
    let place = Place::of(target);
    let pending = recover::pending_places(store).map_err(Failure::input)?;
    if pending
        .iter()
        .all(|one| one.cluster_uid != place.cluster_uid)
    {
        return Ok(());
    }
    Err(Failure::cluster(anyhow::anyhow!(
        "a run in the cluster of context {} is unfinished, or the cluster is closed to runs",
        place.context.as_deref().unwrap_or_default()
    ))
    .hint(restore_command(context, &place)))
}

async fn prepare(
    context: &Context,
    store: &Arc<Store>,
    target: Target,
    (fixtures, ids): (Fixtures, &[FixtureId]),
    known: Option<KnownCluster>,
    served: bool,
) -> Result<Ready, Failure> {
    let image = known.as_ref().and_then(|known| known.image.clone());
    let fixtures = fixtures.with_image(image.clone());
    let image = image.unwrap_or_else(|| REFERENCE.to_owned());
    let loaded: Vec<Fixture> = ids
        .iter()
        .map(|id| fixtures.load(std::slice::from_ref(id)))
        .collect::<Result<_, _>>()
        .map_err(Failure::input)?;
    let images: BTreeSet<String> = loaded.iter().flat_map(Fixture::images).collect();
    let uid = Place::of(&target).cluster_uid;
    let mut owned = Owned::of_cluster(store.clone(), &uid).map_err(Failure::input)?;
    let mut checked = Vec::new();
    for one in &images {
        context
            .output
            .note(&format!("letting a pod on each node run from {one}"));
        let finding = examine::image(one, pull::check(&target.client(), &mut owned, one).await);
        if finding.grade != Grade::Good {
            let mut failure = Failure::cluster(anyhow::anyhow!("{}", finding.found));
            failure.hints = finding.todo;
            return Err(failure);
        }
        checked.push(finding);
    }
    if let Some(known) = known {
        known.put(store, &uid).map_err(Failure::input)?;
    }
    let mut stood = Vec::new();
    for fixture in loaded {
        let wait = if served {
            ""
        } else {
            "; it takes a minute or two"
        };
        context
            .output
            .note(&format!("making fixture {} stand{wait}", fixture.name));
        let state = standing::prepare(store, &target, &fixture)
            .await
            .map_err(Failure::cluster)?;
        stood.push((fixture, state.hash()));
    }
    Ok(Ready {
        target,
        image,
        checked,
        stood,
    })
}

fn tell(context: &Context, args: &Args, ready: &Ready) -> Result<(), Failure> {
    let place = Place::of(&ready.target);
    let facts = ready.target.facts();
    if args.json {
        let stood: Vec<Value> = ready
            .stood
            .iter()
            .map(|(fixture, hash)| {
                json!({
                    "fixture": fixture.name, "sha256": fixture.sha256,
                    "namespaces": fixture.namespaces, "state_hash": hash,
                })
            })
            .collect();
        return context.output.json(&json!({
            "context": facts.name, "kubeconfig": place.kubeconfig, "cluster_uid": place.cluster_uid,
            "version": facts.version, "image": ready.image, "checks": ready.checked, "fixtures": stood,
        }));
    }
    let mut lines = vec![format!(
        "context {} is ready: {}, cluster uid {}",
        facts.name, facts.version, place.cluster_uid
    )];
    for finding in &ready.checked {
        lines.push(format!("image: {}", finding.found));
    }
    for (fixture, hash) in &ready.stood {
        let namespaces: Vec<&str> = fixture.namespaces.iter().map(String::as_str).collect();
        lines.push(format!(
            "fixture {} stood at rest in {}: state hash {hash}",
            fixture.name,
            namespaces.join(", ")
        ));
    }
    let mut next = format!(
        "breakage run secret-missing-key-advocate --context {}",
        facts.name
    );
    if let Some(file) = &place.kubeconfig {
        next.push_str(&format!(" --kubeconfig {}", file.display()));
    }
    lines.push(format!("next: {next}"));
    context.output.print(&lines.join("\n"))
}
