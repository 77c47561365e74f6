//! `breakage experiment init`: a commented plan to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use serde_json::json;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::experiment::templates::{TEMPLATES, template};
use crate::scenario::near::did_you_mean;

/// Print a commented plan to start from; without a name, list what there is
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  breakage experiment init falsification > my.yaml
  breakage experiment init aa --output aa.yaml")]
pub struct Args {
    /// falsification, density-sweep, density-sweep-published, n40-rerun or aa
    pub name: Option<String>,
    /// Write it to a file; one that is there is left as it is
    #[arg(long, short, value_name = "FILE", requires = "name")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let Some(name) = &args.name else {
        return list(context, args.json);
    };
    let Some(found) = template(name) else {
        let names = TEMPLATES.map(|template| template.name);
        let guess = did_you_mean(name, names);
        return Err(
            Failure::usage(anyhow!("there is no plan `{name}`{guess}")).hint(format!(
                "breakage experiment init NAME, one of {}",
                names.join(", ")
            )),
        );
    };
    match &args.output {
        Some(file) => {
            write_new(file, found.text)?;
            let shown = file.display();
            context.output.print(&format!(
                "wrote {shown}\n\nnext:\n  $EDITOR {shown}\n  breakage experiment power {shown}\n  breakage experiment lock \
                 {shown}"
            ))?;
        }
        None if args.json => context.output.json(&json!({
            "name": found.name, "about": found.about, "text": found.text,
        }))?,
        None => context.output.print(found.text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let rows: Vec<_> = TEMPLATES
            .iter()
            .map(|one| json!({"name": one.name, "about": one.about}))
            .collect();
        context.output.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Output::table_keeping(&["plan", "what it is"], &[0]);
    for one in TEMPLATES {
        table.add_row([one.name, one.about]);
    }
    context.output.print(&format!(
        "{table}\n\nnext:  breakage experiment init falsification > my.yaml"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Created here or not at all: what stands there already is somebody's work.
fn write_new(file: &Path, text: &str) -> Result<(), Failure> {
    let cannot = || format!("{} cannot be written", file.display());
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut out = match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(
                Failure::input(anyhow!("{} exists and is left as it is", file.display()))
                    .hint("choose another name for --output"),
            );
        }
        other => other.with_context(cannot).map_err(Failure::input)?,
    };
    out.write_all(text.as_bytes())
        .with_context(cannot)
        .map_err(Failure::input)
}
