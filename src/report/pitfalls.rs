//! How agents do damage: what they did around the first write that touched what they should have left alone, and which
//! sequences of tools runs with damage have in common, beside how often runs without damage have them too.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ids::RunId;
use crate::record::{Action, Outcome, Record};
use crate::report::scorecard::{Identity, Run};
use crate::score::{Review, Score};

/// Tools shown before and after the first damaging write.
const AROUND: usize = 2;

/// Lengths of the sequences that are looked for.
const SEQUENCE_LENGTHS: [usize; 2] = [2, 3];

/// Patterns kept of a kind; further ones are rarer and say less.
const MOST_PATTERNS: usize = 10;

/// Runs named for a pattern: enough to look one up.
const EXAMPLES: usize = 3;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pitfalls {
    /// By agent and category, the most damage first.
    pub groups: Vec<Group>,
    /// Runs that count and have a score.
    pub runs: u32,
    pub damaged: u32,
    /// Runs of experiments whose scores are sealed.
    pub left_out_sealed: u32,
}

/// Runs of one agent on faults of one category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub identity: Identity,
    /// The cause that the scenarios hold for true; `unknown` where their text cannot be read any more.
    pub category: String,
    pub runs: u32,
    /// Something regressed.
    pub regressed: u32,
    /// The symptom went away at the cost of what the scenario protects. A run can be both.
    pub repaired_at_a_cost: u32,
    pub damaged: u32,
    /// Damaged runs in which no request of the agent changed anything.
    pub damaged_without_write: u32,
    /// Tools around the first damaging write, repetitions in a row counted as one; the write stands in brackets.
    pub around_first_write: Vec<Pattern>,
    /// Sequences of two and three tools; a run counts once for each that it contains.
    pub sequences: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    pub tools: Vec<String>,
    /// Runs with damage that contain it.
    pub damaged: u32,
    /// Runs of the same agent and category without damage that contain it; what is as common there explains nothing.
    pub undamaged: u32,
    pub examples: Vec<RunId>,
}

/// Mines runs that have a score.
pub fn pitfalls(runs: &[Run<'_>], left_out_sealed: u32) -> Pitfalls {
    let mut groups: BTreeMap<(Identity, String), Vec<(&Record, &Score)>> = BTreeMap::new();
    let (mut scored, mut damaged) = (0, 0);
    for run in runs.iter().filter(|run| run.counts()) {
        let Some(score) = run.score else { continue };
        let category = run.category.map_or("unknown", |one| one.as_str());
        let category = match run.record.healthy {
            true => "nothing broken",
            false => category,
        };
        scored += 1;
        damaged += u32::from(is_damaged(score));
        groups
            .entry((Identity::of(run), category.to_owned()))
            .or_default()
            .push((run.record, score));
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .filter(|(_, runs)| runs.iter().any(|(_, score)| is_damaged(score)))
        .map(|((identity, category), runs)| group(identity, category, &runs))
        .collect();
    // Stable: groups with as much damage stay in the order of their names.
    groups.sort_by_key(|group| std::cmp::Reverse(group.damaged));
    Pitfalls {
        groups,
        runs: scored,
        damaged,
        left_out_sealed,
    }
}

fn is_damaged(score: &Score) -> bool {
    score.outcome == Outcome::Regressed || is_at_a_cost(score)
}

fn is_at_a_cost(score: &Score) -> bool {
    score.review.contains(&Review::RepairedAtACost)
}

fn group(identity: Identity, category: String, runs: &[(&Record, &Score)]) -> Group {
    let count = |wanted: &dyn Fn(&(&Record, &Score)) -> bool| {
        runs.iter().filter(|run| wanted(run)).count() as u32
    };
    let mut around = Patterns::default();
    let mut sequences = Patterns::default();
    for (record, score) in runs {
        let damaged = is_damaged(score);
        let steps = steps(record);
        // Without damage there is no damaging write; the first one stands in its place.
        let first = if damaged {
            first_damaging(record)
        } else {
            first_write(record)
        };
        if let Some(first) = first {
            around.note(BTreeSet::from([window(&steps, first)]), damaged, record);
        }
        sequences.note(contained(&steps), damaged, record);
    }
    Group {
        regressed: count(&|(_, score)| score.outcome == Outcome::Regressed),
        repaired_at_a_cost: count(&|(_, score)| is_at_a_cost(score)),
        damaged: count(&|(_, score)| is_damaged(score)),
        damaged_without_write: count(&|(record, score)| {
            is_damaged(score) && first_write(record).is_none()
        }),
        runs: runs.len() as u32,
        around_first_write: around.most(),
        sequences: sequences.most(),
        identity,
        category,
    }
}

/// Equal tools in a row as one step, with the actions that it covers.
struct Step<'a> {
    tool: &'a str,
    /// First and last action.
    actions: (usize, usize),
}

fn steps(record: &Record) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (at, action) in record.actions.iter().enumerate() {
        match steps.last_mut() {
            Some(last) if last.tool == action.tool => last.actions.1 = at,
            _ => steps.push(Step {
                tool: &action.tool,
                actions: (at, at),
            }),
        }
    }
    steps
}

fn first_write(record: &Record) -> Option<usize> {
    record
        .actions
        .iter()
        .position(|action| action.changed_something)
}

/// The first write to something that ended up changed although it was protected or out of scope; the first write at all
/// where none touched such a thing by name.
fn first_damaging(record: &Record) -> Option<usize> {
    let touched = |action: &Action| {
        record
            .state_changes
            .iter()
            .filter(|change| change.protected || !change.in_scope)
            .any(|change| change.namespace == action.namespace && change.name == action.name)
    };
    record
        .actions
        .iter()
        .position(|action| action.changed_something && touched(action))
        .or_else(|| first_write(record))
}

/// The steps around an action, the one that it belongs to in brackets.
fn window(steps: &[Step<'_>], action: usize) -> Vec<String> {
    let at = steps
        .iter()
        .position(|step| step.actions.0 <= action && action <= step.actions.1)
        .unwrap_or(0);
    let from = at.saturating_sub(AROUND);
    let to = (at + AROUND + 1).min(steps.len());
    steps[from..to]
        .iter()
        .enumerate()
        .map(|(place, step)| match from + place == at {
            true => format!("[{}]", step.tool),
            false => step.tool.to_owned(),
        })
        .collect()
}

fn contained(steps: &[Step<'_>]) -> BTreeSet<Vec<String>> {
    SEQUENCE_LENGTHS
        .iter()
        .flat_map(|length| steps.windows(*length))
        .map(|steps| steps.iter().map(|step| step.tool.to_owned()).collect())
        .collect()
}

#[derive(Default)]
struct Patterns(BTreeMap<Vec<String>, Pattern>);

impl Patterns {
    /// A run counts once for each pattern that it has.
    fn note(&mut self, found: BTreeSet<Vec<String>>, damaged: bool, record: &Record) {
        for tools in found {
            let pattern = self.0.entry(tools.clone()).or_insert_with(|| Pattern {
                tools,
                damaged: 0,
                undamaged: 0,
                examples: Vec::new(),
            });
            if !damaged {
                pattern.undamaged += 1;
                continue;
            }
            pattern.damaged += 1;
            if pattern.examples.len() < EXAMPLES {
                pattern.examples.push(record.run_id.clone());
            }
        }
    }

    /// Those of damaged runs: the most common first, and among equals what undamaged runs have least.
    fn most(self) -> Vec<Pattern> {
        let mut all: Vec<Pattern> = self
            .0
            .into_values()
            .filter(|pattern| pattern.damaged > 0)
            .collect();
        all.sort_by_key(|pattern| (std::cmp::Reverse(pattern.damaged), pattern.undamaged));
        all.truncate(MOST_PATTERNS);
        all
    }
}
