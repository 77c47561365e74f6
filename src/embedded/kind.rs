//! The resource types that the embedded cluster serves, as one static table.
//!
//! Everything that differs between types by a plain fact (group, plural, scope, short names) stands here;
//! behaviour stands with the controllers. Adding a type that only needs storing is one row.

/// A resource type. Order is the order of discovery documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Namespace,
    Node,
    Pod,
    Service,
    Endpoints,
    ConfigMap,
    Secret,
    ServiceAccount,
    Event,
    ResourceQuota,
    LimitRange,
    PersistentVolumeClaim,
    PersistentVolume,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    ControllerRevision,
    Job,
    CronJob,
    EndpointSlice,
    NetworkPolicy,
    Ingress,
    IngressClass,
    PodDisruptionBudget,
    HorizontalPodAutoscaler,
    Lease,
    StorageClass,
    PriorityClass,
    Role,
    RoleBinding,
    ClusterRole,
    ClusterRoleBinding,
    ValidatingWebhookConfiguration,
    MutatingWebhookConfiguration,
}

/// The plain facts of a [`Kind`].
#[derive(Debug)]
pub struct KindInfo {
    pub kind: Kind,
    /// API group, empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// `kind` as written in manifests.
    pub name: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short: &'static [&'static str],
    pub namespaced: bool,
    /// Listed by `kubectl get all`.
    pub in_all: bool,
}

macro_rules! table {
    ($($kind:ident $group:literal $version:literal $plural:literal $singular:literal [$($short:literal),*] $ns:literal $all:literal;)*) => {
        /// One row per [`Kind`], in the enum's order.
        pub const KINDS: &[KindInfo] = &[
            $(KindInfo {
                kind: Kind::$kind, group: $group, version: $version, name: stringify!($kind),
                plural: $plural, singular: $singular, short: &[$($short),*], namespaced: $ns, in_all: $all,
            }),*
        ];
    };
}

table! {
    Namespace "" "v1" "namespaces" "namespace" ["ns"] false false;
    Node "" "v1" "nodes" "node" ["no"] false false;
    Pod "" "v1" "pods" "pod" ["po"] true true;
    Service "" "v1" "services" "service" ["svc"] true true;
    Endpoints "" "v1" "endpoints" "endpoints" ["ep"] true false;
    ConfigMap "" "v1" "configmaps" "configmap" ["cm"] true false;
    Secret "" "v1" "secrets" "secret" [] true false;
    ServiceAccount "" "v1" "serviceaccounts" "serviceaccount" ["sa"] true false;
    Event "" "v1" "events" "event" ["ev"] true false;
    ResourceQuota "" "v1" "resourcequotas" "resourcequota" ["quota"] true false;
    LimitRange "" "v1" "limitranges" "limitrange" ["limits"] true false;
    PersistentVolumeClaim "" "v1" "persistentvolumeclaims" "persistentvolumeclaim" ["pvc"] true false;
    PersistentVolume "" "v1" "persistentvolumes" "persistentvolume" ["pv"] false false;
    Deployment "apps" "v1" "deployments" "deployment" ["deploy"] true true;
    ReplicaSet "apps" "v1" "replicasets" "replicaset" ["rs"] true true;
    StatefulSet "apps" "v1" "statefulsets" "statefulset" ["sts"] true true;
    DaemonSet "apps" "v1" "daemonsets" "daemonset" ["ds"] true true;
    ControllerRevision "apps" "v1" "controllerrevisions" "controllerrevision" [] true false;
    Job "batch" "v1" "jobs" "job" [] true true;
    CronJob "batch" "v1" "cronjobs" "cronjob" ["cj"] true true;
    EndpointSlice "discovery.k8s.io" "v1" "endpointslices" "endpointslice" [] true false;
    NetworkPolicy "networking.k8s.io" "v1" "networkpolicies" "networkpolicy" ["netpol"] true false;
    Ingress "networking.k8s.io" "v1" "ingresses" "ingress" ["ing"] true false;
    IngressClass "networking.k8s.io" "v1" "ingressclasses" "ingressclass" [] false false;
    PodDisruptionBudget "policy" "v1" "poddisruptionbudgets" "poddisruptionbudget" ["pdb"] true false;
    HorizontalPodAutoscaler "autoscaling" "v2" "horizontalpodautoscalers" "horizontalpodautoscaler" ["hpa"] true true;
    Lease "coordination.k8s.io" "v1" "leases" "lease" [] true false;
    StorageClass "storage.k8s.io" "v1" "storageclasses" "storageclass" ["sc"] false false;
    PriorityClass "scheduling.k8s.io" "v1" "priorityclasses" "priorityclass" ["pc"] false false;
    Role "rbac.authorization.k8s.io" "v1" "roles" "role" [] true false;
    RoleBinding "rbac.authorization.k8s.io" "v1" "rolebindings" "rolebinding" [] true false;
    ClusterRole "rbac.authorization.k8s.io" "v1" "clusterroles" "clusterrole" [] false false;
    ClusterRoleBinding "rbac.authorization.k8s.io" "v1" "clusterrolebindings" "clusterrolebinding" [] false false;
    ValidatingWebhookConfiguration "admissionregistration.k8s.io" "v1" "validatingwebhookconfigurations" "validatingwebhookconfiguration" [] false false;
    MutatingWebhookConfiguration "admissionregistration.k8s.io" "v1" "mutatingwebhookconfigurations" "mutatingwebhookconfiguration" [] false false;
}

impl Kind {
    pub fn info(self) -> &'static KindInfo {
        &KINDS[self as usize]
    }

    /// Finds a type by API group and plural name, as they stand in a request path.
    pub fn by_plural(group: &str, plural: &str) -> Option<Kind> {
        KINDS
            .iter()
            .find(|info| info.group == group && info.plural == plural)
            .map(|info| info.kind)
    }

    /// Finds a type by `kind` as written in manifests; kinds are unique across the groups served here.
    pub fn by_name(name: &str) -> Option<Kind> {
        KINDS
            .iter()
            .find(|info| info.name == name)
            .map(|info| info.kind)
    }

    /// `apiVersion` of the type, such as `apps/v1`.
    pub fn api_version(self) -> String {
        let info = self.info();
        if info.group.is_empty() {
            info.version.to_owned()
        } else {
            format!("{}/{}", info.group, info.version)
        }
    }

    /// Whether `status` is a subresource: ordinary writes leave it alone, `/status` writes change only it.
    pub fn has_status(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Namespace
                | Node
                | Pod
                | Service
                | ResourceQuota
                | PersistentVolumeClaim
                | PersistentVolume
                | Deployment
                | ReplicaSet
                | StatefulSet
                | DaemonSet
                | Job
                | CronJob
                | Ingress
                | PodDisruptionBudget
                | HorizontalPodAutoscaler
        )
    }

    /// Whether objects carry `metadata.generation`.
    pub fn has_generation(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Pod | Deployment
                | ReplicaSet
                | StatefulSet
                | DaemonSet
                | Job
                | CronJob
                | EndpointSlice
                | NetworkPolicy
                | Ingress
                | IngressClass
                | PodDisruptionBudget
                | PriorityClass
                | ValidatingWebhookConfiguration
                | MutatingWebhookConfiguration
        )
    }

    /// Whether `/scale` is served.
    pub fn has_scale(self) -> bool {
        matches!(
            self,
            Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet
        )
    }

    /// Whether a delete answers with the deleted object instead of a success status.
    pub fn returns_deleted(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Pod | Service
                | ServiceAccount
                | PersistentVolume
                | PersistentVolumeClaim
                | ResourceQuota
        )
    }

    /// The qualified plural of error texts, such as `deployments.apps` or `pods`.
    pub fn qualified(self) -> String {
        let info = self.info();
        if info.group.is_empty() {
            info.plural.to_owned()
        } else {
            format!("{}.{}", info.plural, info.group)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_finds_its_own_row() {
        for info in KINDS {
            assert_eq!(info.kind.info().name, info.name);
            assert_eq!(Kind::by_plural(info.group, info.plural), Some(info.kind));
        }
    }
}
