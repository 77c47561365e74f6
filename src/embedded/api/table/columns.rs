//! The columns of every kind's table, in order.

use serde_json::{Value, json};

use crate::embedded::kind::Kind;

/// A column: its heading, the type of its cells, and whether only wide output shows it.
pub(super) struct Column {
    name: &'static str,
    cell: &'static str,
    wide: bool,
}

impl Column {
    pub(super) fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.cell,
            "format": if self.name == "Name" { "name" } else { "" },
            "description": "", "priority": i32::from(self.wide),
        })
    }
}

const fn column(name: &'static str, cell: &'static str, wide: bool) -> Column {
    Column { name, cell, wide }
}

const fn text(name: &'static str) -> Column {
    column(name, "string", false)
}

const fn wide(name: &'static str) -> Column {
    column(name, "string", true)
}

const fn integer(name: &'static str) -> Column {
    column(name, "integer", false)
}

const fn boolean(name: &'static str) -> Column {
    column(name, "boolean", false)
}

const NAME: Column = text("Name");
const AGE: Column = text("Age");
const CONTAINERS: Column = wide("Containers");
const IMAGES: Column = wide("Images");
const SELECTOR: Column = wide("Selector");

/// The columns of a kind.
pub(super) fn of(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Pod => POD,
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::DaemonSet => {
            of_workload(kind)
        }
        Kind::Job => JOB,
        Kind::CronJob => CRON_JOB,
        Kind::ControllerRevision => CONTROLLER_REVISION,
        Kind::Service => SERVICE,
        Kind::Endpoints => ENDPOINTS,
        Kind::EndpointSlice => ENDPOINT_SLICE,
        Kind::Ingress => INGRESS,
        Kind::IngressClass => INGRESS_CLASS,
        Kind::NetworkPolicy => NETWORK_POLICY,
        Kind::Node => NODE,
        Kind::Namespace => NAMESPACE,
        Kind::Event => EVENT,
        Kind::ConfigMap => CONFIG_MAP,
        Kind::Secret => SECRET,
        Kind::ServiceAccount => SERVICE_ACCOUNT,
        Kind::PersistentVolume => PERSISTENT_VOLUME,
        Kind::PersistentVolumeClaim => PERSISTENT_VOLUME_CLAIM,
        Kind::StorageClass => STORAGE_CLASS,
        Kind::ResourceQuota => RESOURCE_QUOTA,
        Kind::PodDisruptionBudget => POD_DISRUPTION_BUDGET,
        Kind::HorizontalPodAutoscaler => HORIZONTAL_POD_AUTOSCALER,
        Kind::Lease => LEASE,
        Kind::PriorityClass => PRIORITY_CLASS,
        Kind::RoleBinding | Kind::ClusterRoleBinding => ROLE_BINDING,
        Kind::ValidatingWebhookConfiguration | Kind::MutatingWebhookConfiguration => WEBHOOKS,
        Kind::LimitRange | Kind::Role | Kind::ClusterRole => PLAIN,
    }
}

fn of_workload(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Deployment => DEPLOYMENT,
        Kind::ReplicaSet => REPLICA_SET,
        Kind::StatefulSet => STATEFUL_SET,
        _ => DAEMON_SET,
    }
}

/// Kinds for which the server has no columns of their own.
const PLAIN: &[Column] = &[NAME, column("Created At", "date", false)];

const POD: &[Column] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready"),
    text("Up-to-date"),
    text("Available"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SET: &[Column] = &[NAME, text("Ready"), AGE, CONTAINERS, IMAGES];

const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    integer("Up-to-date"),
    integer("Available"),
    text("Node Selector"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const JOB: &[Column] = &[
    NAME,
    text("Status"),
    text("Completions"),
    text("Duration"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule"),
    text("Timezone"),
    boolean("Suspend"),
    integer("Active"),
    text("Last Schedule"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CONTROLLER_REVISION: &[Column] = &[NAME, text("Controller"), text("Revision"), AGE];

const SERVICE: &[Column] = &[
    NAME,
    text("Type"),
    text("Cluster-IP"),
    text("External-IP"),
    text("Port(s)"),
    AGE,
    SELECTOR,
];

const ENDPOINTS: &[Column] = &[NAME, text("Endpoints"), AGE];

const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType"),
    text("Ports"),
    text("Endpoints"),
    AGE,
];

const INGRESS: &[Column] = &[
    NAME,
    text("Class"),
    text("Hosts"),
    text("Address"),
    text("Ports"),
    AGE,
];

const INGRESS_CLASS: &[Column] = &[NAME, text("Controller"), text("Parameters"), AGE];

const NETWORK_POLICY: &[Column] = &[NAME, text("Pod-Selector"), AGE];

const NODE: &[Column] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

const NAMESPACE: &[Column] = &[NAME, text("Status"), AGE];

const EVENT: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];

const CONFIG_MAP: &[Column] = &[NAME, text("Data"), AGE];

const SECRET: &[Column] = &[NAME, text("Type"), text("Data"), AGE];

const SERVICE_ACCOUNT: &[Column] = &[NAME, text("Secrets"), AGE];

const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity"),
    text("Access Modes"),
    text("Reclaim Policy"),
    text("Status"),
    text("Claim"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Reason"),
    AGE,
    wide("VolumeMode"),
];

const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

const STORAGE_CLASS: &[Column] = &[
    NAME,
    text("Provisioner"),
    text("ReclaimPolicy"),
    text("VolumeBindingMode"),
    text("AllowVolumeExpansion"),
    AGE,
];

const RESOURCE_QUOTA: &[Column] = &[NAME, text("Request"), text("Limit"), AGE];

const POD_DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available"),
    text("Max Unavailable"),
    integer("Allowed Disruptions"),
    AGE,
];

const HORIZONTAL_POD_AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference"),
    text("Targets"),
    text("MinPods"),
    text("MaxPods"),
    text("Replicas"),
    AGE,
];

const LEASE: &[Column] = &[NAME, text("Holder"), AGE];

const PRIORITY_CLASS: &[Column] = &[
    NAME,
    integer("Value"),
    boolean("Global-Default"),
    AGE,
    text("PreemptionPolicy"),
];

const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role"),
    AGE,
    wide("Users"),
    wide("Groups"),
    wide("ServiceAccounts"),
];

const WEBHOOKS: &[Column] = &[NAME, integer("Webhooks"), AGE];
