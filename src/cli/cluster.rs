//! `breakage cluster`: the embedded cluster for clients of other processes.

mod kubeconfig;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::Context;
use crate::cli::failure::Failure;

/// Serve the embedded cluster to kubectl, agents and `breakage run --context`
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    Serve(serve::Args),
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        ClusterCommand::Serve(args) => serve::run(context, args),
    }
}
