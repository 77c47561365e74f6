//! Programs that miss an environment variable, and where it can be had from again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::agent::diagnose::Look;
use crate::agent::diagnose::credentials::rebuilt_url;
use crate::agent::diagnose::log_line::missing_variable;
use crate::agent::diagnose::variables::{Source, sources};
use crate::agent::evidence::field::{Field, Step};
use crate::agent::evidence::{Container, Pod, Store};
use crate::agent::finding::{Finding, Repair, category, from_history, setting};

/// Words of variables whose value is private to the service: any random text serves, and a new one only ends
/// sessions. A key that a third party issued is none of them.
const OWN_SECRETS: &[&str] = &[
    "SESSION",
    "COOKIE",
    "CSRF",
    "JWT",
    "SIGNING",
    "SALT",
    "NONCE",
    "SECRET_KEY_BASE",
];

pub fn look(look: &Look<'_>) -> Vec<Finding> {
    look.workload
        .containers()
        .filter(|(_, container)| !container.ready)
        .find_map(|(pod, container)| {
            let line = container
                .log_lines()
                .rev()
                .find(|line| missing_variable(line).is_some())?;
            let variable = missing_variable(line)?;
            Some(explain(look, pod, container, &variable, line))
        })
        .into_iter()
        .collect()
}

fn explain(
    look: &Look<'_>,
    pod: &Pod,
    container: &Container,
    variable: &str,
    line: &str,
) -> Finding {
    let quote = format!(
        "log of pod {}, container {}: {line}",
        pod.name, container.name
    );
    let explained = taken_by_rollout(look, container, variable)
        .or_else(|| gone_from_store(look, container, variable))
        .unwrap_or_else(|| never_given(look, container, variable));
    explained.quote(quote)
}

/// An earlier template gave the variable and the current one does not.
fn taken_by_rollout(look: &Look<'_>, container: &Container, variable: &str) -> Option<Finding> {
    let environment = |field: &Field| {
        field.in_container(&container.name) && (field.is_at(&["env"]) || field.is_at(&["envFrom"]))
    };
    let gives = |field: &Field| {
        environment(field) && field.wanted.is_some() && restores(look, field, variable)
    };
    let concerned: Vec<Repair> = from_history(look.workload, environment)
        .into_iter()
        .filter(|repair| repair.fields.iter().any(gives))
        .collect();
    if concerned.is_empty() {
        return None;
    }
    let statement = format!(
        "a rollout of {} took the environment of container {} away: the program ends because {variable} is not set",
        look.workload.subject, container.name
    );
    Some(
        Finding::new(
            look.workload,
            format!("environment/{variable}"),
            category::APPLICATION_ERROR,
            94,
            statement,
        )
        .secondary(&[category::ROLLOUT])
        .quotes(concerned.iter().map(Repair::words))
        .repairs(concerned),
    )
}

/// Whether the earlier value of a field gives the variable, by itself or through a Secret or ConfigMap.
fn restores(look: &Look<'_>, field: &Field, variable: &str) -> bool {
    let Some(wanted) = &field.wanted else {
        return false;
    };
    let at_entry = field.path.contains(&Step::Named(variable.to_owned()));
    let listed = |value: &Value| {
        value
            .as_array()
            .is_some_and(|items| items.iter().any(|i| i["name"] == variable))
    };
    let container = if wanted.get("env").is_some() || wanted.get("envFrom").is_some() {
        wanted.clone()
    } else {
        json!({"env": wanted, "envFrom": wanted})
    };
    at_entry
        || listed(wanted)
        || sources(&container).iter().any(|source| {
            source.key.is_none()
                && look
                    .evidence
                    .store(source.kind, &look.workload.subject.namespace, &source.name)
                    .is_some_and(|store| store.values.contains_key(variable))
        })
}

/// The template takes it from a Secret or ConfigMap that has lost the key, or holds it empty.
fn gone_from_store(look: &Look<'_>, container: &Container, variable: &str) -> Option<Finding> {
    let namespace = &look.workload.subject.namespace;
    let (source, store) = sources(look.spec(&container.name))
        .into_iter()
        .filter(|source| could_give(source, variable))
        .filter_map(|source| {
            let store = look.evidence.store(source.kind, namespace, &source.name)?;
            let empty = store
                .values
                .get(source_key(&source, variable))
                .is_none_or(String::is_empty);
            empty.then_some((source, store))
        })
        // The store whose last manifest had the key first, then Secrets before ConfigMaps.
        .min_by_key(|(source, store)| {
            (
                !store.last_applied.contains_key(variable),
                source.kind != "Secret",
            )
        })?;
    let key = source_key(&source, variable).to_owned();
    let repairs = key_repairs(look, store, &key);
    let absent = if store.values.contains_key(&key) {
        "empty"
    } else {
        "absent"
    };
    let statement = format!(
        "{} does not hold what {} needs: its key {key} is {absent}, and the program ends because {variable} is not set",
        store.subject, look.workload.subject
    );
    let (primary, secondary) = match source.kind {
        "Secret" => (category::SECRET_CONTENT, category::SECRET_MISSING),
        _ => (category::APPLICATION_ERROR, category::DEPENDENCY),
    };
    let keys: Vec<&str> = store.values.keys().map(String::as_str).collect();
    Some(
        Finding::new(
            look.workload,
            format!("environment/{variable}"),
            primary,
            93,
            statement,
        )
        .secondary(&[secondary])
        .quote(format!(
            "{} has the keys {}",
            store.subject,
            keys.join(", ")
        ))
        .quotes(
            repairs
                .iter()
                .map(|repair| format!("{} ({})", repair.words(), repair.why)),
        )
        .repairs(repairs),
    )
}

fn could_give(source: &Source, variable: &str) -> bool {
    match &source.variable {
        Some(name) => name == variable,
        None => true,
    }
}

fn source_key<'a>(source: &'a Source, variable: &'a str) -> &'a str {
    source.key.as_deref().unwrap_or(variable)
}

/// Neither the template nor a store of it ever gave the variable, as far as can be seen.
fn never_given(look: &Look<'_>, container: &Container, variable: &str) -> Finding {
    let namespace = &look.workload.subject.namespace;
    let holder = look.evidence.stores.iter().find(|store| {
        store.subject.namespace == *namespace
            && store.values.get(variable).is_some_and(|v| !v.is_empty())
    });
    let repair = holder.map(|store| {
        let key = if store.subject.kind == "Secret" { "secretKeyRef" } else { "configMapKeyRef" };
        let entry = json!({"name": variable, "valueFrom": {key: {"name": store.subject.name, "key": variable}}});
        let has_list = look.spec(&container.name)["env"].is_array();
        let mut path = look.container_path(container, &["env"]);
        if has_list {
            path.push(Step::Named(variable.to_owned()));
        }
        let field = Field {
            path,
            is: None,
            wanted: Some(if has_list { entry } else { json!([entry]) }),
        };
        setting(&look.workload.subject, field, format!("{} holds the key", store.subject))
    });
    let statement = format!(
        "container {} of {} is given no {variable} and ends because of it",
        container.name, look.workload.subject
    );
    let confidence = if repair.is_some() { 82 } else { 68 };
    Finding::new(
        look.workload,
        format!("environment/{variable}"),
        category::APPLICATION_ERROR,
        confidence,
        statement,
    )
    .secondary(&[category::ROLLOUT])
    .repairs(repair)
}

/// Ways to give a key of a Secret or ConfigMap its value back, the surest first. A credential that somebody else
/// issued is never made up.
pub fn key_repairs(look: &Look<'_>, store: &Store, key: &str) -> Vec<Repair> {
    let mut values: Vec<(String, String)> = Vec::new();
    if let Some(value) = store.last_applied.get(key) {
        values.push((
            value.clone(),
            "the value of the last applied manifest".to_owned(),
        ));
    }
    for other in &look.evidence.stores {
        let value = other.values.get(key).filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|_| other.subject != store.subject) {
            values.push((
                value.clone(),
                format!("the value that {} holds under the same key", other.subject),
            ));
        }
    }
    if let Some(url) = rebuilt_url(look, store, key) {
        values.push(url);
    }
    let own = OWN_SECRETS
        .iter()
        .any(|word| key.to_uppercase().contains(word));
    if own && values.is_empty() {
        let why = "a new random value: the old one cannot be recovered from the cluster, nobody outside the service \
                   shares it, and a new one only ends open sessions";
        values.push((random_text(look, store, key), why.to_owned()));
    }
    values
        .into_iter()
        .map(|(value, why)| Repair {
            target: store.subject.clone(),
            fields: vec![store_field(store, key, &value)],
            restart: Some(look.workload.subject.clone()),
            why,
        })
        .collect()
}

/// 32 hexadecimal digits, from the run's seed.
fn random_text(look: &Look<'_>, store: &Store, key: &str) -> String {
    let purpose = format!("secret value/{}/{key}", store.subject);
    let half = |index| look.seed.child(&purpose, index).0;
    format!("{:016x}{:016x}", half(0), half(1))
}

/// The field of a key, encoded as its kind wants it.
pub fn store_field(store: &Store, key: &str, value: &str) -> Field {
    let encoded = |text: &str| match store.subject.kind {
        "Secret" => json!(STANDARD.encode(text)),
        _ => json!(text),
    };
    let is = store.values.get(key).map(|value| encoded(value));
    let path = ["data", key]
        .map(|step| Step::Key(step.to_owned()))
        .to_vec();
    Field {
        path,
        is,
        wanted: Some(encoded(value)),
    }
}
