//! Which cluster a command is for: the embedded one, or a kubeconfig's context, and how to say so on a command line.

use std::path::{Path, PathBuf};

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::clock::{self, Pace};
use crate::cluster::ClusterError;
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::target::Target;
use crate::cluster::{remote, resource};
use crate::inject::journal::Place;
use crate::store::Store;

/// What `--context` calls the cluster that is made inside the process.
pub const EMBEDDED: &str = "embedded";

/// Names a kubeconfig without the flag.
const VARIABLE: &str = "BREAKAGE_KUBECONFIG";

/// The cluster to run against.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ContextArgs {
    /// A kubeconfig's context, or `embedded`: a fresh cluster inside this process for every run
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
    /// Something is made or broken there: a person must have agreed, see [`agree`]. The store remembers it.
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
    let target = remote::connect(chosen).await.map_err(failure)?;
    if let (Purpose::Use(store), false) = (purpose, served) {
        let uid = target.lasting().map_or("", |remote| remote.uid.as_str());
        if KnownCluster::of(store, uid)
            .map_err(Failure::input)?
            .is_none()
        {
            // Only where the context led to another cluster a moment ago.
            return Err(Failure::usage(anyhow::anyhow!(
                "nobody agreed to the use of the cluster at {server}"
            ))
            .hint("give the command again"));
        }
    }
    let facts = target.facts();
    context.output.note(&format!(
        "context {}: {} at {server}",
        facts.name, facts.version
    ));
    Ok(target)
}

/// Makes sure that a person agreed to the use of a cluster, and asks once for each workspace where nobody did. A
/// cluster of `breakage cluster serve` holds nothing of anybody's and is not asked about. Nothing is written there.
///
/// # Errors
/// No agreement: a `no`, or nobody who could be asked and no `--yes`.
pub fn agree(
    context: &Context,
    chosen: &Chosen,
    store: &Store,
    asked: &Asked<'_>,
) -> Result<(), Failure> {
    if chosen.served {
        return Ok(());
    }
    let server = server_of(chosen);
    let (target, nodes) = clock::block_on(chosen.pace, async {
        let target = remote::connect(chosen.clone()).await.map_err(failure)?;
        // How large it is helps to tell a lab from production; a right that is missing is told later.
        let nodes = match resource::of_kind("Node") {
            Ok(kind) => kind.list(&target.client(), "").await.ok(),
            Err(_) => None,
        };
        Ok::<_, Failure>((target, nodes.map(|nodes| nodes.len())))
    })
    .map_err(Failure::internal)??;
    let Some(remote) = target.lasting() else {
        return Ok(());
    };
    if KnownCluster::of(store, &remote.uid)
        .map_err(Failure::input)?
        .is_some()
    {
        return Ok(());
    }
    let nodes = match nodes {
        Some(1) => ", 1 node".to_owned(),
        Some(many) => format!(", {many} nodes"),
        None => String::new(),
    };
    let identity = format!(
        "context {}: {} at {server}{nodes}, cluster uid {}",
        remote.facts.name, remote.facts.version, remote.uid
    );
    if !asked.yes {
        ask(context, &identity, asked)?;
    }
    match KnownCluster::agreed(&target, &server, asked.command) {
        Some(known) => known.put(store, &remote.uid).map_err(Failure::input),
        None => Ok(()),
    }
}

/// Who asks for an agreement, and whether it is given by flag.
pub struct Asked<'a> {
    /// The command as it is typed, without its flags: `breakage run`.
    pub command: &'a str,
    pub yes: bool,
}

fn ask(context: &Context, identity: &str, asked: &Asked<'_>) -> Result<(), Failure> {
    use std::io::IsTerminal;
    let refused = |why: &str| {
        Failure::usage(anyhow::anyhow!(
            "{identity}: this workspace has not used it before, and {why}"
        ))
        .hint(format!(
            "{} ... --yes agrees; it is asked once for each cluster and workspace",
            asked.command
        ))
        .hint("--context embedded needs no cluster")
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused("there is nobody to ask"));
    }
    context.output.note(&format!(
        "{identity}\n\
         This workspace has not used it before. breakage creates namespaces of its own there, breaks what is in them and\n\
         removes them; it reads the rest of the cluster and writes nothing to it."
    ));
    anstream::eprint!("Use this cluster? [y/N] ");
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(Failure::input)?;
    if is_yes(&answer) {
        Ok(())
    } else {
        Err(refused("the answer was not yes"))
    }
}

/// Whether an answer to a question is a clear yes.
pub fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

fn server_of(chosen: &Chosen) -> String {
    let server = chosen.config.cluster_url.to_string();
    server.trim_end_matches('/').to_owned()
}

fn failure(error: ClusterError) -> Failure {
    match error {
        ClusterError::Kubeconfig(_) => Failure::input(error),
        _ => Failure::cluster(error),
    }
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
    fn only_a_clear_yes_is_one() {
        for yes in ["y\n", "Yes\n", " YES "] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yep\n", "yes please\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn a_name_with_blanks_or_quotes_can_be_pasted() {
        assert_eq!(quoted("admin@team/a:b"), "admin@team/a:b");
        assert_eq!(quoted("my cluster"), "'my cluster'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
