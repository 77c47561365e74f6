//! The injector of a scenario file, by type.

use serde_json::Value;

use crate::detect::expression::is_label;
use crate::scenario::decode::{Fields, is_null, items, json, spelled, text, whole};
use crate::scenario::kubernetes_types;
use crate::scenario::model::{EvictCount, EvictTarget, Injector, Mutation, PathStep, WorkloadRef};
use crate::scenario::mutation;
use crate::scenario::problem::Notes;
use crate::scenario::yaml::{self, Body, Node, Plain, core_schema, excerpt};

/// The injector types, in the order in which messages list them.
pub const INJECTOR_TYPES: [&str; 6] = [
    "deployment-patch",
    "configmap-patch",
    "secret-content",
    "network-policy",
    "pod-evict",
    "flagd-flag",
];

/// Per type: the keys of the injector beside `type` and `target`, and the keys of its target beside `ns`.
pub const INJECTOR_KEYS: [(&str, &[&str], &[&str]); 6] = [
    ("deployment-patch", &["mutation"], &["deploy"]),
    (
        "configmap-patch",
        &["mutation", "restart_workloads"],
        &["configmap", "cm"],
    ),
    (
        "secret-content",
        &["values", "ops", "restart_workloads"],
        &["secret"],
    ),
    (
        "network-policy",
        &["spec", "policy", "restart_workloads"],
        &[],
    ),
    (
        "pod-evict",
        &["percentage", "count"],
        &["deploy", "sts", "selector"],
    ),
    (
        "flagd-flag",
        &["flag", "variant", "config_key", "restart_workloads"],
        &["configmap", "cm"],
    ),
];

/// As the OpenTelemetry demo names them.
const FLAGD_CONFIGMAP: &str = "flagd-config";
const FLAGD_CONFIG_KEY: &str = "demo.flagd.json";
/// Evicting more pods than this is not one fault.
const MAX_EVICTED: u32 = 100;
/// RFC 1123, as Kubernetes has it for most names.
const MAX_NAME: usize = 253;

/// An injector and its target while they are read.
struct Parts<'a> {
    injector: Fields<'a>,
    target: Fields<'a>,
    namespace: Option<String>,
}

pub(super) fn injector(fields: &Fields<'_>, notes: &mut Notes) -> Option<Injector> {
    let node = fields.need("injector", "type, target and the keys of its type", notes)?;
    let injector = Fields::of(node, "injector", notes)?;
    let words: Vec<(&str, &str)> = INJECTOR_TYPES.iter().map(|word| (*word, *word)).collect();
    let kind = injector.need_word("type", &words, notes)?;
    let (_, keys, target_keys) = INJECTOR_KEYS.iter().find(|(name, _, _)| *name == kind)?;
    own_keys(
        &injector,
        kind,
        &["type", "target"],
        keys,
        |row| row.1,
        notes,
    );
    let target = injector.need(
        "target",
        "the object to break, with its namespace `ns`",
        notes,
    )?;
    let target = Fields::of(target, "injector.target", notes)?;
    own_keys(&target, kind, &["ns"], target_keys, |row| row.2, notes);
    let namespace = target
        .need("ns", "a namespace", notes)
        .and_then(|node| namespace_text(node, "injector.target.ns", notes));
    let parts = Parts {
        injector,
        target,
        namespace,
    };
    match kind {
        "deployment-patch" => deployment_patch(parts, notes),
        "configmap-patch" => configmap_patch(parts, notes),
        "secret-content" => secret_content(parts, notes),
        "network-policy" => network_policy(parts, notes),
        "pod-evict" => pod_evict(parts, notes),
        _ => flagd_flag(parts, notes),
    }
}

/// Notes keys of other types by name, and unknown ones.
fn own_keys(
    fields: &Fields<'_>,
    kind: &str,
    always: &[&str],
    own: &[&str],
    of_row: impl Fn(
        &(
            &'static str,
            &'static [&'static str],
            &'static [&'static str],
        ),
    ) -> &'static [&'static str],
    notes: &mut Notes,
) {
    let mut known: Vec<&str> = always.iter().chain(own).copied().collect();
    let unknown: Vec<_> = fields.unknown(&known).collect();
    for entry in unknown {
        let owner = INJECTOR_KEYS
            .iter()
            .find(|row| of_row(row).contains(&entry.key.as_str()));
        if let Some((owner, _, _)) = owner {
            let expected = if own.is_empty() {
                "no further key".to_owned()
            } else {
                own.join(", ")
            };
            let message = format!("belongs to {owner}, not to {kind}, which takes {expected}");
            notes.problem(entry.key_at, &fields.sub(&entry.key), message);
            known.push(&entry.key);
        }
    }
    fields.known(&known, notes);
}

fn deployment_patch(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let deployment = name(&parts.target, "deploy", notes);
    let mutation = mutation(&parts.injector, "Deployment", notes);
    Some(Injector::DeploymentPatch {
        namespace: parts.namespace?,
        deployment: deployment?,
        mutation: mutation?,
    })
}

fn configmap_patch(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let configmap = configmap_name(&parts.target, None, notes);
    let mutation = mutation(&parts.injector, "ConfigMap", notes);
    let restart_workloads = restart_workloads(&parts.injector, notes);
    Some(Injector::ConfigmapPatch {
        namespace: parts.namespace?,
        configmap: configmap?,
        mutation: mutation?,
        restart_workloads: restart_workloads?,
    })
}

fn configmap_name(target: &Fields<'_>, default: Option<&str>, notes: &mut Notes) -> Option<String> {
    match (target.get("configmap"), target.get("cm"), default) {
        (Some(_), Some(second), _) => {
            notes.problem(
                second.at,
                &target.sub("cm"),
                "says the same as `configmap`, expected one of them",
            );
            None
        }
        (None, Some(_), _) => name(target, "cm", notes),
        (None, None, Some(default)) => Some(default.to_owned()),
        _ => name(target, "configmap", notes),
    }
}

fn mutation(injector: &Fields<'_>, kind: &str, notes: &mut Notes) -> Option<Mutation> {
    let node = injector.need("mutation", "`path = value`", notes)?;
    let path = injector.sub("mutation");
    let source = text(node, &path, notes)?;
    let placed = match mutation::parse_placed(&source) {
        Ok(placed) => placed,
        Err(error) => {
            notes.problem(node.position_of(error.offset), &path, error.message);
            return None;
        }
    };
    for one in &placed {
        let assignment = &one.assignment;
        let top = match assignment.path.first() {
            Some(PathStep::Key(key)) => key.as_str(),
            _ => "",
        };
        let allowed: &[&str] = match kind {
            "ConfigMap" => &["data", "binaryData", "metadata", "immutable"],
            _ => &["spec", "metadata"],
        };
        if !allowed.contains(&top) {
            let message = format!(
                "a {kind} has no `{top}` to set, expected a path below {}",
                allowed.join(", ")
            );
            notes.problem(node.position_of(one.path_at), &path, message);
        }
        for wrong in kubernetes_types::check(kind, &assignment.path, &assignment.value) {
            let mut place = assignment.clone();
            place.path.extend(wrong.path);
            let message = format!("`{}`: {}", place.dotted(), wrong.message);
            notes.problem(node.position_of(one.value_at), &path, message);
        }
    }
    let assignments = placed.into_iter().map(|one| one.assignment).collect();
    Some(Mutation { assignments })
}

fn secret_content(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let injector = &parts.injector;
    let secret = name(&parts.target, "secret", notes);
    let (values, ops) = (injector.get("values"), injector.get("ops"));
    match (values, ops) {
        (None, None) => notes.problem(
            injector.at,
            "injector",
            "secret-content needs `values` (or `ops`, a JSON Patch list)",
        ),
        (Some(_), Some(ops)) => notes.problem(
            ops.at,
            "injector.ops",
            "stands beside `values`, expected one of them",
        ),
        _ => {}
    }
    let values = match values {
        Some(node) => secret_values(node, notes),
        None => Some(Vec::new()),
    };
    let ops = match ops {
        Some(node) => json_patch(node, "injector.ops", "Secret", notes),
        None => Some(Vec::new()),
    };
    let restart_workloads = restart_workloads(injector, notes);
    Some(Injector::SecretContent {
        namespace: parts.namespace?,
        secret: secret?,
        values: values?,
        ops: ops?,
        restart_workloads: restart_workloads?,
    })
}

fn secret_values(node: &Node, notes: &mut Notes) -> Option<Vec<(String, String)>> {
    let fields = Fields::of(node, "injector.values", notes)?;
    if fields.entries().is_empty() {
        notes.problem(
            node.at,
            "injector.values",
            "is empty, expected KEY: text, \"\" deletes the key",
        );
    }
    let mut values = Vec::new();
    for entry in fields.entries() {
        let path = fields.sub(&excerpt(&entry.key));
        let key_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if entry.key.is_empty() || entry.key.len() > MAX_NAME || !entry.key.chars().all(key_allowed)
        {
            let message =
                "is not a key that a Secret may have, expected letters, digits, -, _ and .";
            notes.problem(entry.key_at, &path, message);
        }
        if is_null(&entry.value) {
            let message = "has no value; write \"\" to delete the key";
            notes.problem(entry.value.at, &path, message);
        } else if let Some(value) = secret_text(&entry.value, &path, notes) {
            values.push((entry.key.clone(), value));
        }
    }
    Some(values)
}

/// A text, without printing it: it may be a credential.
fn secret_text(node: &Node, path: &str, notes: &mut Notes) -> Option<String> {
    let message = match &node.body {
        Body::Text(scalar) => return Some(scalar.text.clone()),
        Body::Plain(scalar) => match core_schema(&scalar.text) {
            Plain::Text => return Some(scalar.text.clone()),
            Plain::Bool(_) => "expected text, found a boolean; put it in quotes",
            _ => "expected text, found a number; put it in quotes",
        },
        Body::List(_) => "expected text, found a list",
        Body::Map(_) => "expected text, found a mapping",
    };
    notes.problem(node.at, path, message);
    None
}

/// A JSON Patch list (RFC 6902), checked in its form and in the types of its values.
pub(super) fn json_patch(
    node: &Node,
    path: &str,
    kind: &str,
    notes: &mut Notes,
) -> Option<Vec<Value>> {
    let list = items(node, path, notes);
    if list.is_empty() && matches!(node.body, Body::List(_)) {
        notes.problem(node.at, path, "is empty, expected at least one operation");
    }
    let ops: Vec<Option<Value>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| json_patch_op(item, &format!("{path}[{index}]"), kind, notes))
        .collect();
    ops.into_iter().collect()
}

fn json_patch_op(node: &Node, path: &str, kind: &str, notes: &mut Notes) -> Option<Value> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["op", "path", "value", "from"], notes);
    let words = ["add", "remove", "replace", "move", "copy", "test"].map(|word| (word, word));
    let op = fields.need_word("op", &words, notes);
    let mut steps = None;
    for key in ["path", "from"] {
        let wanted = key == "path" || matches!(op, Some("move" | "copy"));
        if !wanted {
            continue;
        }
        let Some(pointer) = fields.need_text(key, "a JSON pointer such as /data/KEY", notes) else {
            continue;
        };
        if !pointer.starts_with('/') {
            let at = fields.get(key).map_or(fields.at, |node| node.at);
            notes.problem(
                at,
                &fields.sub(key),
                "expected a JSON pointer that begins with `/`",
            );
        } else if key == "path" {
            steps = Some(pointer_steps(&pointer));
        }
    }
    if matches!(op, Some("add" | "replace" | "test")) && fields.entry("value").is_none() {
        let message = format!("missing, expected the value to {}", op.unwrap_or("set"));
        notes.problem(fields.at, &fields.sub("value"), message);
    }
    let value = json(node, path, notes);
    if let (Some(steps), Some(given)) = (steps, value.get("value")) {
        let at = fields.get("value").map_or(fields.at, |node| node.at);
        for wrong in kubernetes_types::check(kind, &steps, given) {
            notes.problem(at, &fields.sub("value"), wrong.message);
        }
    }
    Some(value)
}

fn pointer_steps(pointer: &str) -> Vec<PathStep> {
    let parts = pointer.split('/').skip(1);
    parts
        .map(|part| match part.parse::<usize>() {
            Ok(index) => PathStep::Index(index),
            Err(_) => PathStep::Key(part.replace("~1", "/").replace("~0", "~")),
        })
        .collect()
}

fn restart_workloads(injector: &Fields<'_>, notes: &mut Notes) -> Option<Vec<WorkloadRef>> {
    let Some(node) = injector.get("restart_workloads") else {
        return Some(Vec::new());
    };
    let path = injector.sub("restart_workloads");
    let mut refs = Vec::new();
    let list = items(node, &path, notes);
    for (index, item) in list.iter().enumerate() {
        let Some(fields) = Fields::of(item, &format!("{path}[{index}]"), notes) else {
            continue;
        };
        fields.known(&["kind", "name"], notes);
        let kinds = ["Deployment", "StatefulSet"].map(|word| (word, word));
        let kind = fields.need_word("kind", &kinds, notes);
        let name = name(&fields, "name", notes);
        if let (Some(kind), Some(name)) = (kind, name) {
            refs.push(WorkloadRef {
                kind: kind.to_owned(),
                name,
            });
        }
    }
    (refs.len() == list.len()).then_some(refs)
}

fn network_policy(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let injector = &parts.injector;
    let spec = match (injector.get("spec"), injector.get("policy")) {
        (Some(_), Some(policy)) => {
            notes.problem(
                policy.at,
                "injector.policy",
                "stands beside `spec`, expected one of them",
            );
            None
        }
        (Some(spec), None) => policy_spec(spec, "injector.spec", notes),
        (None, Some(policy)) => policy_of_text(policy, notes),
        (None, None) => {
            notes.problem(
                injector.at,
                "injector.spec",
                "missing, expected the spec of a NetworkPolicy",
            );
            None
        }
    };
    let restart_workloads = restart_workloads(injector, notes);
    Some(Injector::NetworkPolicy {
        namespace: parts.namespace?,
        spec: spec?,
        restart_workloads: restart_workloads?,
    })
}

/// `policy`: a NetworkPolicy, or only its spec, as YAML in a text.
fn policy_of_text(node: &Node, notes: &mut Notes) -> Option<Value> {
    let path = "injector.policy";
    let source = text(node, path, notes)?;
    let mut inner = Notes::default();
    let spec = yaml::parse(&source, &mut inner).and_then(|root| match root.get("spec") {
        Some(spec) => policy_spec(spec, "spec", &mut inner),
        None => policy_spec(&root, "", &mut inner),
    });
    match inner.finish(path, spec) {
        Ok((spec, _)) => Some(spec),
        Err(problems) => {
            for problem in problems.items {
                let offset = offset_of_line(&source, problem.at.line);
                let field = if problem.field.is_empty() {
                    path.to_owned()
                } else {
                    format!("{path}.{}", problem.field)
                };
                notes.problem(
                    node.position_of(offset + problem.at.column - 1),
                    &field,
                    problem.message,
                );
            }
            None
        }
    }
}

fn offset_of_line(text: &str, line: usize) -> usize {
    text.split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum()
}

fn policy_spec(node: &Node, path: &str, notes: &mut Notes) -> Option<Value> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&["podSelector", "policyTypes", "ingress", "egress"], notes);
    fields.entry("podSelector").map(|_| ()).or_else(|| {
        notes.problem(
            fields.at,
            &fields.sub("podSelector"),
            "missing, expected a label selector ({} selects all)",
        );
        None
    });
    let value = json(node, path, notes);
    for wrong in kubernetes_types::check("NetworkPolicy", &[], &value) {
        notes.problem(node.at, path, wrong.message);
    }
    Some(value)
}

fn pod_evict(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let (injector, target) = (&parts.injector, &parts.target);
    let victims = match given(target, &["deploy", "sts", "selector"], notes) {
        Some("deploy") => name(target, "deploy", notes).map(EvictTarget::Deployment),
        Some("sts") => name(target, "sts", notes).map(EvictTarget::StatefulSet),
        Some(_) => target
            .need_text("selector", "a label selector", notes)
            .map(EvictTarget::Selector),
        None => None,
    };
    let how_many = match given(injector, &["percentage", "count"], notes) {
        Some("percentage") => injector
            .get("percentage")
            .and_then(|node| whole(node, "injector.percentage", 1..=100, notes))
            .and_then(|percent| u8::try_from(percent).ok())
            .map(EvictCount::Percentage),
        Some(_) => injector
            .get("count")
            .and_then(|node| whole(node, "injector.count", 1..=MAX_EVICTED, notes))
            .map(EvictCount::Count),
        None => None,
    };
    Some(Injector::PodEvict {
        namespace: parts.namespace?,
        victims: victims?,
        how_many: how_many?,
    })
}

/// Which one of several keys is given; none or two are a problem.
fn given<'k>(fields: &Fields<'_>, keys: &[&'k str], notes: &mut Notes) -> Option<&'k str> {
    let mut found = keys.iter().copied().filter(|key| fields.get(key).is_some());
    let first = found.next();
    match (first, found.next()) {
        (None, _) => {
            let message = format!("needs one of {}", keys.join(", "));
            notes.problem(fields.at, &fields.path, message);
            None
        }
        (Some(first), Some(second)) => {
            let at = fields.get(second).map_or(fields.at, |node| node.at);
            notes.problem(
                at,
                &fields.sub(second),
                format!("stands beside `{first}`, expected one of them"),
            );
            None
        }
        (Some(first), None) => Some(first),
    }
}

fn flagd_flag(parts: Parts<'_>, notes: &mut Notes) -> Option<Injector> {
    let injector = &parts.injector;
    let configmap = configmap_name(&parts.target, Some(FLAGD_CONFIGMAP), notes);
    let mut word = |key: &str, expected: &str| {
        let node = injector.need(key, expected, notes)?;
        spelled(node, &injector.sub(key), notes)
    };
    let flag = word("flag", "a flag's name");
    let variant = word("variant", "the name of one of the flag's variants");
    let config_key = match injector.get("config_key") {
        Some(node) => spelled(node, "injector.config_key", notes),
        None => Some(FLAGD_CONFIG_KEY.to_owned()),
    };
    let restart_workloads = restart_workloads(injector, notes);
    Some(Injector::FlagdFlag {
        namespace: parts.namespace?,
        configmap: configmap?,
        flag: flag?,
        variant: variant?,
        config_key: config_key?,
        restart_workloads: restart_workloads?,
    })
}

/// The name of an object.
pub(super) fn name(fields: &Fields<'_>, key: &str, notes: &mut Notes) -> Option<String> {
    let node = fields.need(key, "the name of an object", notes)?;
    let path = fields.sub(key);
    let name = text(node, &path, notes)?;
    if name.len() <= MAX_NAME && name.split('.').all(is_label) {
        return Some(name);
    }
    let message = format!(
        "`{}` is not a name that Kubernetes allows, expected small letters, digits, - and .",
        excerpt(&name)
    );
    notes.problem(node.at, &path, message);
    None
}

/// The name of a namespace.
pub(super) fn namespace_text(node: &Node, path: &str, notes: &mut Notes) -> Option<String> {
    let namespace = text(node, path, notes)?;
    if is_label(&namespace) {
        return Some(namespace);
    }
    let message = format!(
        "`{}` is not a namespace's name, expected small letters, digits and -",
        excerpt(&namespace)
    );
    notes.problem(node.at, path, message);
    None
}
