//! One finished run for a person: what broke, how it went, what the agent did, what it earned and why.

use std::collections::BTreeSet;

use crate::cli::output::Output;
use crate::cli::printable;
use crate::ids::PostmortemId;
use crate::record::{Action, Outcome, Record, RunState, StageName};
use crate::run::Finished;
use crate::run::summary::{consulted, state_of};
use crate::scenario::model::{Injector, Scenario};
use crate::score::{Axis, Review, Score};

/// More lines than these are counted, not listed; the record has everything.
const SHOWN_LINES: usize = 30;
/// Kinds named in a line of reads.
const SHOWN_RESOURCES: usize = 5;
/// Longer texts of agents are cut in tables.
const SHOWN_CHARACTERS: usize = 160;

/// Said of every run of a simulated agent.
const SIMULATION: &str = "The agent is a simulation: what it earns tests the instrument and is no evidence about real agents.\n";

/// The whole account.
pub(in crate::cli) fn of(scenario: &Scenario, finished: &Finished) -> String {
    let record = &finished.record;
    let mut text = format!(
        "{}  seed {}  agent {}  cluster {} {}\n",
        record.scenario_id,
        record.seed,
        record.agent.label(),
        record.cluster.name,
        record.cluster.version
    );
    text.push_str(&format!("run {}\n", record.run_id));
    if record.agent.simulation {
        text.push_str(SIMULATION);
    }
    text.push('\n');
    text.push_str(&match record.healthy {
        true => nothing_broken(scenario),
        false => broken(scenario),
    });
    text.push_str("\n\n");
    text.push_str(&stages(record));
    text.push_str("\n\n");
    text.push_str(&agent(record));
    text.push_str("\n\n");
    match &finished.score {
        Some(score) => text.push_str(&score_table(score)),
        None => {
            let (state, code, message) = state_of(&record.state);
            let label = format!("{state} ({})", code.unwrap_or("-"));
            text.push_str(&labelled(&[(&label, message.unwrap_or("-").to_owned())]));
            text.push_str("\nThe run does not count and has no score.");
        }
    }
    text.push_str("\n\n");
    text.push_str(&ending(finished));
    text
}

fn broken(scenario: &Scenario) -> String {
    let what = match &scenario.injector {
        Injector::DeploymentPatch {
            namespace,
            deployment,
            mutation,
        } => {
            let parts: Vec<String> = mutation
                .assignments
                .iter()
                .map(|one| format!("{} = {}", one.dotted(), one.value))
                .collect();
            format!("Deployment {namespace}/{deployment}: {}", parts.join("; "))
        }
        Injector::SecretContent {
            namespace,
            secret,
            values,
            ..
        } => {
            let parts: Vec<String> = values
                .iter()
                .map(|(key, value)| {
                    let done = if value.is_empty() {
                        "deleted"
                    } else {
                        "replaced"
                    };
                    format!("{key} {done}")
                })
                .collect();
            format!("Secret {namespace}/{secret}: {}", parts.join(", "))
        }
        other => format!("{} in {}", other.type_name(), other.namespace()),
    };
    let truth = &scenario.ground_truth;
    let secondaries: Vec<&str> = truth
        .secondary_categories
        .iter()
        .map(|category| category.as_str())
        .collect();
    let also = if secondaries.is_empty() {
        String::new()
    } else {
        format!(" (also {})", secondaries.join(", "))
    };
    labelled(&[
        ("broken", what),
        ("cause", format!("{}{also}", truth.primary_category)),
        ("alert", scenario.alert.clone()),
    ])
}

/// Labels with their texts, wrapped to the width of tables.
fn labelled(lines: &[(&str, String)]) -> String {
    let mut table = Output::table(&[]);
    for (label, text) in lines {
        table.add_row([(*label).to_owned(), text.clone()]);
    }
    Output::keep_whole(&mut table, &[0]);
    table.to_string()
}

/// A control run: the alert is sent, and nothing is wrong.
fn nothing_broken(scenario: &Scenario) -> String {
    let nothing = "nothing: a control run, in which every claim and change is a false alarm";
    labelled(&[
        ("broken", nothing.to_owned()),
        ("alert", scenario.alert.clone()),
    ])
}

fn stages(record: &Record) -> String {
    let mut table = Output::table(&["stage", "from", "took", "note"]);
    for entry in &record.stages {
        table.add_row([
            format!("{:?}", entry.stage).to_lowercase(),
            seconds(entry.started_ms),
            seconds(entry.ended_ms.saturating_sub(entry.started_ms)),
            entry.note.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

/// What the agent did, thought and concluded, in the order of time. Reads in a row are one line.
fn agent(record: &Record) -> String {
    if record.actions.is_empty() && record.hypotheses.is_empty() {
        return "The agent made no request.".to_owned();
    }
    let start = record
        .stages
        .iter()
        .find(|entry| entry.stage == StageName::Work)
        .map_or(0, |entry| entry.started_ms);
    let mut lines: Vec<(u64, [String; 2])> = Vec::new();
    for group in record.actions.chunk_by(|one, next| {
        let mut thoughts = record.hypotheses.iter().map(|thought| thought.at_ms);
        let between = thoughts.any(|at_ms| (one.at_ms..next.at_ms).contains(&at_ms));
        one.tier == 1 && next.tier == 1 && !between
    }) {
        lines.push((group[0].at_ms, told(group)));
    }
    for hypothesis in &record.hypotheses {
        let reasoning = hypothesis.reasoning.lines().next().unwrap_or_default();
        lines.push((
            hypothesis.at_ms,
            [
                format!("thinks ({:.2})", hypothesis.confidence),
                format!(
                    "{}: {}",
                    printable::line(hypothesis.primary_category.as_str()),
                    printable::short(reasoning, SHOWN_CHARACTERS)
                ),
            ],
        ));
    }
    // The sort is stable, so that a read stays before the thought that it led to.
    lines.sort_by_key(|(at_ms, _)| *at_ms);
    let more = lines.len().saturating_sub(SHOWN_LINES);
    lines.truncate(SHOWN_LINES);
    let mut table = Output::table(&["at work", "agent", "what"]);
    for (at_ms, [did, what]) in lines {
        table.add_row([seconds(at_ms.saturating_sub(start)), did, what]);
    }
    let mut text = format!("{table}\n(at work: counted from the start of the work stage)");
    if more > 0 {
        text.push_str(&format!("\n … and {more} further lines"));
    }
    text
}

/// One write, or reads in a row.
fn told(group: &[Action]) -> [String; 2] {
    if let [only] = group {
        let refused = match only.status {
            200..300 => String::new(),
            status => format!(" (answer {status})"),
        };
        let summary = printable::short(&only.summary, SHOWN_CHARACTERS);
        let what = format!("{} {summary}{refused}", object(only));
        return [only.tool.clone(), what.trim_end().to_owned()];
    }
    let resources: BTreeSet<&str> = group.iter().map(|a| a.resource.as_str()).collect();
    let named: Vec<&str> = resources.iter().copied().take(SHOWN_RESOURCES).collect();
    let rest = resources.len() - named.len();
    let more = if rest > 0 {
        format!(" and {rest} more kinds")
    } else {
        String::new()
    };
    [
        format!("{} reads", group.len()),
        format!("{}{more}", named.join(", ")),
    ]
}

fn object(action: &Action) -> String {
    let mut text = action.resource.clone();
    if !action.namespace.is_empty() {
        text.push_str(&format!(" {}", action.namespace));
    }
    if !action.name.is_empty() {
        text.push_str(&format!("/{}", action.name));
    }
    text
}

fn score_table(score: &Score) -> String {
    let mut table = Output::table(&["axis", "earned", "of", "why"]);
    let axes: [(&str, &Axis); 4] = [
        ("detected", &score.axes.detected),
        ("diagnosed", &score.axes.diagnosed),
        ("fixed", &score.axes.fixed),
        ("no regressions", &score.axes.no_regressions),
    ];
    for (name, axis) in axes {
        table.add_row([
            name.to_owned(),
            axis.earned.to_string(),
            axis.possible.to_string(),
            axis.detail.clone(),
        ]);
    }
    table.add_row([
        "total".to_owned(),
        score.total.to_string(),
        score.possible().to_string(),
        format!("rubric {}", score.rubric),
    ]);
    table.to_string()
}

fn ending(finished: &Finished) -> String {
    let record = &finished.record;
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(postmortem) = &record.postmortem {
        lines.push(("postmortem", printable::block(&postmortem.final_diagnosis)));
    } else if record.state == RunState::Timeout {
        lines.push(("postmortem", format!("none ({})", work_note(record))));
    }
    lines.push(("retrieval", retrieval(finished)));
    if let Some(score) = &finished.score {
        lines.push(("outcome", outcome(record, score)));
    }
    let reviews: Vec<&str> = finished
        .score
        .iter()
        .flat_map(|score| &score.review)
        .map(review)
        .collect();
    if !reviews.is_empty() {
        lines.push(("to review", reviews.join("; ")));
    }
    for kept in &record.undo.kept {
        let kept = if agent_wrote(record, kept) {
            kept.replace("by someone else", "by the agent")
        } else {
            kept.clone()
        };
        lines.push(("undo", format!("left as it is: {kept}")));
    }
    if record.undo.quarantined {
        lines.push(("cluster", "could not be proven to be as it was".to_owned()));
    } else if record.state_hash_after.is_some() {
        lines.push(("cluster", "proven to be as it was".to_owned()));
    }
    if !record.qualified {
        lines.push((
            "unqualified",
            format!(
                "nobody has yet measured on {} {} that the scenario tells a repair from none: no claim rests on it",
                record.cluster.kind.as_str(),
                record.cluster.version
            ),
        ));
    }
    let mut table = Output::table(&[]);
    for (label, text) in lines {
        table.add_row([label.to_owned(), text]);
    }
    Output::keep_whole(&mut table, &[0]);
    table.to_string()
}

/// How the work stage ended.
fn work_note(record: &Record) -> &str {
    let work = record.stages.iter().find(|s| s.stage == StageName::Work);
    work.and_then(|entry| entry.note.as_deref())
        .unwrap_or("the time budget ended")
}

/// How often the agent asked for past incidents, what it was shown and what its requests follow.
fn retrieval(finished: &Finished) -> String {
    let record = &finished.record;
    let asked = match record.retrievals.len() {
        0 => return "past incidents were not asked for".to_owned(),
        1 => "asked once".to_owned(),
        times => format!("asked {times} times"),
    };
    let listed = |ids: Vec<&str>| match ids.len() {
        0 => "none".to_owned(),
        count if count > SHOWN_RESOURCES => {
            let shown = ids[..SHOWN_RESOURCES].join(", ");
            format!("{shown} and {} more", count - SHOWN_RESOURCES)
        }
        _ => ids.join(", "),
    };
    let served = consulted(record).into_iter().map(PostmortemId::as_str);
    let used = finished.score.iter().flat_map(|s| &s.retrieval_used);
    format!(
        "{asked}; served: {}; judged used: {}",
        listed(served.collect()),
        listed(used.map(PostmortemId::as_str).collect())
    )
}

/// Why a person should look at a run.
fn review(review: &Review) -> &'static str {
    match review {
        Review::ChannelDisagreement => "hypothesis and postmortem name different causes",
        Review::CategoryOutsideVocabulary => "the named category is none that can be named",
        Review::TooManySecondaries => "too many secondary categories are named",
        Review::RegressionWithoutAction => "something regressed without any request of the agent",
        Review::UnseenDiagnosis => {
            "a cause is named, but nothing was read that could have shown it"
        }
        Review::RepairedAtACost => "the symptom is gone at the cost of what the scenario protects",
        Review::FalseAlarm => {
            "a false alarm: something was claimed or changed although nothing was wrong"
        }
    }
}

fn outcome(record: &Record, score: &Score) -> String {
    if record.healthy {
        return match &score.false_alarm {
            None => "silent, as it should be".to_owned(),
            Some(_) => "a false alarm".to_owned(),
        };
    }
    let outcome = match score.outcome {
        Outcome::Resolved => "resolved: the fault is gone and nothing regressed",
        Outcome::Regressed => "regressed: something became worse",
        Outcome::Inconclusive if score.channel_disagreement.is_some() => {
            "inconclusive: hypothesis and postmortem name different causes"
        }
        Outcome::Inconclusive => "inconclusive: the fault was not seen to be gone",
    };
    match record.state {
        RunState::Timeout => format!("{outcome} (timeout: no postmortem)"),
        _ => outcome.to_owned(),
    }
}

/// Whether a kept field or object is of an object that the agent was seen to write.
fn agent_wrote(record: &Record, kept: &str) -> bool {
    record.actions.iter().any(|action| {
        let object = format!("{}/{}", action.namespace, action.name);
        let kind = kept.split(' ').next().unwrap_or_default().to_lowercase();
        action.changed_something
            && action.resource.starts_with(&kind)
            && !action.name.is_empty()
            && kept.split([' ', ':']).any(|word| word == object)
    })
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
