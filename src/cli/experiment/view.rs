//! `breakage experiment show`: a locked plan as it was locked.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::experiment::{find, lock, plan_text, reading};
use crate::cli::failure::Failure;
use crate::experiment::ledger::Event;
use crate::experiment::ledger::chain;
use crate::experiment::power;
use crate::experiment::status::Progress;

/// Show a locked plan, what it was resolved to, and how far it has come; never a score
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment show my-experiment
  breakage experiment show 3f2a --json | jq .registration.plan")]
pub struct Args {
    /// The registration's hash, a beginning of it, or the experiment's id
    pub experiment: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let store = reading(context)?;
    let locked = find(&store, &args.experiment)?;
    let entries = chain::read(&store, &locked.hash).map_err(Failure::input)?;
    let plan = &locked.registration.plan;
    let progress = Progress::of(plan, &entries);
    let publish = lock::publish(&store, plan.id.as_str(), &locked.hash)?;
    if args.json {
        let registration: Value = serde_json::from_str(&locked.text).map_err(Failure::internal)?;
        context.output.json(&json!({
            "hash": locked.hash,
            "registration": registration,
            "progress": progress,
            "publish": publish,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let origin = entries.iter().find_map(|entry| match &entry.event {
        Event::Locked {
            breakage_version,
            git_commit,
            git_dirty,
        } => {
            let commit = git_commit.as_ref().map_or_else(String::new, |commit| {
                let dirty = if *git_dirty { ", with changes" } else { "" };
                format!(", commit {commit}{dirty}")
            });
            Some(format!(
                "locked {} by breakage {breakage_version}{commit}",
                entry.at
            ))
        }
        _ => None,
    });
    let amends = match &locked.registration.amends {
        Some(old) => format!("\namends {old}"),
        None => String::new(),
    };
    let amended = match &progress.amended_to {
        Some(new) => format!("\namended to {new}"),
        None => String::new(),
    };
    let power = plan_text::power(&power::forecast(plan));
    context.output.print(&format!(
        "{}\n\n{}\n\n{power}\n\n{} of {} runs have ended\n{}{amends}{amended}\n{publish}",
        plan_text::plan(&locked.registration),
        plan_text::operating(plan, &locked.registration.operating),
        progress.ended,
        progress.planned,
        origin.unwrap_or_default(),
    ))?;
    Ok(ExitCode::SUCCESS)
}
