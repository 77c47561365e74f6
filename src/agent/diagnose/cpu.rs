//! Containers that are throttled: they run, log no error, and answer too late.

use serde_json::json;

use crate::agent::diagnose::Look;
use crate::agent::diagnose::probe::{Failure, probe_failures};
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::quantity::{millicores, thousandths};
use crate::agent::evidence::{Container, State};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

/// In thousandths of a core: below it even an idle runtime is slow.
const TINY: i128 = 50;
/// A limit that was at least this many times larger counts as lowered.
const LOWERED_BY: i128 = 2;
/// How much more is given where history has no value.
const RAISE: i128 = 10;

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (pod, container) in look.workload.containers() {
        let Some(limit) = look.limit(&container.name, "cpu") else {
            continue;
        };
        let Some(now) = thousandths(&limit) else {
            continue;
        };
        if crashed_by_itself(look, container) {
            continue;
        }
        let failures = probe_failures(look, pod, container);
        let late: Vec<&Failure> = failures.iter().filter(|f| f.is_timeout()).collect();
        let slow =
            !container.ready && matches!(container.state, State::Running) && !failures.is_empty();
        let history = history(look, container, now);
        let confidence = match (late.is_empty(), history.is_empty(), now <= TINY) {
            (false, false, _) => 94,
            (false, true, true) => 86,
            (false, true, false) => 45,
            // Not yet a time-out, but a start-up that does not get on after the limit was cut.
            (true, false, true) if slow => 72,
            _ => continue,
        };
        let statement = format!(
            "container {} of {} is throttled: its cpu limit of {limit} is too small for start-up and health checks, \
             which answer too late while its log shows no error",
            container.name, look.workload.subject
        );
        let raised = millicores((now * RAISE).max(TINY * RAISE));
        let raise = Field {
            path: look.container_path(container, &["resources", "limits", "cpu"]),
            is: Some(json!(limit)),
            wanted: Some(json!(raised)),
        };
        let raise = setting(
            &look.workload.subject,
            raise,
            "ten times the limit; history has no larger one",
        );
        found.push(
            Finding::new(
                look.workload,
                format!("cpu/{}", container.name),
                category::RESOURCE_LIMIT,
                confidence,
                statement,
            )
            .quotes(late.iter().map(|failure| failure.quote()))
            .quotes(history.iter().map(Repair::words))
            .repairs(history)
            .repairs([raise]),
        );
    }
    found
}

/// Earlier cpu fields, where the earlier limit was clearly larger or there was none.
fn history(look: &Look<'_>, container: &Container, now: i128) -> Vec<Repair> {
    from_history(look.workload, |field| {
        field.in_container(&container.name)
            && field.is_at(&["resources"])
            && field.path.last() == Some(&Step::Key("cpu".to_owned()))
            || is_whole_resources(field, &container.name)
    })
    .into_iter()
    .filter(|repair| repair.fields.iter().any(|field| raises(field, now)))
    .collect()
}

fn is_whole_resources(field: &Field, container: &str) -> bool {
    let last_is = |key: &str| field.path.last() == Some(&Step::Key(key.to_owned()));
    field.in_container(container)
        && field.is_at(&["resources"])
        && (last_is("limits") || last_is("requests") || last_is("resources"))
}

fn raises(field: &Field, now: i128) -> bool {
    if !field.is_at(&["limits"]) {
        return false;
    }
    let wanted = match field.path.last() {
        Some(Step::Key(key)) if key == "cpu" => field.wanted.as_ref().and_then(|v| v.as_str()),
        _ => field.wanted.as_ref().and_then(|v| v["cpu"].as_str()),
    };
    wanted.is_none_or(|value| thousandths(value).is_some_and(|was| was >= now * LOWERED_BY))
}

/// Ended with an error that no probe caused: a throttled program is only slow.
fn crashed_by_itself(look: &Look<'_>, container: &Container) -> bool {
    container.latest_end().is_some_and(|end| end.exit_code != 0)
        && !look.was_killed_by_probe(&container.name)
}
