//! The parts of a scenario file that qualify it: protected fields and the reference repair.

use crate::scenario::decode::{Fields, items, json};
use crate::scenario::kubernetes_types;
use crate::scenario::load::injector::{json_patch, name, namespace_text};
use crate::scenario::model::{PathStep, ProtectedField, RepairStep};
use crate::scenario::mutation;
use crate::scenario::problem::Notes;
use crate::scenario::yaml::Node;
use serde_json::Value;

/// Kinds that a scenario may name.
pub const KINDS: [&str; 15] = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Pod",
    "Service",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ResourceQuota",
    "HorizontalPodAutoscaler",
    "PersistentVolumeClaim",
    "Namespace",
];

/// The object that a step or a protection names.
struct Target {
    kind: String,
    namespace: String,
    name: String,
}

fn target(fields: &Fields<'_>, kinds: &[&str], notes: &mut Notes) -> Option<Target> {
    let words: Vec<(&str, &str)> = kinds.iter().map(|kind| (*kind, *kind)).collect();
    let kind = fields.need_word("kind", &words, notes);
    let namespace = fields
        .need("ns", "a namespace", notes)
        .and_then(|node| namespace_text(node, &fields.sub("ns"), notes));
    let name = name(fields, "name", notes);
    Some(Target {
        kind: kind?.to_owned(),
        namespace: namespace?,
        name: name?,
    })
}

pub(super) fn protected(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<ProtectedField>> {
    let Some(node) = fields.get("protected") else {
        return Some(Vec::new());
    };
    let list = items(node, "protected", notes);
    let decoded: Vec<Option<ProtectedField>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| protected_field(item, &format!("protected[{index}]"), notes))
        .collect();
    decoded.into_iter().collect()
}

fn protected_field(node: &Node, path: &str, notes: &mut Notes) -> Option<ProtectedField> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["kind", "ns", "name", "path"], notes);
    let target = target(&fields, &KINDS, notes);
    let path = fields.opt_text("path", notes).unwrap_or_default();
    if let Some(node) = fields.get("path")
        && let Err(error) = mutation::parse_path(&path)
    {
        notes.problem(
            node.position_of(error.offset),
            &fields.sub("path"),
            error.message,
        );
    }
    let target = target?;
    Some(ProtectedField {
        kind: target.kind,
        namespace: target.namespace,
        name: target.name,
        path,
    })
}

pub(super) fn reference_repair(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<RepairStep>> {
    let Some(node) = fields.get("reference_repair") else {
        return Some(Vec::new());
    };
    let list = items(node, "reference_repair", notes);
    let decoded: Vec<Option<RepairStep>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| step(item, &format!("reference_repair[{index}]"), notes))
        .collect();
    decoded.into_iter().collect()
}

fn step(node: &Node, path: &str, notes: &mut Notes) -> Option<RepairStep> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["patch", "restart"], notes);
    match (fields.get("patch"), fields.get("restart")) {
        (Some(inner), None) => patch(inner, &fields.sub("patch"), notes),
        (None, Some(inner)) => restart(inner, &fields.sub("restart"), notes),
        _ => {
            notes.problem(
                node.at,
                path,
                "expected exactly one of `patch` and `restart`",
            );
            None
        }
    }
}

fn restart(node: &Node, path: &str, notes: &mut Notes) -> Option<RepairStep> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["kind", "ns", "name"], notes);
    let target = target(&fields, &["Deployment", "StatefulSet"], notes)?;
    Some(RepairStep::Restart {
        kind: target.kind,
        namespace: target.namespace,
        name: target.name,
    })
}

fn patch(node: &Node, path: &str, notes: &mut Notes) -> Option<RepairStep> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["kind", "ns", "name", "type", "body"], notes);
    let target = target(&fields, &KINDS, notes);
    let types = ["merge", "strategic", "json"].map(|word| (word, word));
    let patch_type = fields.need_word("type", &types, notes);
    let body_at = fields.sub("body");
    let body = fields.need("body", "the patch", notes)?;
    let kind = target.as_ref().map_or("", |target| target.kind.as_str());
    let body = if patch_type == Some("json") {
        json_patch(body, &body_at, kind, notes).map(Value::Array)
    } else {
        merge_body(body, &body_at, kind, notes)
    };
    let target = target?;
    Some(RepairStep::Patch {
        kind: target.kind,
        namespace: target.namespace,
        name: target.name,
        patch_type: patch_type?.to_owned(),
        body: body?,
    })
}

fn merge_body(node: &Node, path: &str, kind: &str, notes: &mut Notes) -> Option<Value> {
    Fields::of(node, path, notes)?;
    let value = json(node, path, notes);
    for wrong in kubernetes_types::check(kind, &[], &value) {
        let mut place = node;
        let mut field = path.to_owned();
        for step in &wrong.path {
            place = child(place, step).unwrap_or(place);
            match step {
                PathStep::Key(key) => field.push_str(&format!(".{key}")),
                PathStep::Index(index) => field.push_str(&format!("[{index}]")),
                PathStep::Named(name) => field.push_str(&format!("[name={name}]")),
            }
        }
        notes.problem(place.at, &field, wrong.message);
    }
    Some(value)
}

fn child<'a>(node: &'a Node, step: &PathStep) -> Option<&'a Node> {
    use crate::scenario::yaml::Body;
    match (step, &node.body) {
        (PathStep::Key(key), _) => node.get(key),
        (PathStep::Index(index), Body::List(items)) => items.get(*index),
        _ => None,
    }
}
