//! Condition expressions: what can be tested, and what must be read for it.
//!
//! Parsing knows no cluster; whether an object exists is a matter of evaluation.

mod grammar;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::detect::expression::grammar::test;
use crate::detect::promql;
use crate::detect::syntax::{Fault, SyntaxError};
use crate::record::observation::ObjectName;

pub use crate::detect::expression::grammar::is_label;

/// Longer expressions are refused: none of any use comes near it.
pub const MAX_EXPRESSION_BYTES: usize = 8 * 1024;

/// A parsed condition expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// As written.
    pub text: String,
    pub test: Test,
}

/// What an expression tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `deployment.<ns>.<name>.<field> <op> <n or desiredReplicas>`, and the same for `statefulset`.
    Workload {
        kind: WorkloadKind,
        object: ObjectName,
        field: WorkloadField,
        op: Op,
        against: Against,
    },
    /// `pod.<ns>.<name>.phase == <phase>`; the name is a pod's or its owner's.
    PodPhase {
        object: ObjectName,
        negated: bool,
        phase: String,
    },
    /// `promql: <query> <op> <number>`.
    Promql { query: String, op: Op, value: f64 },
    /// `error_rate{ns=<ns>} <op> <number>`.
    ErrorRate {
        namespace: String,
        op: Op,
        value: f64,
    },
    /// `cluster_slo_delta <op> <number> [in any out-of-scope namespace]`.
    SloDelta {
        op: Op,
        value: f64,
        out_of_scope_only: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum WorkloadKind {
    Deployment,
    StatefulSet,
}

impl WorkloadKind {
    /// The word of the expression language.
    pub fn word(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "deployment",
            WorkloadKind::StatefulSet => "statefulset",
        }
    }

    /// The Kubernetes kind.
    pub fn kind(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "Deployment",
            WorkloadKind::StatefulSet => "StatefulSet",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadField {
    ReadyReplicas,
    /// Those that exist: `status.replicas`.
    Replicas,
    /// `spec.replicas`.
    DesiredReplicas,
    AvailableReplicas,
    UpdatedReplicas,
    /// Restarts of its pods' containers since the condition began to hold.
    Restarts,
}

/// Field words, in the order in which messages list them.
pub const WORKLOAD_FIELDS: [(&str, WorkloadField); 6] = [
    ("readyReplicas", WorkloadField::ReadyReplicas),
    ("replicas", WorkloadField::Replicas),
    ("desiredReplicas", WorkloadField::DesiredReplicas),
    ("availableReplicas", WorkloadField::AvailableReplicas),
    ("updatedReplicas", WorkloadField::UpdatedReplicas),
    ("restarts", WorkloadField::Restarts),
];

impl WorkloadField {
    pub fn word(self) -> &'static str {
        WORKLOAD_FIELDS
            .iter()
            .find(|(_, field)| *field == self)
            .map_or("", |(word, _)| word)
    }
}

/// The right side of a workload comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    Number(i64),
    DesiredReplicas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Op {
    pub fn compare<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Op::Equal => left == right,
            Op::NotEqual => left != right,
            Op::Less => left < right,
            Op::LessOrEqual => left <= right,
            Op::Greater => left > right,
            Op::GreaterOrEqual => left >= right,
        }
    }

    /// Whether it bounds its left side from above, so that a growing number breaks it.
    pub fn bounds_from_above(self) -> bool {
        matches!(self, Op::Equal | Op::Less | Op::LessOrEqual)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Op::Equal => "==",
            Op::NotEqual => "!=",
            Op::Less => "<",
            Op::LessOrEqual => "<=",
            Op::Greater => ">",
            Op::GreaterOrEqual => ">=",
        })
    }
}

/// What must be read to evaluate some expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub deployments: BTreeSet<ObjectName>,
    pub statefulsets: BTreeSet<ObjectName>,
    /// Namespaces whose pods are wanted.
    pub pods: BTreeSet<String>,
    /// Something that only Prometheus knows.
    pub prometheus: bool,
    /// What it is asked.
    pub queries: BTreeSet<String>,
}

impl Needs {
    /// Everything that any of the expressions needs.
    pub fn of<'a>(expressions: impl IntoIterator<Item = &'a Expression>) -> Needs {
        let mut needs = Needs::default();
        for expression in expressions {
            expression.add_needs(&mut needs);
        }
        needs
    }
}

impl Expression {
    /// Parses an expression, or says at which column it stops making sense.
    pub fn parse(text: &str) -> Result<Expression, SyntaxError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            let message = format!("longer than {MAX_EXPRESSION_BYTES} bytes");
            return Err(Fault::at(text, message).in_text(text));
        }
        let mut left = text;
        test(&mut left)
            .map(|test| Expression {
                text: text.trim().to_owned(),
                test,
            })
            .map_err(|fault| fault.in_text(text))
    }

    /// Whether it can be answered at all, with or without a Prometheus.
    pub fn is_answerable(&self, has_prometheus: bool) -> bool {
        let needs = self.needs();
        !needs.prometheus || (has_prometheus && !needs.queries.is_empty())
    }

    /// What must be read to evaluate this expression.
    pub fn needs(&self) -> Needs {
        Needs::of([self])
    }

    fn add_needs(&self, needs: &mut Needs) {
        match &self.test {
            Test::Workload {
                kind,
                object,
                field,
                ..
            } => {
                let set = match kind {
                    WorkloadKind::Deployment => &mut needs.deployments,
                    WorkloadKind::StatefulSet => &mut needs.statefulsets,
                };
                set.insert(object.clone());
                if *field == WorkloadField::Restarts {
                    needs.pods.insert(object.namespace.clone());
                }
            }
            Test::PodPhase { object, .. } => {
                needs.pods.insert(object.namespace.clone());
            }
            Test::Promql { .. } | Test::ErrorRate { .. } | Test::SloDelta { .. } => {
                needs.prometheus = true;
                needs.queries.extend(promql::query_of(&self.test));
            }
        }
    }
}

#[cfg(test)]
mod tests;
