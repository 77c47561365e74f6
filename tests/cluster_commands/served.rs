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

    /// Ends the cluster.
    pub fn stop(&mut self) {
        // Our own child, by its handle.
        let _ = self.process.kill();
        let _ = self.process.wait();
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the served cluster answers to a GET, read over a plain socket and not through our program.
    pub fn get(&self, path: &str) -> Value {
        use std::io::{Read, Write};
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.to_lowercase().contains("chunked"), "{head}");
        serde_json::from_str(body).unwrap()
    }

    /// The names of the namespaces that the cluster did not come with.
    pub fn namespaces(&self) -> Vec<String> {
        let list = self.get("/api/v1/namespaces");
        let names = list["items"].as_array().unwrap().iter();
        let names = names.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned());
        names
            .filter(|name| name != "default" && !name.starts_with("kube-"))
            .collect()
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
        self.stop();
    }
}

/// What a command printed as JSON, which must have ended with `code`.
pub fn json_of(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", text_of(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn text_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
