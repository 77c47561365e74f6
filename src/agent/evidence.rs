//! What the rules agent knows about its namespaces at one moment, in typed form. Pure data: `observe` asks the
//! cluster, `reading` turns the answers into this, `diagnose` reasons over it.
//!
//! Values of Secrets are held, because a password can only be compared by its value; they are never printed.

pub mod events;
pub mod field;
pub mod observe;
pub mod quantity;
pub mod reading;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::agent::evidence::field::Field;

/// Kind, namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Everything seen at one moment.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub workloads: Vec<Workload>,
    pub services: Vec<Service>,
    /// Secrets and ConfigMaps.
    pub stores: Vec<Store>,
    pub quotas: Vec<Quota>,
    pub policies: Vec<Policy>,
    pub nodes: Vec<Node>,
    /// Names by kind of objects of which only the existence matters: service accounts, claims.
    pub others: Vec<Subject>,
    /// Targets of autoscalers.
    pub autoscaled: Vec<(String, String)>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
    /// The newest time that any object carries, RFC 3339: the cluster's own clock.
    pub latest_time: Option<String>,
}

/// A Deployment, StatefulSet or DaemonSet with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Workload {
    pub subject: Subject,
    /// The whole object as the API shows it.
    pub object: Value,
    pub desired: i64,
    pub ready: i64,
    pub updated: i64,
    pub replicas: i64,
    pub unavailable: i64,
    /// The controller has seen the newest spec.
    pub observed: bool,
    pub paused: bool,
    pub conditions: Vec<Condition>,
    /// Earlier templates, newest first; the current one left out.
    pub earlier: Vec<Revision>,
    /// The ReplicaSet of the current template.
    pub current_set: Option<String>,
    pub pods: Vec<Pod>,
    /// Of the workload, its ReplicaSets and its pods, including pods that are gone; oldest first.
    pub events: Vec<Event>,
}

impl Workload {
    /// The current pod template.
    pub fn template(&self) -> &Value {
        &self.object["spec"]["template"]
    }

    /// Pods that are not on their way out.
    pub fn live_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| !pod.terminating)
    }

    /// Pods made from the current template.
    pub fn current_pods(&self) -> impl Iterator<Item = &Pod> {
        self.live_pods()
            .filter(|pod| self.current_set.is_none() || pod.owner == self.current_set)
    }

    /// Containers of the current pods, init containers first.
    pub fn containers(&self) -> impl Iterator<Item = (&Pod, &Container)> {
        self.current_pods()
            .flat_map(|pod| pod.containers.iter().map(move |c| (pod, c)))
    }

    /// A container of the current template by its name.
    pub fn container_spec(&self, name: &str) -> Option<&Value> {
        let spec = &self.template()["spec"];
        ["containers", "initContainers"]
            .iter()
            .filter_map(|list| spec[*list].as_array())
            .flatten()
            .find(|container| container["name"] == name)
    }

    /// What differs between an earlier template and the current one, seen from the object's root; stamps of
    /// restarts left out.
    pub fn changes_since(&self, revision: &Revision) -> Vec<Field> {
        field::difference(self.template(), &revision.template)
            .into_iter()
            .filter(|change| !change.is_restart_stamp())
            .map(|change| change.under(&["spec", "template"]))
            .collect()
    }

    /// What the newest earlier template that differs has and the current has not.
    pub fn last_changes(&self) -> Vec<Field> {
        self.earlier
            .iter()
            .map(|revision| self.changes_since(revision))
            .find(|changes| !changes.is_empty())
            .unwrap_or_default()
    }

    /// As many ready pods of the current template as wanted, none too many, nothing pending.
    pub fn is_settled(&self) -> bool {
        self.observed
            && self.ready >= self.desired
            && self.updated >= self.desired
            && self.replicas == self.desired
            && self.unavailable == 0
    }

    /// Restarts of all containers of its pods.
    pub fn restarts(&self) -> i64 {
        self.live_pods()
            .flat_map(|pod| &pod.containers)
            .map(|container| container.restarts)
            .sum()
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }
}

/// An earlier pod template with the number that `rollout history` shows.
#[derive(Clone, Debug)]
pub struct Revision {
    pub number: i64,
    pub template: Value,
    /// How many replicas were wanted when it was last touched.
    pub desired: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub phase: String,
    /// The ReplicaSet or other controller that owns it.
    pub owner: Option<String>,
    pub terminating: bool,
    pub conditions: Vec<Condition>,
    /// Init containers first.
    pub containers: Vec<Container>,
}

#[derive(Clone, Debug)]
pub struct Condition {
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub name: String,
    pub is_init: bool,
    pub ready: bool,
    pub restarts: i64,
    pub state: State,
    pub last: Option<Ended>,
    /// The end of its log, and of the run before.
    pub log: String,
    pub previous_log: String,
}

impl Container {
    /// How it ended most recently, whichever of the two places shows it.
    pub fn latest_end(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => self.last.as_ref(),
        }
    }

    /// Lines of both logs, the run before first.
    pub fn log_lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.previous_log.lines().chain(self.log.lines())
    }

    pub fn waiting(&self) -> Option<(&str, &str)> {
        match &self.state {
            State::Waiting { reason, message } => Some((reason, message)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Waiting { reason: String, message: String },
    Running,
    Ended(Ended),
    Unknown,
}

/// A finished run of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub exit_code: i64,
    pub reason: String,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub warning: bool,
    pub reason: String,
    pub message: String,
    pub count: i64,
    /// Kind and name of what it is about.
    pub about: (String, String),
    /// The container it is about, if it names one.
    pub container: Option<String>,
    /// RFC 3339, the last time it happened.
    pub last_time: String,
}

#[derive(Clone, Debug)]
pub struct Service {
    pub subject: Subject,
    pub object: Value,
    pub selector: BTreeMap<String, String>,
}

/// A Secret or ConfigMap.
#[derive(Clone)]
pub struct Store {
    pub subject: Subject,
    pub values: BTreeMap<String, String>,
    /// Values of the last applied manifest, where the annotation holds one.
    pub last_applied: BTreeMap<String, String>,
}

impl fmt::Debug for Store {
    /// Keys only: this type holds credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("subject", &self.subject)
            .field("keys", &self.values.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct Quota {
    pub subject: Subject,
    pub hard: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct Policy {
    pub subject: Subject,
    pub object: Value,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub unschedulable: bool,
    pub ready: bool,
    pub allocatable: BTreeMap<String, String>,
}

impl Evidence {
    pub fn store(&self, kind: &str, namespace: &str, name: &str) -> Option<&Store> {
        self.stores.iter().find(|store| {
            store.subject.kind == kind
                && store.subject.namespace == namespace
                && store.subject.name == name
        })
    }

    pub fn workload(&self, subject: &Subject) -> Option<&Workload> {
        self.workloads.iter().find(|w| &w.subject == subject)
    }

    /// Whether an object of which only the existence is known is there.
    pub fn exists(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.others
            .iter()
            .any(|o| o.kind == kind && o.namespace == namespace && o.name == name)
    }

    /// Workloads whose pods a selector matches.
    pub fn selected<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a Workload> {
        self.workloads.iter().filter(move |workload| {
            workload.subject.namespace == namespace
                && !selector.is_empty()
                && matches_labels(&workload.template()["metadata"]["labels"], selector)
        })
    }
}

/// Whether labels carry everything that a selector asks for.
pub fn matches_labels(labels: &Value, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| labels[key] == *value)
}
