//! Builds the program of the fixtures' image and leaves its bytes for `cluster::image` to embed.
//!
//! A nested cargo builds it, because it is linked otherwise (static) and optimised otherwise (for size) than what it
//! is embedded in. Its target folder stands beside the outer profiles' folders, so that debug, release, check, clippy
//! and doc builds share one result. An empty file means that there is no program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The file in `OUT_DIR` that `cluster::image` includes.
const EMBEDDED: &str = "program";

/// A program that was built elsewhere, given by path.
const GIVEN: &str = "BREAKAGE_FIXTURE_PROGRAM";

/// Where the nested cargo builds, below the outer target folder.
const NESTED_TARGET: &str = "fixture-program";

/// Of cargo's own variables only these reach the nested cargo: where it keeps and fetches crates, how it prints, and
/// the job tokens that both share. All others carry the outer build's target, flags and profile.
const KEPT: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// Variables of the outer build without cargo's prefix that would change what is compiled, or by what.
const REMOVED: &[&str] = &[
    "CLIPPY_ARGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
];

fn main() -> ExitCode {
    for path in ["build.rs", "services", "Cargo.lock", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed={GIVEN}");
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            for line in message.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<(), String> {
    let embedded = PathBuf::from(variable("OUT_DIR")).join(EMBEDDED);
    let program = match source() {
        Source::None => None,
        Source::Given(path) => Some(path),
        Source::Built(target) => Some(build(&target)?),
    };
    let bytes = match &program {
        None => Vec::new(),
        Some(path) => fs::read(path).map_err(|error| {
            format!(
                "the program {} of the fixture image cannot be read: {error}",
                path.display()
            )
        })?,
    };
    if program.is_some() && !bytes.starts_with(b"\x7fELF") {
        return Err(format!(
            "{GIVEN} must name a program for Linux (an ELF file), statically linked"
        ));
    }
    fs::write(&embedded, bytes)
        .map_err(|error| format!("{} cannot be written: {error}", embedded.display()))
}

/// Where the program comes from.
enum Source {
    None,
    Given(PathBuf),
    /// Built for this target.
    Built(String),
}

fn source() -> Source {
    if env::var_os("CARGO_FEATURE_FIXTURE_IMAGE").is_none() {
        return Source::None;
    }
    if let Some(path) = env::var_os(GIVEN).filter(|path| !path.is_empty()) {
        println!("cargo::rerun-if-changed={}", Path::new(&path).display());
        return Source::Given(path.into());
    }
    // Nodes run Linux whatever runs `breakage`, so it is built for the machine that builds, where that can be.
    let host = variable("HOST");
    if host.ends_with("-unknown-linux-gnu") {
        Source::Built(host)
    } else {
        println!(
            "cargo::warning=no fixture image is embedded: its program is built on Linux with glibc, this is {host}; \
             {GIVEN}=PATH embeds one that was built there"
        );
        Source::None
    }
}

fn build(target: &str) -> Result<PathBuf, String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let folder = target_folder().join(NESTED_TARGET);
    let mut command = Command::new(variable("CARGO"));
    command
        .current_dir(&root)
        .args(["build", "--locked", "--package", "acme-services"])
        .args(["--bin", "services", "--features", "program"])
        .args(["--profile", "fixture", "--target", target])
        .arg("--target-dir")
        .arg(&folder);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(belongs_to_outer_build) {
            command.env_remove(name);
        }
    }
    command
        .env("CARGO_ENCODED_RUSTFLAGS", flags(&root).join("\u{1f}"))
        // Empty and not removed: a wrapper in the user's configuration is left out too.
        .env("RUSTC_WRAPPER", "");
    let arguments: Vec<_> = command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    let told = format!("cargo {}", arguments.join(" "));
    let status = command
        .status()
        .map_err(|error| format!("cargo cannot be started to build the fixture image: {error}"))?;
    if !status.success() {
        return Err(format!(
            "the program of the fixture image could not be built ({status}); what the nested cargo said stands below\n\
             it is linked statically: Debian's libc6-dev or Fedora's glibc-static brings what that needs\n\
             without the image: add --no-default-features (clusters other than the embedded one then need `--image`)\n\
             with a program built elsewhere: {GIVEN}=PATH\n\
             the command was: {told}"
        ));
    }
    Ok(folder.join(target).join("fixture").join("services"))
}

/// Static, so that an otherwise empty image runs it; without this machine's paths, so that the bytes are the same
/// wherever the same compiler builds the same sources.
fn flags(root: &Path) -> Vec<String> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let mut remap = |from: &Path, to: &str| {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    };
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    // Later ones win, so the widest stands first.
    if let Some(home) = home {
        remap(&home, "/cargo");
        // Each registry's folder has a name of its own, which differs with mirrors.
        let sources = home.join("registry/src");
        let mut folders: Vec<PathBuf> = fs::read_dir(&sources)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        for folder in folders {
            remap(&folder, "/cargo");
        }
    }
    remap(root, "/src");
    flags
}

/// Cargo marks the outer target folder; without a mark the build script's own folder does.
fn target_folder() -> PathBuf {
    let out = PathBuf::from(variable("OUT_DIR"));
    out.ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .unwrap_or(&out)
        .to_owned()
}

fn belongs_to_outer_build(name: &str) -> bool {
    let cargos = name == "CARGO" || name.starts_with("CARGO_");
    // Which linker serves a target is this machine's matter and not the outer build's.
    let linker = name.starts_with("CARGO_TARGET_") && name.ends_with("_LINKER");
    let kept = linker || KEPT.iter().any(|prefix| name.starts_with(prefix));
    REMOVED.contains(&name) || (cargos && !kept)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
