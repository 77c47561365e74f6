//! The cells of an object's row, in the order of its kind's columns.

use serde_json::{Value, json};

use crate::embedded::api::table::age;
use crate::embedded::api::table::labels::{NONE, list, number, size, text, text_or};
use crate::embedded::api::table::{network, pod, policy, storage, workload};
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;

/// What every row needs: the object, its name and its age.
pub(super) struct Subject<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Time,
}

impl Subject<'_> {
    pub(super) fn name(&self) -> Value {
        self.object["metadata"]["name"].clone()
    }

    pub(super) fn age(&self) -> Value {
        age::since(&self.object["metadata"]["creationTimestamp"], self.now).into()
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_null()
    }
}

/// The cells of one object.
pub(super) fn of(kind: Kind, object: &Value, now: Time) -> Vec<Value> {
    let subject = Subject { object, now };
    match kind {
        Kind::Pod => pod::cells(&subject),
        Kind::Deployment => workload::deployment(&subject),
        Kind::ReplicaSet => workload::replica_set(&subject),
        Kind::StatefulSet => workload::stateful_set(&subject),
        Kind::DaemonSet => workload::daemon_set(&subject),
        Kind::Job => workload::job(&subject),
        Kind::CronJob => workload::cron_job(&subject),
        Kind::ControllerRevision => workload::controller_revision(&subject),
        Kind::HorizontalPodAutoscaler => workload::autoscaler(&subject),
        Kind::Service => network::service(&subject),
        Kind::Endpoints => network::endpoints(&subject),
        Kind::EndpointSlice => network::endpoint_slice(&subject),
        Kind::Ingress => network::ingress(&subject),
        Kind::IngressClass => network::ingress_class(&subject),
        Kind::NetworkPolicy => network::network_policy(&subject),
        Kind::PersistentVolume => storage::volume(&subject),
        Kind::PersistentVolumeClaim => storage::claim(&subject),
        Kind::StorageClass => storage::class(&subject),
        Kind::ResourceQuota => policy::quota(&subject),
        Kind::PodDisruptionBudget => policy::disruption_budget(&subject),
        Kind::PriorityClass => policy::priority(&subject),
        Kind::RoleBinding | Kind::ClusterRoleBinding => policy::role_binding(&subject),
        Kind::Node => node(&subject),
        Kind::Event => event(&subject),
        Kind::Namespace
        | Kind::ConfigMap
        | Kind::Secret
        | Kind::ServiceAccount
        | Kind::Lease
        | Kind::ValidatingWebhookConfiguration
        | Kind::MutatingWebhookConfiguration => small(kind, &subject),
        Kind::LimitRange | Kind::Role | Kind::ClusterRole => vec![
            subject.name(),
            object["metadata"]["creationTimestamp"].clone(),
        ],
    }
}

/// Kinds with a cell or two between name and age.
fn small(kind: Kind, subject: &Subject) -> Vec<Value> {
    let object = subject.object;
    let between: Vec<Value> = match kind {
        Kind::Namespace => vec![json!(text(&object["status"]["phase"]))],
        Kind::ConfigMap => vec![json!(size(&object["data"]) + size(&object["binaryData"]))],
        Kind::Secret => vec![json!(text(&object["type"])), json!(size(&object["data"]))],
        Kind::ServiceAccount => vec![json!(list(&object["secrets"]).len())],
        Kind::Lease => vec![json!(text(&object["spec"]["holderIdentity"]))],
        _ => vec![json!(list(&object["webhooks"]).len())],
    };
    let mut cells = vec![subject.name()];
    cells.extend(between);
    cells.push(subject.age());
    cells
}

/// The label that gives a node a role, before the role's name.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
/// The older label with the role as its value.
const ROLE_LABEL: &str = "kubernetes.io/role";

fn node(subject: &Subject) -> Vec<Value> {
    let (spec, status) = (&subject.object["spec"], &subject.object["status"]);
    let ready = list(&status["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Ready");
    let mut state = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if spec["unschedulable"] == true {
        state.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = subject.object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            key.strip_prefix(ROLE_PREFIX)
                .or_else(|| (key == ROLE_LABEL).then(|| text(value)))
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let roles = if roles.is_empty() {
        NONE.to_owned()
    } else {
        roles.join(",")
    };
    let address = |kind: &str| -> Value {
        let found = list(&status["addresses"])
            .iter()
            .find(|address| address["type"] == kind);
        json!(found.map_or(NONE, |address| text(&address["address"])))
    };
    let info = |field: &str| json!(text_or(&status["nodeInfo"][field], "<unknown>"));
    vec![
        subject.name(),
        json!(state),
        json!(roles),
        subject.age(),
        json!(text(&status["nodeInfo"]["kubeletVersion"])),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn event(subject: &Subject) -> Vec<Value> {
    let (object, now) = (subject.object, subject.now);
    let since = |field: &Value| age::since(field, now);
    let first = match object["firstTimestamp"].is_null() {
        true => since(&object["eventTime"]),
        false => since(&object["firstTimestamp"]),
    };
    let series = &object["series"];
    let last = match (series.is_null(), object["lastTimestamp"].is_null()) {
        (false, _) => since(&series["lastObservedTime"]),
        (true, false) => since(&object["lastTimestamp"]),
        (true, true) => first.clone(),
    };
    let count = match series.is_null() {
        false => number(&series["count"]),
        true => number(&object["count"]).max(1),
    };
    let about = &object["involvedObject"];
    let mut target = text(&about["kind"]).to_lowercase();
    if !text(&about["name"]).is_empty() {
        target = format!("{target}/{}", text(&about["name"]));
    }
    let source = &object["source"];
    let component = text_or(&source["component"], text(&object["reportingComponent"]));
    let instance = text_or(&source["host"], text(&object["reportingInstance"]));
    let source = if instance.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {instance}")
    };
    vec![
        json!(last),
        json!(text(&object["type"])),
        json!(text(&object["reason"])),
        json!(target),
        json!(text(&about["fieldPath"])),
        json!(source),
        json!(text(&object["message"]).trim()),
        json!(first),
        json!(count),
        subject.name(),
    ]
}
