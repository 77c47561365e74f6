//! The rules agent's diagnosis against what a real cluster showed: each recorded fault (Kubernetes v1.34.4, one
//! node) is turned into evidence, sample by sample, and explained.

#![expect(
    clippy::unwrap_used,
    reason = "a broken setup must stop the test where it breaks"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use agent_breakage::agent::diagnose::{findings, symptoms};
use agent_breakage::agent::evidence::Evidence;
use agent_breakage::agent::evidence::reading::Answers;
use agent_breakage::agent::finding::Finding;
use agent_breakage::embedded::kind::Kind;
use agent_breakage::embedded::patch::Patch;
use agent_breakage::ids::Seed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const NAMESPACE: &str = "prod-advocate";
/// From this percentage on the agent acts at once, so that a wrong explanation would do harm.
const SURE: u8 = 80;

/// Mode, expected primary category, field of the first repair (`-`: none, because none is in the agent's power).
const EXPECTED: &str = "
    anti-affinity                   deployment-rollout-failure                   spec.template.spec.affinity
    bad-args                        application-error-uncaught-exception         containers[api].args
    bad-command-absolute            application-error-uncaught-exception         containers[api].command
    bad-command-in-path             application-error-uncaught-exception         containers[api].command
    command-exits-zero              application-error-uncaught-exception         containers[api].command
    configmap-missing-envfrom       deployment-rollout-failure                   containers[api].envFrom
    cpu-limit-throttling-heavy      resource-limit-misconfiguration              containers[api].resources.limits.cpu
    database-down                   deployment-rollout-failure                   spec.replicas
    env-emptied                     application-error-uncaught-exception         containers[api].env
    image-name-invalid              deployment-rollout-failure                   containers[api].image
    image-never-pull                deployment-rollout-failure                   containers[api].image
    image-registry-unreachable      deployment-rollout-failure                   containers[api].image
    image-tag-missing               deployment-rollout-failure                   containers[api].image
    init-container-fails            application-error-uncaught-exception         spec.template.spec.initContainers
    liveness-path-wrong             probe-misconfigured                          containers[api].livenessProbe.httpGet.path
    networkpolicy-db-ingress-denied network-policy-blocking-legitimate-traffic   spec.ingress
    networkpolicy-ingress-denied    network-policy-blocking-legitimate-traffic   spec.ingress
    node-cordoned                   deployment-rollout-failure                   -
    node-selector-mismatch          deployment-rollout-failure                   spec.template.spec.nodeSelector
    oom-limit                       resource-limit-misconfiguration              containers[api].resources.limits.memory
    oom-limit-tiny                  resource-limit-misconfiguration              containers[api].resources.limits.memory
    progress-deadline-exceeded      probe-misconfigured                          containers[api].readinessProbe.httpGet.path
    pvc-missing                     deployment-rollout-failure                   spec.template.spec.volumes
    pvc-unbound                     deployment-rollout-failure                   spec.template.spec.volumes
    quota-exceeded                  deployment-rollout-failure                   spec.hard.limits.memory
    quota-needs-limits              deployment-rollout-failure                   containers[api].resources
    readiness-exec-timeout          probe-misconfigured                          containers[api].readinessProbe
    readiness-path-wrong            probe-misconfigured                          containers[api].readinessProbe.httpGet.path
    readiness-path-wrong-rolling    probe-misconfigured                          containers[api].readinessProbe.httpGet.path
    readiness-tcp-wrong             probe-misconfigured                          containers[api].readinessProbe
    replicas-reduced                deployment-rollout-failure                   spec.replicas
    replicas-zero                   deployment-rollout-failure                   spec.replicas
    request-cpu-too-high            deployment-rollout-failure                   containers[api].resources
    request-memory-too-high         deployment-rollout-failure                   containers[api].resources
    rollout-paused                  deployment-rollout-failure                   spec.paused
    run-as-non-root-violated        deployment-rollout-failure                   containers[api].
    secret-key-missing-envfrom      secret-content-mismatch                      data.SESSION_SECRET
    secret-key-missing-keyref       secret-content-mismatch                      containers[api].env[SMTP_PASSWORD]
    secret-missing-envfrom          secret-missing                               -
    secret-volume-missing           secret-missing                               spec.template.spec.volumes
    secret-wrong-password           secret-content-mismatch                      data.DATABASE_URL
    service-account-missing         deployment-rollout-failure                   spec.template.spec.serviceAccount
    service-selector-wrong          dns-resolution-failure                       spec.selector.app
    service-target-port-wrong       dns-resolution-failure                       spec.ports
    slow-start-tight-readiness      probe-misconfigured                          containers[api].livenessProbe
    startup-probe-fails             probe-misconfigured                          containers[api].startupProbe
    webhook-unavailable             deployment-rollout-failure                   -";

/// Faults without an explanation that could be acted upon: nothing is wrong for long, or not in the namespace.
const QUIET: &[&str] = &[
    "pod-deleted",
    "eviction-allowed",
    "eviction-blocked-by-pdb",
    "configmap-volume-changed",
    "request-over-limit",
];

fn read(name: &str) -> Value {
    let path = format!(
        "{}/tests/recordings/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// The objects that a recording does not repeat, followed through its commands.
struct Objects {
    items: Vec<Value>,
    /// Pod templates in the order of their rollouts.
    templates: Vec<Value>,
}

impl Objects {
    fn of(recording: &Value) -> Objects {
        let fixture = read("fixture");
        let mut items = fixture["items"].as_array().unwrap().clone();
        items.push(json!({"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}));
        items.push(json!({"kind": "Node", "metadata": {"name": "node-1"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}));
        let mut objects = Objects {
            items,
            templates: Vec::new(),
        };
        objects.encode_secrets();
        objects.note_template();
        for list in ["setup", "inject"] {
            for command in recording[list].as_array().into_iter().flatten() {
                objects.follow(command);
            }
        }
        objects
    }

    fn find(&mut self, kind: &str, name: &str) -> Option<&mut Value> {
        self.items
            .iter_mut()
            .find(|item| item["kind"] == kind && item["metadata"]["name"] == name)
    }

    fn follow(&mut self, command: &Value) {
        if command["rc"] == 1 {
            return;
        }
        let kind = long_kind(command["kind"].as_str().unwrap_or_default());
        let name = command["name"].as_str().unwrap_or_default().to_owned();
        match command["op"].as_str().unwrap_or_default() {
            "patch" => self.patch(kind, &name, command),
            "scale" => {
                let object = self.find(kind, &name).unwrap();
                object["spec"]["replicas"] = command["replicas"].clone();
            }
            "rollout-restart" => {
                let object = self.find(kind, &name).unwrap();
                object["spec"]["template"]["metadata"]["annotations"] =
                    json!({"kubectl.kubernetes.io/restartedAt": "2026-11-30T21:00:00Z"});
            }
            "rollout-pause" => self.find(kind, &name).unwrap()["spec"]["paused"] = json!(true),
            "apply" => {
                let mut object = command["object"].clone();
                object["metadata"]["namespace"] = json!(NAMESPACE);
                self.items.push(object);
            }
            "delete" if command["args"][0] == "secret" => {
                let gone = command["args"][1].clone();
                self.items
                    .retain(|i| i["kind"] != "Secret" || i["metadata"]["name"] != gone);
            }
            _ => {}
        }
        self.encode_secrets();
        self.note_template();
    }

    fn patch(&mut self, kind: &str, name: &str, command: &Value) {
        let text = command["body"].to_string().replace("$NS", NAMESPACE);
        let body: Value = serde_json::from_str(&text).unwrap();
        let patch = match command["type"].as_str().unwrap() {
            "json" => Patch::Json(serde_json::from_value(body).unwrap()),
            "merge" => Patch::Merge(body),
            _ => Patch::Strategic(body),
        };
        let of_kind = match kind {
            "Deployment" => Kind::Deployment,
            "Secret" => Kind::Secret,
            _ => Kind::Service,
        };
        if let Some(object) = self.find(kind, name) {
            *object = patch.apply_to(of_kind, object).unwrap();
        }
    }

    fn encode_secrets(&mut self) {
        for item in self
            .items
            .iter_mut()
            .filter(|item| item["kind"] == "Secret")
        {
            let plain = item.as_object_mut().unwrap().remove("stringData");
            for (key, value) in plain.iter().filter_map(Value::as_object).flatten() {
                item["data"][key] = json!(STANDARD.encode(value.as_str().unwrap()));
            }
        }
    }

    fn note_template(&mut self) {
        let template = self.find("Deployment", "advocate-api").unwrap()["spec"]["template"].clone();
        if self.templates.last() != Some(&template) {
            self.templates.push(template);
        }
    }
}

fn long_kind(short: &str) -> &'static str {
    match short {
        "deploy" => "Deployment",
        "sts" => "StatefulSet",
        "svc" => "Service",
        "secret" => "Secret",
        _ => "ConfigMap",
    }
}

const KINDS: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "Service",
    "Secret",
    "ConfigMap",
    "ResourceQuota",
    "NetworkPolicy",
    "ServiceAccount",
    "PersistentVolumeClaim",
    "HorizontalPodAutoscaler",
    "Node",
];

/// The answers that the API gave at each sample, events of earlier samples kept.
fn answers(recording: &Value) -> Vec<(f64, Answers)> {
    let objects = Objects::of(recording);
    let mut events: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut all = Vec::new();
    for sample in recording["samples"].as_array().unwrap() {
        for event in sample["events"].as_array().unwrap() {
            let key = (event["object"].to_string(), event["message"].to_string());
            events.insert(key, api_event(event));
        }
        let mut answers = Answers::default();
        for kind in KINDS {
            let of_kind = objects.items.iter().filter(|item| item["kind"] == *kind);
            answers.lists.insert(kind, of_kind.cloned().collect());
        }
        status_from(&mut answers, sample);
        answers
            .lists
            .insert("Event", events.values().cloned().collect());
        answers
            .lists
            .insert("ReplicaSet", replica_sets(sample, &objects.templates));
        answers.lists.insert(
            "Pod",
            sample["pods"]
                .as_array()
                .unwrap()
                .iter()
                .map(api_pod)
                .collect(),
        );
        for (place, text) in sample["logs"].as_object().unwrap() {
            let parts: Vec<&str> = place.split('/').collect();
            if let Some(text) = text.as_str() {
                let key = (
                    NAMESPACE.to_owned(),
                    parts[0].to_owned(),
                    parts[1].to_owned(),
                    parts[2] == "previous",
                );
                answers.logs.insert(key, text.to_owned());
            }
        }
        all.push((sample["at_s"].as_f64().unwrap(), answers));
    }
    all
}

fn status_from(answers: &mut Answers, sample: &Value) {
    for (kind, list) in [
        ("Deployment", "deployments"),
        ("StatefulSet", "statefulsets"),
    ] {
        for object in answers.lists.get_mut(kind).unwrap() {
            let seen = sample[list]
                .as_array()
                .unwrap()
                .iter()
                .find(|s| s["name"] == object["metadata"]["name"]);
            match seen {
                Some(seen) => {
                    object["status"] = seen["status"].clone();
                    object["metadata"]["generation"] = seen["generation"].clone();
                    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"] =
                        seen["revision"].clone();
                }
                // The recordings leave the database's own numbers out; it follows what was asked of it.
                None => {
                    let wanted = object["spec"]["replicas"].clone();
                    object["status"] = json!({"replicas": wanted, "readyReplicas": wanted, "updatedReplicas": wanted});
                }
            }
        }
    }
}

fn replica_sets(sample: &Value, templates: &[Value]) -> Vec<Value> {
    let mut sets: Vec<&Value> = sample["replicasets"].as_array().unwrap().iter().collect();
    sets.sort_by_key(|set| set["revision"].as_str().unwrap().parse::<i64>().unwrap());
    sets.iter()
        .enumerate()
        .map(|(index, set)| {
            json!({"metadata": {"name": set["name"], "namespace": NAMESPACE,
                    "annotations": {"deployment.kubernetes.io/revision": set["revision"]},
                    "ownerReferences": [{"controller": true, "kind": "Deployment", "name": "advocate-api"}]},
                "spec": {"replicas": set["replicas"], "template": templates[index]},
                "status": set["status"]})
        })
        .collect()
}

fn api_pod(pod: &Value) -> Value {
    let owner = pod["owner"][0].as_str().unwrap_or_default();
    let kind = if owner == "advocate-db" {
        "StatefulSet"
    } else {
        "ReplicaSet"
    };
    json!({"metadata": {"name": pod["name"], "namespace": NAMESPACE, "uid": pod["name"],
            "creationTimestamp": pod["creationTimestamp"], "deletionTimestamp": pod["deletionTimestamp"],
            "ownerReferences": [{"controller": true, "kind": kind, "name": owner}]},
        "status": pod["status"]})
}

fn api_event(event: &Value) -> Value {
    let (kind, name) = event["object"].as_str().unwrap().split_once('/').unwrap();
    json!({"type": event["type"], "reason": event["reason"], "message": event["message"], "count": event["count"],
        "firstTimestamp": event["first"], "involvedObject": {"kind": kind, "name": name}})
}

fn explained(evidence: &Evidence) -> Vec<Finding> {
    findings(evidence, Seed(7))
}

fn shown(finding: &Finding) -> String {
    let fields = finding
        .repairs
        .first()
        .map(|r| r.words())
        .unwrap_or_default();
    format!(
        "{} {}% {} [{}] {}",
        finding.category, finding.confidence, finding.key, fields, finding.statement
    )
}

#[test]
fn every_recorded_fault_is_explained_and_no_sample_misleads() {
    let mut wrong = Vec::new();
    for line in EXPECTED.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, category, field] = words[..] else {
            panic!("{line}");
        };
        let recording = read(mode);
        let samples = answers(&recording);
        let last = samples.len() - 1;
        for (index, (at, answers)) in samples.iter().enumerate() {
            let found = explained(&answers.evidence());
            let top = found.first();
            let right = top.is_some_and(|finding| {
                let first: Vec<String> = finding
                    .repairs
                    .first()
                    .iter()
                    .flat_map(|r| &r.fields)
                    .map(|f| f.dotted())
                    .collect();
                finding.category == category
                    && if field == "-" {
                        first.is_empty()
                    } else {
                        first.iter().any(|f| f.contains(field))
                    }
            });
            let acts = top.is_some_and(|finding| finding.confidence >= SURE);
            if (index == last || acts) && !right {
                let all: Vec<String> = found.iter().map(shown).collect();
                wrong.push(format!(
                    "{mode} at {at} s, expected {category} {field}:\n    {}",
                    all.join("\n    ")
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_mends_itself_is_left_alone() {
    for mode in QUIET {
        let recording = read(mode);
        for (at, answers) in answers(&recording) {
            let found = explained(&answers.evidence());
            let sure: Vec<String> = found
                .iter()
                .filter(|f| f.confidence >= SURE)
                .map(shown)
                .collect();
            assert!(sure.is_empty(), "{mode} at {at} s: {sure:?}");
        }
    }
}

/// Every name of the recordings under another, of another length.
fn renamed(text: &str) -> String {
    [
        ("prod-advocate", "tenant-q"),
        ("advocate-secrets", "zq-conf"),
        ("advocate-api", "ledger-frontend"),
        ("advocate-db", "store-main"),
        ("\"api\"", "\"worker\""),
        ("containers[api]", "containers[worker]"),
        ("container api", "container worker"),
        ("Container api", "Container worker"),
        ("/api/", "/worker/"),
        ("containers{api}", "containers{worker}"),
        ("node-1", "ip-10-0-3-7"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn the_same_evidence_under_other_names_gets_the_same_explanation() {
    for line in EXPECTED.lines().skip(1) {
        let mode = line.split_whitespace().next().unwrap();
        let recording = read(mode);
        let (_, plain) = answers(&recording).pop().unwrap();
        let mut other = Answers::default();
        for (kind, items) in &plain.lists {
            let items: Vec<Value> = items.iter().map(rename_object).collect();
            other.lists.insert(kind, items);
        }
        for ((namespace, pod, container, previous), log) in &plain.logs {
            let key = (
                renamed(namespace),
                renamed(pod),
                container.replace("api", "worker"),
                *previous,
            );
            other.logs.insert(key, renamed(log));
        }
        let summary = |answers: &Answers| -> Vec<(String, u8, Vec<&'static str>)> {
            explained(&answers.evidence())
                .into_iter()
                .map(|f| (f.category.into_owned(), f.confidence, f.secondary))
                .collect()
        };
        assert_eq!(summary(&plain), summary(&other), "{mode}");
    }
}

/// Renames in an object's text; Secrets' data is opened for it.
fn rename_object(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        for value in object["data"]
            .as_object_mut()
            .into_iter()
            .flatten()
            .map(|(_, v)| v)
        {
            let text =
                String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
            *value = json!(STANDARD.encode(renamed(&text)));
        }
    }
    serde_json::from_str(&renamed(&object.to_string())).unwrap()
}

#[test]
fn symptoms_carry_no_names_and_no_credentials() {
    for mode in [
        "secret-wrong-password",
        "oom-limit",
        "image-tag-missing",
        "service-account-missing",
    ] {
        let recording = read(mode);
        let (_, answers) = answers(&recording).pop().unwrap();
        let text = symptoms(&answers.evidence());
        assert!(!text.is_empty(), "{mode}");
        for name in ["prod-advocate", "advocate-api", "k3sXp9vQ", "k3sXp9vq"] {
            assert!(!text.contains(name), "{mode}: {text}");
        }
    }
}

#[test]
fn no_diagnosis_repeats_a_secret() {
    let mut values = BTreeSet::new();
    for value in ["4f7c2e9b1a6d8035", "k3sXp9vQ", "k3sXp9vq"] {
        values.insert(value.to_owned());
        values.insert(STANDARD.encode(value));
    }
    for line in EXPECTED.lines().skip(1) {
        let mode = line.split_whitespace().next().unwrap();
        let (_, answers) = answers(&read(mode)).pop().unwrap();
        for finding in explained(&answers.evidence()) {
            let words: Vec<String> = finding.repairs.iter().map(|r| r.words()).collect();
            let told = format!(
                "{} {} {}",
                finding.statement,
                finding.quotes.join(" "),
                words.join(" ")
            );
            assert!(
                values.iter().all(|value| !told.contains(value)),
                "{mode}: {told}"
            );
        }
    }
}
