//! The cluster at hand, the program under test, and a workspace that has prepared the cluster.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::held::{self, Held};

/// Where the cluster is; `tests/real/cluster with` sets it.
const KUBECONFIG: &str = "BREAKAGE_REAL_KUBECONFIG";
/// The registry of the cluster's node, as host and port.
const REGISTRY: &str = "BREAKAGE_REAL_REGISTRY";
/// Makes a skip a failure.
const REQUIRE: &str = "BREAKAGE_REQUIRE_REAL";
/// Another build of the program, such as the released one.
const PROGRAM: &str = "BREAKAGE_REAL_PROGRAM";
/// The workspace that owns the namespaces.
pub const WORKSPACE: &str = "first";
/// What the fixtures name; the node asks its own registry for it.
pub const REPOSITORY: &str = "acme/services:2.4.1";
/// How long the cluster may take to come to rest until something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);
/// What is not in the shared list of paths, because the embedded cluster does not serve it.
const ACCESS: [&str; 4] = [
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
];

pub struct Tier {
    pub kubeconfig: PathBuf,
    pub registry: String,
    pub context: String,
    program: PathBuf,
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
}

/// The cluster is one, and what a workspace owns there is too: tests take turns.
static TIER: LazyLock<Option<Mutex<Tier>>> = LazyLock::new(|| {
    let kubeconfig = std::env::var_os(KUBECONFIG)?;
    let tier = Tier::at(kubeconfig);
    tier.prepare();
    Some(Mutex::new(tier))
});

/// The prepared cluster for one test; nothing where there is none, which the caller takes as its end.
pub fn take() -> Option<MutexGuard<'static, Tier>> {
    static SKIPPED: Once = Once::new();
    if let Some(tier) = &*TIER {
        // What another test's failure left is told by the tests that it disturbs.
        return Some(
            tier.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
    }
    let why = "no real cluster: `just real`, or tests/real/cluster with cargo test --test real";
    assert!(
        std::env::var_os(REQUIRE).is_none_or(|value| value != "1"),
        "{REQUIRE} is set, and there is {why}"
    );
    // Not through print: the harness would keep it to itself.
    SKIPPED.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipped, {why}");
    });
    None
}

impl Tier {
    fn at(kubeconfig: OsString) -> Tier {
        let kubeconfig = PathBuf::from(kubeconfig);
        let read = kube::config::Kubeconfig::read_from(&kubeconfig).unwrap();
        let context = read.current_context.clone().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(read, &options).await;
            kube::Client::try_from(config.unwrap()).unwrap()
        });
        Tier {
            kubeconfig,
            registry: std::env::var(REGISTRY).unwrap(),
            context,
            program: std::env::var_os(PROGRAM)
                .map_or_else(|| env!("CARGO_BIN_EXE_breakage").into(), PathBuf::from),
            folder: tempfile::tempdir().unwrap(),
            runtime,
            client,
        }
    }

    /// The image in the node's registry, and the first workspace's fixtures in the cluster.
    fn prepare(&self) {
        let destination = format!("{}/{REPOSITORY}", self.registry);
        let pushed = self.told(
            WORKSPACE,
            &["fixture", "image", "--plain-http", "--push", &destination],
        );
        assert_eq!(pushed.0, Some(0), "{}", pushed.1);
        let prepared = self.placed(WORKSPACE, &["cluster", "up", "--yes"]);
        assert_eq!(prepared.0, Some(0), "{}", prepared.1);
    }

    /// Of the image that the program carries.
    pub fn digest(&self) -> String {
        let mut show = self.breakage(WORKSPACE, &["fixture", "image", "--json"]);
        let output = show.output().unwrap();
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["digest"].as_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in a workspace of its own name.
    pub fn breakage(&self, workspace: &str, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("BREAKAGE_WORKSPACE", self.path(workspace))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// What a command of the cluster is typed with.
    pub fn place(&self) -> [&str; 4] {
        let kubeconfig = self.kubeconfig.to_str().unwrap();
        ["--context", &self.context, "--kubeconfig", kubeconfig]
    }

    /// Exit code and all that was told.
    pub fn told(&self, workspace: &str, args: &[&str]) -> (Option<i32>, String) {
        let output = self.breakage(workspace, args).output().unwrap();
        (output.status.code(), text_of(&output))
    }

    /// The same for a command that takes a context.
    pub fn placed(&self, workspace: &str, args: &[&str]) -> (Option<i32>, String) {
        self.told(workspace, &[args, &self.place()].concat())
    }

    /// What a command of the cluster prints as JSON, one value a line, with its exit code and what it told.
    pub fn json(&self, workspace: &str, args: &[&str]) -> (Option<i32>, Vec<Value>, String) {
        let args = [args, &["--json"], &self.place()].concat();
        let output = self.breakage(workspace, &args).output().unwrap();
        let values = serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter()
            .collect::<Result<Vec<Value>, _>>();
        let told = text_of(&output);
        (
            output.status.code(),
            values.unwrap_or_else(|error| panic!("{args:?}: {error}: {told}")),
            told,
        )
    }

    /// `run` with what it printed; its exit code must be the one that is given.
    pub fn run(&self, workspace: &str, args: &[&str], code: i32) -> Vec<Value> {
        let (ended, printed, told) = self.json(workspace, &[&["run", "--yes"], args].concat());
        assert_eq!(ended, Some(code), "{args:?}: {told}");
        printed
    }

    /// `runs restore`, which must succeed.
    pub fn restore(&self, workspace: &str) -> Value {
        let mut command = self.breakage(workspace, &["runs", "restore", "--json"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Run id and state of every record of a workspace.
    pub fn records(&self, workspace: &str) -> Vec<(String, String)> {
        let mut command = self.breakage(workspace, &["runs", "list", "--json"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        rows.iter()
            .map(|row| {
                let state = match &row["state_code"] {
                    Value::Null => &row["state"],
                    code => code,
                };
                (text(&row["run_id"]), text(state))
            })
            .collect()
    }

    /// One list, by this client.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path);
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// One answer, by this client.
    pub fn get(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let answer = self.runtime.block_on(self.client.request(request));
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// What the cluster holds now.
    pub fn held(&self) -> Held {
        let mut held = held::held(|path| self.list(path));
        for path in ACCESS {
            for object in self.list(path) {
                let part = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                let key = (path, part("namespace"), part("name"));
                let key = (key.0.to_owned(), key.1.to_owned(), key.2.to_owned());
                let mut content = object.clone();
                content["metadata"] = object["metadata"]["uid"].clone();
                held.insert(key, content);
            }
        }
        held
    }

    /// All is as it was, and all that should run does. Pods that are on their way out may take their grace period.
    pub fn assert_as_before(&self, before: &Held, context: &str) {
        let differences = held::differences(before, &self.held());
        assert!(differences.is_empty(), "{context}: {differences:#?}");
        let started = Instant::now();
        loop {
            let unready = held::unready(|path| self.list(path));
            if unready.is_empty() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{context}: {unready:#?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The program's own path, for whoever starts it in another way.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

pub fn text_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
