//! What was read from a cluster at one moment, in typed form: the input of detectors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

/// One reading. Absence from a map means that the object was looked for and is not there; objects whose reading
/// failed stand in `unread` with the reason, and everything about them is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// On the run's monotonic clock, taken when the reading was complete.
    pub at_ms: u64,
    pub deployments: BTreeMap<String, WorkloadFacts>,
    pub statefulsets: BTreeMap<String, WorkloadFacts>,
    pub pods: Vec<PodFacts>,
    /// Keyed `<what>` (`deployment.<ns>.<name>`, `pods.<ns>`): why it could not be read.
    pub unread: BTreeMap<String, String>,
    /// What Prometheus answered, by query. None where there is no Prometheus to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<BTreeMap<String, Answer>>,
}

/// What Prometheus answered to one query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One number as Prometheus wrote it, since JSON knows no infinity; never NaN.
    Number(String),
    /// No sample, or none that is a number. It is never taken for 0.
    NoData(String),
    /// No answer this time: why, without secrets.
    Failed(String),
    /// The query is what is wrong; asking again changes nothing.
    Refused(String),
}

impl Observation {
    /// The key of the workload maps: `<namespace>/<name>`.
    pub fn key(namespace: &str, name: &str) -> String {
        format!("{namespace}/{name}")
    }
}

/// A Deployment's or StatefulSet's numbers. Absent `spec.replicas` has been read as 1, absent counts as 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    pub uid: String,
    pub generation: i64,
    /// Counts of an older generation are not evidence.
    pub observed_generation: i64,
    pub desired: i64,
    pub replicas: i64,
    pub ready: i64,
    pub updated: i64,
    pub available: i64,
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Kind and name of the owning workload, a ReplicaSet resolved to its Deployment.
    pub owner: Option<(String, String)>,
    pub phase: String,
    pub ready: bool,
    /// Sum of its containers' restart counts.
    pub restarts: i64,
    pub terminating: bool,
}
