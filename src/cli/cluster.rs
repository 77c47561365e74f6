//! `breakage cluster`: clusters to run in, made, prepared, looked at and cleaned up; and the embedded one for clients of
//! other processes.

mod down;
mod kubeconfig;
mod made;
mod place;
mod rbac;
mod serve;
mod status;
mod up;

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::Context;
use crate::cli::failure::Failure;

/// Prepare, examine and clean up a cluster to run in, or serve the embedded one
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    Up(up::Args),
    Status(status::Args),
    Down(down::Args),
    Rbac(rbac::Args),
    Serve(serve::Args),
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        ClusterCommand::Up(args) => up::run(context, args),
        ClusterCommand::Status(args) => status::run(context, args),
        ClusterCommand::Down(args) => down::run(context, args),
        ClusterCommand::Rbac(args) => rbac::run(context, args),
        ClusterCommand::Serve(args) => serve::run(context, args),
    }
}
