//! Clusters in containers of this machine, through the programs `docker` and `k3d`.
//!
//! Only what the documentation of both promises is used, and every call stands here. The API is bound to the loopback, and
//! the user's own kubeconfig is never touched.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What keeps clusters from being made on this machine.
#[derive(Debug, thiserror::Error)]
pub enum K3dError {
    #[error("there is no program {program} on PATH")]
    NoProgram { program: &'static str },
    #[error("no Docker engine answers: {said}")]
    NoEngine { said: String },
    #[error("{program} cannot be started")]
    NotStarted {
        program: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{command} failed ({status}): {said}")]
    Failed {
        command: String,
        status: std::process::ExitStatus,
        said: String,
    },
    #[error("{command} answered what is not understood: {said}")]
    Garbled { command: String, said: String },
    #[error("no port of this machine can be taken")]
    NoPort(#[source] std::io::Error),
}

/// So much of what a program says is told.
const SHOWN_CHARACTERS: usize = 600;

/// The two programs, found and answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct K3d {
    pub docker_version: String,
    pub k3d_version: String,
}

/// How a cluster is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    pub name: &'a str,
    /// The image of k3s; k3d's own choice without one.
    pub k3s_image: Option<&'a str>,
    /// The loopback port of the API.
    pub port: u16,
}

impl K3d {
    /// Looks for the programs and asks the engine.
    ///
    /// # Errors
    /// What is missing.
    pub fn find() -> Result<K3d, K3dError> {
        let docker_version = match run("docker", ["version", "--format", "{{.Server.Version}}"]) {
            Err(K3dError::Failed { said, .. }) => return Err(K3dError::NoEngine { said }),
            other => other?,
        };
        let k3d_version = run("k3d", ["version"])?;
        Ok(K3d {
            docker_version: first_line(&docker_version),
            k3d_version: first_line(&k3d_version),
        })
    }

    /// The names of the clusters that k3d knows.
    pub fn names(&self) -> Result<Vec<String>, K3dError> {
        let text = run("k3d", ["cluster", "list", "-o", "json"])?;
        let garbled = || K3dError::Garbled {
            command: "k3d cluster list".to_owned(),
            said: text.chars().take(SHOWN_CHARACTERS).collect(),
        };
        let list: Value = serde_json::from_str(&text).map_err(|_| garbled())?;
        let clusters = list.as_array().ok_or_else(garbled)?;
        Ok(clusters
            .iter()
            .filter_map(|cluster| cluster["name"].as_str().map(str::to_owned))
            .collect())
    }

    /// Makes a cluster of one server and waits until it is up. What a measured cluster does not need is left out.
    pub fn create(&self, order: &Order<'_>) -> Result<(), K3dError> {
        let api = format!("127.0.0.1:{}", order.port);
        let mut args = vec!["cluster", "create", order.name, "--servers", "1"];
        args.extend(["--agents", "0", "--api-port", &api]);
        args.extend(["--k3s-arg", "--disable=traefik@server:*"]);
        args.extend(["--k3s-arg", "--disable=servicelb@server:*"]);
        args.extend(["--kubeconfig-update-default=false"]);
        args.extend(["--kubeconfig-switch-context=false"]);
        args.extend(["--wait", "--timeout", "300s"]);
        if let Some(image) = order.k3s_image {
            args.extend(["--image", image]);
        }
        run("k3d", args).map(drop)
    }

    /// Brings an image archive to every node of a cluster.
    pub fn import(&self, name: &str, archive: &Path) -> Result<(), K3dError> {
        let archive = archive.as_os_str();
        let args = [
            OsStr::new("image"),
            "import".as_ref(),
            archive,
            "-c".as_ref(),
            name.as_ref(),
        ];
        run("k3d", args).map(drop)
    }

    /// The kubeconfig of a cluster, as text.
    pub fn kubeconfig(&self, name: &str) -> Result<String, K3dError> {
        run("k3d", ["kubeconfig", "get", name])
    }

    pub fn delete(&self, name: &str) -> Result<(), K3dError> {
        run("k3d", ["cluster", "delete", name]).map(drop)
    }
}

/// The context that k3d's kubeconfig names.
pub fn context(name: &str) -> String {
    format!("k3d-{name}")
}

/// Where the kubeconfig of a cluster stands in a workspace.
pub fn kubeconfig_path(workspace: &Path, name: &str) -> PathBuf {
    workspace.join(format!("k3d-{name}.kubeconfig"))
}

/// A port of the loopback that nobody has at this moment.
pub fn free_port() -> Result<u16, K3dError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(K3dError::NoPort)?;
    let address = listener.local_addr().map_err(K3dError::NoPort)?;
    Ok(address.port())
}

/// Runs a program to its end and answers what it wrote on stdout.
fn run<S: AsRef<OsStr>>(
    program: &'static str,
    args: impl IntoIterator<Item = S>,
) -> Result<String, K3dError> {
    let mut command = Command::new(program);
    command.args(args).stdin(std::process::Stdio::null());
    let words = command.get_args().map(|word| word.to_string_lossy());
    let shown = words.fold(program.to_owned(), |line, word| format!("{line} {word}"));
    let output = command.output().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => K3dError::NoProgram { program },
        _ => K3dError::NotStarted { program, source },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let left_off = said.chars().count().saturating_sub(SHOWN_CHARACTERS);
    // The end says why.
    let said: String = said.chars().skip(left_off).collect();
    Err(K3dError::Failed {
        command: shown,
        status: output.status,
        said,
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
