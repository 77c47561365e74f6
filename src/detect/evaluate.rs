//! Three-valued evaluation of one condition over one observation.
//!
//! Absence is part of the domain: a missing object makes every comparison false, also `!=`, and is named. What
//! could not be read is unknown, never false. Nothing here remembers; `watch` does.

use std::collections::BTreeMap;

use crate::detect::condition::Condition;
use crate::detect::expression::{Against, Op, Test, WorkloadField, WorkloadKind};
use crate::detect::promql;
use crate::record::observation::{Answer, ObjectName, Observation, PodFacts, WorkloadFacts};

/// What one observation says about one condition, with what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub truth: Truth,
    /// Evidence for a person: `readyReplicas is 0, desiredReplicas is 1`.
    pub seen: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    /// The object's counts are of an older generation: the condition does not hold, and nothing is shown either.
    NotObserved,
    /// This reading failed; another may succeed.
    Unknown,
    /// It can never be answered here, for instance for lack of Prometheus.
    Unevaluable,
}

/// Restart counts by pod uid at the moment from which restarts are counted. A pod that is not in it counts from 0.
pub type RestartBaseline = BTreeMap<String, i64>;

/// Judges a condition.
pub fn evaluate(
    condition: &Condition,
    observation: &Observation,
    since: &RestartBaseline,
) -> Reading {
    match &condition.expression.test {
        Test::Workload {
            kind,
            object,
            field: WorkloadField::Restarts,
            op,
            against,
        } => restarts(
            &RestartTest {
                kind: *kind,
                object,
                op: *op,
                against: *against,
            },
            condition,
            observation,
            since,
        ),
        Test::Workload {
            kind,
            object,
            field,
            op,
            against,
        } => match workload(*kind, object, observation) {
            Err(reading) => reading,
            Ok(facts) => compare(facts, *field, *op, *against, condition.allow_zero),
        },
        Test::PodPhase {
            object,
            negated,
            phase,
        } => pod_phase(object, *negated, phase, observation),
        Test::Promql { op, value, .. } | Test::ErrorRate { op, value, .. } => {
            metric(&condition.expression.test, *op, *value, observation)
        }
        Test::SloDelta { .. } => Reading {
            truth: Truth::Unevaluable,
            seen: match observation.metrics {
                None => NO_PROMETHEUS.to_owned(),
                Some(_) => "nobody has said yet what it is measured against".to_owned(),
            },
        },
    }
}

const NO_PROMETHEUS: &str = "needs Prometheus, which this cluster does not have";

/// Judges what Prometheus answered. No data is neither true nor false, and so is a query that is wrong: passing it over
/// as one that cannot be answered here would hide a mistake of the scenario.
fn metric(test: &Test, op: Op, value: f64, observation: &Observation) -> Reading {
    let Some(answers) = &observation.metrics else {
        return Reading {
            truth: Truth::Unevaluable,
            seen: NO_PROMETHEUS.to_owned(),
        };
    };
    let answer = promql::query_of(test).and_then(|query| answers.get(&query));
    match answer {
        Some(Answer::Number(text)) => match text.parse::<f64>() {
            Ok(number) if !number.is_nan() => {
                judged(op.compare(number, value), format!("it is {text}"))
            }
            _ => unknown(format!("{text:?} is no number")),
        },
        Some(Answer::NoData(reason)) => unknown(format!("no data: {reason}")),
        Some(Answer::Failed(reason)) => unknown(reason.clone()),
        Some(Answer::Refused(reason)) => {
            unknown(format!("the scenario's query is wrong: {reason}"))
        }
        None => unknown("Prometheus was not asked".to_owned()),
    }
}

/// The restart counts of a workload's pods, as a baseline for later readings.
pub fn restart_baseline(observation: &Observation) -> RestartBaseline {
    observation
        .pods
        .iter()
        .map(|pod| (pod.uid.clone(), pod.restarts))
        .collect()
}

fn workload<'a>(
    kind: WorkloadKind,
    object: &ObjectName,
    observation: &'a Observation,
) -> Result<&'a WorkloadFacts, Reading> {
    let label = format!("{}.{}.{}", kind.word(), object.namespace, object.name);
    if let Some(reason) = observation.unread.get(&label) {
        return Err(unknown(format!("{label} could not be read: {reason}")));
    }
    let map = match kind {
        WorkloadKind::Deployment => &observation.deployments,
        WorkloadKind::StatefulSet => &observation.statefulsets,
    };
    map.get(&Observation::key(&object.namespace, &object.name))
        .ok_or_else(|| absent(&label))
}

fn compare(
    facts: &WorkloadFacts,
    field: WorkloadField,
    op: Op,
    against: Against,
    allow_zero: bool,
) -> Reading {
    let counts = field != WorkloadField::DesiredReplicas;
    if counts && facts.observed_generation < facts.generation {
        return Reading {
            truth: Truth::NotObserved,
            seen: format!(
                "not observed yet (generation {}, observed {})",
                facts.generation, facts.observed_generation
            ),
        };
    }
    let left = match field {
        WorkloadField::ReadyReplicas => facts.ready,
        WorkloadField::Replicas => facts.replicas,
        WorkloadField::DesiredReplicas | WorkloadField::Restarts => facts.desired,
        WorkloadField::AvailableReplicas => facts.available,
        WorkloadField::UpdatedReplicas => facts.updated,
    };
    let (right, seen) = match against {
        Against::Number(number) => (number, format!("{} is {left}", field.word())),
        Against::DesiredReplicas => (
            facts.desired,
            format!(
                "{} is {left}, desiredReplicas is {}",
                field.word(),
                facts.desired
            ),
        ),
    };
    if against == Against::DesiredReplicas && left == 0 && right == 0 && !allow_zero {
        return no(format!("{seen}: nothing is wanted, which proves nothing"));
    }
    judged(op.compare(left, right), seen)
}

struct RestartTest<'a> {
    kind: WorkloadKind,
    object: &'a ObjectName,
    op: Op,
    against: Against,
}

fn restarts(
    test: &RestartTest<'_>,
    condition: &Condition,
    observation: &Observation,
    since: &RestartBaseline,
) -> Reading {
    if let Err(reading) = workload(test.kind, test.object, observation) {
        return reading;
    }
    if let Some(reading) = unread_pods(&test.object.namespace, observation) {
        return reading;
    }
    let owner = (test.kind.kind(), test.object.name.as_str());
    let pods: Vec<&PodFacts> = observation
        .pods
        .iter()
        .filter(|pod| pod.namespace == test.object.namespace)
        .filter(|pod| {
            pod.owner
                .as_ref()
                .is_some_and(|(kind, name)| (kind.as_str(), name.as_str()) == owner)
        })
        .collect();
    if pods.is_empty() && !condition.allow_zero {
        return no(format!("{} has no pods", test.object.name));
    }
    let count: i64 = pods
        .iter()
        .map(|pod| {
            pod.restarts
                .saturating_sub(since.get(&pod.uid).copied().unwrap_or(0))
                .max(0)
        })
        .fold(0, i64::saturating_add);
    let Against::Number(limit) = test.against else {
        return unknown("restarts can only be compared with a number".to_owned());
    };
    judged(
        test.op.compare(count, limit),
        format!("restarts is {count}"),
    )
}

fn pod_phase(
    object: &ObjectName,
    negated: bool,
    phase: &str,
    observation: &Observation,
) -> Reading {
    if let Some(reading) = unread_pods(&object.namespace, observation) {
        return reading;
    }
    let named = |pod: &&PodFacts| {
        pod.namespace == object.namespace
            && (pod.name == object.name
                || pod
                    .owner
                    .as_ref()
                    .is_some_and(|(_, name)| *name == object.name))
    };
    let all: Vec<&PodFacts> = observation.pods.iter().filter(named).collect();
    if all.is_empty() {
        return absent(&format!("pod.{}.{}", object.namespace, object.name));
    }
    let staying: Vec<&&PodFacts> = all.iter().filter(|pod| !pod.terminating).collect();
    if staying.is_empty() {
        return no(format!("every pod of {} is terminating", object.name));
    }
    let against = staying.iter().find(|pod| (pod.phase == phase) == negated);
    match against {
        Some(pod) => no(format!("pod {} is {}", pod.name, pod.phase)),
        None => judged(true, format!("{} pod(s) as wanted", staying.len())),
    }
}

fn unread_pods(namespace: &str, observation: &Observation) -> Option<Reading> {
    let label = format!("pods.{namespace}");
    let reason = observation.unread.get(&label)?;
    Some(unknown(format!("{label} could not be read: {reason}")))
}

fn judged(holds: bool, seen: String) -> Reading {
    let truth = if holds { Truth::True } else { Truth::False };
    Reading { truth, seen }
}

fn no(seen: String) -> Reading {
    judged(false, seen)
}

fn absent(label: &str) -> Reading {
    no(format!("{label} does not exist"))
}

fn unknown(seen: String) -> Reading {
    Reading {
        truth: Truth::Unknown,
        seen,
    }
}

#[cfg(test)]
mod tests;
