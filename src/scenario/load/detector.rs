//! The detector of a scenario file and its other lists of conditions.

use crate::detect::condition::Condition;
use crate::detect::expression::{Expression, Test};
use crate::scenario::decode::{Fields, items, text, whole};
use crate::scenario::model::{Detector, Scorer};
use crate::scenario::problem::{Notes, Position};
use crate::scenario::yaml::{Body, Node};

/// The keys of a condition.
pub const CONDITION_KEYS: [&str; 4] = [
    "expression",
    "sustained_for_s",
    "skip_if_unevaluable",
    "allow_zero",
];
/// A condition cannot be asked to hold longer than the longest time budget.
const MAX_SUSTAINED_S: u32 = 7200;

pub(super) fn detector(fields: &Fields<'_>, notes: &mut Notes) -> Option<Detector> {
    let node = fields.need("detector", "fixed_when and regressed_when", notes)?;
    let detector = Fields::of(node, "detector", notes)?;
    detector.known(&["fixed_when", "regressed_when"], notes);
    let fixed_when = match detector.need("fixed_when", "a list of conditions", notes) {
        Some(node) => {
            if matches!(&node.body, Body::List(items) if items.is_empty()) {
                notes.problem(
                    node.at,
                    "detector.fixed_when",
                    "is empty, expected at least one condition",
                );
            }
            conditions(&detector, "fixed_when", notes)
        }
        None => None,
    };
    let regressed_when = conditions(&detector, "regressed_when", notes);
    Some(Detector {
        fixed_when: fixed_when?,
        regressed_when: regressed_when?,
    })
}

/// A list of conditions; empty when the key is not given.
pub(super) fn conditions(
    fields: &Fields<'_>,
    key: &str,
    notes: &mut Notes,
) -> Option<Vec<Condition>> {
    let Some(node) = fields.get(key) else {
        return Some(Vec::new());
    };
    let path = fields.sub(key);
    let list = items(node, &path, notes);
    let decoded: Vec<Option<Condition>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| condition(item, &format!("{path}[{index}]"), notes))
        .collect();
    decoded.into_iter().collect()
}

fn condition(node: &Node, path: &str, notes: &mut Notes) -> Option<Condition> {
    let fields = Fields::of(node, path, notes)?;
    fields.known(&CONDITION_KEYS, notes);
    let sustained_for_s = match fields.get("sustained_for_s") {
        Some(node) => whole(
            node,
            &fields.sub("sustained_for_s"),
            0..=MAX_SUSTAINED_S,
            notes,
        ),
        None => Some(0),
    };
    let skip_if_unevaluable = fields.flag("skip_if_unevaluable", notes);
    let allow_zero = fields.flag("allow_zero", notes);
    let written = fields.need("expression", "a condition expression", notes)?;
    let path = fields.sub("expression");
    let source = text(written, &path, notes)?;
    let expression = match Expression::parse(&source) {
        Ok(expression) => expression,
        Err(error) => {
            notes.problem(written.position_of(error.offset), &path, error.message);
            return None;
        }
    };
    Some(Condition {
        text: expression.text.clone(),
        expression,
        sustained_for_s: sustained_for_s?,
        skip_if_unevaluable,
        allow_zero,
    })
}

/// What can only be judged with the scorer at hand.
pub(super) fn check_against_scorer(
    fields: &Fields<'_>,
    detector: &Detector,
    manifest_when: &[Condition],
    scorer: &Scorer,
    notes: &mut Notes,
) {
    let node = fields.get("detector");
    let list = |key: &str| node.and_then(|node| node.get(key));
    let fixed = located(
        list("fixed_when"),
        "detector.fixed_when",
        &detector.fixed_when,
    );
    let regressed = located(
        list("regressed_when"),
        "detector.regressed_when",
        &detector.regressed_when,
    );
    let manifest = located(fields.get("manifest_when"), "manifest_when", manifest_when);
    for (at, path, condition) in fixed.iter().chain(&regressed).chain(&manifest) {
        if condition.sustained_for_s > scorer.time_budget_s {
            let message = format!(
                "{} s is longer than the time budget of {} s",
                condition.sustained_for_s, scorer.time_budget_s
            );
            notes.problem(*at, &format!("{path}.sustained_for_s"), message);
        }
    }
    for (at, path, condition) in &fixed {
        if let Test::Workload { object, .. } | Test::PodPhase { object, .. } =
            &condition.expression.test
            && !scorer.scope.contains(&object.namespace)
        {
            let message = format!(
                "looks at namespace {}, which is not in scorer.scope",
                object.namespace
            );
            notes.warning(*at, path, message);
        }
    }
}

/// Conditions with the place and path of their list's items.
fn located<'a>(
    node: Option<&Node>,
    path: &str,
    conditions: &'a [Condition],
) -> Vec<(Position, String, &'a Condition)> {
    let Some(Body::List(items)) = node.map(|node| &node.body) else {
        return Vec::new();
    };
    let each = items.iter().zip(conditions).enumerate();
    each.map(|(index, (item, condition))| (item.at, format!("{path}[{index}]"), condition))
        .collect()
}
