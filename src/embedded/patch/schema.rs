//! How the lists of Kubernetes types merge: which have a key, which are sets, which are replaced whole.
//!
//! Only what deviates from the rule "maps merge, lists are replaced" is written down here. Strategic merge
//! patch and server-side apply read the same types, but apply knows more keyed lists.

use crate::embedded::kind::Kind;

/// A place in the tree of types, as far as merging needs to tell places apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Object(Kind),
    Meta,
    /// `spec` of an object.
    Spec(Kind),
    /// `status` of an object.
    Status(Kind),
    /// A pod template, or the template of a Job in a CronJob.
    Template(Kind),
    PodSpec,
    Container,
    Webhook,
    /// Nothing below merges specially.
    Plain,
}

/// How a field's value merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Maps merge, lists are replaced.
    Default,
    /// A list of maps with this key.
    Keyed(&'static str),
    /// The same, and each element's patch names the keys that it keeps.
    KeyedRetain(&'static str),
    /// A list of plain values that is a set.
    Set,
    /// A map that is replaced whole.
    Replaced,
}

/// The rule for a field of a strategic merge patch, and what stands below it.
pub fn field(node: Node, name: &str) -> (Rule, Node) {
    match node {
        Node::Object(kind) => object_field(kind, name),
        Node::Meta => match name {
            "ownerReferences" => (Rule::Keyed("uid"), Node::Plain),
            "finalizers" => (Rule::Set, Node::Plain),
            _ => (Rule::Default, Node::Plain),
        },
        Node::Spec(kind) => spec_field(kind, name),
        Node::Status(kind) => status_field(kind, name),
        Node::Template(kind) => match (kind, name) {
            (_, "metadata") => (Rule::Default, Node::Meta),
            (Kind::CronJob, "spec") => (Rule::Default, Node::Spec(Kind::Job)),
            (_, "spec") => (Rule::Default, Node::PodSpec),
            _ => (Rule::Default, Node::Plain),
        },
        Node::PodSpec => pod_spec_field(name),
        Node::Container => container_field(name),
        Node::Webhook if name == "matchConditions" => (Rule::Keyed("name"), Node::Plain),
        Node::Webhook | Node::Plain => (Rule::Default, Node::Plain),
    }
}

fn object_field(kind: Kind, name: &str) -> (Rule, Node) {
    match (kind, name) {
        (_, "metadata") => (Rule::Default, Node::Meta),
        (_, "status") => (Rule::Default, Node::Status(kind)),
        (Kind::Pod, "spec") => (Rule::Default, Node::PodSpec),
        (_, "spec") => (Rule::Default, Node::Spec(kind)),
        (Kind::ServiceAccount, "secrets") => (Rule::Keyed("name"), Node::Plain),
        (Kind::ValidatingWebhookConfiguration | Kind::MutatingWebhookConfiguration, "webhooks") => {
            (Rule::Keyed("name"), Node::Webhook)
        }
        _ => (Rule::Default, Node::Plain),
    }
}

fn spec_field(kind: Kind, name: &str) -> (Rule, Node) {
    match (kind, name) {
        (Kind::Service, "ports") => (Rule::Keyed("port"), Node::Plain),
        (Kind::Node, "podCIDRs") => (Rule::Set, Node::Plain),
        (Kind::PodDisruptionBudget, "selector") => (Rule::Replaced, Node::Plain),
        // The strategy's patch names the keys that it keeps; merging such maps needs no rule of its own.
        (_, "template" | "jobTemplate") => (Rule::Default, Node::Template(kind)),
        _ => (Rule::Default, Node::Plain),
    }
}

fn status_field(kind: Kind, name: &str) -> (Rule, Node) {
    match (kind, name) {
        (_, "conditions") => (Rule::Keyed("type"), Node::Plain),
        (Kind::Node, "addresses") => (Rule::Keyed("type"), Node::Plain),
        (Kind::Pod, "podIPs" | "hostIPs") => (Rule::Keyed("ip"), Node::Plain),
        (Kind::Pod, "resourceClaimStatuses") => (Rule::KeyedRetain("name"), Node::Plain),
        _ => (Rule::Default, Node::Plain),
    }
}

fn pod_spec_field(name: &str) -> (Rule, Node) {
    match name {
        "containers" | "initContainers" | "ephemeralContainers" => {
            (Rule::Keyed("name"), Node::Container)
        }
        "volumes" => (Rule::KeyedRetain("name"), Node::Plain),
        "resourceClaims" => (Rule::KeyedRetain("name"), Node::Plain),
        "imagePullSecrets" | "schedulingGates" => (Rule::Keyed("name"), Node::Plain),
        "hostAliases" => (Rule::Keyed("ip"), Node::Plain),
        "topologySpreadConstraints" => (Rule::Keyed("topologyKey"), Node::Plain),
        _ => (Rule::Default, Node::Plain),
    }
}

fn container_field(name: &str) -> (Rule, Node) {
    match name {
        "env" => (Rule::Keyed("name"), Node::Plain),
        "ports" => (Rule::Keyed("containerPort"), Node::Plain),
        "volumeMounts" => (Rule::Keyed("mountPath"), Node::Plain),
        "volumeDevices" => (Rule::Keyed("devicePath"), Node::Plain),
        _ => (Rule::Default, Node::Plain),
    }
}

/// The keys of a list for server-side apply; empty for lists owned as a whole. A set is its own key.
pub fn apply_keys(node: Node, name: &str) -> &'static [&'static str] {
    match (node, name) {
        (Node::Container, "ports") => &["containerPort", "protocol"],
        (Node::Spec(Kind::Service), "ports") => &["port", "protocol"],
        (Node::PodSpec, "topologySpreadConstraints") => &["topologyKey", "whenUnsatisfiable"],
        _ => match field(node, name).0 {
            Rule::Keyed("uid") => &["uid"],
            Rule::Keyed("type") => &["type"],
            Rule::Keyed("ip") => &["ip"],
            Rule::Keyed("mountPath") => &["mountPath"],
            Rule::Keyed("devicePath") => &["devicePath"],
            Rule::Keyed(_) | Rule::KeyedRetain(_) => &["name"],
            Rule::Default | Rule::Set | Rule::Replaced => &[],
        },
    }
}

/// Whether server-side apply owns a map as one value.
pub fn is_atomic_map(name: &str) -> bool {
    matches!(
        name,
        "selector"
            | "nodeSelector"
            | "configMapKeyRef"
            | "secretKeyRef"
            | "fieldRef"
            | "resourceFieldRef"
            | "labelSelector"
            | "podSelector"
            | "namespaceSelector"
            | "configMapRef"
            | "secretRef"
    )
}
