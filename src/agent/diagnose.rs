//! From evidence to explanations. Pure: the same evidence and seed give the same findings in the same order.
//!
//! Each file below knows one family of causes and looks at one workload at a time. Nothing here knows a name of
//! an object, a namespace or an alert: two clusters that differ in names only get the same findings.

mod admission;
mod config;
mod cpu;
mod crash;
mod credentials;
mod dependency;
mod environment;
mod image;
mod log_line;
mod memory;
mod network;
mod probe;
mod rollout;
mod scheduling;
mod service;
mod symptoms;
mod url;
mod variables;

pub use symptoms::{is_unwell, symptoms};

use serde_json::Value;

use crate::agent::evidence::field::Step;
use crate::agent::evidence::{Container, Event, Evidence, Workload};
use crate::agent::finding::Finding;
use crate::ids::Seed;

/// What a family looks at.
struct Look<'a> {
    evidence: &'a Evidence,
    workload: &'a Workload,
    /// For secrets that may be made anew.
    seed: Seed,
}

type Family = fn(&Look<'_>) -> Vec<Finding>;

/// All families; each gives nothing where it sees nothing of its own.
const FAMILIES: &[Family] = &[
    memory::look,
    cpu::look,
    image::look,
    scheduling::look,
    admission::look,
    config::look,
    environment::look,
    credentials::look,
    dependency::look,
    network::look,
    crash::look,
    probe::look,
    rollout::look,
    service::look,
];

/// Every explanation that the evidence supports, surest first.
pub fn findings(evidence: &Evidence, seed: Seed) -> Vec<Finding> {
    let mut found: Vec<Finding> = evidence
        .workloads
        .iter()
        .flat_map(|workload| {
            let look = Look {
                evidence,
                workload,
                seed,
            };
            FAMILIES.iter().flat_map(move |family| family(&look))
        })
        .collect();
    found.sort_by(Finding::order);
    found
}

impl Look<'_> {
    /// A container's spec in the current template; null when there is none.
    fn spec(&self, container: &str) -> &Value {
        self.workload
            .container_spec(container)
            .unwrap_or(&Value::Null)
    }

    /// A limit as written.
    fn limit(&self, container: &str, resource: &str) -> Option<String> {
        let limit = &self.spec(container)["resources"]["limits"][resource];
        limit
            .as_str()
            .map(str::to_owned)
            .or_else(|| limit.as_number().map(ToString::to_string))
    }

    /// The path to a field of a container, from the workload's root.
    fn container_path(&self, container: &Container, keys: &[&str]) -> Vec<Step> {
        let list = if container.is_init {
            "initContainers"
        } else {
            "containers"
        };
        ["spec", "template", "spec", list]
            .iter()
            .map(|key| Step::Key((*key).to_owned()))
            .chain([Step::Named(container.name.clone())])
            .chain(keys.iter().map(|key| Step::Key((*key).to_owned())))
            .collect()
    }

    /// Whether a liveness or startup probe ended a run of this container.
    fn was_killed_by_probe(&self, container: &str) -> bool {
        self.workload.events.iter().any(|event| {
            event.reason == "Killing"
                && event.message.contains(container)
                && event.message.contains("failed")
                && event.message.contains("probe")
                && self.is_current(event)
        })
    }

    /// Whether an event is about a pod of the current template.
    fn is_current(&self, event: &Event) -> bool {
        event.about.0 == "Pod"
            && self
                .workload
                .current_pods()
                .any(|pod| pod.name == event.about.1)
    }
}
