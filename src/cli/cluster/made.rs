//! A cluster that is made on this machine with k3d, and removed again only by the workspace that made it.

use std::io::Write;
use std::path::Path;

use crate::cli::Context;
use crate::cli::context::find;
use crate::cli::failure::Failure;
use crate::cluster::image::{REFERENCE, archive, name, packed};
use crate::cluster::k3d::{self, K3d, K3dError, Order};
use crate::cluster::known::{self, KnownCluster};
use crate::cluster::kubeconfig::Chosen;
use crate::config::Workspace;
use crate::run::standing;
use crate::store::{Store, StoreError};

/// What a k3d cluster is made of.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "A cluster made with k3d (without --context)")]
pub(super) struct K3dArgs {
    /// The name of the k3d cluster
    #[arg(
        long,
        value_name = "NAME",
        default_value = "lab",
        conflicts_with = "context"
    )]
    pub(super) name: String,
    /// The image of k3s, for another release of Kubernetes [default: k3d's own]
    #[arg(long, value_name = "REF", conflicts_with = "context")]
    pub(super) k3s_image: Option<String>,
}

/// Makes the cluster, or finds it where this workspace made it before; answers its context and its name.
pub(super) fn make(
    context: &Context,
    workspace: &Workspace,
    store: &Store,
    args: &K3dArgs,
) -> Result<(Chosen, String), Failure> {
    let programs = K3d::find().map_err(not_here)?;
    let name = args.name.as_str();
    let there = programs.names().map_err(Failure::cluster)?;
    let ours = known::is_k3d_of_ours(store, name).map_err(Failure::input)?;
    let exists = there.iter().any(|one| one == name);
    if exists && !ours {
        return Err(Failure::cluster(anyhow::anyhow!(
            "there is a k3d cluster {name} that this workspace did not make"
        ))
        .hint("--name NAME makes one of another name")
        .hint(format!(
            "breakage cluster up --context {} prepares that one",
            k3d::context(name)
        )));
    }
    if !exists {
        context.output.note(&format!(
            "making the k3d cluster {name} ({}, Docker {}); it takes a minute or two",
            programs.k3d_version, programs.docker_version
        ));
        known::announce_k3d(store, name).map_err(Failure::input)?;
        let order = Order {
            name,
            k3s_image: args.k3s_image.as_deref(),
            port: k3d::free_port().map_err(Failure::cluster)?,
        };
        programs.create(&order).map_err(|error| {
            Failure::cluster(error).hint("breakage cluster down removes what was begun")
        })?;
    }
    import(context, &programs, name)?;
    let file = k3d::kubeconfig_path(workspace.folder(), name);
    let text = programs.kubeconfig(name).map_err(Failure::cluster)?;
    write_for_owner(&file, &text).map_err(|error| {
        Failure::input(
            anyhow::Error::new(error).context(format!("{} cannot be written", file.display())),
        )
    })?;
    let file = std::path::absolute(&file).map_err(Failure::input)?;
    let chosen = find(&k3d::context(name), Some(&file))?;
    Ok((chosen, name.to_owned()))
}

/// What is missing on this machine, and what to do instead.
fn not_here(error: K3dError) -> Failure {
    let todo = match &error {
        K3dError::NoProgram { program: "k3d" } => "install k3d (https://k3d.io)",
        _ => "install Docker and start its engine",
    };
    Failure::cluster(error)
        .hint(format!("{todo}, and give the command again"))
        .hint("breakage cluster up --context NAME prepares a cluster that a kubeconfig names")
        .hint("--context embedded, the default of breakage run, needs no cluster at all")
}

/// Packs the services' image and hands it to the nodes.
fn import(context: &Context, programs: &K3d, name: &str) -> Result<(), Failure> {
    let packed = packed().map_err(|error| {
        let hint = error.next_step();
        Failure::input(error).hint_if(hint)
    })?;
    let reference = name::parse(REFERENCE).map_err(Failure::internal)?;
    let bytes = archive::write(&packed, &reference).map_err(Failure::internal)?;
    let mut file = tempfile::Builder::new()
        .prefix("services-")
        .suffix(".tar")
        .tempfile()
        .map_err(Failure::input)?;
    file.write_all(&bytes).map_err(Failure::input)?;
    context
        .output
        .note("bringing the services' image to its nodes");
    programs.import(name, file.path()).map_err(Failure::cluster)
}

/// Writes a file whole or not at all, readable for its owner alone.
fn write_for_owner(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // A temporary file is made with mode 0600, and keeps it when it gets its name.
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Keeps a made cluster under its uid. An earlier one of its name is gone for good.
pub(super) fn keep(
    store: &Store,
    uid: &str,
    known: &KnownCluster,
    name: &str,
) -> Result<(), StoreError> {
    known.put_made(store, uid, name)?;
    for (other, earlier) in KnownCluster::all(store)? {
        if other != uid && earlier.k3d.as_deref() == Some(name) {
            standing::forget(store, &other)?;
            store.forget_cluster(&other)?;
        }
    }
    Ok(())
}

/// Deletes the k3d cluster of a name, where this workspace made it.
pub(super) fn delete(workspace: &Workspace, name: &str) -> Result<(), Failure> {
    let programs = K3d::find().map_err(not_here)?;
    let there = programs.names().map_err(Failure::cluster)?;
    if there.iter().any(|one| one == name) {
        programs.delete(name).map_err(Failure::cluster)?;
    }
    // What cannot be removed leads nowhere any more.
    let _ = std::fs::remove_file(k3d::kubeconfig_path(workspace.folder(), name));
    Ok(())
}
