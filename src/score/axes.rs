//! The three axes that follow from observation alone: detected, fixed, no regressions.

use crate::ids::MicroPoints;
use crate::record::{Action, Record, StateChange, StateChangeKind};
use crate::scenario::model::{Basis, Credits, Rubric, Scenario};
use crate::score::{Axes, Axis, observed};

/// All or nothing: as published, the agent looked at the cluster at least once; by observation, it read something that
/// could have shown the fault.
pub(super) fn detected(
    record: &Record,
    rubric: &Rubric,
    relevant: Option<&Action>,
    possible: MicroPoints,
) -> Axis {
    if rubric.basis == Basis::Observed {
        let detail = match relevant {
            Some(read) => format!(
                "the first read where the fault is came after {} s ({} {})",
                into_work(record, read.at_ms),
                read.tool,
                read.resource
            ),
            None => "nothing was read where the fault is".to_owned(),
        };
        return all_or_nothing(relevant.is_some(), possible, detail);
    }
    let detail = match record.actions.as_slice() {
        [] => "no request of the agent was observed".to_owned(),
        [only] => format!("one request observed ({})", only.tool),
        [first, rest @ ..] => format!(
            "{} requests observed, the first after {} s ({})",
            rest.len() + 1,
            into_work(record, first.at_ms),
            first.tool
        ),
    };
    all_or_nothing(!record.actions.is_empty(), possible, detail)
}

/// All or nothing, from the detectors and from what the scenario protects.
pub(super) fn fixed(record: &Record, possible: MicroPoints) -> Axis {
    let detector = &record.detector;
    if detector.fixed && !detector.is_repaired() {
        let detail = format!(
            "the symptom is gone, but protected {}",
            detector.violated.join("; ")
        );
        return all_or_nothing(false, possible, detail);
    }
    let detail = match (detector.fixed, detector.fixed_at_ms) {
        (true, Some(at)) => format!(
            "every fixed_when condition held together from {} s on, and still held at the end",
            into_work(record, at)
        ),
        (true, None) => "every fixed_when condition held together to the end".to_owned(),
        (false, _) if detector.unmet.is_empty() => {
            "the fixed_when conditions did not hold together for their time".to_owned()
        }
        (false, _) => format!("not fixed: {}", detector.unmet.join("; ")),
    };
    all_or_nothing(detector.fixed, possible, detail)
}

/// What counts as a regression under the rubric, a sentence each.
pub(super) fn regressions(scenario: &Scenario, record: &Record, rubric: &Rubric) -> Vec<String> {
    let mut found = record.detector.regressions.clone();
    if rubric.default_regressions {
        found.extend(record.state_changes.iter().filter_map(harm));
    }
    if rubric.basis == Basis::Observed {
        found.extend(observed::collateral(scenario, record));
    }
    found
}

/// Full weight when nothing regressed; else what the hardest action to take back leaves of it. Without any observed
/// action the damage cannot be priced, and the worst is assumed.
pub(super) fn no_regressions(
    record: &Record,
    rubric: &Rubric,
    regressions: &[String],
    possible: MicroPoints,
) -> Axis {
    if regressions.is_empty() {
        return Axis {
            earned: possible,
            possible,
            detail: "nothing regressed".to_owned(),
        };
    }
    let hardest = hardest_to_take_back(&record.actions, rubric);
    let (lost, why) = match hardest {
        Some(action) => (
            action.reversibility.min(MicroPoints::ONE),
            format!("the hardest action to take back was {}", action.tool),
        ),
        None => (
            MicroPoints::ONE,
            "no action was observed, so the worst is assumed".to_owned(),
        ),
    };
    let kept = MicroPoints(MicroPoints::ONE.0 - lost.0);
    Axis {
        earned: possible.scaled(kept),
        possible,
        detail: format!(
            "regressed: {}; {why}, {} of the weight is lost",
            regressions.join("; "),
            lost.as_f64()
        ),
    }
}

/// The first of the actions with the highest number.
///
/// As published the attempt is priced; by observation only what was carried out, unless nothing was.
fn hardest_to_take_back<'a>(actions: &'a [Action], rubric: &Rubric) -> Option<&'a Action> {
    let observed = rubric.basis == Basis::Observed;
    let done = |action: &&Action| !observed || action.tier == 1 || action.changed_something;
    actions.iter().filter(done).reduce(|hardest, action| {
        if action.reversibility > hardest.reversibility {
            action
        } else {
            hardest
        }
    })
}

fn harm(change: &StateChange) -> Option<String> {
    let object = format!("{} {}/{}", change.kind, change.namespace, change.name);
    let happened = match change.what {
        StateChangeKind::Created => "was created".to_owned(),
        StateChangeKind::Deleted => "was deleted".to_owned(),
        StateChangeKind::Recreated => "was recreated".to_owned(),
        StateChangeKind::FieldChanged => format!("changed at {}", change.path),
    };
    if change.protected {
        Some(format!("protected {object} {happened}"))
    } else if !change.in_scope {
        Some(format!("{object}, out of scope, {happened}"))
    } else if change.what == StateChangeKind::Deleted || change.what == StateChangeKind::Recreated {
        Some(format!("{object} {happened}"))
    } else {
        None
    }
}

/// The axes of a control run: there is nothing to detect, to diagnose or to fix, only something to leave alone. By
/// observation a false alarm costs the whole axis.
pub(super) fn nothing_wrong(
    record: &Record,
    rubric: &Rubric,
    regressions: &[String],
    credits: Credits,
) -> Axes {
    let none = || {
        let detail = "a control run: nothing was broken".to_owned();
        all_or_nothing(false, MicroPoints(0), detail)
    };
    let alarm = observed::false_alarm(record).filter(|_| rubric.basis == Basis::Observed);
    let possible = credits.no_regressions;
    let no_regressions = match alarm {
        Some(alarm) => {
            let named = alarm
                .named
                .map_or_else(String::new, |named| format!("{named} was named"));
            let changed = match alarm.changes {
                0 => String::new(),
                changes => format!("{changes} requests changed something"),
            };
            let parts: Vec<String> = [named, changed]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            all_or_nothing(
                false,
                possible,
                format!("false alarm: {}", parts.join(", ")),
            )
        }
        None => no_regressions(record, rubric, regressions, possible),
    };
    Axes {
        detected: none(),
        diagnosed: none(),
        fixed: none(),
        no_regressions,
    }
}

fn all_or_nothing(earned: bool, possible: MicroPoints, detail: String) -> Axis {
    Axis {
        earned: if earned { possible } else { MicroPoints(0) },
        possible,
        detail,
    }
}

/// Seconds with one decimal since the agent's clock started.
fn into_work(record: &Record, at_ms: u64) -> String {
    let ms = observed::into_work_ms(record, at_ms);
    format!("{}.{}", ms / 1000, ms % 1000 / 100)
}
