//! Which cluster a command is for: the embedded one, or a kubeconfig's context, and how to say so on a command line.

use std::path::{Path, PathBuf};

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::clock::{self, Pace};
use crate::cluster::ClusterError;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::remote;
use crate::cluster::target::Target;
use crate::inject::journal::Place;

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

/// Connects and says to what, before anything is written there.
pub async fn connect(context: &Context, chosen: Chosen) -> Result<Target, Failure> {
    let server = chosen.config.cluster_url.to_string();
    let target = remote::connect(chosen).await.map_err(failure)?;
    let facts = target.facts();
    context.output.note(&format!(
        "context {}: {} at {}",
        facts.name,
        facts.version,
        server.trim_end_matches('/')
    ));
    Ok(target)
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
    fn a_name_with_blanks_or_quotes_can_be_pasted() {
        assert_eq!(quoted("admin@team/a:b"), "admin@team/a:b");
        assert_eq!(quoted("my cluster"), "'my cluster'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
