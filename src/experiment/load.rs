//! Strict loading of plan files: a text becomes a [`Plan`] with its defaults filled in, or every problem with its place.
//!
//! What a plan names (scenarios, rubric, agents) is looked up at once, so that a plan that loads is one that can run. The
//! same function serves `power`, `lock` and the templates' test.

mod arms;
mod design;
mod inference;
mod number;
mod rows;

use std::collections::BTreeMap;

use crate::experiment::plan::{Direction, Hypothesis, Plan};
use crate::ids::{ArmId, ExperimentId, RubricId};
use crate::scenario::decode::{Fields, items, kebab, text};
use crate::scenario::library::{DEFAULT_RUBRIC, Library};
use crate::scenario::model::{Rubric, Scenario};
use crate::scenario::near::did_you_mean;
use crate::scenario::problem::{Notes, Position, Problem, Problems};
use crate::scenario::yaml::{self, Node};

/// The keys of a plan file.
pub const PLAN_KEYS: [&str; 24] = [
    "id",
    "title",
    "authors",
    "prior_data",
    "hypotheses",
    "sesoi",
    "rubric",
    "control",
    "arms",
    "scenarios",
    "tiers",
    "blocks",
    "seed",
    "corpus",
    "tests",
    "exclusions",
    "power",
    "looks",
    "manipulation",
    "matrix",
    "multiverse",
    "blinded",
    "deviations",
    "stopping",
];
/// The keys of a hypothesis.
pub const HYPOTHESIS_KEYS: [&str; 3] = ["id", "text", "direction"];

/// The keys of every mapping below, by the name of its schema.
pub const KEYS: [(&str, &[&str]); 13] = [
    ("Arm", &arms::ARM_KEYS),
    ("Retrieval", &arms::RETRIEVAL_KEYS),
    ("Scenario", &design::SCENARIO_KEYS),
    ("Tiers", &design::TIERS_KEYS),
    ("Tier", &design::TIER_KEYS),
    ("Corpus", &design::CORPUS_KEYS),
    ("Tests", &inference::TESTS_KEYS),
    ("Exclusions", &inference::EXCLUSIONS_KEYS),
    ("Power", &inference::POWER_KEYS),
    ("Manipulation", &inference::MANIPULATION_KEYS),
    ("Multiverse", &inference::MULTIVERSE_KEYS),
    ("Matrix", &rows::MATRIX_KEYS),
    ("Row", &rows::ROW_KEYS),
];

/// More than a plan that tests one thing has; keeps reports readable.
const MAX_HYPOTHESES: usize = 20;
/// More than any paper's.
const MAX_AUTHORS: usize = 100;
/// A title stands in one line of a report.
const MAX_TITLE_CHARS: usize = 200;
/// The smallest effect of interest is a part of a scale from 0 to 1; beyond a half nothing could be missed.
const MAX_SESOI_MICRO: u32 = 500_000;
/// What is done about departures where a plan says nothing.
const DEVIATIONS: &str =
    "Every departure is noted in the ledger and listed in the report; none changes the analysis.";
/// When to stop where a plan says nothing.
const STOPPING: &str =
    "After the last block. Earlier only for budget or safety, never for an effect.";

/// A plan that may be locked, what it names, and what its author should know.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub plan: Plan,
    /// As the plan lists them.
    pub scenarios: Vec<Scenario>,
    pub rubric: Rubric,
    pub warnings: Vec<Problem>,
}

/// Loads a plan file. `file` is its name for messages.
///
/// # Errors
/// Every problem of the file.
pub fn plan(text: &str, file: &str, library: &Library) -> Result<Loaded, Problems> {
    let mut notes = Notes::default();
    let decoded = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        decode(&fields, library, &mut notes)
    });
    let ((plan, scenarios, rubric), warnings) = notes.finish(file, decoded)?;
    Ok(Loaded {
        plan,
        scenarios,
        rubric,
        warnings,
    })
}

fn decode(
    fields: &Fields<'_>,
    library: &Library,
    notes: &mut Notes,
) -> Option<(Plan, Vec<Scenario>, Rubric)> {
    fields.known(&PLAN_KEYS, notes);
    // Everything is decoded before the first failure counts, so that all problems are reported.
    let head = head(fields, notes);
    let sesoi = number::need_share(
        fields,
        "sesoi",
        "the smallest difference that matters, such as 0.05",
        1..=MAX_SESOI_MICRO,
        notes,
    );
    let rubric = rubric(fields, library, notes);
    let arms = arms::arms(fields, notes);
    let control = arms::control(fields, arms.as_deref(), notes);
    let scenarios = design::scenarios(fields, arms.as_deref(), library, notes);
    let tiers = design::tiers(fields, arms.as_deref(), control.as_ref(), notes);
    let blocks = design::blocks(fields, notes);
    let seed = number::seed(fields, notes);
    let corpus = design::corpus(fields, notes);
    let tests = inference::tests(fields, notes);
    let exclusions = inference::exclusions(fields, notes);
    let power = inference::power(fields, notes);
    let looks = design::looks(fields, blocks, notes);
    let manipulation = inference::manipulation(fields, notes);
    let count = scenarios.as_ref().map(Vec::len);
    let matrix = rows::matrix(fields, count, notes);
    let multiverse = inference::multiverse(fields, notes);
    let blinded = design::blinded(fields, notes);
    let deviations = said(fields, "deviations", DEVIATIONS, notes);
    let stopping = said(fields, "stopping", STOPPING, notes);
    let (planned, scenarios): (Vec<_>, Vec<_>) = scenarios?.into_iter().unzip();
    let head = head?;
    let plan = Plan {
        id: head.id,
        title: head.title,
        authors: head.authors,
        prior_data: head.prior_data,
        hypotheses: head.hypotheses,
        sesoi: sesoi?,
        rubric: rubric.as_ref()?.id.clone(),
        control: control?,
        arms: arms?,
        scenarios: planned,
        tiers: tiers?,
        blocks: blocks?,
        seed: seed?,
        corpus: corpus?,
        tests: tests?,
        exclusions: exclusions?,
        power: power?,
        looks: looks?,
        manipulation: manipulation?,
        matrix: matrix?,
        multiverse: multiverse?,
        blinded,
        deviations: deviations?,
        stopping: stopping?,
    };
    design::check_size(fields, &plan, notes);
    arms::warn_about_differences(fields, &plan, notes);
    Some((plan, scenarios, rubric?))
}

struct Head {
    id: ExperimentId,
    title: String,
    authors: Vec<String>,
    prior_data: String,
    hypotheses: Vec<Hypothesis>,
}

fn head(fields: &Fields<'_>, notes: &mut Notes) -> Option<Head> {
    let id = fields
        .need("id", "a kebab-case id", notes)
        .and_then(|node| kebab(node, "id", notes));
    let title = title(fields, notes);
    let authors = authors(fields, notes);
    let prior_data = need_words(
        fields,
        "prior_data",
        "what you have seen already of data on the question, or that it is none",
        notes,
    );
    let hypotheses = hypotheses(fields, notes);
    Some(Head {
        id: ExperimentId::new(id?),
        title: title?,
        authors: authors?,
        prior_data: prior_data?,
        hypotheses: hypotheses?,
    })
}

fn title(fields: &Fields<'_>, notes: &mut Notes) -> Option<String> {
    let title = need_words(fields, "title", "a line that says what is tested", notes)?;
    if title.chars().count() > MAX_TITLE_CHARS || title.contains('\n') {
        let message = format!("expected one line of at most {MAX_TITLE_CHARS} characters");
        notes.problem(place(fields, "title"), "title", message);
        return None;
    }
    Some(title)
}

fn authors(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<String>> {
    let node = fields.need("authors", "a list of names", notes)?;
    let list = some_items(node, "authors", "a name", MAX_AUTHORS, notes)?;
    let names = list.iter().enumerate().map(|(index, item)| {
        let path = format!("authors[{index}]");
        let name = text(item, &path, notes)?;
        if name.trim().is_empty() {
            notes.problem(item.at, &path, "is empty, expected a name");
            return None;
        }
        Some(name)
    });
    let names: Vec<Option<String>> = names.collect();
    names.into_iter().collect()
}

fn hypotheses(fields: &Fields<'_>, notes: &mut Notes) -> Option<Vec<Hypothesis>> {
    let node = fields.need("hypotheses", "a list of id, text and direction", notes)?;
    let list = some_items(node, "hypotheses", "a hypothesis", MAX_HYPOTHESES, notes)?;
    let mut seen = Seen::default();
    let decoded: Vec<Option<Hypothesis>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let fields = Fields::of(item, &format!("hypotheses[{index}]"), notes)?;
            fields.known(&HYPOTHESIS_KEYS, notes);
            let id = unique_id(&fields, &mut seen, notes);
            let text = need_words(&fields, "text", "what is claimed, in a sentence", notes);
            let words = [
                ("higher", Direction::Higher),
                ("lower", Direction::Lower),
                ("either", Direction::Either),
            ];
            let direction = fields.need_word("direction", &words, notes);
            Some(Hypothesis {
                id: id?,
                text: text?,
                direction: direction?,
            })
        })
        .collect();
    decoded.into_iter().collect()
}

fn rubric(fields: &Fields<'_>, library: &Library, notes: &mut Notes) -> Option<Rubric> {
    let id = match fields.get("rubric") {
        Some(node) => text(node, "rubric", notes)?,
        None => DEFAULT_RUBRIC.to_owned(),
    };
    let found = library.rubric(&id).ok().cloned();
    if found.is_none() {
        let known: Vec<&RubricId> = library.rubrics().map(|rubric| &rubric.id).collect();
        let guess = did_you_mean(&id, known.iter().map(|id| id.as_str()));
        let names: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
        let message = format!(
            "there is no rubric `{id}`{guess}, expected one of {}",
            names.join(", ")
        );
        notes.problem(place(fields, "rubric"), "rubric", message);
    }
    found
}

/// A text that is given and says something.
fn need_words(fields: &Fields<'_>, key: &str, expected: &str, notes: &mut Notes) -> Option<String> {
    let words = fields.need_text(key, expected, notes)?;
    if words.trim().is_empty() {
        let message = format!("says nothing, expected {expected}");
        notes.problem(place(fields, key), &fields.sub(key), message);
        return None;
    }
    Some(words.trim_end().to_owned())
}

/// A text, or what stands in for one that is not given.
fn said(fields: &Fields<'_>, key: &str, default: &str, notes: &mut Notes) -> Option<String> {
    match fields.get(key) {
        Some(_) => need_words(fields, key, "some words", notes),
        None => Some(default.to_owned()),
    }
}

/// The items of a list that may be neither empty nor longer than `limit`.
fn some_items<'a>(
    node: &'a Node,
    path: &str,
    each: &str,
    limit: usize,
    notes: &mut Notes,
) -> Option<&'a [Node]> {
    let list = items(node, path, notes);
    if list.is_empty() {
        // A node that is no list has been noted already.
        if matches!(node.body, yaml::Body::List(_)) {
            notes.problem(node.at, path, format!("is empty, expected {each}"));
        }
        return None;
    }
    if list.len() > limit {
        let message = format!("{} entries, expected at most {limit}", list.len());
        notes.problem(node.at, path, message);
        return None;
    }
    Some(list)
}

/// Ids met so far in one list, with where.
#[derive(Default)]
struct Seen(BTreeMap<String, Position>);

impl Seen {
    /// Notes an id that stands in the list already.
    fn note(&mut self, id: &str, at: Position, path: &str, notes: &mut Notes) {
        if let Some(first) = self.0.insert(id.to_owned(), at) {
            let message = format!("`{id}` stands in line {} already", first.line);
            notes.problem(at, path, message);
        }
    }
}

/// The `id` of a list's item: kebab-case, and none of those before.
fn unique_id(fields: &Fields<'_>, seen: &mut Seen, notes: &mut Notes) -> Option<String> {
    let node = fields.need("id", "a kebab-case id", notes)?;
    let path = fields.sub("id");
    let id = kebab(node, &path, notes)?;
    seen.note(&id, node.at, &path, notes);
    Some(id)
}

/// Where a key's value stands; the mapping where it is not given.
fn place(fields: &Fields<'_>, key: &str) -> Position {
    fields.get(key).map_or(fields.at, |node| node.at)
}

fn is_treatment(control: Option<&ArmId>, arm: &ArmId) -> bool {
    control.is_none_or(|control| control != arm)
}
