//! Programs that end by themselves for a reason that only they know: bad arguments, a missing binary, an init
//! step that fails, an error in their log.

use crate::agent::diagnose::Look;
use crate::agent::diagnose::log_line::{missing_variable, refuses_credentials, telling_line};
use crate::agent::evidence::field::Field;
use crate::agent::evidence::{Container, Ended, Pod};
use crate::agent::finding::{Finding, Repair, category, from_history};

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let crashed = look.workload.containers().find_map(|(pod, container)| {
        let end = container.latest_end()?;
        let failing = !container.ready && (end.exit_code != 0 || container.restarts > 0);
        let other = end.reason == "OOMKilled"
            || end.message.to_lowercase().contains("oom-killed")
            || look.was_killed_by_probe(&container.name);
        // An init container that has done its work is not ready any more, and well.
        let done = container.is_init && end.exit_code == 0;
        (failing && !other && !done).then_some((pod, container, end))
    });
    crashed
        .map(|(pod, container, end)| explain(look, pod, container, end))
        .into_iter()
        .collect()
}

fn explain(look: &Look<'_>, pod: &Pod, container: &Container, end: &Ended) -> Finding {
    let explained = if container.is_init {
        init(look, container)
    } else {
        program(look, container, end)
    };
    let log = telling_line(container.log_lines().collect::<Vec<_>>().into_iter()).map(|line| {
        format!(
            "log of pod {}, container {}: {line}",
            pod.name, container.name
        )
    });
    let message =
        (!end.message.is_empty()).then(|| format!("container {}: {}", container.name, end.message));
    explained
        .quote(format!(
            "pod {}: container {} ended with reason {}, exit code {}, {} restarts",
            pod.name, container.name, end.reason, end.exit_code, container.restarts
        ))
        .quotes(message)
        .quotes(log)
}

fn program(look: &Look<'_>, container: &Container, end: &Ended) -> Finding {
    let workload = look.workload;
    let mine = |field: &Field| field.in_container(&container.name);
    let started =
        |field: &Field| mine(field) && (field.is_at(&["args"]) || field.is_at(&["command"]));
    let called = from_history(workload, started);
    let cannot_start = end.reason == "StartError" || end.reason == "ContainerCannotRun";
    // A log that names its trouble is explained by another family, better than by what changed.
    let explained_elsewhere = container
        .log_lines()
        .any(|line| missing_variable(line).is_some() || refuses_credentials(line));
    let (confidence, what, repairs) = if !called.is_empty() {
        let confidence = if explained_elsewhere { 60 } else { 95 };
        (
            confidence,
            "was rolled out with a command line that does not work",
            called,
        )
    } else if cannot_start {
        (
            85,
            "is told to run a program that its image does not have",
            Vec::new(),
        )
    } else {
        let changed = from_history(workload, |field| {
            mine(field) && !field.is_at(&["resources"])
        });
        match (changed.is_empty(), explained_elsewhere) {
            (false, false) => (74, "ends with an error since its last rollout", changed),
            (false, true) => (45, "ends with an error since its last rollout", changed),
            (true, _) => (35, "ends with an error of its own", restart(look)),
        }
    };
    let statement = format!(
        "container {} of {} {what}",
        container.name, workload.subject
    );
    let secondary: &[&'static str] = if repairs.iter().any(|r| !r.fields.is_empty()) || cannot_start
    {
        &[category::ROLLOUT]
    } else {
        &[]
    };
    Finding::new(
        workload,
        format!("crash/{}", container.name),
        category::APPLICATION_ERROR,
        confidence,
        statement,
    )
    .secondary(secondary)
    .quotes(repairs.iter().map(Repair::words))
    .repairs(repairs)
}

/// The last resort, which at least lets the program read its configuration anew.
fn restart(look: &Look<'_>) -> Vec<Repair> {
    vec![Repair {
        target: look.workload.subject.clone(),
        fields: Vec::new(),
        restart: Some(look.workload.subject.clone()),
        why: "nothing in the cluster explains the error; a restart reads configuration anew"
            .to_owned(),
    }]
}

fn init(look: &Look<'_>, container: &Container) -> Finding {
    let workload = look.workload;
    let repairs = from_history(workload, |field| {
        field.in_container(&container.name) || field.is_at(&["initContainers"])
    });
    let migrates = container.log_lines().any(|line| {
        let lower = line.to_lowercase();
        lower.contains("migration") || lower.contains("schema")
    });
    let mut secondary = vec![category::ROLLOUT];
    if migrates {
        secondary.push(category::SCHEMA_MIGRATION);
    }
    let statement = format!(
        "init container {} of {} fails, so its pods never start",
        container.name, workload.subject
    );
    let confidence = if repairs.is_empty() { 70 } else { 92 };
    Finding::new(
        workload,
        format!("crash/init/{}", container.name),
        category::APPLICATION_ERROR,
        confidence,
        statement,
    )
    .secondary(&secondary)
    .quotes(repairs.iter().map(Repair::words))
    .repairs(repairs)
}
