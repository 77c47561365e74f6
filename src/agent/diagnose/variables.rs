//! Where a container's environment comes from: its own template, Secrets, ConfigMaps.

use serde_json::Value;

use crate::agent::evidence::{Evidence, Store, Workload};

/// A Secret or ConfigMap that a container takes its environment from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub kind: &'static str,
    pub name: String,
    /// The one key it takes; all of them when absent.
    pub key: Option<String>,
    /// The variable that the one key becomes.
    pub variable: Option<String>,
}

/// One variable as the container would see it.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub value: String,
    pub from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    Template,
    Store {
        kind: &'static str,
        name: String,
        key: String,
    },
}

/// The sources named in a container's spec, in its order.
pub fn sources(container: &Value) -> Vec<Source> {
    let mut found = Vec::new();
    for entry in container["envFrom"].as_array().into_iter().flatten() {
        for (kind, key) in [("Secret", "secretRef"), ("ConfigMap", "configMapRef")] {
            if let Some(name) = entry[key]["name"].as_str() {
                found.push(Source {
                    kind,
                    name: name.to_owned(),
                    key: None,
                    variable: None,
                });
            }
        }
    }
    for entry in container["env"].as_array().into_iter().flatten() {
        for (kind, key) in [("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")] {
            let reference = &entry["valueFrom"][key];
            if let (Some(name), Some(key)) = (reference["name"].as_str(), reference["key"].as_str())
            {
                found.push(Source {
                    kind,
                    name: name.to_owned(),
                    key: Some(key.to_owned()),
                    variable: entry["name"].as_str().map(str::to_owned),
                });
            }
        }
    }
    found
}

/// The variables of a container that have a value; entries of `env` win over those of `envFrom`.
pub fn variables(evidence: &Evidence, workload: &Workload, container: &Value) -> Vec<Variable> {
    let namespace = &workload.subject.namespace;
    let mut found: Vec<Variable> = Vec::new();
    for source in sources(container) {
        let Some(store) = evidence.store(source.kind, namespace, &source.name) else {
            continue;
        };
        let keys = store
            .values
            .iter()
            .filter(|(key, _)| source.key.as_ref().is_none_or(|wanted| wanted == *key));
        for (key, value) in keys {
            found.push(Variable {
                name: source.variable.clone().unwrap_or_else(|| key.clone()),
                value: value.clone(),
                from: From::Store {
                    kind: source.kind,
                    name: source.name.clone(),
                    key: key.clone(),
                },
            });
        }
    }
    for entry in container["env"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (entry["name"].as_str(), entry["value"].as_str()) {
            found.retain(|variable| variable.name != name);
            found.push(Variable {
                name: name.to_owned(),
                value: value.to_owned(),
                from: From::Template,
            });
        }
    }
    found
}

/// Stores that a whole workload refers to.
pub fn stores_of<'a>(evidence: &'a Evidence, workload: &Workload) -> Vec<&'a Store> {
    let spec = &workload.template()["spec"];
    ["initContainers", "containers"]
        .iter()
        .filter_map(|list| spec[*list].as_array())
        .flatten()
        .flat_map(sources)
        .filter_map(|source| evidence.store(source.kind, &workload.subject.namespace, &source.name))
        .collect()
}
