//! The injector `network-policy`: a new NetworkPolicy beside those that are there.
//!
//! Its name is what a colleague would have given it, derived from the spec, so that it tells nothing and the reference
//! repair can name it. Whether the cluster enforces it is for the scenario's symptom to show.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::{Value, json};

use crate::cluster::resource::{self, NewObject};
use crate::inject::InjectError;
use crate::inject::change::{Creation, ObjectRef, Plan};
use crate::inject::preview;

/// The manager under which `kubectl create` writes.
const MANAGER: &str = "kubectl-create";

/// Names tried until one is free; a namespace with more policies of one name is none that a scenario is for.
const MAX_NAMES: usize = 20;

/// Room for `-ingress` and a number in a name of at most 63 characters, the shortest limit of any name.
const MAX_SUBJECT: usize = 50;

/// Plans a policy of a namespace.
pub async fn plan(
    client: &kube::Client,
    namespace: &str,
    spec: &Value,
) -> Result<Plan, InjectError> {
    let resource = resource::of_kind("NetworkPolicy")?;
    let there = resource.list(client, namespace).await?;
    let taken: Vec<&str> = there
        .iter()
        .filter_map(|policy| policy["metadata"]["name"].as_str())
        .collect();
    let name = (1..=MAX_NAMES)
        .map(|number| name_of(spec, number))
        .find(|name| !taken.contains(&name.as_str()))
        .ok_or_else(|| InjectError::Unsupported {
            what: format!("one more policy called {}", name_of(spec, 1)),
        })?;
    let object = ObjectRef {
        kind: "NetworkPolicy".to_owned(),
        namespace: namespace.to_owned(),
        name,
        uid: String::new(),
    };
    refuse_without_effect(client, &object, spec, &there).await?;
    let manifest = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": object.name, "namespace": namespace}, "spec": spec,
    });
    let new = NewObject {
        manifest: &manifest,
        manager: MANAGER,
        dry_run: true,
    };
    let mut plan = Plan::default();
    if let Err(error) = resource.create_as(client, namespace, &new).await {
        plan.warnings
            .push(preview::judged(&object.to_string(), error)?);
    }
    plan.created.push(Creation {
        object,
        manager: MANAGER.to_owned(),
        manifest,
    });
    Ok(plan)
}

/// A policy that selects no pod, or that stands there already, breaks nothing.
async fn refuse_without_effect(
    client: &kube::Client,
    object: &ObjectRef,
    spec: &Value,
    there: &[Value],
) -> Result<(), InjectError> {
    if let Some(same) = there.iter().find(|policy| &policy["spec"] == spec) {
        return Err(InjectError::WithoutEffect {
            object: format!("namespace {}", object.namespace),
            what: format!("its policy {} says the same", same["metadata"]["name"]),
        });
    }
    let selector = selector(&spec["podSelector"])?;
    let pods = resource::of_kind("Pod")?
        .list(client, &object.namespace)
        .await?;
    if pods.iter().any(|pod| matches(&selector, pod)) {
        return Ok(());
    }
    Err(InjectError::WithoutEffect {
        object: object.to_string(),
        what: "its podSelector matches no pod".to_owned(),
    })
}

/// A label selector as Kubernetes has it in objects.
pub fn selector(value: &Value) -> Result<Selector, InjectError> {
    serde_json::from_value::<LabelSelector>(value.clone())
        .ok()
        .and_then(|selector| Selector::try_from(selector).ok())
        .ok_or_else(|| InjectError::Unsupported {
            what: format!("the label selector {value}"),
        })
}

/// Whether a selector matches an object's labels.
pub fn matches(selector: &Selector, object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    selector.matches(&labels)
}

/// What the policy is about and which way, such as `web-ingress`; from the second on with its number.
fn name_of(spec: &Value, number: usize) -> String {
    let direction = if governs(spec, "Ingress") && governs(spec, "Egress") {
        "traffic"
    } else if governs(spec, "Egress") {
        "egress"
    } else {
        "ingress"
    };
    let labels = &spec["podSelector"]["matchLabels"];
    let subject = ["app", "app.kubernetes.io/name", "k8s-app"]
        .iter()
        .filter_map(|key| labels[*key].as_str())
        .chain(
            labels
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(_, value)| value.as_str()),
        )
        .map(plain)
        .find(|subject| !subject.is_empty());
    let name = match subject {
        Some(subject) => format!("{subject}-{direction}"),
        None => format!("default-{direction}"),
    };
    if number == 1 {
        name
    } else {
        format!("{name}-{number}")
    }
}

/// Without policy types a policy is about ingress, and about egress when it has such rules.
fn governs(spec: &Value, direction: &str) -> bool {
    match spec["policyTypes"]
        .as_array()
        .filter(|types| !types.is_empty())
    {
        Some(types) => types.iter().any(|one| one == direction),
        None => direction == "Ingress" || spec.get("egress").is_some(),
    }
}

/// A label's value in the letters that a name may have.
fn plain(value: &str) -> String {
    let spelled: String = value
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '-',
        })
        .take(MAX_SUBJECT)
        .collect();
    spelled.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_the_policy_is_about_and_which_way() {
        for (spec, name) in [
            (
                json!({"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"]}),
                "db-ingress",
            ),
            (
                json!({"podSelector": {"matchLabels": {"app": "db"}}}),
                "db-ingress",
            ),
            (
                json!({"podSelector": {}, "policyTypes": ["Egress"]}),
                "default-egress",
            ),
            (json!({"podSelector": {}, "egress": []}), "default-traffic"),
            (
                json!({"podSelector": {"matchLabels": {"tier": "Data_Store", "app": "x"}}}),
                "x-ingress",
            ),
            (
                json!({"podSelector": {"matchLabels": {"tier": "_Data_Store."}}}),
                "data-store-ingress",
            ),
        ] {
            assert_eq!(name_of(&spec, 1), name);
        }
        assert_eq!(name_of(&json!({"podSelector": {}}), 3), "default-ingress-3");
    }
}
