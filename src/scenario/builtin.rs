//! The files compiled into the binary: scenarios, vocabulary, rubrics. A test compares the table with the folders.

/// A compiled-in file: its path in a workspace and its text.
pub type File = (&'static str, &'static str);

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)))),*]
    };
}

pub(super) const CATEGORIES: File = files!["vocab/root-cause-categories.yaml"][0];
pub(super) const MECHANISMS: File = files!["vocab/mechanisms.yaml"][0];

pub(super) const RUBRICS: &[File] = files![
    "vocab/rubrics/article.yaml",
    "vocab/rubrics/observed.yaml",
    "vocab/rubrics/v0.1.yaml"
];

pub(super) const SCENARIOS: &[File] = files![
    "scenarios/anchor/cpu-limit-throttling-advocate.yaml",
    "scenarios/anchor/env-var-missing-advocate.yaml",
    "scenarios/anchor/image-pull-failure-advocate.yaml",
    "scenarios/anchor/liveness-probe-always-fails-advocate.yaml",
    "scenarios/anchor/oom-advocate-api-k8s-only.yaml",
    "scenarios/anchor/oom-advocate-api.yaml",
    "scenarios/anchor/readiness-probe-misconfigured-advocate.yaml",
    "scenarios/anchor/replicas-zero-advocate.yaml",
    "scenarios/anchor/secret-missing-key-advocate.yaml",
    "scenarios/anchor/secret-wrong-password-advocate.yaml",
    "scenarios/coverage/namespace-objects/configmap-wrong-database-advocate.yaml",
    "scenarios/coverage/namespace-objects/network-policy-wrong-peer-advocate.yaml",
    "scenarios/coverage/namespace-objects/pod-evict-under-quota-advocate.yaml",
    "scenarios/coverage/otel-demo/otel-cart-failure.yaml",
    "scenarios/coverage/otel-demo/otel-email-memory-leak.yaml",
    "scenarios/coverage/otel-demo/otel-kafka-queue-problems.yaml",
    "scenarios/coverage/otel-demo/otel-payment-failure.yaml",
    "scenarios/coverage/otel-demo/otel-recommendation-cache-failure.yaml",
    "scenarios/coverage/workload-shapes/bad-command-crashloop-advocate.yaml",
    "scenarios/coverage/workload-shapes/pod-pending-request-too-high-advocate.yaml",
    "scenarios/coverage/workload-shapes/replica-loss-amplification-advocate.yaml",
    "scenarios/coverage/workload-shapes/serviceaccount-missing-advocate.yaml",
    "scenarios/coverage/workload-shapes/slow-startup-retry-storm-advocate.yaml",
];

/// The published benchmark's faults on a fixture of the published shape: for auditing them, not for measuring agents.
pub(super) const PUBLISHED: &[File] = files![
    "scenarios/published/published-bad-command-crashloop-advocate.yaml",
    "scenarios/published/published-cpu-limit-throttling-advocate.yaml",
    "scenarios/published/published-env-var-missing-advocate.yaml",
    "scenarios/published/published-image-pull-failure-advocate.yaml",
    "scenarios/published/published-liveness-probe-always-fails-advocate.yaml",
    "scenarios/published/published-oom-advocate-api-k8s-only.yaml",
    "scenarios/published/published-pod-pending-request-too-high-advocate.yaml",
    "scenarios/published/published-readiness-probe-misconfigured-advocate.yaml",
    "scenarios/published/published-replica-loss-amplification-advocate.yaml",
    "scenarios/published/published-replicas-zero-advocate.yaml",
    "scenarios/published/published-secret-missing-key-advocate.yaml",
    "scenarios/published/published-secret-wrong-password-advocate.yaml",
    "scenarios/published/published-serviceaccount-missing-advocate.yaml",
    "scenarios/published/published-slow-startup-retry-storm-advocate.yaml",
];

/// Everything compiled in, by path below a workspace.
pub fn files() -> Vec<File> {
    let mut all = vec![CATEGORIES, MECHANISMS];
    all.extend(RUBRICS);
    all.extend(SCENARIOS);
    all.sort_unstable();
    all
}

/// The published benchmark's faults, by path; they are not written into a workspace.
pub fn published() -> &'static [File] {
    PUBLISHED
}
