//! `breakage fixture`: what stands in a measured cluster, for clusters other than the embedded one.

mod image;

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::Context;
use crate::cli::failure::Failure;

/// Bring the fixtures' image to a real cluster
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: FixtureCommand,
}

#[derive(Subcommand, Debug)]
enum FixtureCommand {
    Image(image::Args),
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        FixtureCommand::Image(args) => image::run(context, args),
    }
}
