//! Faults: one file per injector. Each reads the live object, plans field by field, and only then writes.
//!
//! [`plan`] reads and previews, [`write::apply`] writes one guarded request per object, [`undo::undo`] takes back
//! field by field. The caller puts the plan into the journal, durably, between planning and writing. Nothing here
//! waits for a symptom, knows a detector, or uses a name that gives the fault away.

pub mod amount;
pub mod change;
pub mod configmap_patch;
pub mod creation;
pub mod deployment_patch;
pub mod field;
pub mod flagd_flag;
pub mod journal;
pub mod network_policy;
pub mod pod_evict;
pub mod preview;
pub mod restart;
pub mod secret_content;
pub mod undo;
pub mod write;

use crate::cluster::ClusterError;
use crate::inject::change::Plan;
use crate::inject::field::PathError;
use crate::record::FrameworkCode;
use crate::scenario::model::Injector;

/// Why a fault was not, or not completely, injected.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    #[error("{object} does not exist")]
    TargetMissing { object: String },
    #[error("{object} has no such place")]
    NoSuchPlace {
        object: String,
        #[source]
        source: PathError,
    },
    #[error("{object} has no field {field}: the server drops it")]
    UnknownField { object: String, field: String },
    #[error("{object} already is as the fault would make it: {what}")]
    WithoutEffect { object: String, what: String },
    #[error("{object} refused the fault ({code}): {message}")]
    Refused {
        object: String,
        code: u16,
        message: String,
    },
    #[error("{object} changed {attempts} times while the fault was being written")]
    Contended { object: String, attempts: u32 },
    #[error("{what} is not something that this injector can do")]
    Unsupported { what: String },
    #[error(
        "{object} would hold {after} bytes, more than the {limit} that the server allows (now {before})"
    )]
    TooLarge {
        object: String,
        before: usize,
        after: usize,
        limit: usize,
    },
    #[error("{whose} has {ready} ready pod(s), and {wanted} are to be evicted")]
    TooFewPods {
        whose: String,
        ready: usize,
        wanted: usize,
    },
    #[error("{object}")]
    Flag {
        object: String,
        #[source]
        source: flagd_flag::FlagError,
    },
    #[error("the cluster could not be used")]
    Cluster(#[from] ClusterError),
}

impl InjectError {
    /// The framework code of a run that ends with it.
    pub fn code(&self) -> FrameworkCode {
        match self {
            InjectError::TargetMissing { .. }
            | InjectError::NoSuchPlace { .. }
            | InjectError::UnknownField { .. }
            | InjectError::TooFewPods { .. }
            | InjectError::Flag { .. }
            | InjectError::WithoutEffect { .. } => FrameworkCode::InjectionWithoutEffect,
            InjectError::Unsupported { .. }
            | InjectError::TooLarge { .. }
            | InjectError::Refused { .. }
            | InjectError::Contended { .. } => FrameworkCode::InjectionRefused,
            InjectError::Cluster(ClusterError::Api { .. }) => FrameworkCode::InjectionRefused,
            InjectError::Cluster(_) => FrameworkCode::ClusterUnreachable,
        }
    }
}

/// Plans a fault against the live objects. Nothing is written. `now` is the cluster's time, RFC 3339 to the second.
pub async fn plan(
    client: &kube::Client,
    injector: &Injector,
    now: &str,
) -> Result<Plan, InjectError> {
    let namespace = injector.namespace();
    let mut plan = match injector {
        Injector::DeploymentPatch {
            deployment,
            mutation,
            ..
        } => deployment_patch::plan(client, namespace, deployment, mutation).await,
        Injector::ConfigmapPatch {
            configmap,
            mutation,
            ..
        } => configmap_patch::plan(client, namespace, configmap, mutation).await,
        Injector::SecretContent {
            secret,
            values,
            ops,
            ..
        } => {
            let contents = secret_content::Contents {
                namespace,
                secret,
                values,
                ops,
            };
            secret_content::plan(client, &contents).await
        }
        Injector::NetworkPolicy { spec, .. } => network_policy::plan(client, namespace, spec).await,
        Injector::PodEvict {
            victims, how_many, ..
        } => pod_evict::plan(client, namespace, victims, *how_many).await,
        Injector::FlagdFlag {
            configmap,
            flag,
            variant,
            config_key,
            ..
        } => {
            let wanted = flagd_flag::Flag {
                namespace,
                configmap,
                config_key,
                flag,
                variant,
            };
            flagd_flag::plan(client, &wanted).await
        }
    }?;
    for workload in injector.restart_workloads() {
        plan.changes
            .push(restart::plan(client, namespace, workload, now).await?);
    }
    Ok(plan)
}
