//! Asking once for each workspace before a cluster is used that may be somebody's.

use crate::cli::Context;
use crate::cli::context::{reached, server_of};
use crate::cli::failure::Failure;
use crate::clock;
use crate::cluster::known::KnownCluster;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::resource;
use crate::cluster::target::Target;
use crate::store::Store;

/// Who asks for an agreement, and whether it is given by flag.
pub struct Asked<'a> {
    /// The command as it is typed, without its flags: `breakage run`.
    pub command: &'a str,
    pub yes: bool,
}

/// Makes sure that a person agreed to the use of a cluster, and asks once for each workspace where nobody did; answers
/// what is known of the cluster. A cluster of `breakage cluster serve` holds nothing of anybody's and is not asked about.
/// Nothing is written there.
///
/// # Errors
/// No agreement: a `no`, or nobody who could be asked and no `--yes`.
pub fn agree(
    context: &Context,
    chosen: &Chosen,
    store: &Store,
    asked: &Asked<'_>,
) -> Result<Option<KnownCluster>, Failure> {
    if chosen.served {
        return Ok(None);
    }
    let server = server_of(chosen);
    let (target, nodes) = clock::block_on(chosen.pace, async {
        let target = reached(chosen.clone()).await?;
        let nodes = nodes(&target).await;
        Ok::<_, Failure>((target, nodes))
    })
    .map_err(Failure::internal)??;
    let Some(remote) = target.lasting() else {
        return Ok(None);
    };
    let known = KnownCluster::of(store, &remote.uid).map_err(Failure::input)?;
    if known.is_some() {
        return Ok(known);
    }
    let identity = format!(
        "context {}: {} at {server}{nodes}, cluster uid {}",
        remote.facts.name, remote.facts.version, remote.uid
    );
    if !asked.yes {
        ask(context, &identity, asked)?;
    }
    let known = KnownCluster::agreed(&target, &server, asked.command);
    if let Some(known) = &known {
        known.put(store, &remote.uid).map_err(Failure::input)?;
    }
    Ok(known)
}

/// How large the cluster is, which helps to tell a lab from production. A right that is missing is told later.
async fn nodes(target: &Target) -> String {
    let Ok(kind) = resource::of_kind("Node") else {
        return String::new();
    };
    match kind.list(&target.client(), "").await {
        Ok(nodes) if nodes.len() == 1 => ", 1 node".to_owned(),
        Ok(nodes) => format!(", {} nodes", nodes.len()),
        Err(_) => String::new(),
    }
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
}
