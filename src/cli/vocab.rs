//! `breakage vocab`: the controlled vocabulary of root causes.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::scenario::open_library;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: VocabCommand,
}

#[derive(Subcommand, Debug)]
pub enum VocabCommand {
    /// List the root-cause categories with their descriptions
    ///
    /// Example:  breakage vocab list --mechanisms
    #[command(verbatim_doc_comment)]
    List(ListArgs),
}

#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// List the mechanisms instead: finer than categories, for authors of scenarios, never shown to an agent
    #[arg(long)]
    pub mechanisms: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let VocabCommand::List(args) = &args.command;
    let library = open_library(context)?;
    let vocabulary = library.vocabulary();
    if args.json && args.mechanisms {
        context
            .output
            .json(&json!({"version": vocabulary.version, "mechanisms": vocabulary.mechanisms}))?;
    } else if args.json {
        context
            .output
            .json(&json!({"version": vocabulary.version, "categories": vocabulary.categories}))?;
    } else if args.mechanisms {
        let mut table = Output::table_keeping(&["id", "description"], &[0]);
        for mechanism in &vocabulary.mechanisms {
            table.add_row([mechanism.id.as_str(), &mechanism.description]);
        }
        context.output.print(&table.to_string())?;
    } else {
        let mut table = Output::table_keeping(&["id", "description"], &[0]);
        for category in &vocabulary.categories {
            table.add_row([category.id.as_str(), &category.description]);
        }
        context.output.print(&table.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
