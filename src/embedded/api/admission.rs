//! Admission: namespaces that do not exist or are going away, service accounts, limits, quotas, webhooks.
//!
//! Mutating admission sees an object before it has a generated name (its texts show the prefix), validating
//! admission afterwards: as in the real server.

use serde_json::{Value, json};

use crate::embedded::api::defaults::fill;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::{Part, text};
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

pub mod limits;
pub mod quota;
pub mod service;
pub mod service_account;
pub mod webhook;

/// Seconds that pods stay on a node that is not ready or not reachable.
const TOLERATED_SECONDS: u32 = 300;

/// Before a new object is named and validated.
pub fn mutate_new(world: &mut World, kind: Kind, object: &mut Value) -> Result<(), Status> {
    check_namespace(world, kind, object)?;
    if kind == Kind::Pod {
        limits::apply_defaults(world, object);
        service_account::admit(world, object)?;
        tolerate_node_troubles(object);
        set_priority(world, object)?;
    }
    webhook::call(world, kind, "CREATE", object, true)?;
    if kind == Kind::PersistentVolumeClaim {
        default_storage_class(world, object);
    }
    Ok(())
}

/// After a new object is validated.
pub fn validate_new(world: &World, kind: Kind, object: &Value) -> Result<(), Status> {
    if kind == Kind::Pod {
        limits::check(world, object)?;
    }
    if kind == Kind::Service {
        service::check_allocations(world, object)?;
    }
    webhook::call(world, kind, "CREATE", object, false)?;
    quota::check(world, kind, None, object)
}

/// Before a change is stored.
pub fn check_update(
    world: &World,
    kind: Kind,
    old: &Value,
    object: &Value,
    part: Part,
) -> Result<(), Status> {
    // Status writes are a resource of their own to webhooks (`pods/status`), which no rule here can name yet,
    // and take nothing from a quota.
    if part == Part::Status {
        return Ok(());
    }
    webhook::call(world, kind, "UPDATE", object, true)?;
    webhook::call(world, kind, "UPDATE", object, false)?;
    quota::check(world, kind, Some(old), object)
}

/// The name that admission's texts show: the prefix while there is no name yet.
pub fn shown_name(object: &Value) -> &str {
    let metadata = &object["metadata"];
    match (text(&metadata["name"]), text(&metadata["generateName"])) {
        ("", "") => "Unknown",
        ("", prefix) => prefix,
        (name, _) => name,
    }
}

fn check_namespace(world: &World, kind: Kind, object: &Value) -> Result<(), Status> {
    if !kind.info().namespaced {
        return Ok(());
    }
    let namespace = text(&object["metadata"]["namespace"]);
    let Some(home) = world.store.get(Kind::Namespace, "", namespace) else {
        return Err(Status::not_found(Kind::Namespace, namespace));
    };
    if home["metadata"]["deletionTimestamp"].is_string() {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = format!("namespace {namespace} is being terminated");
        return Err(Status::forbidden(kind, shown_name(object), &why).because(
            "NamespaceTerminating",
            cause,
            "metadata.namespace",
        ));
    }
    Ok(())
}

/// Pods stay for a while on a node that is in trouble, unless they say otherwise.
fn tolerate_node_troubles(pod: &mut Value) {
    let tolerations = &mut pod["spec"]["tolerations"];
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(list) = tolerations.as_array_mut() else {
        return;
    };
    let troubles = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    let missing: Vec<&str> = troubles
        .into_iter()
        .filter(|trouble| !list.iter().any(|one| tolerates(one, trouble)))
        .collect();
    for trouble in missing {
        list.push(json!({
            "key": trouble, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TOLERATED_SECONDS,
        }));
    }
}

fn tolerates(toleration: &Value, trouble: &str) -> bool {
    let key = text(&toleration["key"]);
    let effect = text(&toleration["effect"]);
    (key == trouble || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
}

/// Pods without a priority class get the default class, or priority 0.
fn set_priority(world: &World, pod: &mut Value) -> Result<(), Status> {
    let class = text(&pod["spec"]["priorityClassName"]).to_owned();
    let (value, policy) = if class.is_empty() {
        (0, "PreemptLowerPriority".to_owned())
    } else if let Some(value) = built_in_priority(&class) {
        (value, "PreemptLowerPriority".to_owned())
    } else if let Some(found) = world.store.get(Kind::PriorityClass, "", &class) {
        let policy = text(&found["preemptionPolicy"]).to_owned();
        (found["value"].as_i64().unwrap_or(0), policy)
    } else {
        let why = format!("no PriorityClass with name {class} was found");
        return Err(Status::forbidden(Kind::Pod, shown_name(pod), &why));
    };
    pod["spec"]["priority"] = value.into();
    fill(&mut pod["spec"], "preemptionPolicy", policy);
    Ok(())
}

fn built_in_priority(class: &str) -> Option<i64> {
    match class {
        "system-node-critical" => Some(2_000_001_000),
        "system-cluster-critical" => Some(2_000_000_000),
        _ => None,
    }
}

/// Claims without a class get the default class, if there is one.
fn default_storage_class(world: &World, claim: &mut Value) {
    let default = world.store.all(Kind::StorageClass).find(|class| {
        class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    });
    if let Some(class) = default {
        fill(
            &mut claim["spec"],
            "storageClassName",
            class["metadata"]["name"].clone(),
        );
    }
}
