//! Turns what an API server answered into [`Evidence`]. Pure; what is missing or odd is left out, never guessed.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::agent::evidence::events::{event, newest_time};
use crate::agent::evidence::field::RESTARTED_AT;
use crate::agent::evidence::{
    Condition, Container, Ended, Event, Evidence, Node, Pod, Policy, Quota, Revision, Service,
    State, Store, Subject, Workload,
};

/// Answers of one look: lists by kind, and logs.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub lists: BTreeMap<&'static str, Vec<Value>>,
    pub logs: BTreeMap<LogKey, String>,
    pub unread: Vec<String>,
}

/// Namespace, pod, container, and whether it is the run before.
pub type LogKey = (String, String, String, bool);

/// The annotation with the revision's number.
const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// What `kubectl apply` keeps of the manifest it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Answers {
    fn list(&self, kind: &str) -> &[Value] {
        self.lists.get(kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// Everything that the answers tell.
    pub fn evidence(&self) -> Evidence {
        let mut events: Vec<Event> = self.list("Event").iter().map(event).collect();
        events.sort_by(|a, b| a.last_time.cmp(&b.last_time));
        let mut workloads = Vec::new();
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            for object in self.list(kind) {
                workloads.push(self.workload(kind, object, &events));
            }
        }
        Evidence {
            workloads,
            services: self.list("Service").iter().map(service).collect(),
            stores: self.stores(),
            quotas: self.list("ResourceQuota").iter().map(quota).collect(),
            policies: self
                .list("NetworkPolicy")
                .iter()
                .map(|object| Policy {
                    subject: subject("NetworkPolicy", object),
                    object: object.clone(),
                })
                .collect(),
            nodes: self.list("Node").iter().map(node).collect(),
            others: ["ServiceAccount", "PersistentVolumeClaim"]
                .into_iter()
                .flat_map(|kind| self.list(kind).iter().map(move |o| subject(kind, o)))
                .collect(),
            autoscaled: self
                .list("HorizontalPodAutoscaler")
                .iter()
                .map(|object| {
                    let target = &object["spec"]["scaleTargetRef"];
                    (text(&target["kind"]), text(&target["name"]))
                })
                .collect(),
            unread: self.unread.clone(),
            latest_time: self.lists.values().flatten().filter_map(newest_time).max(),
        }
    }

    fn workload(&self, kind: &'static str, object: &Value, events: &[Event]) -> Workload {
        let subject = subject(kind, object);
        let status = &object["status"];
        let spec = &object["spec"];
        let sets = self.owned_sets(object);
        let current = current_set(object, &sets);
        let pods: Vec<Pod> = self
            .list("Pod")
            .iter()
            .filter(|pod| is_owned(pod, object, &sets))
            .map(|pod| self.pod(pod))
            .collect();
        let names = sets.iter().map(|set| text(&set["metadata"]["name"]));
        let family: Vec<String> = names.chain([subject.name.clone()]).collect();
        let number = |field: &str| status[field].as_i64().unwrap_or(0);
        let daemon = kind == "DaemonSet";
        Workload {
            desired: if daemon {
                number("desiredNumberScheduled")
            } else {
                spec["replicas"].as_i64().unwrap_or(1)
            },
            ready: number(if daemon {
                "numberReady"
            } else {
                "readyReplicas"
            }),
            updated: number(if daemon {
                "updatedNumberScheduled"
            } else {
                "updatedReplicas"
            }),
            replicas: number(if daemon {
                "currentNumberScheduled"
            } else {
                "replicas"
            }),
            unavailable: number(if daemon {
                "numberUnavailable"
            } else {
                "unavailableReplicas"
            }),
            observed: number("observedGeneration")
                >= object["metadata"]["generation"].as_i64().unwrap_or(0),
            paused: spec["paused"] == true,
            conditions: conditions(status),
            earlier: earlier_revisions(&sets, current.as_deref()),
            current_set: current,
            events: events
                .iter()
                .filter(|event| concerns(event, &subject.kind.to_owned(), &family, &pods))
                .cloned()
                .collect(),
            pods,
            object: object.clone(),
            subject,
        }
    }

    /// ReplicaSets of a Deployment.
    fn owned_sets(&self, object: &Value) -> Vec<&Value> {
        self.list("ReplicaSet")
            .iter()
            .filter(|set| {
                set["metadata"]["namespace"] == object["metadata"]["namespace"]
                    && owner_of(set).is_some_and(|(kind, name)| {
                        kind == "Deployment" && object["metadata"]["name"] == name
                    })
            })
            .collect()
    }

    fn pod(&self, object: &Value) -> Pod {
        let meta = &object["metadata"];
        let status = &object["status"];
        let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
        let containers = [
            ("initContainerStatuses", true),
            ("containerStatuses", false),
        ]
        .into_iter()
        .flat_map(|(list, is_init)| {
            status[list]
                .as_array()
                .into_iter()
                .flatten()
                .map(move |status| (status, is_init))
        })
        .map(|(status, is_init)| {
            let container = text(&status["name"]);
            let log = |previous| {
                let key = (namespace.clone(), name.clone(), container.clone(), previous);
                self.logs.get(&key).cloned().unwrap_or_default()
            };
            Container {
                is_init,
                ready: status["ready"] == true,
                restarts: status["restartCount"].as_i64().unwrap_or(0),
                state: state(&status["state"]),
                last: ended(&status["lastState"]),
                log: log(false),
                previous_log: log(true),
                name: container,
            }
        })
        .collect();
        Pod {
            uid: text(&meta["uid"]),
            phase: text(&status["phase"]),
            owner: owner_of(object).map(|(_, name)| name),
            terminating: !meta["deletionTimestamp"].is_null(),
            conditions: conditions(status),
            containers,
            name,
        }
    }

    fn stores(&self) -> Vec<Store> {
        let secrets = self.list("Secret").iter().map(|object| Store {
            subject: subject("Secret", object),
            values: decoded(&object["data"]),
            last_applied: last_applied(object),
        });
        let maps = self.list("ConfigMap").iter().map(|object| Store {
            subject: subject("ConfigMap", object),
            values: plain(&object["data"]),
            last_applied: last_applied(object),
        });
        secrets.chain(maps).collect()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn subject(kind: &'static str, object: &Value) -> Subject {
    Subject {
        kind,
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
    }
}

fn owner_of(object: &Value) -> Option<(String, String)> {
    object["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|owner| owner["controller"] == true)
        .map(|owner| (text(&owner["kind"]), text(&owner["name"])))
}

fn is_owned(pod: &Value, workload: &Value, sets: &[&Value]) -> bool {
    pod["metadata"]["namespace"] == workload["metadata"]["namespace"]
        && owner_of(pod).is_some_and(|(kind, name)| match kind.as_str() {
            "ReplicaSet" => sets.iter().any(|set| set["metadata"]["name"] == name),
            _ => {
                workload["metadata"]["name"] == name
                    && workload["kind"].as_str().is_none_or(|k| k == kind)
            }
        })
}

/// The set of the current template: that with the Deployment's own revision number, once it has been made.
fn current_set(object: &Value, sets: &[&Value]) -> Option<String> {
    let revision = object["metadata"]["annotations"][REVISION].as_str()?;
    sets.iter()
        .find(|set| set["metadata"]["annotations"][REVISION] == revision)
        .map(|set| text(&set["metadata"]["name"]))
}

fn earlier_revisions(sets: &[&Value], current: Option<&str>) -> Vec<Revision> {
    let mut revisions: Vec<Revision> = sets
        .iter()
        .filter(|set| set["metadata"]["name"].as_str() != current)
        .map(|set| {
            let annotations = &set["metadata"]["annotations"];
            Revision {
                number: annotations[REVISION]
                    .as_str()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0),
                desired: annotations[DESIRED].as_str().and_then(|n| n.parse().ok()),
                template: set["spec"]["template"].clone(),
            }
        })
        .collect();
    revisions.sort_by_key(|revision| std::cmp::Reverse(revision.number));
    revisions
}

/// Events of pods that are gone still name their ReplicaSet as a prefix of the pod's name.
fn concerns(event: &Event, kind: &String, family: &[String], pods: &[Pod]) -> bool {
    let (about_kind, about_name) = &event.about;
    match about_kind.as_str() {
        "Pod" => {
            pods.iter().any(|pod| pod.name == *about_name)
                || about_name
                    .rsplit_once('-')
                    .is_some_and(|(owner, _)| family.iter().any(|name| name == owner))
        }
        "ReplicaSet" => family.contains(about_name),
        other => other == kind && family.last() == Some(about_name),
    }
}

fn conditions(status: &Value) -> Vec<Condition> {
    status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|condition| Condition {
            kind: text(&condition["type"]),
            status: text(&condition["status"]),
            reason: text(&condition["reason"]),
            message: text(&condition["message"]),
        })
        .collect()
}

fn state(value: &Value) -> State {
    if let Some(waiting) = value.get("waiting") {
        return State::Waiting {
            reason: text(&waiting["reason"]),
            message: text(&waiting["message"]),
        };
    }
    if value.get("running").is_some() {
        return State::Running;
    }
    ended(value).map_or(State::Unknown, State::Ended)
}

fn ended(value: &Value) -> Option<Ended> {
    let terminated = value.get("terminated")?;
    Some(Ended {
        exit_code: terminated["exitCode"].as_i64().unwrap_or(0),
        reason: text(&terminated["reason"]),
        message: text(&terminated["message"]),
    })
}

fn service(object: &Value) -> Service {
    Service {
        subject: subject("Service", object),
        selector: plain(&object["spec"]["selector"]),
        object: object.clone(),
    }
}

fn quota(object: &Value) -> Quota {
    Quota {
        subject: subject("ResourceQuota", object),
        hard: plain(&object["spec"]["hard"]),
    }
}

fn node(object: &Value) -> Node {
    Node {
        name: text(&object["metadata"]["name"]),
        unschedulable: object["spec"]["unschedulable"] == true,
        ready: conditions(&object["status"])
            .iter()
            .any(|c| c.kind == "Ready" && c.status == "True"),
        allocatable: plain(&object["status"]["allocatable"]),
    }
}

fn plain(map: &Value) -> BTreeMap<String, String> {
    map.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn decoded(map: &Value) -> BTreeMap<String, String> {
    plain(map)
        .into_iter()
        .filter_map(|(key, value)| {
            let bytes = STANDARD.decode(value).ok()?;
            Some((key, String::from_utf8(bytes).ok()?))
        })
        .collect()
}

fn last_applied(object: &Value) -> BTreeMap<String, String> {
    let manifest: Value = object["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let mut values = if object["kind"] == "ConfigMap" {
        plain(&manifest["data"])
    } else {
        decoded(&manifest["data"])
    };
    values.extend(plain(&manifest["stringData"]));
    values
}

/// The stamp of the last restart in a workload's template.
pub fn restart_stamp(object: &Value) -> Option<&str> {
    object["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT].as_str()
}
