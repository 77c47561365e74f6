//! The state of a cluster as far as a run must leave it unchanged, its hash, and the difference of two states.
//!
//! Pure over listed objects. What components write and what differs between equal clusters (uids, versions, times,
//! status, revisions, assigned addresses, pods of workloads) is left out; every field that a person can set counts.
//! Values of Secrets and ConfigMaps enter as digests only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::cluster::ClusterError;
use crate::cluster::churn;
use crate::cluster::resource::{RESOURCES, Resource};
use crate::record::StateChangeKind;

/// Namespaces of the cluster's own parts; what is in them is not ours to judge.
pub const SYSTEM_NAMESPACES: &[&str] = &["kube-system", "kube-public", "kube-node-lease"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    pub kind: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectState {
    /// Tells a recreated object from the one before; no part of the hash.
    pub uid: String,
    /// The rollout history's position, for workloads that have one; no part of the hash.
    pub revision: Option<String>,
    /// What counts, with data as digests.
    pub content: Value,
    /// Why a workload is not at rest (desired = updated = ready), if it is not.
    pub unsettled: Option<String>,
}

/// Everything outside the system namespaces at one moment. As JSON it is the list of its objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(ObjectKey, ObjectState)>",
    into = "Vec<(ObjectKey, ObjectState)>"
)]
pub struct ClusterState {
    pub objects: BTreeMap<ObjectKey, ObjectState>,
}

/// One difference between two states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub key: ObjectKey,
    pub what: StateChangeKind,
    /// Dotted, as in scenario files; empty unless a field differs.
    pub path: String,
}

impl From<Vec<(ObjectKey, ObjectState)>> for ClusterState {
    fn from(objects: Vec<(ObjectKey, ObjectState)>) -> ClusterState {
        ClusterState {
            objects: objects.into_iter().collect(),
        }
    }
}

impl From<ClusterState> for Vec<(ObjectKey, ObjectState)> {
    fn from(state: ClusterState) -> Vec<(ObjectKey, ObjectState)> {
        state.objects.into_iter().collect()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            StateChangeKind::Created => "was created",
            StateChangeKind::Deleted => "is gone",
            StateChangeKind::Recreated => "was recreated",
            StateChangeKind::FieldChanged => "differs in",
        };
        write!(f, "{} {what}", self.key)?;
        if self.path.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", self.path)
        }
    }
}

/// Reads the state of a cluster.
pub async fn read(client: &kube::Client) -> Result<ClusterState, ClusterError> {
    read_kinds(client, |_| true).await
}

/// Reads only the workloads that people make: whether anything is on the move. Replica sets follow from them.
pub async fn read_workloads(client: &kube::Client) -> Result<ClusterState, ClusterError> {
    read_kinds(client, |resource| {
        ["Deployment", "StatefulSet", "DaemonSet"].contains(&resource.kind)
    })
    .await
}

async fn read_kinds(
    client: &kube::Client,
    wanted: impl Fn(&Resource) -> bool,
) -> Result<ClusterState, ClusterError> {
    let mut state = ClusterState::default();
    for resource in RESOURCES.iter().filter(|resource| wanted(resource)) {
        for object in resource.list(client, "").await? {
            state.add(resource.kind, &object);
        }
    }
    state.leave_scaling_to_autoscalers();
    Ok(state)
}

impl ClusterState {
    /// Takes an object in, unless it is none that counts.
    pub fn add(&mut self, kind: &str, object: &Value) {
        let meta = &object["metadata"];
        let key = ObjectKey {
            kind: kind.to_owned(),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
        };
        if !counts(&key, object) {
            return;
        }
        let state = ObjectState {
            uid: text(&meta["uid"]),
            revision: revision(kind, object),
            content: content(kind, object),
            unsettled: unsettled(kind, object),
        };
        self.objects.insert(key, state);
    }

    /// The part of the state in the named namespaces, and these themselves.
    pub fn within(&self, namespaces: &BTreeSet<String>) -> ClusterState {
        let inside = |key: &ObjectKey| {
            namespaces.contains(&key.namespace)
                || (key.kind == "Namespace" && namespaces.contains(&key.name))
        };
        ClusterState {
            objects: self
                .objects
                .iter()
                .filter(|(key, _)| inside(key))
                .map(|(key, state)| (key.clone(), state.clone()))
                .collect(),
        }
    }

    /// Leaves out how many replicas there are of what an autoscaler scales.
    fn leave_scaling_to_autoscalers(&mut self) {
        let autoscalers = self.objects.iter();
        let scaled: Vec<ObjectKey> = autoscalers
            .filter(|(key, _)| key.kind == "HorizontalPodAutoscaler")
            .map(|(key, state)| {
                let target = &state.content["spec"]["scaleTargetRef"];
                ObjectKey {
                    kind: text(&target["kind"]),
                    namespace: key.namespace.clone(),
                    name: text(&target["name"]),
                }
            })
            .collect();
        for key in scaled {
            if let Some(state) = self.objects.get_mut(&key) {
                churn::scaled(&mut state.content);
            }
        }
    }

    /// A state that an earlier version kept, without what counts no more: otherwise its reference could never be reached.
    pub fn as_it_counts_now(mut self) -> ClusterState {
        self.objects
            .retain(|key, _| !churn::is_published(&key.kind, &key.name));
        for (key, state) in &mut self.objects {
            state.content = churn::without(&key.kind, &state.content);
            if let Some(meta) = state.content["metadata"].as_object_mut() {
                meta.retain(|_, value| !churn::says_nothing(value));
            }
        }
        self.leave_scaling_to_autoscalers();
        self
    }

    /// This state with some objects as they were before: those that a run is not answerable for.
    pub fn taking_as_before(
        mut self,
        before: &ClusterState,
        are: impl Fn(&ObjectKey) -> bool,
    ) -> ClusterState {
        self.objects.retain(|key, _| !are(key));
        let kept = before.objects.iter().filter(|(key, _)| are(key));
        self.objects
            .extend(kept.map(|(key, state)| (key.clone(), state.clone())));
        self
    }

    /// Nodes that do not work, with the reason.
    pub fn lost_nodes(&self, before: Option<&ClusterState>) -> Vec<String> {
        let is_node = |(key, _): &(&ObjectKey, &ObjectState)| key.kind == "Node";
        let present = self.objects.iter().filter(is_node);
        let mut lost: Vec<String> = present
            .filter_map(|(key, state)| Some(format!("{key}: {}", state.unsettled.as_ref()?)))
            .collect();
        let earlier = before
            .into_iter()
            .flat_map(|before| before.objects.iter().filter(is_node));
        let gone = earlier.filter(|(key, _)| !self.objects.contains_key(*key));
        lost.extend(gone.map(|(key, _)| format!("{key} is gone")));
        lost
    }

    /// SHA-256 over the canonical text, hex. A workload that is not at rest gives another hash than one that is.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (key, state) in &self.objects {
            let mut line = format!("{}\0{}\0{}\0", key.kind, key.namespace, key.name);
            write_canonical(&state.content, &mut line);
            line.push('\0');
            line.push_str(if state.unsettled.is_some() {
                "moving"
            } else {
                "at rest"
            });
            line.push('\n');
            hash.update(line.as_bytes());
        }
        hex::encode(hash.finalize())
    }

    /// The workloads that are not at rest, with the reason.
    pub fn unsettled(&self) -> Vec<String> {
        self.objects
            .iter()
            .filter_map(|(key, state)| {
                state
                    .unsettled
                    .as_ref()
                    .map(|reason| format!("{key}: {reason}"))
            })
            .collect()
    }

    /// What differs in `later`, in order of kind, namespace and name.
    pub fn differences(&self, later: &ClusterState) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut note = |key: &ObjectKey, what, path: String| {
            found.push(Difference {
                key: key.clone(),
                what,
                path,
            });
        };
        for (key, before) in &self.objects {
            let Some(after) = later.objects.get(key) else {
                note(key, StateChangeKind::Deleted, String::new());
                continue;
            };
            if before.uid != after.uid {
                note(key, StateChangeKind::Recreated, String::new());
            }
            let mut paths = Vec::new();
            differing_paths(&before.content, &after.content, "", &mut paths);
            for path in paths {
                note(key, StateChangeKind::FieldChanged, path);
            }
        }
        for key in later.objects.keys() {
            if !self.objects.contains_key(key) {
                note(key, StateChangeKind::Created, String::new());
            }
        }
        found.sort();
        found
    }
}

/// Whether an object's state is part of the cluster's.
fn counts(key: &ObjectKey, object: &Value) -> bool {
    let in_system = SYSTEM_NAMESPACES.contains(&key.namespace.as_str())
        || (key.kind == "Namespace" && SYSTEM_NAMESPACES.contains(&key.name.as_str()));
    if in_system || churn::is_published(&key.kind, &key.name) {
        return false;
    }
    match key.kind.as_str() {
        // Old revisions stay as empty replica sets.
        "ReplicaSet" => object["spec"]["replicas"].as_i64().unwrap_or(1) > 0,
        "Secret" => !churn::is_generated_token(object),
        // Pods and Jobs that a controller made follow from it; those that a person made count.
        "Pod" | "Job" => !has_controller(object),
        _ => true,
    }
}

/// Whether a controller made the object and will remake it.
pub fn has_controller(object: &Value) -> bool {
    object["metadata"]["ownerReferences"]
        .as_array()
        .is_some_and(|owners| owners.iter().any(|o| o["controller"] == Value::Bool(true)))
}

fn revision(kind: &str, object: &Value) -> Option<String> {
    match kind {
        "Deployment" => object["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
            .as_str()
            .map(str::to_owned),
        "StatefulSet" => object["status"]["updateRevision"]
            .as_str()
            .map(str::to_owned),
        _ => None,
    }
}

fn content(kind: &str, object: &Value) -> Value {
    let object = churn::without(kind, object);
    let mut content = Map::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" | "status" => {}
            "data" | "binaryData" | "stringData" => {
                content.insert(field.clone(), digests(value));
            }
            _ => {
                content.insert(field.clone(), value.clone());
            }
        }
    }
    let mut meta = Map::new();
    let original = &object["metadata"];
    for field in ["labels", "annotations", "finalizers"] {
        if !churn::says_nothing(&original[field]) {
            meta.insert(field.to_owned(), original[field].clone());
        }
    }
    if original.get("deletionTimestamp").is_some() {
        meta.insert("deleting".to_owned(), true.into());
    }
    content.insert("metadata".to_owned(), Value::Object(meta));
    Value::Object(content)
}

fn digests(data: &Value) -> Value {
    let Some(entries) = data.as_object() else {
        return data.clone();
    };
    entries
        .iter()
        .map(|(key, value)| {
            let digest = Sha256::digest(value.to_string().as_bytes());
            (key.clone(), Value::String(hex::encode(digest)))
        })
        .collect::<Map<String, Value>>()
        .into()
}

/// Why a workload is not at rest: its controller has not seen the spec, or not every replica is new and ready. Or why a
/// node does not work.
fn unsettled(kind: &str, object: &Value) -> Option<String> {
    let status = &object["status"];
    if kind == "Node" {
        let mut conditions = status["conditions"].as_array()?.iter();
        let ready = conditions.find(|condition| condition["type"] == "Ready")?;
        let reason = ready["reason"].as_str().unwrap_or("no reason given");
        return (ready["status"] != "True").then(|| format!("not ready ({reason})"));
    }
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let (desired, current) = match kind {
        "Deployment" | "StatefulSet" => (
            object["spec"]["replicas"].as_i64().unwrap_or(1),
            [
                count("replicas"),
                count("updatedReplicas"),
                count("readyReplicas"),
            ],
        ),
        "ReplicaSet" => {
            let desired = object["spec"]["replicas"].as_i64().unwrap_or(1);
            (
                desired,
                [count("replicas"), desired, count("readyReplicas")],
            )
        }
        "DaemonSet" => (
            count("desiredNumberScheduled"),
            [
                count("currentNumberScheduled"),
                count("updatedNumberScheduled"),
                count("numberReady"),
            ],
        ),
        _ => return None,
    };
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    if count("observedGeneration") < generation {
        return Some("its controller has not seen the newest spec".to_owned());
    }
    if current != [desired; 3] {
        let [total, updated, ready] = current;
        return Some(format!(
            "{desired} desired, {total} present, {updated} updated, {ready} ready"
        ));
    }
    None
}

/// The dotted paths at which two values differ, the deepest that say it, spelled as in scenario files.
pub fn differing_paths(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(_), Value::Object(_) | Value::Null) | (Value::Null, Value::Object(_)) => {
            let keys: BTreeSet<&String> = [before, after]
                .into_iter()
                .filter_map(Value::as_object)
                .flat_map(Map::keys)
                .collect();
            if keys.is_empty() && before != after {
                found.push(at.to_owned());
            }
            for key in keys {
                let (old, new) = (&before[key.as_str()], &after[key.as_str()]);
                differing_paths(old, new, &below(at, key), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (old, new)) in a.iter().zip(b).enumerate() {
                differing_paths(old, new, &format!("{at}[{index}]"), found);
            }
        }
        _ if before == after => {}
        _ => found.push(at.to_owned()),
    }
}

/// The path of a key below a path; keys with dots or slashes stand in brackets and quotes.
pub fn below(at: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$'));
    match (bare, at.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{at}.{key}"),
        (false, _) => format!("{at}[{}]", Value::from(key)),
    }
}

/// JSON with sorted keys and no spaces, whatever order a map has in memory.
fn write_canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            into.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    into.push(',');
                }
                into.push_str(&Value::String(key.clone()).to_string());
                into.push(':');
                write_canonical(&map[key], into);
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    into.push(',');
                }
                write_canonical(item, into);
            }
            into.push(']');
        }
        scalar => into.push_str(&scalar.to_string()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
