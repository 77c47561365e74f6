//! `breakage completions`: shell completion scripts.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::failure::Failure;
use crate::cli::{Cli, Context};

/// Example:  breakage completions bash > ~/.local/share/bash-completion/completions/breakage
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The shell to write for
    pub shell: Shell,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "breakage", &mut script);
    context.output.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
