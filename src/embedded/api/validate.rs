//! Validation of objects, with the paths and texts of the real server.
//!
//! Objects have been decoded and defaulted before, so fields have their types. Each function pushes what it
//! finds, in the real server's order, and never stops at the first error.

use serde_json::Value;

use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::write::{Part, text};
use crate::embedded::kind::Kind;

pub mod config;
pub mod container;
pub mod meta;
pub mod name;
pub mod placement;
pub mod pod;
pub mod probe;
pub mod service;
pub mod workload;

/// Where validators put what they find.
pub type Errors = Vec<FieldError>;

/// What is wrong with an object that is to be created.
pub fn new_object(kind: Kind, object: &Value) -> Errors {
    let mut errors = Errors::new();
    meta::new_metadata(kind, &object["metadata"], &mut errors);
    content(kind, object, &mut errors);
    errors
}

/// What is wrong with an object that is to take the place of `old`.
pub fn changed_object(kind: Kind, old: &Value, object: &Value, part: Part) -> Errors {
    let mut errors = Errors::new();
    if part == Part::Status {
        return errors;
    }
    meta::changed_metadata(&object["metadata"], &mut errors);
    if kind == Kind::Pod {
        pod::changed(old, object, &mut errors);
        return errors;
    }
    content(kind, object, &mut errors);
    match kind {
        Kind::Deployment | Kind::ReplicaSet | Kind::DaemonSet => {
            workload::selector_unchanged(old, object, &mut errors);
        }
        Kind::StatefulSet => workload::stateful_set_unchanged(old, object, &mut errors),
        Kind::Job => workload::job_unchanged(old, object, &mut errors),
        Kind::ConfigMap | Kind::Secret => config::unchanged(kind, old, object, &mut errors),
        Kind::Service => service::unchanged(old, object, &mut errors),
        Kind::RoleBinding | Kind::ClusterRoleBinding => {
            immutable(
                &Path::new("roleRef"),
                &old["roleRef"],
                &object["roleRef"],
                &mut errors,
            );
        }
        _ => {}
    }
    errors
}

fn content(kind: Kind, object: &Value, errors: &mut Errors) {
    match kind {
        Kind::Pod => pod::pod(object, errors),
        Kind::Deployment => workload::deployment(object, errors),
        Kind::ReplicaSet => workload::replica_set(object, errors),
        Kind::StatefulSet => workload::stateful_set(object, errors),
        Kind::DaemonSet => workload::daemon_set(object, errors),
        Kind::Job => workload::job(&object["spec"], &Path::new("spec"), errors),
        Kind::CronJob => workload::cron_job(object, errors),
        Kind::ConfigMap => config::config_map(object, errors),
        Kind::Secret => config::secret(object, errors),
        Kind::Service => service::service(object, errors),
        Kind::PodDisruptionBudget => workload::disruption_budget(object, errors),
        Kind::HorizontalPodAutoscaler => workload::autoscaler(object, errors),
        Kind::ResourceQuota => config::resource_quota(object, errors),
        Kind::Node => node_taints(object, errors),
        Kind::NetworkPolicy => config::network_policy(object, errors),
        _ => {}
    }
}

/// The path of these errors is the real server's, although taints stand in the spec.
fn node_taints(object: &Value, errors: &mut Errors) {
    let path = Path::new("metadata").child("taints");
    for (at, taint) in elements(&path, &object["spec"]["taints"]) {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        one_of(&at.child("effect"), &taint["effect"], &effects, errors);
    }
}

/// A field that must not change.
pub(crate) fn immutable(path: &Path, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.push(FieldError::invalid(path, new, "field is immutable"));
    }
}

/// A number that must not be negative; absent ones are fine.
pub(crate) fn not_negative(path: &Path, value: &Value, errors: &mut Errors) {
    if value.as_i64().is_some_and(|number| number < 0) {
        errors.push(FieldError::invalid(
            path,
            value,
            "must be greater than or equal to 0",
        ));
    }
}

/// A text that must be one of a few; absent ones are fine.
pub(crate) fn one_of(path: &Path, value: &Value, allowed: &[&str], errors: &mut Errors) {
    if !value.is_null() && !allowed.contains(&text(value)) {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
}

/// A text that must be there; answers whether it is.
pub(crate) fn required(path: &Path, value: &Value, errors: &mut Errors) -> bool {
    let there = !text(value).is_empty();
    if !there {
        errors.push(FieldError::required(path, ""));
    }
    there
}

/// The elements of a list with their paths; none when it is no list.
pub(crate) fn elements<'p, 'v>(
    path: &'p Path,
    list: &'v Value,
) -> impl Iterator<Item = (Path, &'v Value)> + use<'p, 'v> {
    list.as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, element)| (path.index(index), element))
}

#[cfg(test)]
mod tests;
