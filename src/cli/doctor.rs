//! `breakage doctor`: what a cluster, or this machine, offers to runs and what stands in their way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::cli::Context;
use crate::cli::context::{
    Asked, ContextArgs, EMBEDDED, Purpose, agree, connect, own_namespaces, restore_command,
};
use crate::cli::failure::{BELOW_THRESHOLD, Failure};
use crate::cli::output::Output;
use crate::clock;
use crate::cluster::examine::{Examination, Finding, Grade};
use crate::cluster::fixture::{Fixture, Fixtures};
use crate::cluster::image::REFERENCE;
use crate::cluster::k3d::{K3d, K3dError};
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::ownership::Owned;
use crate::cluster::target::{Target, embedded_facts};
use crate::config::Workspace;
use crate::ids::{FixtureId, Seed};
use crate::inject::journal::Place;
use crate::run::recover;
use crate::store::Store;

/// Examine a cluster, or this machine: what runs need, what is missing, what to do about it
///
/// Rights, version, clocks, namespaces, room, limits, webhooks and metrics are asked about. Whether the services' image
/// can be had, and whether NetworkPolicies are enforced, is tried with pods in two namespaces that go again. Without
/// --context the embedded cluster and this machine are examined.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage doctor
  breakage doctor --context lab
  breakage doctor --context lab --only-look --json

Exit codes: 0 no problem; 1 wrong usage; 2 a problem was found; 3 the cluster cannot be reached.")]
pub struct Args {
    /// Make no pods: ask only
    #[arg(long)]
    only_look: bool,
    /// The fixture that should find room
    #[arg(long, value_name = "ID", default_value = "advocate")]
    fixture: String,
    /// The image to try [default: the one that `cluster up` remembered, else the built-in reference]
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: ContextArgs,
}

/// Seed of the embedded cluster that is examined; any would do.
const SEED: Seed = Seed(1);

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let fixtures = Fixtures::open(workspace.folder()).map_err(Failure::input)?;
    let id = [FixtureId::new(&args.fixture)];
    fixtures.load(&id).map_err(Failure::input)?;
    let (of, findings) = match args.place.chosen()? {
        Some(chosen) => {
            let name = chosen.context.clone();
            let found = lasting(context, args, &workspace, (fixtures, &id), chosen)?;
            (name, found)
        }
        None => {
            let fixture = fixtures.load(&id).map_err(Failure::input)?;
            let mut found = machine(&workspace);
            found.extend(embedded(context, args, &fixture)?);
            (EMBEDDED.to_owned(), found)
        }
    };
    tell(context, args, &of, &findings)?;
    let worst = findings.iter().map(|finding| finding.grade).max();
    Ok(match worst {
        Some(Grade::Problem) => ExitCode::from(BELOW_THRESHOLD),
        _ => ExitCode::SUCCESS,
    })
}

/// A cluster that a context names. Pods are made only where a person agreed to the use of the cluster.
fn lasting(
    context: &Context,
    args: &Args,
    workspace: &Workspace,
    (fixtures, id): (Fixtures, &[FixtureId]),
    chosen: Chosen,
) -> Result<Vec<Finding>, Failure> {
    let store = if args.only_look {
        let store = workspace.existing_store().map_err(Failure::input)?;
        match store {
            Some(store) => store,
            None => Store::in_memory().map_err(Failure::internal)?,
        }
    } else {
        workspace.store().map_err(Failure::input)?
    };
    let store = Arc::new(store);
    let only_look = if args.only_look {
        Some("--only-look was given".to_owned())
    } else {
        let asked = Asked {
            command: "breakage doctor",
            yes: args.place.yes,
        };
        agree(context, &chosen, &store, &asked)?;
        None
    };
    clock::block_on(chosen.pace, async {
        let served = chosen.served;
        let target = connect(context, chosen, Purpose::LookOrRestore).await?;
        let place = Place::of(&target);
        let uid = place.cluster_uid.as_str();
        let known = KnownCluster::of(&store, uid).map_err(Failure::input)?;
        let image = args.image.clone().or(known.and_then(|known| known.image));
        let fixture = fixtures
            .with_image(image.clone())
            .load(id)
            .map_err(Failure::input)?;
        let namespaces = own_namespaces(context)?;
        let examination = Examination {
            client: target.client(),
            version: target.facts().version,
            fixture: &fixture,
            namespaces: &namespaces,
            image: image.as_deref().unwrap_or(REFERENCE),
            now: (!served).then(jiff::Timestamp::now),
            only_look,
        };
        let mut owned = Owned::of_cluster(store.clone(), uid).map_err(Failure::input)?;
        let mut findings = examination.run(&mut owned).await;
        findings.push(unfinished(context, &store, &place)?);
        Ok(findings)
    })
    .map_err(Failure::internal)?
}

fn unfinished(context: &Context, store: &Store, place: &Place) -> Result<Finding, Failure> {
    const CHECK: &str = "unfinished-runs";
    let pending = recover::pending_places(store).map_err(Failure::input)?;
    let open = pending
        .iter()
        .any(|one| one.cluster_uid == place.cluster_uid);
    if !open {
        return Ok(Finding::new(CHECK, Grade::Good, "none of this workspace"));
    }
    let closed = store
        .quarantine_reason(&place.cluster_uid)
        .map_err(Failure::input)?;
    let found = match closed {
        Some(reason) => format!("the cluster is closed to runs: {reason}"),
        None => "a run was cut off; the next one restores the cluster first".to_owned(),
    };
    Ok(Finding::new(CHECK, Grade::Warning, found).todo(restore_command(context, place)))
}

/// A fresh embedded cluster, in its own time, under the same checks.
fn embedded(context: &Context, args: &Args, fixture: &Fixture) -> Result<Vec<Finding>, Failure> {
    let namespaces: BTreeSet<String> = own_namespaces(context)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(Failure::internal)?;
    Ok(runtime.block_on(async {
        let target = Target::embedded(SEED);
        let examination = Examination {
            client: target.client(),
            version: embedded_facts().version,
            fixture,
            namespaces: &namespaces,
            image: args.image.as_deref().unwrap_or(REFERENCE),
            now: None,
            only_look: args.only_look.then(|| "--only-look was given".to_owned()),
        };
        examination.run(&mut Owned::default()).await
    }))
}

/// What is on this machine.
fn machine(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = vec![store(workspace)];
    let k3d = match K3d::find() {
        Ok(found) => Finding::new(
            "k3d",
            Grade::Good,
            format!(
                "{}, Docker engine {}",
                found.k3d_version, found.docker_version
            ),
        ),
        Err(error) => {
            let todo = match &error {
                K3dError::NoProgram { program: "k3d" } => "install k3d (https://k3d.io)",
                _ => "install Docker and start its engine",
            };
            Finding::new("k3d", Grade::Note, error.to_string())
                .todo(format!("{todo} for breakage cluster up without --context"))
        }
    };
    findings.push(k3d);
    findings.push(match on_path("kubectl") {
        Some(path) => Finding::new("kubectl", Grade::Good, path.display().to_string()),
        None => Finding::new(
            "kubectl",
            Grade::Note,
            "not on PATH; breakage does not need it",
        ),
    });
    findings
}

fn store(workspace: &Workspace) -> Finding {
    const CHECK: &str = "workspace";
    let path = workspace.store_path();
    match workspace.existing_store() {
        Ok(Some(_)) => Finding::new(CHECK, Grade::Good, path.display().to_string()),
        Ok(None) => Finding::new(
            CHECK,
            Grade::Note,
            format!("{} does not exist; the first run makes it", path.display()),
        ),
        Err(error) => Finding::new(CHECK, Grade::Problem, error.to_string())
            .todo("--workspace DIR names another folder"),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| Path::is_file(file))
}

fn tell(context: &Context, args: &Args, of: &str, findings: &[Finding]) -> Result<(), Failure> {
    if args.json {
        return context
            .output
            .json(&json!({"context": of, "findings": findings}));
    }
    let mut table = Output::table_keeping(&["check", "grade", "found"], &[0, 1]);
    for finding in findings {
        table.add_row([finding.check, finding.grade.word(), &finding.found]);
    }
    let mut text = table.to_string();
    let open: Vec<&Finding> = findings.iter().filter(|one| !one.todo.is_empty()).collect();
    if !open.is_empty() {
        let mut table = Output::table_keeping(&["check", "to do"], &[0]);
        for finding in open {
            for todo in &finding.todo {
                table.add_row([finding.check, todo]);
            }
        }
        text.push_str(&format!("\n\n{table}"));
    }
    context.output.print(&text)
}
