//! The served cluster as kubectl sees it. Where kubectl is not installed these tests say so and check nothing.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::Served;

/// kubectl with a configuration and a cache of its own.
struct Kubectl {
    home: tempfile::TempDir,
}

impl Kubectl {
    /// Nothing, and a line on stderr, where there is no kubectl.
    fn against(served: &Served) -> Option<Kubectl> {
        let installed = Command::new("kubectl")
            .args(["version", "--client"])
            .output()
            .is_ok_and(|output| output.status.success());
        if !installed {
            eprintln!("SKIPPED: kubectl is not installed, so nothing of this test was checked");
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", served.address)}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "default"}}],
        });
        std::fs::write(home.path().join("config"), config.to_string()).unwrap();
        Some(Kubectl { home })
    }

    fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Runs kubectl while the server goes on beside it.
    async fn run(&self, line: &str) -> Output {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let home = self.folder().to_owned();
        tokio::task::spawn_blocking(move || {
            Command::new("kubectl")
                .arg("--request-timeout=50s")
                .args(&arguments)
                .env("KUBECONFIG", home.join("config"))
                .env("KUBECACHEDIR", home.join("cache"))
                .current_dir(&home)
                .output()
                .unwrap()
        })
        .await
        .unwrap()
    }

    /// Its output; the command must succeed.
    async fn says(&self, line: &str) -> String {
        let output = self.run(line).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {line}: {text}{told}");
        text
    }

    /// What it says on stderr; the command must fail.
    async fn fails(&self, line: &str) -> String {
        let output = self.run(line).await;
        assert!(!output.status.success(), "kubectl {line} succeeds");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// The words of the first line that begins so.
fn words<'a>(text: &'a str, beginning: &str) -> Vec<&'a str> {
    text.lines()
        .find(|line| line.starts_with(beginning))
        .unwrap_or_else(|| panic!("no line begins with {beginning}:\n{text}"))
        .split_whitespace()
        .collect()
}

#[tokio::test]
async fn kubectl_prints_what_the_server_lays_out() {
    let served = Served::start().await;
    let Some(kubectl) = Kubectl::against(&served) else {
        return;
    };
    let pods = kubectl.says("get pods -A").await;
    assert_eq!(
        words(&pods, "NAMESPACE"),
        ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    );
    let dns = words(&pods, "kube-system   coredns");
    assert_eq!(dns[2..5], ["1/1", "Running", "0"]);
    let nodes = kubectl.says("get nodes -o wide").await;
    assert_eq!(words(&nodes, "node-1")[1..3], ["Ready", "<none>"]);
    assert!(nodes.contains("containerd://1.6.20"), "{nodes}");
    let described = kubectl.says("describe node node-1").await;
    assert!(described.contains("Non-terminated Pods:"), "{described}");
    let resources = kubectl.says("api-resources").await;
    assert!(
        resources.contains("selfsubjectaccessreviews"),
        "{resources}"
    );
    let version = kubectl.says("version").await;
    assert!(version.contains("Server Version: v1.34.4"), "{version}");
    let fields = kubectl
        .says("explain pod.spec.containers.livenessProbe")
        .await;
    assert!(fields.contains("periodSeconds\t<integer>"), "{fields}");
    assert_eq!(kubectl.says("auth can-i create pods").await.trim(), "yes");
    let usage = kubectl.says("top pods -A").await;
    assert!(usage.contains("coredns"), "{usage}");
    let unknown = kubectl.fails("get things").await;
    assert!(
        unknown.contains("the server doesn't have a resource type \"things\""),
        "{unknown}"
    );
    served.stop().await;
}

#[tokio::test]
async fn kubectl_takes_a_workload_through_its_life() {
    let served = Served::start().await;
    let Some(kubectl) = Kubectl::against(&served) else {
        return;
    };
    // Generated clients send this one as protobuf.
    kubectl
        .says("create deployment web --image=nginx:1.27 --replicas=2")
        .await;
    kubectl
        .says("rollout status deploy/web --timeout=50s")
        .await;
    kubectl.says("expose deploy web --port=80").await;
    let described = kubectl.says("describe svc web").await;
    assert!(described.contains("Endpoints:"), "{described}");
    kubectl.says("set image deploy/web nginx=nginx:0.0").await;
    kubectl
        .says("annotate deploy/web kubernetes.io/change-cause=newer")
        .await;
    let history = kubectl.says("rollout history deploy/web").await;
    assert_eq!(words(&history, "2"), ["2", "newer"]);
    kubectl.says("rollout undo deploy/web").await;
    kubectl.says("rollout restart deploy/web").await;
    kubectl.says("scale deploy/web --replicas=1").await;
    kubectl
        .says("rollout status deploy/web --timeout=50s")
        .await;
    kubectl
        .says("wait --for=condition=Available deploy/web --timeout=50s")
        .await;
    kubectl.says("label deploy/web tier=front").await;
    let wide = kubectl.says("get deploy -l tier=front -o wide").await;
    assert_eq!(
        words(&wide, "web")[1..4],
        ["1/1", "1", "1"],
        "ready, up to date, available"
    );
    assert!(wide.contains("nginx:1.27   app=web"), "{wide}");
    let events = kubectl
        .says("get events --sort-by=.metadata.creationTimestamp")
        .await;
    assert!(events.contains("ScalingReplicaSet"), "{events}");
    let refused = kubectl.fails("exec deploy/web -- ls").await;
    assert!(
        refused.contains("exec is turned off on this cluster"),
        "{refused}"
    );
    kubectl.says("delete deploy/web svc/web").await;
    kubectl
        .says("wait --for=delete pod -l app=web --timeout=50s")
        .await;
    served.stop().await;
}

#[tokio::test]
async fn kubectl_applies_compares_and_reads_logs() {
    let served = Served::start().await;
    let Some(kubectl) = Kubectl::against(&served) else {
        return;
    };
    let manifest = |value: &str| -> String {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": value}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "clock"}, "spec": {"containers": [
            {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "echo hello; sleep 1000"]}]}});
        format!("{map}\n{pod}\n")
    };
    let file = kubectl.folder().join("m.json");
    std::fs::write(&file, manifest("1")).unwrap();
    kubectl.says("apply -f m.json").await;
    kubectl.says("diff -f m.json").await;
    std::fs::write(&file, manifest("2")).unwrap();
    let compared = kubectl.run("diff -f m.json").await;
    assert_eq!(compared.status.code(), Some(1), "a difference");
    assert!(String::from_utf8_lossy(&compared.stdout).contains("+  a: \"2\""));
    kubectl.says("apply --dry-run=server -f m.json").await;
    let conflict = kubectl.fails("apply --server-side -f m.json").await;
    assert!(
        conflict.contains("conflict with \"kubectl-client-side-apply\" using v1: .data.a"),
        "{conflict}"
    );
    kubectl
        .says("apply --server-side --force-conflicts -f m.json")
        .await;
    let data = kubectl.says("get cm m -o jsonpath={.data.a}").await;
    assert_eq!(data, "2");
    kubectl
        .says("wait --for=condition=Ready pod/clock --timeout=50s")
        .await;
    assert_eq!(kubectl.says("logs clock --tail=1").await, "hello\n");
    let missing = kubectl.fails("logs clock --previous").await;
    assert!(
        missing.contains("previous terminated container \"c\" in pod \"clock\" not found"),
        "{missing}"
    );
    kubectl.says("cordon node-1").await;
    let nodes = kubectl.says("get nodes").await;
    assert_eq!(words(&nodes, "node-1")[1], "Ready,SchedulingDisabled");
    kubectl.says("delete -f m.json --grace-period=1").await;
    served.stop().await;
}
