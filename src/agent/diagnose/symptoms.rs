//! What can be seen from outside, in words without names: the text with which past incidents are looked up.

use std::collections::BTreeSet;

use crate::agent::diagnose::log_line::telling_line;
use crate::agent::evidence::{Evidence, Workload};

/// Longer texts bring more noise than likeness.
const MAX_SYMPTOMS: usize = 24;

/// Reasons, exit codes, messages and error lines of everything that is not well. Names of objects are replaced by
/// what they are, so that likeness does not come from names.
pub fn symptoms(evidence: &Evidence) -> String {
    let mut seen = BTreeSet::new();
    for workload in evidence.workloads.iter().filter(|w| is_unwell(w)) {
        collect(workload, &mut seen);
    }
    let lines: Vec<String> = seen
        .into_iter()
        .map(|line| anonymous(&line, evidence))
        .take(MAX_SYMPTOMS)
        .collect();
    lines.join("\n")
}

/// Whether anything about a workload asks for an explanation.
pub fn is_unwell(workload: &Workload) -> bool {
    !workload.is_settled() || workload.desired == 0 || workload.restarts() > 0
}

fn collect(workload: &Workload, seen: &mut BTreeSet<String>) {
    if workload.desired == 0 {
        seen.insert("no replicas wanted".to_owned());
    } else if workload.ready < workload.desired {
        seen.insert("fewer replicas ready than wanted, service unavailable".to_owned());
    }
    for condition in workload.conditions.iter().filter(|c| c.status != "True") {
        seen.insert(format!("{} {}", condition.reason, condition.message));
    }
    for (_, container) in workload.containers() {
        if let Some((reason, message)) = container.waiting() {
            seen.insert(format!("{reason} {message}"));
        }
        if let Some(end) = container.latest_end() {
            seen.insert(format!("{} exit code {}", end.reason, end.exit_code));
        }
        let lines: Vec<&str> = container.log_lines().collect();
        if !container.ready
            && let Some(line) = telling_line(lines.into_iter())
        {
            seen.insert(line.to_owned());
        }
    }
    for event in workload.events.iter().filter(|event| event.warning) {
        seen.insert(format!("{} {}", event.reason, event.message));
    }
}

/// Replaces names of the cluster's objects, longest first, and numbers that differ from case to case.
fn anonymous(line: &str, evidence: &Evidence) -> String {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for workload in &evidence.workloads {
        names.push((&workload.subject.name, "the workload"));
        names.push((&workload.subject.namespace, "the namespace"));
        for pod in &workload.pods {
            names.push((&pod.name, "the pod"));
            names.extend(
                pod.containers
                    .iter()
                    .map(|c| (c.name.as_str(), "the container")),
            );
        }
    }
    names.sort_by_key(|(name, _)| (std::cmp::Reverse(name.len()), *name));
    names.dedup();
    let mut text = line.to_owned();
    for (name, kind) in names {
        text = with_word_replaced(&text, name, kind);
    }
    text
}

/// Replaces a name where it stands as a word of its own, so that a short name does not tear other words apart.
fn with_word_replaced(text: &str, name: &str, kind: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric();
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = (!name.is_empty()).then(|| rest.find(name)).flatten() {
        let (before, found) = rest.split_at(at);
        let after = &found[name.len()..];
        let apart = !before.ends_with(is_word) && !after.starts_with(is_word);
        result.push_str(before);
        result.push_str(if apart { kind } else { name });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_as_words_only() {
        let table = [
            (
                "container api of api-1 is rapid",
                "container X of X-1 is rapid",
            ),
            ("api", "X"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(with_word_replaced(text, "api", "X"), expected);
        }
    }
}
