//! The design of a plan: scenarios, tiers, blocks, looks, corpus.

use std::str::FromStr;

use crate::embed::BuiltIn;
use crate::experiment::load::{Seen, is_treatment, need_words, number, place, some_items};
use crate::experiment::matrix::MAX_SCENARIOS;
use crate::experiment::plan::{
    Arm, Corpus, Plan, PlannedScenario, Retrieval, Tier, TierKind, Tiers, Writes,
};
use crate::ids::ArmId;
use crate::scenario::decode::{Fields, MAX_ID_LETTERS, items, spelled, text, whole};
use crate::scenario::library::{Library, LibraryError};
use crate::scenario::model::Scenario;
use crate::scenario::problem::{Notes, Position};
use crate::scenario::yaml::{Body, Node, excerpt};

/// The keys of a scenario's entry.
pub const SCENARIO_KEYS: [&str; 3] = ["id", "weight", "unqualified_because"];
/// The keys of `tiers`.
pub const TIERS_KEYS: [&str; 2] = ["kind", "tiers"];
/// The keys of a tier.
pub const TIER_KEYS: [&str; 3] = ["id", "size", "code"];
/// The keys of `corpus`.
pub const CORPUS_KEYS: [&str; 2] = ["embedder", "writes"];

/// Weights are shares of their sum; finer ones than this say nothing that an author could defend.
const MAX_WEIGHT: u32 = 1000;
/// One contrast over more points than this is a curve, which no single code describes.
const MAX_TIERS: usize = 10;
/// A corpus of more postmortems is not loaded.
const MAX_TIER_SIZE: u32 = 100_000;
/// Beyond 10 000 blocks a half-width is under a thousandth of the scale.
const MAX_BLOCKS: u32 = 10_000;
/// The ledger is one chain that is read as a whole; at a kilobyte a run this is 200 MB.
const MAX_RUNS: u64 = 200_000;
/// As many as spending functions are tabled for here; each costs power.
const MAX_LOOKS: usize = 4;
/// The id of a tier of the whole corpus, and how its size is written.
const FULL: &str = "full";

pub(super) type Found = (PlannedScenario, Scenario);

pub(super) fn scenarios(
    fields: &Fields<'_>,
    arms: Option<&[Arm]>,
    library: &Library,
    notes: &mut Notes,
) -> Option<Vec<Found>> {
    let node = fields.need("scenarios", "a list of scenarios", notes)?;
    let list = some_items(node, "scenarios", "a scenario", MAX_SCENARIOS, notes)?;
    let embedded = arms.is_none_or(|arms| arms.iter().any(|arm| arm.context.is_none()));
    let mut seen = Seen::default();
    let decoded: Vec<Option<Found>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let (planned, at) = scenario(item, &format!("scenarios[{index}]"), notes)?;
            let path = match item.body {
                Body::Map(_) => format!("scenarios[{index}].id"),
                _ => format!("scenarios[{index}]"),
            };
            let found = look_up(planned, at, &path, embedded, library, notes)?;
            seen.note(found.0.id.as_str(), at, &path, notes);
            Some(found)
        })
        .collect();
    decoded.into_iter().collect()
}

/// As the plan names it: an id or a path alone, or a mapping.
fn scenario(node: &Node, path: &str, notes: &mut Notes) -> Option<(Planned, Position)> {
    if !matches!(node.body, Body::Map(_)) {
        let name = text(node, path, notes)?;
        return Some((
            Planned {
                name,
                weight: 1,
                unqualified_because: None,
            },
            node.at,
        ));
    }
    let fields = Fields::of(node, path, notes)?;
    fields.known(&SCENARIO_KEYS, notes);
    let name = fields.need_text("id", "a scenario's id, or the path of its file", notes);
    let weight = number::whole_or(&fields, "weight", 1, 1..=MAX_WEIGHT, notes);
    let unqualified_because = match fields.get("unqualified_because") {
        Some(_) => {
            let expected = "why it may take part although nobody has qualified it";
            Some(need_words(&fields, "unqualified_because", expected, notes)?)
        }
        None => None,
    };
    Some((
        Planned {
            name: name?,
            weight: weight?,
            unqualified_because,
        },
        place(&fields, "id"),
    ))
}

struct Planned {
    name: String,
    weight: u32,
    unqualified_because: Option<String>,
}

fn look_up(
    planned: Planned,
    at: Position,
    path: &str,
    embedded: bool,
    library: &Library,
    notes: &mut Notes,
) -> Option<Found> {
    let scenario = match library.scenario(&planned.name) {
        Ok(scenario) => scenario,
        Err(LibraryError::Problems(problems)) => {
            let count = problems.items.len();
            let first = problems.lines().into_iter().next().unwrap_or_default();
            let message = format!(
                "the file has {count} problem(s), first {first}; `breakage scenario validate` shows all"
            );
            notes.problem(at, path, message);
            return None;
        }
        Err(error) => {
            let cause = std::error::Error::source(&error)
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            let message = format!("{error}{cause}; `breakage scenario list` shows every id");
            notes.problem(at, path, message);
            return None;
        }
    };
    if embedded && !scenario.needs.is_empty() {
        let message = format!(
            "needs {}, which the embedded cluster does not have; give every arm a context",
            scenario.needs.join(", ")
        );
        notes.problem(at, path, message);
        return None;
    }
    // Runs know a scenario by its id; one id with two texts would let the wrong one run.
    if library
        .scenario(scenario.id.as_str())
        .is_ok_and(|other| other.sha256 != scenario.sha256)
    {
        let message = format!(
            "the file's id `{}` is that of another scenario of the library; give it an id of its own",
            scenario.id
        );
        notes.problem(at, path, message);
        return None;
    }
    let entry = PlannedScenario {
        id: scenario.id.clone(),
        weight: planned.weight,
        unqualified_because: planned.unqualified_because,
    };
    Some((entry, scenario))
}

pub(super) fn tiers(
    fields: &Fields<'_>,
    arms: Option<&[Arm]>,
    control: Option<&ArmId>,
    notes: &mut Notes,
) -> Option<Option<Tiers>> {
    let Some(node) = fields.get("tiers") else {
        return Some(None);
    };
    let inner = Fields::of(node, "tiers", notes)?;
    inner.known(&TIERS_KEYS, notes);
    let words = [
        ("corpus", TierKind::Corpus),
        ("pool-cap", TierKind::PoolCap),
    ];
    let kind = inner.need_word("kind", &words, notes);
    let listed = inner.need("tiers", "at least two tiers", notes)?;
    let list = some_items(
        listed,
        "tiers.tiers",
        "at least two tiers",
        MAX_TIERS,
        notes,
    )?;
    let mut seen = Seen::default();
    let decoded: Vec<Option<Tier>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| tier(item, &format!("tiers.tiers[{index}]"), &mut seen, notes))
        .collect();
    let tiers: Vec<Tier> = decoded.into_iter().collect::<Option<_>>()?;
    check_tiers(listed, list, &tiers, notes);
    for arm in arms.unwrap_or_default() {
        if is_treatment(control, &arm.id) && !arm.retrieval.serves() {
            let message = format!(
                "arm `{}` serves nothing, so that tiers of the corpus are the same to it; leave `tiers` out",
                arm.id
            );
            notes.problem(node.at, "tiers", message);
        }
    }
    let kind = kind?;
    if kind == TierKind::PoolCap {
        warn_about_caps(node.at, &tiers, arms, notes);
    }
    Some(Some(Tiers { kind, tiers }))
}

fn tier(node: &Node, path: &str, seen: &mut Seen, notes: &mut Notes) -> Option<Tier> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&TIER_KEYS, notes);
    let id = tier_id(&fields, seen, notes);
    let size = match fields.need("size", "a number of postmortems, or full", notes) {
        Some(node) if matches!(&node.body, Body::Plain(s) | Body::Text(s) if s.text == FULL) => {
            Some(None)
        }
        Some(node) => whole(node, &fields.sub("size"), 1..=MAX_TIER_SIZE, notes).map(Some),
        None => None,
    };
    let code = number::code(&fields, notes);
    Some(Tier {
        id: id?,
        size: size?.map(|size| size as usize),
        code: code?,
    })
}

/// A tier's id may be a number: it stands in tables and in the ids of cells.
fn tier_id(fields: &Fields<'_>, seen: &mut Seen, notes: &mut Notes) -> Option<String> {
    let node = fields.need("id", "a short name such as 5 or full", notes)?;
    let path = fields.sub("id");
    let id = spelled(node, &path, notes)?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.len() > MAX_ID_LETTERS || !id.chars().all(fits) {
        let message = format!(
            "`{}` is no tier's id, expected small letters, digits and hyphens, at most {MAX_ID_LETTERS}",
            excerpt(&id)
        );
        notes.problem(node.at, &path, message);
        return None;
    }
    seen.note(&id, node.at, &path, notes);
    Some(id)
}

/// What can only be judged with all tiers at hand.
fn check_tiers(listed: &Node, items: &[Node], tiers: &[Tier], notes: &mut Notes) {
    let path = "tiers.tiers";
    if tiers.len() < 2 {
        notes.problem(listed.at, path, "has one tier, expected at least two");
    }
    let sum: i32 = tiers.iter().map(|tier| tier.code).sum();
    if sum != 0 {
        let message = format!("the codes sum to {sum}, expected 0");
        notes.problem(listed.at, path, message);
    } else if tiers.iter().all(|tier| tier.code == 0) {
        notes.problem(
            listed.at,
            path,
            "every code is 0, so that the contrast tests nothing",
        );
    }
    for (index, pair) in tiers.windows(2).enumerate() {
        let ascends = match (pair[0].size, pair[1].size) {
            (Some(low), Some(high)) => low < high,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !ascends {
            let message = format!(
                "is not larger than the tier before, `{}`; expected ascending sizes, full last",
                pair[0].id
            );
            let at = items[index + 1].at;
            notes.problem(at, &format!("{path}[{}].size", index + 1), message);
        }
    }
}

/// A pool that holds k has the same k nearest as any larger one.
fn warn_about_caps(at: Position, tiers: &[Tier], arms: Option<&[Arm]>, notes: &mut Notes) {
    for arm in arms.unwrap_or_default() {
        if let Retrieval::On(serving) = &arm.retrieval
            && tiers
                .iter()
                .all(|tier| tier.size.is_none_or(|size| size >= serving.k))
        {
            let message = format!(
                "every pool holds the {} nearest that arm `{}` serves: all tiers serve the same, and the experiment will \
                 end in treatment_not_delivered",
                serving.k, arm.id
            );
            notes.warning(at, "tiers", message);
        }
    }
}

pub(super) fn blocks(fields: &Fields<'_>, notes: &mut Notes) -> Option<u32> {
    let node = fields.need("blocks", "complete blocks, which is runs per cell", notes)?;
    whole(node, "blocks", 2..=MAX_BLOCKS, notes)
}

pub(super) fn looks(
    fields: &Fields<'_>,
    blocks: Option<u32>,
    notes: &mut Notes,
) -> Option<Vec<u32>> {
    let Some(node) = fields.get("looks") else {
        return Some(Vec::new());
    };
    let list = items(node, "looks", notes);
    if list.len() > MAX_LOOKS {
        let message = format!("{} looks, expected at most {MAX_LOOKS}", list.len());
        notes.problem(node.at, "looks", message);
        return None;
    }
    let last = blocks.map_or(MAX_BLOCKS, |blocks| blocks.saturating_sub(1).max(1));
    let mut looks: Vec<u32> = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let path = format!("looks[{index}]");
        // Two blocks are the fewest with a spread.
        let look = whole(item, &path, 2..=last.max(2), notes)?;
        if looks.last().is_some_and(|before| *before >= look) {
            notes.problem(
                item.at,
                &path,
                "is not after the look before, expected ascending numbers of complete blocks",
            );
        }
        looks.push(look);
    }
    Some(looks)
}

pub(super) fn corpus(fields: &Fields<'_>, notes: &mut Notes) -> Option<Corpus> {
    let lexical = BuiltIn::Lexical.name().to_owned();
    let Some(node) = fields.get("corpus") else {
        return Some(Corpus {
            embedder: lexical,
            writes: Writes::Frozen,
        });
    };
    let inner = Fields::of(node, "corpus", notes)?;
    inner.known(&CORPUS_KEYS, notes);
    let embedder = match inner.get("embedder") {
        Some(node) => embedder(node, notes),
        None => Some(lexical),
    };
    let words = [("frozen", Writes::Frozen), ("growing", Writes::Growing)];
    let writes = match inner.get("writes") {
        Some(_) => inner.need_word("writes", &words, notes),
        None => Some(Writes::Frozen),
    };
    if writes == Some(Writes::Growing) {
        notes.warning(
            place(&inner, "writes"),
            "corpus.writes",
            "growing makes repetitions depend on each other: p values and intervals assume that they do not",
        );
    }
    Some(Corpus {
        embedder: embedder?,
        writes: writes?,
    })
}

fn embedder(node: &Node, notes: &mut Notes) -> Option<String> {
    let path = "corpus.embedder";
    let name = text(node, path, notes)?;
    match BuiltIn::from_str(&name) {
        Ok(BuiltIn::Control) => {
            notes.problem(
                node.at,
                path,
                "the control's vectors mean nothing; an arm with retrieval deterministic-control uses them by itself",
            );
            None
        }
        Ok(known) => Some(known.name().to_owned()),
        Err(error) => {
            notes.problem(node.at, path, error.to_string());
            None
        }
    }
}

/// Whether reports keep the arms' names back.
pub(super) fn blinded(fields: &Fields<'_>, notes: &mut Notes) -> bool {
    let blinded = fields.flag("blinded", notes);
    if let (true, Some(node), Some(_)) = (blinded, fields.get("blinded"), fields.get("tiers")) {
        notes.problem(
            node.at,
            "blinded",
            "arms with tiers cannot be blinded: only the treatment has tiers, so that they tell which it is",
        );
    }
    blinded
}

/// How many runs it comes to.
pub(super) fn check_size(fields: &Fields<'_>, plan: &Plan, notes: &mut Notes) {
    let runs = plan.runs();
    if runs > MAX_RUNS {
        let message = format!(
            "{} cells in {} blocks are {runs} runs, expected at most {MAX_RUNS}",
            plan.cells().len(),
            plan.blocks
        );
        notes.problem(place(fields, "blocks"), "blocks", message);
    }
}
