//! A served cluster that outlives every process of a test, and `breakage` commands against it.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// How much faster than the wall's the cluster's time runs: a run takes 2 to 3 s, most of them spent on requests.
pub const FACTOR: u32 = 100;
/// The scenarios that share the fixture `advocate` and take different ways: one object, two objects, a stuck rollout.
pub const SCENARIOS: [&str; 4] = [
    "secret-missing-key-advocate",
    "replicas-zero-advocate",
    "readiness-probe-misconfigured-advocate",
    "secret-wrong-password-advocate",
];

/// The cluster's process and a folder for workspaces. Both end with it.
pub struct Served {
    process: Child,
    folder: tempfile::TempDir,
    pub url: String,
    pub context: String,
}

impl Served {
    pub fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let (process, ready) = serve(folder.path(), &[]);
        Served {
            process,
            folder,
            url: ready["url"].as_str().unwrap().to_owned(),
            context: ready["context"].as_str().unwrap().to_owned(),
        }
    }

    /// Ends the cluster.
    pub fn stop(&mut self) {
        // Our own child, by its handle.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Ends the cluster and starts another one under the same name.
    pub fn replace(&mut self, args: &[&str]) {
        self.stop();
        let (process, ready) = serve(self.folder.path(), args);
        self.process = process;
        self.url = ready["url"].as_str().unwrap().to_owned();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in a workspace of the folder.
    pub fn breakage(&self, workspace: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_breakage"));
        command
            .env_remove("BREAKAGE_KUBECONFIG")
            .env("BREAKAGE_WORKSPACE", self.path(workspace))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// `run` against the cluster; output goes to files, so that nobody has to read while it runs.
    pub fn run(&self, workspace: &str, args: &[&str]) -> Command {
        let mut command = self.breakage(workspace, &["run", "--json", "--context", &self.context]);
        command
            .arg("--kubeconfig")
            .arg(self.path("kubeconfig"))
            .args(args)
            .stdout(self.output(workspace, "out"))
            .stderr(self.output(workspace, "err"));
        command
    }

    fn output(&self, workspace: &str, kind: &str) -> std::fs::File {
        std::fs::File::create(self.path(&format!("{workspace}.{kind}"))).unwrap()
    }

    /// What the last `run` of a workspace printed.
    pub fn printed(&self, workspace: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(&format!("{workspace}.out"))).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What the last `run` of a workspace told on stderr.
    pub fn told(&self, workspace: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{workspace}.err"))).unwrap()
    }

    /// `runs restore`, which must succeed.
    pub fn restore(&self, workspace: &str) -> Value {
        let output = self
            .breakage(workspace, &["runs", "restore", "--json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Run id and state of every record of a workspace.
    pub fn records(&self, workspace: &str) -> Vec<(String, String)> {
        let output = self
            .breakage(workspace, &["runs", "list", "--json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        rows.iter()
            .map(|row| {
                let state = match &row["state_code"] {
                    Value::String(code) => code,
                    _ => row["state"].as_str().unwrap(),
                };
                (row["run_id"].as_str().unwrap().to_owned(), state.to_owned())
            })
            .collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ended = self.process.try_wait();
            let told = std::fs::read_to_string(self.path("server.err")).unwrap_or_default();
            eprintln!("the served cluster: ended {ended:?}; it told: {told}");
        }
        self.stop();
    }
}

/// Starts a server and waits until it says where it listens.
fn serve(folder: &Path, args: &[&str]) -> (Child, Value) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_breakage"))
        .args(["cluster", "serve", "--json"])
        .arg(format!("--fast={FACTOR}"))
        .arg("--kubeconfig")
        .arg(folder.join("kubeconfig"))
        .arg("--workspace")
        .arg(folder.join("server"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(folder.join("server.err")).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(process.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    (process, serde_json::from_str(&line).unwrap())
}

pub fn text_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Sends a signal to a child of ours.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Whether a file below the folder exists and says something.
pub fn contains(path: &Path, words: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(words))
}
