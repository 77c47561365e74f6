//! `breakage scenario new`: a commented scenario file to start from, which validates and qualifies as it is.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::ids::is_kebab_case;

const TEMPLATE: &str = include_str!("template.yaml");
/// Stands in the template where the id goes.
const ID: &str = "__ID__";

#[derive(clap::Args, Debug)]
pub struct Args {
    /// The new scenario's id: lower-case letters, digits and hyphens; it becomes the file's name
    pub id: String,
    /// The folder to write it to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    if !is_kebab_case(&args.id) {
        return Err(Failure::usage(anyhow!("`{}` is no scenario id", args.id))
            .hint("lower-case letters, digits and single hyphens, such as my-scenario"));
    }
    let file = args.path.join(format!("{}.yaml", args.id));
    std::fs::create_dir_all(&args.path)
        .with_context(|| format!("cannot make the folder {}", args.path.display()))
        .map_err(Failure::input)?;
    // Created here or not at all: what stands there already is somebody's work.
    let opened = OpenOptions::new().write(true).create_new(true).open(&file);
    let mut out = match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(
                Failure::input(anyhow!("{} exists and is left as it is", file.display()))
                    .hint("choose another id, or another folder with --path"),
            );
        }
        other => other
            .with_context(|| format!("cannot write {}", file.display()))
            .map_err(Failure::input)?,
    };
    out.write_all(TEMPLATE.replace(ID, &args.id).as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Failure::input)?;
    let shown = match file.parent() {
        Some(folder) if folder.as_os_str() == "." => {
            PathBuf::from(".").join(format!("{}.yaml", args.id))
        }
        _ => file,
    };
    let shown = shown.display();
    context.output.print(&format!(
        "wrote {shown}\n\nnext:\n  breakage scenario validate {shown}\n  breakage scenario qualify {shown}\n  \
         breakage run {shown} --agent rules"
    ))?;
    Ok(ExitCode::SUCCESS)
}
