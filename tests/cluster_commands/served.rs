//! A served cluster and `breakage` commands against it.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// How much faster than the wall's the cluster's time runs.
const FACTOR: u32 = 100;
/// The context that every kubeconfig of a served cluster names.
pub const CONTEXT: &str = "breakage-embedded";

/// The cluster's process and a folder for workspaces. Both end with it.
pub struct Served {
    process: Child,
    folder: tempfile::TempDir,
    pub url: String,
}

impl Served {
    pub fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_breakage"))
            .args(["cluster", "serve", "--json"])
            .arg(format!("--fast={FACTOR}"))
            .arg("--kubeconfig")
            .arg(folder.path().join("kubeconfig"))
            .arg("--workspace")
            .arg(folder.path().join("server"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Served {
            process,
            folder,
            url: ready["url"].as_str().unwrap().to_owned(),
        }
    }

    /// The kubeconfig that the server wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The same cluster as a kubeconfig names one that is somebody's: nothing says that it was served by us.
    pub fn as_somebodys(&self) -> PathBuf {
        let mut config: Value =
            serde_json::from_str(&std::fs::read_to_string(self.kubeconfig()).unwrap()).unwrap();
        let cluster = config["clusters"][0]["cluster"].as_object_mut().unwrap();
        cluster.remove("extensions").unwrap();
        let path = self.folder.path().join("somebodys");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// A command in a workspace of the folder, for the cluster of a kubeconfig.
    pub fn on(&self, kubeconfig: &Path, workspace: &str, args: &[&str]) -> Output {
        self.breakage(workspace, args)
            .args(["--context", CONTEXT, "--kubeconfig"])
            .arg(kubeconfig)
            .output()
            .unwrap()
    }

    /// A command in a workspace of the folder.
    pub fn breakage(&self, workspace: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_breakage"));
        command
            .env_remove("BREAKAGE_KUBECONFIG")
            .env_remove("KUBECONFIG")
            .env("BREAKAGE_WORKSPACE", self.folder.path().join(workspace))
            .args(args)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Our own child, by its handle.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn text_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
