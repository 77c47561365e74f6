//! One finished run for a person: what broke, how it went, what the agent did, what it earned and why.

use crate::cli::output::Output;
use crate::record::{Action, Record, RunState};
use crate::run::Finished;
use crate::run::summary::state_of;
use crate::scenario::model::{Injector, Scenario};
use crate::score::{Axis, Score};

/// More actions than these are counted, not listed; the record has them all.
const SHOWN_ACTIONS: usize = 25;

/// The whole account.
pub(in crate::cli) fn of(scenario: &Scenario, finished: &Finished) -> String {
    let record = &finished.record;
    let mut text = format!(
        "{}  seed {}  agent {}  cluster {} {}\n",
        record.scenario_id,
        record.seed,
        record.agent.name,
        record.cluster.name,
        record.cluster.version
    );
    text.push_str(&format!("run {}\n\n", record.run_id));
    text.push_str(&broken(scenario));
    text.push_str("\n\n");
    text.push_str(&stages(record));
    text.push_str("\n\n");
    text.push_str(&agent(record));
    text.push_str("\n\n");
    match &finished.score {
        Some(score) => text.push_str(&score_table(score)),
        None => {
            let (state, code, message) = state_of(&record.state);
            text.push_str(&format!(
                "{state} ({}): {}\nThe run does not count and has no score.",
                code.unwrap_or("-"),
                message.unwrap_or("-")
            ));
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
    format!(
        "broken   {what}\ncause    {}{also}\nalert    {}",
        truth.primary_category, scenario.alert
    )
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

fn agent(record: &Record) -> String {
    if record.actions.is_empty() {
        return "The agent made no request.".to_owned();
    }
    let start = record
        .stages
        .iter()
        .find(|entry| entry.stage == crate::record::StageName::Work)
        .map_or(0, |entry| entry.started_ms);
    let mut table = Output::table(&["after", "tool", "object", "tier", "answer", "what"]);
    for action in record.actions.iter().take(SHOWN_ACTIONS) {
        table.add_row([
            seconds(action.at_ms.saturating_sub(start)),
            action.tool.clone(),
            object(action),
            action.tier.to_string(),
            action.status.to_string(),
            action.summary.clone(),
        ]);
    }
    let mut text = table.to_string();
    if record.actions.len() > SHOWN_ACTIONS {
        text.push_str(&format!(
            "\n… and {} further requests",
            record.actions.len() - SHOWN_ACTIONS
        ));
    }
    for hypothesis in &record.hypotheses {
        text.push_str(&format!(
            "\n{} after {}, confidence {:.2}: {}",
            hypothesis.primary_category,
            seconds(hypothesis.at_ms.saturating_sub(start)),
            hypothesis.confidence,
            hypothesis.reasoning
        ));
    }
    text
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
        "1.000".to_owned(),
        format!("rubric {}", score.rubric),
    ]);
    table.to_string()
}

fn ending(finished: &Finished) -> String {
    let record = &finished.record;
    let mut lines = Vec::new();
    if let Some(postmortem) = &record.postmortem {
        lines.push(format!("postmortem  {}", postmortem.final_diagnosis));
    } else if record.state == RunState::Timeout {
        lines.push("postmortem  none came in by the end of the budget".to_owned());
    }
    for kept in &record.undo.kept {
        lines.push(format!("undo kept   {kept}"));
    }
    if record.undo.quarantined {
        lines.push("cluster     could not be proven to be as it was".to_owned());
    } else if record.state_hash_after.is_some() {
        lines.push("cluster     proven to be as it was".to_owned());
    }
    if !record.qualified {
        lines.push(
            "unqualified: the scenario has no valid qualification on this cluster".to_owned(),
        );
    }
    lines.join("\n")
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
