//! `breakage cluster rbac`: the manifest of the rights that a run needs, and no others.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Context;
use crate::cli::context::own_namespaces;
use crate::cli::failure::Failure;
use crate::cluster::access::{self, Account};

/// Print a service account with exactly the rights that breakage needs in a cluster
///
/// A service account, a cluster role with a reason at each rule, and their binding. The same table is asked of the server
/// before a run. Names in it are everyday ones: an agent can read them.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage cluster rbac | kubectl apply -f -
  kubectl create token release-manager --namespace kube-system --duration 24h   # for a kubeconfig of it

Exit codes: 0 printed; 1 wrong usage, or a file that cannot be written.")]
pub struct Args {
    /// Write to a file instead of stdout; one that exists is replaced
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The namespace of the service account; it must exist
    #[arg(long, value_name = "NS", default_value = "kube-system", value_parser = name)]
    namespace: String,
    /// The name of the service account, the role and the binding
    #[arg(long, value_name = "NAME", default_value = "release-manager", value_parser = name)]
    service_account: String,
}

/// A name that the manifest can hold without quotes.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let fits = text.len() <= 63 && text.chars().all(plain);
    if fits && edges(text.chars().next()) && edges(text.chars().last()) {
        Ok(text.to_owned())
    } else {
        Err("a name has lower case letters, digits and hyphens, at most 63".to_owned())
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let account = Account {
        namespace: args.namespace.clone(),
        name: args.service_account.clone(),
    };
    let manifest = access::manifest(&account, &own_namespaces(context)?);
    match &args.output {
        None => context.output.print(&manifest)?,
        Some(file) => {
            std::fs::write(file, manifest).map_err(|error| {
                Failure::input(
                    anyhow::Error::new(error)
                        .context(format!("{} cannot be written", file.display())),
                )
            })?;
            context
                .output
                .note(&format!("kubectl apply -f {}", file.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_need_no_quotes() {
        assert!(name("release-manager").is_ok());
        for wrong in ["", "-a", "a-", "A", "a.b", "a b", "a: b"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }
}
