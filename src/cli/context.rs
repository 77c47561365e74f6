//! Which cluster a command is for: the embedded one, or a kubeconfig's context, and how to say so on a command line.

mod consent;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::clock::{self, Pace};
use crate::cluster::fixture::Fixtures;
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::target::Target;
use crate::cluster::{ClusterError, access, examine, remote, trouble};
use crate::config::Workspace;
use crate::inject::journal::Place;
use crate::store::Store;

pub use crate::cli::context::consent::{Asked, agree, is_yes};

/// What `--context` calls the cluster that is made inside the process.
pub const EMBEDDED: &str = "embedded";

/// Names a kubeconfig without the flag.
const VARIABLE: &str = "BREAKAGE_KUBECONFIG";

/// The cluster to run against.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ContextArgs {
    /// A kubeconfig's context; `in-cluster`, from within a pod; or `embedded`: a fresh cluster inside this process for
    /// every run
    #[arg(long, value_name = "NAME", default_value = EMBEDDED)]
    pub context: String,
    /// The kubeconfig that has the context [default: as kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", env = VARIABLE)]
    pub kubeconfig: Option<PathBuf>,
    /// Use the cluster of the context without being asked about it; it is asked once for each cluster and workspace
    #[arg(long)]
    pub yes: bool,
}

impl ContextArgs {
    /// The context that is meant; nothing for the embedded cluster, whatever kubeconfig there is.
    pub fn chosen(&self) -> Result<Option<Chosen>, Failure> {
        if self.context == EMBEDDED {
            // The variable may be set for other commands; a flag is meant for this one.
            let of_variable = std::env::var_os(VARIABLE).map(PathBuf::from);
            if self.kubeconfig.is_some() && self.kubeconfig != of_variable {
                let wrong = anyhow::anyhow!(
                    "--kubeconfig is given without --context: the embedded cluster needs none"
                );
                return Err(
                    Failure::usage(wrong).hint("--context NAME names the cluster to run against")
                );
            }
            return Ok(None);
        }
        // Kept with the run, so that a later command finds it from any folder.
        let file = self.kubeconfig.as_deref().map(std::path::absolute);
        let file = file.transpose().map_err(Failure::input)?;
        find(&self.context, file.as_deref()).map(Some)
    }
}

/// Finds a context; one that is not there is wrong usage.
pub fn find(context: &str, kubeconfig: Option<&Path>) -> Result<Chosen, Failure> {
    clock::block_on(Pace::Real, Chosen::find(context, kubeconfig))
        .map_err(Failure::internal)?
        .map_err(Failure::input)
}

/// What a command means to do in a cluster.
#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    /// Nothing is written, or only what takes back what the store knows to be there.
    LookOrRestore,
    /// Something is made or broken there: a person must have agreed, see [`agree`], which the store remembers, and the
    /// rights must suffice.
    Use(&'a Store),
}

/// Connects and says to what, before anything is written there.
pub async fn connect(
    context: &Context,
    chosen: Chosen,
    purpose: Purpose<'_>,
) -> Result<Target, Failure> {
    let server = server_of(&chosen);
    let served = chosen.served;
    let target = reached(chosen).await?;
    if let Purpose::Use(store) = purpose {
        let uid = target.lasting().map_or("", |remote| remote.uid.as_str());
        let known = KnownCluster::of(store, uid).map_err(Failure::input)?;
        if known.is_none() && !served {
            // Only where the context led to another cluster a moment ago.
            return Err(Failure::usage(anyhow::anyhow!(
                "nobody agreed to the use of the cluster at {server}"
            ))
            .hint("give the command again"));
        }
        check_rights(context, &target).await?;
    }
    let facts = target.facts();
    context.output.note(&format!(
        "context {}: {} at {server}",
        facts.name, facts.version
    ));
    Ok(target)
}

/// Connects. What keeps a cluster from being reached is told apart, with what to do about it.
pub async fn reached(chosen: Chosen) -> Result<Target, Failure> {
    let (context, config) = (chosen.context.clone(), chosen.config.clone());
    let error = match remote::connect(chosen).await {
        Ok(target) => return Ok(target),
        Err(error) => error,
    };
    let Some(trouble) = trouble::told(&error, &config, jiff::Timestamp::now()).await else {
        return Err(match error {
            ClusterError::Kubeconfig(_) => Failure::input(error),
            _ => Failure::cluster(error),
        });
    };
    // Not the error itself: it may quote what a credential plugin wrote.
    let mut failure = Failure::cluster(anyhow::anyhow!("context {context}: {}", trouble.what));
    failure.hints = trouble.todo;
    Err(failure)
}

/// The namespaces in which something of ours may be made: of every fixture, and of the checks.
pub fn own_namespaces(context: &Context) -> Result<BTreeSet<String>, Failure> {
    let workspace =
        Workspace::locate(context.global.workspace.as_deref()).map_err(Failure::input)?;
    let fixtures = Fixtures::open(workspace.folder()).map_err(Failure::input)?;
    let mut names = fixtures.namespaces().map_err(Failure::input)?;
    names.extend(examine::NAMESPACES.iter().map(|&name| name.to_owned()));
    Ok(names)
}

async fn check_rights(context: &Context, target: &Target) -> Result<(), Failure> {
    let namespaces = own_namespaces(context)?;
    let mut missing = access::missing(&target.client(), &namespaces)
        .await
        .map_err(Failure::cluster)?;
    missing.retain(|right| right.needed);
    if missing.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = missing
        .iter()
        .map(|right| format!("\n    {right}"))
        .collect();
    Err(Failure::cluster(anyhow::anyhow!(
        "context {} may not do everything that a run needs; missing:{}",
        target.facts().name,
        listed.concat()
    ))
    .hint("breakage cluster rbac prints a manifest with these rights, for somebody who may apply it: breakage cluster rbac | kubectl apply -f -"))
}

fn server_of(chosen: &Chosen) -> String {
    let server = chosen.config.cluster_url.to_string();
    server.trim_end_matches('/').to_owned()
}

/// What to type to undo what is left in a cluster.
pub fn restore_command(context: &Context, place: &Place) -> String {
    let mut words = vec!["breakage runs restore".to_owned()];
    if let Some(name) = &place.context {
        words.push(format!("--context {}", quoted(name)));
    }
    if let Some(file) = &place.kubeconfig {
        words.push(format!(
            "--kubeconfig {}",
            quoted(&file.display().to_string())
        ));
    }
    if let Some(folder) = &context.global.workspace {
        words.push(format!(
            "--workspace {}",
            quoted(&folder.display().to_string())
        ));
    }
    words.join(" ")
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_or_quotes_can_be_pasted() {
        assert_eq!(quoted("admin@team/a:b"), "admin@team/a:b");
        assert_eq!(quoted("my cluster"), "'my cluster'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
