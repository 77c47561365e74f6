//! The system's own workloads: cluster DNS, the metrics server, the volume provisioner.

use serde_json::{Value, json};

use crate::embedded::bootstrap::{DNS_ADDRESS, images, place};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

const SYSTEM: &str = "kube-system";

const COREFILE: &str = "\
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
";

const VOLUME_PATHS: &str = "\
{
  \"nodePathMap\": [
    {
      \"node\": \"DEFAULT_PATH_FOR_NON_LISTED_NODES\",
      \"paths\": [\"/opt/local-path-provisioner\"]
    }
  ]
}
";

pub(super) fn populate(world: &mut World) {
    for name in [
        "coredns",
        "metrics-server",
        "local-path-provisioner-service-account",
    ] {
        let account = json!({"metadata": {"name": name}});
        place(world, Kind::ServiceAccount, SYSTEM, account);
    }
    let config = json!({"metadata": {"name": "coredns"}, "data": {"Corefile": COREFILE}});
    place(world, Kind::ConfigMap, SYSTEM, config);
    let config = json!({
        "metadata": {"name": "local-path-config"},
        "data": {"config.json": VOLUME_PATHS},
    });
    place(world, Kind::ConfigMap, SYSTEM, config);
    services(world);
    place(world, Kind::Deployment, SYSTEM, dns());
    place(world, Kind::Deployment, SYSTEM, metrics());
    place(world, Kind::Deployment, SYSTEM, provisioner());
}

fn services(world: &mut World) {
    let dns = json!({
        "metadata": {
            "name": "kube-dns",
            "labels": {
                "k8s-app": "kube-dns",
                "kubernetes.io/cluster-service": "true",
                "kubernetes.io/name": "CoreDNS",
            },
            "annotations": {"prometheus.io/port": "9153", "prometheus.io/scrape": "true"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": DNS_ADDRESS,
            "clusterIPs": [DNS_ADDRESS],
            "selector": {"k8s-app": "kube-dns"},
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
                {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
            ],
        },
    });
    place(world, Kind::Service, SYSTEM, dns);
    let metrics = json!({
        "metadata": {"name": "metrics-server", "labels": {"k8s-app": "metrics-server"}},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.43.117.24",
            "clusterIPs": ["10.43.117.24"],
            "selector": {"k8s-app": "metrics-server"},
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
        },
    });
    place(world, Kind::Service, SYSTEM, metrics);
}

/// A Deployment of one replica; `spec` is the pod's.
fn deployment(name: &str, labels: &Value, strategy: &Value, spec: &Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "strategy": strategy,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

fn dns() -> Value {
    let probe = |path: &str, port: u16| json!({"path": path, "port": port, "scheme": "HTTP"});
    let spec = json!({
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "containers": [{
            "name": "coredns",
            "image": images::DNS,
            "imagePullPolicy": "IfNotPresent",
            "args": ["-conf", "/etc/coredns/Corefile"],
            "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
            "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
                {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
            ],
            "livenessProbe": {
                "httpGet": probe("/health", 8080), "initialDelaySeconds": 60, "timeoutSeconds": 5,
                "failureThreshold": 5,
            },
            "readinessProbe": {"httpGet": probe("/ready", 8181)},
            "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true}],
        }],
        "volumes": [{
            "name": "config-volume",
            "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]},
        }],
    });
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    deployment("coredns", &json!({"k8s-app": "kube-dns"}), &rolling, &spec)
}

fn metrics() -> Value {
    let spec = json!({
        "serviceAccountName": "metrics-server",
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [{
            "name": "metrics-server",
            "image": images::METRICS,
            "imagePullPolicy": "IfNotPresent",
            "args": [
                "--cert-dir=/tmp",
                "--secure-port=10250",
                "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
                "--kubelet-use-node-status-port",
                "--metric-resolution=15s",
            ],
            "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
            "ports": [{"name": "https", "containerPort": 10250, "protocol": "TCP"}],
            "livenessProbe": {"tcpSocket": {"port": "https"}},
            "readinessProbe": {"tcpSocket": {"port": "https"}, "initialDelaySeconds": 20},
            "volumeMounts": [{"name": "tmp-dir", "mountPath": "/tmp"}],
        }],
        "volumes": [{"name": "tmp-dir", "emptyDir": {}}],
    });
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}});
    deployment(
        "metrics-server",
        &json!({"k8s-app": "metrics-server"}),
        &rolling,
        &spec,
    )
}

fn provisioner() -> Value {
    let spec = json!({
        "serviceAccountName": "local-path-provisioner-service-account",
        "containers": [{
            "name": "local-path-provisioner",
            "image": images::PROVISIONER,
            "imagePullPolicy": "IfNotPresent",
            "command": ["local-path-provisioner", "start", "--config", "/etc/config/config.json"],
            "env": [{
                "name": "POD_NAMESPACE",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            }],
            "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/config/"}],
        }],
        "volumes": [{"name": "config-volume", "configMap": {"name": "local-path-config"}}],
    });
    let rolling = json!({"type": "RollingUpdate"});
    deployment(
        "local-path-provisioner",
        &json!({"app": "local-path-provisioner"}),
        &rolling,
        &spec,
    )
}
