//! Admission webhooks. Nothing in this cluster can answer one: a call ends as one to a missing Service, or to
//! one without endpoints, and the webhook's failure policy decides.

use serde_json::Value;

use crate::embedded::api::selector::Labels;
use crate::embedded::api::status::Status;
use crate::embedded::api::write::text;
use crate::embedded::kind::Kind;
use crate::embedded::world::World;

/// Calls every webhook that wants to know of the operation; the first that fails closed refuses it.
pub fn call(
    world: &World,
    kind: Kind,
    operation: &str,
    object: &Value,
    mutating: bool,
) -> Result<(), Status> {
    let configurations = if mutating {
        Kind::MutatingWebhookConfiguration
    } else {
        Kind::ValidatingWebhookConfiguration
    };
    if matches!(
        kind,
        Kind::MutatingWebhookConfiguration | Kind::ValidatingWebhookConfiguration
    ) {
        return Ok(());
    }
    for configuration in world.store.all(configurations) {
        for hook in configuration["webhooks"].as_array().into_iter().flatten() {
            let concerned = rules_match(hook, kind, operation)
                && selects(&hook["objectSelector"], &object["metadata"]["labels"])
                && namespace_selected(world, hook, kind, object);
            if concerned && hook["failurePolicy"] != "Ignore" {
                return Err(failure(world, hook));
            }
        }
    }
    Ok(())
}

fn rules_match(hook: &Value, kind: Kind, operation: &str) -> bool {
    let info = kind.info();
    let lists = |list: &Value, wanted: &str| {
        list.as_array()
            .is_some_and(|list| list.iter().any(|one| one == "*" || one == wanted))
    };
    hook["rules"].as_array().into_iter().flatten().any(|rule| {
        let scope = match text(&rule["scope"]) {
            "Namespaced" => info.namespaced,
            "Cluster" => !info.namespaced,
            _ => true,
        };
        scope
            && lists(&rule["operations"], operation)
            && lists(&rule["apiGroups"], info.group)
            && lists(&rule["apiVersions"], info.version)
            && (lists(&rule["resources"], info.plural) || lists(&rule["resources"], "*/*"))
    })
}

fn selects(selector: &Value, labels: &Value) -> bool {
    Labels::of(selector).is_none_or(|selector| selector.matches_labels(labels))
}

fn namespace_selected(world: &World, hook: &Value, kind: Kind, object: &Value) -> bool {
    let selector = &hook["namespaceSelector"];
    if kind == Kind::Namespace {
        return selects(selector, &object["metadata"]["labels"]);
    }
    if !kind.info().namespaced {
        return true;
    }
    world
        .store
        .get(Kind::Namespace, "", text(&object["metadata"]["namespace"]))
        .is_none_or(|home| selects(selector, &home["metadata"]["labels"]))
}

fn failure(world: &World, hook: &Value) -> Status {
    let name = text(&hook["name"]);
    let timeout = hook["timeoutSeconds"].as_u64().unwrap_or(10);
    let service = &hook["clientConfig"]["service"];
    let (url, cause) = if service.is_object() {
        let (home, service_name) = (text(&service["namespace"]), text(&service["name"]));
        let port = service["port"].as_u64().unwrap_or(443);
        let path = text(&service["path"]);
        let url = format!("https://{service_name}.{home}.svc:{port}{path}?timeout={timeout}s");
        let cause = if world.store.get(Kind::Service, home, service_name).is_none() {
            format!("service \"{service_name}\" not found")
        } else {
            format!("no endpoints available for service \"{service_name}\"")
        };
        (url, cause)
    } else {
        let url = text(&hook["clientConfig"]["url"]);
        let host = url
            .split("//")
            .nth(1)
            .and_then(|rest| rest.split(['/', ':']).next())
            .unwrap_or_default();
        (
            format!("{url}?timeout={timeout}s"),
            format!("dial tcp: lookup {host}: no such host"),
        )
    };
    Status::internal(&format!(
        "failed calling webhook \"{name}\": failed to call webhook: Post \"{url}\": {cause}"
    ))
}
