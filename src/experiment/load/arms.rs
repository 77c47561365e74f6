//! The arms of a plan and which of them is the control.

use crate::agent::choice::Choice;
use crate::experience::policy::{DEFAULT_K, MAX_K};
use crate::experiment::load::{Seen, number, place, some_items, unique_id};
use crate::experiment::plan::{Arm, Plan, Retrieval, Serving};
use crate::ids::ArmId;
use crate::record::Source;
use crate::scenario::decode::{Fields, items, kebab, text, whole};
use crate::scenario::near::did_you_mean;
use crate::scenario::problem::Notes;
use crate::scenario::yaml::{Body, Node};

/// The keys of an arm.
pub const ARM_KEYS: [&str; 4] = ["id", "agent", "context", "retrieval"];
/// The keys of a retrieval.
pub const RETRIEVAL_KEYS: [&str; 6] = [
    "mode",
    "k",
    "max_distance",
    "pool_cap",
    "sources",
    "same_scenario",
];
/// The modes of retrieval.
pub const MODES: [&str; 4] = ["off", "on", "deterministic-control", "placebo"];

/// Every arm is compared with the control in every scenario; more than this is a screening, not a test.
const MAX_ARMS: usize = 10;
/// What a context is called that is none.
const EMBEDDED: &str = "embedded";
/// No corpus is larger.
const MAX_POOL: u32 = 100_000;

pub(super) fn arms(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<Arm>> {
    let node = fields.need("arms", "the control and at least one treatment", notes)?;
    let list = some_items(node, "arms", "at least two arms", MAX_ARMS, notes)?;
    if list.len() < 2 {
        notes.problem(
            node.at,
            "arms",
            "has one arm, expected the control and at least one treatment",
        );
    }
    let mut seen = Seen::default();
    let decoded: Vec<Option<Arm>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| arm(item, &format!("arms[{index}]"), &mut seen, notes))
        .collect();
    decoded.into_iter().collect()
}

fn arm(node: &Node, path: &str, seen: &mut Seen, notes: &mut Notes) -> Option<Arm> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&ARM_KEYS, notes);
    let id = unique_id(&fields, seen, notes);
    let agent = agent(&fields, notes);
    let context = match fields.get("context") {
        Some(node) => {
            let path = fields.sub("context");
            let name = text(node, &path, notes)?;
            if name.trim().is_empty() {
                notes.problem(
                    node.at,
                    &path,
                    "is empty, expected a kubeconfig context; leave the key out for the embedded cluster",
                );
                return None;
            }
            // As `run --context` calls the cluster that is made inside the process.
            (name != EMBEDDED).then_some(name)
        }
        None => None,
    };
    let retrieval = retrieval(&fields, notes);
    Some(Arm {
        id: ArmId::new(id?),
        agent: agent?,
        context,
        retrieval: retrieval?,
    })
}

fn agent(fields: &Fields<'_>, notes: &mut Notes) -> Option<String> {
    let agent = fields.need_text("agent", "what `run --agent` takes", notes)?;
    match Choice::parse(&agent) {
        Ok(_) => Some(agent),
        Err(error) => {
            let message = format!("{error}; {}", error.hint());
            notes.problem(place(fields, "agent"), &fields.sub("agent"), message);
            None
        }
    }
}

/// `off`, or a mapping with `mode` and what is served.
fn retrieval(fields: &Fields<'_>, notes: &mut Notes) -> Option<Retrieval> {
    let expected = "off, on, deterministic-control, placebo, or a mapping with mode";
    let node = fields.need("retrieval", expected, notes)?;
    let path = fields.sub("retrieval");
    if !matches!(node.body, Body::Map(_)) {
        let mode = mode(node, &path, notes)?;
        return Some(served_by(mode, plain_serving()));
    }
    let inner = Fields::of(node, &path, notes)?;
    inner.known(&RETRIEVAL_KEYS, notes);
    let mode = inner
        .need("mode", &format!("one of {}", MODES.join(", ")), notes)
        .and_then(|node| mode(node, &inner.sub("mode"), notes));
    let serving = serving(&inner, notes);
    if mode == Some("off")
        && let Some(other) = inner.entries().iter().find(|entry| entry.key != "mode")
    {
        notes.problem(
            other.key_at,
            &inner.sub(&other.key),
            "says what is served, but mode off serves nothing; leave it out",
        );
    }
    Some(served_by(mode?, serving?))
}

fn mode(node: &Node, path: &str, notes: &mut Notes) -> Option<&'static str> {
    let word = text(node, path, notes)?;
    let found = MODES.into_iter().find(|mode| *mode == word);
    if found.is_none() {
        let guess = did_you_mean(&word, MODES);
        let message = format!(
            "unknown word `{word}`{guess}, expected one of {}",
            MODES.join(", ")
        );
        notes.problem(node.at, path, message);
    }
    found
}

fn served_by(mode: &str, serving: Serving) -> Retrieval {
    match mode {
        "on" => Retrieval::On(serving),
        "deterministic-control" => Retrieval::DeterministicControl(serving),
        "placebo" => Retrieval::Placebo(serving),
        _ => Retrieval::Off,
    }
}

fn plain_serving() -> Serving {
    Serving {
        k: DEFAULT_K,
        max_distance: None,
        pool_cap: None,
        sources: Vec::new(),
        same_scenario: false,
    }
}

fn serving(fields: &Fields<'_>, notes: &mut Notes) -> Option<Serving> {
    let limit = MAX_K as u32;
    let k = number::whole_or(fields, "k", DEFAULT_K as u32, 1..=limit, notes);
    let max_distance = match fields.get("max_distance") {
        Some(node) => number::distance(node, &fields.sub("max_distance"), notes).map(Some),
        None => Some(None),
    };
    let pool_cap = match fields.get("pool_cap") {
        Some(node) => whole(node, &fields.sub("pool_cap"), 1..=MAX_POOL, notes).map(Some),
        None => Some(None),
    };
    let sources = sources(fields, notes);
    let same_scenario = fields.flag("same_scenario", notes);
    Some(Serving {
        k: k? as usize,
        max_distance: max_distance?,
        pool_cap: pool_cap?.map(|cap| cap as usize),
        sources: sources?,
        same_scenario,
    })
}

fn sources(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<Source>> {
    const WORDS: [(&str, Source); 3] = [
        ("incident-log", Source::IncidentLog),
        ("scenario", Source::Scenario),
        ("production", Source::Production),
    ];
    let Some(node) = fields.get("sources") else {
        return Some(Vec::new());
    };
    let path = fields.sub("sources");
    let mut seen = Seen::default();
    let decoded: Vec<Option<Source>> = items(node, &path, notes)
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let path = format!("{path}[{index}]");
            let word = text(item, &path, notes)?;
            seen.note(&word, item.at, &path, notes);
            let found = WORDS.iter().find(|(known, _)| *known == word);
            if found.is_none() {
                let words = WORDS.map(|(known, _)| known);
                let guess = did_you_mean(&word, words);
                let message = format!(
                    "unknown word `{word}`{guess}, expected one of {}",
                    words.join(", ")
                );
                notes.problem(item.at, &path, message);
            }
            found.map(|(_, source)| *source)
        })
        .collect();
    decoded.into_iter().collect()
}

/// The control: one of the arms, which serves nothing unless every arm is the same.
pub(super) fn control(
    fields: &Fields<'_>,
    arms: Option<&[Arm]>,
    notes: &mut Notes,
) -> Option<ArmId> {
    let node = fields.need("control", "the id of the arm that is the control", notes)?;
    let id = kebab(node, "control", notes)?;
    let control = ArmId::new(id.as_str());
    let Some(arms) = arms else {
        return Some(control);
    };
    let Some(arm) = arms.iter().find(|arm| arm.id == control) else {
        let known: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
        let guess = did_you_mean(&id, known.iter().copied());
        let message = format!(
            "there is no arm `{id}`{guess}, expected one of {}",
            known.join(", ")
        );
        notes.problem(node.at, "control", message);
        return None;
    };
    let same = |other: &Arm| {
        (&other.agent, &other.context, &other.retrieval)
            == (&arm.agent, &arm.context, &arm.retrieval)
    };
    if arm.retrieval.serves() && !arms.iter().all(same) {
        notes.problem(
            node.at,
            "control",
            format!(
                "arm `{id}` serves past incidents, expected retrieval off or deterministic-control; a control may serve \
                 only where every arm is the same (an A/A), and a placebo is an arm beside the control"
            ),
        );
        return None;
    }
    Some(control)
}

/// A treatment should differ from the control in one thing.
pub(super) fn warn_about_differences(fields: &Fields<'_>, plan: &Plan, notes: &mut Notes) {
    let (Some(control), Some(node)) = (plan.arm(&plan.control), fields.get("arms")) else {
        return;
    };
    let Body::List(items) = &node.body else {
        return;
    };
    let aa = plan.is_aa();
    for (index, (arm, item)) in plan.arms.iter().zip(items).enumerate() {
        let differences: Vec<&str> = [
            ("agent", arm.agent != control.agent),
            ("context", arm.context != control.context),
            ("retrieval", arm.retrieval != control.retrieval),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
        .collect();
        let path = format!("arms[{index}]");
        if differences.len() > 1 {
            let message = format!(
                "differs from the control in {}: a difference of scores cannot be put down to one of them",
                differences.join(" and ")
            );
            notes.warning(item.at, &path, message);
        } else if differences.is_empty() && arm.id != plan.control && !aa {
            notes.warning(item.at, &path, "is the control under another name");
        }
    }
}
