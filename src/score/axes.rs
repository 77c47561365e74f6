//! The three axes that follow from observation alone: detected, fixed, no regressions.

use crate::ids::MicroPoints;
use crate::record::{Action, Record, StageName, StateChange, StateChangeKind};
use crate::scenario::model::Rubric;
use crate::score::Axis;

/// All or nothing: the agent looked at the cluster at least once.
pub(super) fn detected(record: &Record, possible: MicroPoints) -> Axis {
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

/// All or nothing, from the detectors.
pub(super) fn fixed(record: &Record, possible: MicroPoints) -> Axis {
    let detector = &record.detector;
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
pub(super) fn regressions(record: &Record, rubric: &Rubric) -> Vec<String> {
    let mut found = record.detector.regressions.clone();
    if rubric.default_regressions {
        found.extend(record.state_changes.iter().filter_map(harm));
    }
    found
}

/// Full weight when nothing regressed; else what the hardest action to take back leaves of it. Without any observed
/// action the damage cannot be priced, and the worst is assumed.
pub(super) fn no_regressions(
    record: &Record,
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
    let hardest = hardest_to_take_back(&record.actions);
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
fn hardest_to_take_back(actions: &[Action]) -> Option<&Action> {
    actions.iter().reduce(|hardest, action| {
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
    } else if change.what == StateChangeKind::Deleted {
        Some(format!("{object} {happened}"))
    } else {
        None
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
    let start = record
        .stages
        .iter()
        .find(|stage| stage.stage == StageName::Work)
        .map_or(0, |stage| stage.started_ms);
    let ms = at_ms.saturating_sub(start);
    format!("{}.{}", ms / 1000, ms % 1000 / 100)
}
