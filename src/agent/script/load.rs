//! From a script's text to its steps, or to every problem with its place and what was expected.

use crate::agent::StatedHypothesis;
use crate::agent::hands::{KINDS, Kind, PatchKind};
use crate::agent::script::{Deed, Step, Target};
use crate::ids::{CategoryId, MicroPoints};
use crate::record::Postmortem;
use crate::scenario::decode::{Fields, fraction, items, json, text, whole};
use crate::scenario::mutation::parse_path;
use crate::scenario::problem::{Notes, Problems};
use crate::scenario::yaml::{self, Node};

/// Steps of one script; more is a program and belongs into code.
const MAX_STEPS: usize = 1_000;
/// Seconds of one wait: the longest budget of a scenario.
const MAX_WAIT_S: u32 = 7_200;
/// Seconds that a condition is waited for unless the step says otherwise.
const DEFAULT_TIMEOUT_S: u32 = 120;
/// A confidence that is not given, as the published protocol has it.
const DEFAULT_CONFIDENCE: MicroPoints = MicroPoints(500_000);

/// The keys of a step, each a step of its own kind.
const DEEDS: [&str; 11] = [
    "get",
    "list",
    "logs",
    "patch",
    "restart",
    "delete",
    "wait",
    "wait_until",
    "retrieve",
    "hypothesis",
    "postmortem",
];

const TARGET: [&str; 3] = ["kind", "ns", "name"];
/// Kinds that a restart makes sense for.
const RESTARTED: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// Kinds that have logs, their own or their pods'.
const LOGGING: [&str; 5] = [
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
];

pub(super) fn steps(text: &str, file: &str) -> Result<Vec<Step>, Problems> {
    let mut notes = Notes::default();
    let steps = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        fields.known(&["steps"], &mut notes);
        let node = fields.need("steps", "a list of steps", &mut notes)?;
        let list = items(node, "steps", &mut notes);
        if list.len() > MAX_STEPS {
            let message = format!("{} steps, at most {MAX_STEPS} are done", list.len());
            notes.problem(node.at, "steps", message);
            return None;
        }
        let decoded: Vec<Option<Step>> = list
            .iter()
            .enumerate()
            .map(|(index, item)| step(item, &format!("steps[{index}]"), &mut notes))
            .collect();
        check_end(list, &mut notes);
        decoded.into_iter().collect()
    });
    notes.finish(file, steps).map(|(steps, _)| steps)
}

/// A postmortem ends the work, so that nothing may follow it.
fn check_end(list: &[Node], notes: &mut Notes) {
    let end = list
        .iter()
        .position(|item| item.get("postmortem").is_some());
    if let Some(after) = end.and_then(|end| list.get(end + 1)) {
        let message = "follows the postmortem, which ends the work: expected no further step";
        notes.problem(after.at, "steps", message);
    }
}

fn step(node: &Node, path: &str, notes: &mut Notes) -> Option<Step> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&DEEDS, notes);
    let [entry] = fields.entries() else {
        let message = format!("expected exactly one of {}", DEEDS.join(", "));
        notes.problem(node.at, path, message);
        return None;
    };
    let at = fields.sub(&entry.key);
    Some(Step {
        line: entry.key_at.line,
        deed: deed(&entry.key, &entry.value, &at, notes)?,
    })
}

fn deed(key: &str, node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    match key {
        "get" => object(node, at, notes).map(Deed::Get),
        "list" => list(node, at, notes),
        "logs" => logs(node, at, notes),
        "patch" => patch(node, at, notes),
        "restart" => {
            let fields = known(node, at, &TARGET, notes)?;
            target(&fields, &RESTARTED, notes).map(Deed::Restart)
        }
        "delete" => object(node, at, notes).map(Deed::Delete),
        "wait" => {
            let seconds = whole(node, at, 1..=MAX_WAIT_S, notes)?;
            Some(Deed::Wait { seconds })
        }
        "wait_until" => wait_until(node, at, notes),
        "retrieve" => text(node, at, notes).map(Deed::Retrieve),
        "hypothesis" => hypothesis(node, at, notes),
        "postmortem" => postmortem(node, at, notes),
        // Unknown keys were noted.
        _ => None,
    }
}

fn known<'a>(node: &'a Node, at: &str, keys: &[&str], notes: &mut Notes) -> Option<Fields<'a>> {
    let fields = Fields::of(node, at, notes)?;
    fields.known(keys, notes);
    Some(fields)
}

fn object(node: &Node, at: &str, notes: &mut Notes) -> Option<Target> {
    let fields = known(node, at, &TARGET, notes)?;
    target(&fields, &every_kind(), notes)
}

fn every_kind() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

fn kind(fields: &Fields<'_>, kinds: &[&str], notes: &mut Notes) -> Option<&'static Kind> {
    let words: Vec<(&str, &Kind)> = KINDS
        .iter()
        .filter(|kind| kinds.contains(&kind.name))
        .map(|kind| (kind.name, kind))
        .collect();
    fields.need_word("kind", &words, notes)
}

fn target(fields: &Fields<'_>, kinds: &[&str], notes: &mut Notes) -> Option<Target> {
    let kind = kind(fields, kinds, notes);
    let namespace = name(fields, "ns", "a namespace", notes);
    let name = name(fields, "name", "the object's name", notes);
    Some(Target {
        kind: kind?,
        namespace: namespace?,
        name: name?,
    })
}

/// A name as the API takes it: anything else would make another path of the request.
fn name(fields: &Fields<'_>, key: &str, what: &str, notes: &mut Notes) -> Option<String> {
    let found = fields.need_text(key, what, notes)?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if !found.is_empty() && found.chars().all(fits) {
        return Some(found);
    }
    let at = fields.entry(key).map_or(fields.at, |entry| entry.value.at);
    let message = format!("expected {what}: lower-case letters, digits, '-' and '.'");
    notes.problem(at, &fields.sub(key), message);
    None
}

fn list(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let fields = known(node, at, &["kind", "ns"], notes)?;
    let kind = kind(&fields, &every_kind(), notes);
    let namespace = name(&fields, "ns", "a namespace", notes);
    Some(Deed::List {
        kind: kind?,
        namespace: namespace?,
    })
}

fn logs(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let keys = ["kind", "ns", "name", "container", "previous"];
    let fields = known(node, at, &keys, notes)?;
    let target = target(&fields, &LOGGING, notes);
    let container = match fields.get("container") {
        Some(_) => Some(name(&fields, "container", "a container's name", notes)?),
        None => None,
    };
    let previous = fields.flag("previous", notes);
    Some(Deed::Logs {
        target: target?,
        container,
        previous,
    })
}

fn patch(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let fields = known(node, at, &["kind", "ns", "name", "type", "body"], notes)?;
    let target = target(&fields, &every_kind(), notes);
    let types = [
        ("merge", PatchKind::Merge),
        ("strategic", PatchKind::Strategic),
        ("json", PatchKind::Json),
    ];
    let how = fields.need_word("type", &types, notes);
    let body = fields.need("body", "the patch", notes)?;
    let value = json(body, &fields.sub("body"), notes);
    let (fits, expected) = match how? {
        PatchKind::Json => (value.is_array(), "a list of operations"),
        _ => (value.is_object(), "a mapping"),
    };
    if !fits {
        let message = format!("expected {expected}, found {}", body.what());
        notes.problem(body.at, &fields.sub("body"), message);
    }
    Some(Deed::Patch {
        target: target?,
        how: how?,
        body: value,
    })
}

fn wait_until(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let keys = ["kind", "ns", "name", "path", "equals", "timeout_s"];
    let fields = known(node, at, &keys, notes)?;
    let target = target(&fields, &every_kind(), notes);
    let node = fields.need(
        "path",
        "the path of a field, such as status.readyReplicas",
        notes,
    );
    let path = node.and_then(|node| {
        let text = text(node, &fields.sub("path"), notes)?;
        match parse_path(&text) {
            Ok(path) => Some(path),
            Err(error) => {
                let at = node.position_of(error.offset);
                notes.problem(at, &fields.sub("path"), error.message);
                None
            }
        }
    });
    // Null is a value here: the field is not there.
    let equals = match fields.entry("equals") {
        Some(entry) => Some(json(&entry.value, &fields.sub("equals"), notes)),
        None => {
            let message = "missing, expected the value to wait for (null: the field is not there)";
            notes.problem(fields.at, &fields.sub("equals"), message);
            None
        }
    };
    let timeout_s = match fields.get("timeout_s") {
        Some(node) => whole(node, &fields.sub("timeout_s"), 1..=MAX_WAIT_S, notes),
        None => Some(DEFAULT_TIMEOUT_S),
    };
    Some(Deed::WaitUntil {
        target: target?,
        path: path?,
        equals: equals?,
        timeout_s: timeout_s?,
    })
}

fn hypothesis(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let keys = [
        "primary_category",
        "secondary_categories",
        "confidence",
        "reasoning",
    ];
    let fields = known(node, at, &keys, notes)?;
    let primary = fields.need_text("primary_category", "a category", notes);
    let secondary = categories(&fields, notes);
    let confidence = confidence(&fields, notes);
    let reasoning = fields.need_text("reasoning", "a sentence", notes);
    Some(Deed::Hypothesis(StatedHypothesis {
        primary_category: CategoryId::new(primary?),
        secondary_categories: secondary?,
        confidence: confidence?,
        reasoning: reasoning?,
    }))
}

fn postmortem(node: &Node, at: &str, notes: &mut Notes) -> Option<Deed> {
    let keys = [
        "primary_category",
        "secondary_categories",
        "confidence",
        "final_diagnosis",
        "fix_applied",
        "what_did_not_work",
    ];
    let fields = known(node, at, &keys, notes)?;
    let primary = fields.need_text("primary_category", "a category", notes);
    let secondary = categories(&fields, notes);
    let confidence = confidence(&fields, notes);
    let diagnosis = fields.need_text("final_diagnosis", "what was wrong", notes);
    let fix = fields.opt_text("fix_applied", notes).unwrap_or_default();
    let failed = texts(&fields, "what_did_not_work", notes);
    Some(Deed::Postmortem(Postmortem {
        final_diagnosis: diagnosis?,
        primary_category: CategoryId::new(primary?),
        secondary_categories: secondary?,
        confidence: confidence?,
        actions_taken: Vec::new(),
        fix_applied: fix,
        what_did_not_work: failed?,
        time_to_diagnose_s: 0.0,
        time_to_fix_s: 0.0,
        side_effects_observed: Vec::new(),
    }))
}

fn confidence(fields: &Fields<'_>, notes: &mut Notes) -> Option<f64> {
    let points = match fields.get("confidence") {
        Some(node) => fraction(node, &fields.sub("confidence"), notes)?,
        None => DEFAULT_CONFIDENCE,
    };
    Some(points.as_f64())
}

fn categories(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<CategoryId>> {
    let names = texts(fields, "secondary_categories", notes)?;
    Some(names.into_iter().map(CategoryId::new).collect())
}

/// A list of texts; absent is empty.
fn texts(fields: &Fields<'_>, key: &str, notes: &mut Notes) -> Option<Vec<String>> {
    let Some(node) = fields.get(key) else {
        return Some(Vec::new());
    };
    let at = fields.sub(key);
    let list = items(node, &at, notes);
    let decoded: Vec<Option<String>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| text(item, &format!("{at}[{index}]"), notes))
        .collect();
    decoded.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn problems(text: &str) -> Vec<String> {
        steps(text, "s.yaml").unwrap_err().lines()
    }

    #[test]
    fn every_deed_is_read() {
        let text = r#"
steps:
  - get: {kind: Deployment, ns: a, name: d}
  - list: {kind: Pod, ns: a}
  - logs: {kind: Deployment, ns: a, name: d, container: api, previous: true}
  - patch: {kind: Deployment, ns: a, name: d, type: json, body: [{op: remove, path: /spec/x}]}
  - restart: {kind: StatefulSet, ns: a, name: s}
  - delete: {kind: Pod, ns: a, name: p}
  - wait: 30
  - wait_until: {kind: Deployment, ns: a, name: d, path: "status.conditions[0].status", equals: "True"}
  - wait_until: {kind: Deployment, ns: a, name: d, path: status.unavailableReplicas, equals: null, timeout_s: 9}
  - retrieve: pods restart again and again
  - hypothesis: {primary_category: c, reasoning: r}
  - postmortem: {primary_category: c, final_diagnosis: f, confidence: 0.9, secondary_categories: [d]}
"#;
        let steps = steps(text, "s.yaml").unwrap();
        assert_eq!(steps.len(), 12);
        assert_eq!(steps[6].deed, Deed::Wait { seconds: 30 });
        assert_eq!(steps[6].line, 9);
        let Deed::WaitUntil {
            equals, timeout_s, ..
        } = &steps[8].deed
        else {
            panic!("{:?}", steps[8]);
        };
        assert_eq!((equals, *timeout_s), (&Value::Null, 9));
        let Deed::Hypothesis(stated) = &steps[10].deed else {
            panic!("{:?}", steps[10]);
        };
        assert_eq!(stated.confidence, 0.5);
    }

    #[test]
    fn every_problem_is_told_with_its_place_and_what_was_expected() {
        let text = "steps:
  - get: {kind: Deploymnet, ns: a, name: d}
  - wiat: 3
  - wait: soon
  - patch: {kind: Deployment, ns: a, name: d, type: json, body: {spec: {}}}
  - wait_until: {kind: Pod, ns: a, name: p, path: 'a..b'}
  - get: {kind: Pod, ns: a, name: ../nodes}
  - postmortem: {primary_category: c}
  - wait: 1
";
        let told = problems(text);
        let expected = [
            "s.yaml:2:17: steps[0].get.kind: unknown word `Deploymnet` (did you mean `Deployment`?)",
            "s.yaml:3:5: steps[1].wiat: unknown key (did you mean `wait`?)",
            "s.yaml:4:11: steps[2].wait: expected a whole number from 1 to 7200, found `soon`",
            "s.yaml:5:65: steps[3].patch.body: expected a list of operations, found a mapping",
            "steps[4].wait_until.path",
            "steps[4].wait_until.equals: missing, expected the value to wait for",
            "s.yaml:7:35: steps[5].get.name: expected the object's name",
            "steps[6].postmortem.final_diagnosis: missing, expected what was wrong",
            "s.yaml:9:5: steps: follows the postmortem",
        ];
        for words in expected {
            assert!(
                told.iter().any(|line| line.contains(words)),
                "{words}\n{told:#?}"
            );
        }
        assert_eq!(told.len(), expected.len(), "{told:#?}");
    }

    #[test]
    fn a_step_is_one_deed_and_a_script_has_steps() {
        let told = problems("steps:\n  - {wait: 1, retrieve: x}\n");
        assert!(
            told[0].contains("expected exactly one of get, list"),
            "{told:?}"
        );
        let told = problems("stesp: []").join("\n");
        assert!(told.contains("did you mean `steps`?"), "{told}");
    }
}
