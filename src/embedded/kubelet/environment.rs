//! A container's environment, from the pod's spec and the objects it names.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::embedded::kind::Kind;
use crate::embedded::kubelet::pod::{self, Pod};
use crate::embedded::kubelet::volumes::data_of;
use crate::embedded::world::World;

/// Resolves a container's environment; the error is the kubelet's text for CreateContainerConfigError.
pub fn resolve(world: &World, pod: &Pod, spec: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    for source in spec["envFrom"].as_array().into_iter().flatten() {
        let prefix = source["prefix"].as_str().unwrap_or_default();
        for (kind, field, word) in [
            (Kind::ConfigMap, "configMapRef", "configmap"),
            (Kind::Secret, "secretRef", "secret"),
        ] {
            let Some(reference) = source.get(field) else {
                continue;
            };
            let name = reference["name"].as_str().unwrap_or_default();
            match world.store.get(kind, &pod.namespace, name) {
                Some(object) => {
                    let data = data_of(kind, object);
                    env.extend(
                        data.into_iter()
                            .map(|(key, value)| (format!("{prefix}{key}"), value)),
                    );
                }
                None if reference["optional"] == true => {}
                None => return Err(format!("{word} \"{name}\" not found")),
            }
        }
    }
    let services = if pod.spec()["enableServiceLinks"] == false {
        kubernetes_service(world)
    } else {
        service_variables(world, &pod.namespace)
    };
    let mut own = BTreeMap::new();
    for variable in spec["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let value = match variable.get("valueFrom") {
            Some(source) => match from_source(world, pod, spec, source)? {
                Some(value) => value,
                None => continue,
            },
            None => {
                let text = variable["value"].as_str().unwrap_or_default();
                expand(text, &|name| {
                    own.get(name).or_else(|| services.get(name)).cloned()
                })
            }
        };
        own.insert(name.clone(), value.clone());
        env.insert(name, value);
    }
    for (name, value) in services {
        env.entry(name).or_insert(value);
    }
    Ok(env)
}

fn from_source(
    world: &World,
    pod: &Pod,
    spec: &Value,
    source: &Value,
) -> Result<Option<String>, String> {
    for (kind, field, word, title) in [
        (Kind::Secret, "secretKeyRef", "secret", "Secret"),
        (Kind::ConfigMap, "configMapKeyRef", "configmap", "ConfigMap"),
    ] {
        let Some(reference) = source.get(field) else {
            continue;
        };
        let name = reference["name"].as_str().unwrap_or_default();
        let key = reference["key"].as_str().unwrap_or_default();
        let optional = reference["optional"] == true;
        let Some(object) = world.store.get(kind, &pod.namespace, name) else {
            return if optional {
                Ok(None)
            } else {
                Err(format!("{word} \"{name}\" not found"))
            };
        };
        return match data_of(kind, object).remove(key) {
            Some(value) => Ok(Some(value)),
            None if optional => Ok(None),
            None => Err(format!(
                "couldn't find key {key} in {title} {}/{name}",
                pod.namespace
            )),
        };
    }
    if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
        return Ok(Some(field(pod, path).unwrap_or_default()));
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        return Ok(Some(resource(spec, reference)));
    }
    Ok(None)
}

/// A field of the pod, by the path that fieldRef allows.
pub fn field(pod: &Pod, path: &str) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let keyed = |prefix: &str| Some(path.strip_prefix(prefix)?.strip_suffix("']")?.to_owned());
    let metadata = &pod.object["metadata"];
    if let Some(key) = keyed("metadata.labels['") {
        return Some(text(&metadata["labels"][&key]));
    }
    if let Some(key) = keyed("metadata.annotations['") {
        return Some(text(&metadata["annotations"][&key]));
    }
    let ip = || {
        pod.sandbox
            .as_ref()
            .map(|sandbox| sandbox.ip.clone())
            .unwrap_or_default()
    };
    Some(match path {
        "metadata.name" => pod.name.clone(),
        "metadata.namespace" => pod.namespace.clone(),
        "metadata.uid" => pod.uid.clone(),
        "spec.nodeName" => text(&pod.spec()["nodeName"]),
        "spec.serviceAccountName" => text(&pod.spec()["serviceAccountName"]),
        "status.podIP" | "status.podIPs" => ip(),
        "status.hostIP" | "status.hostIPs" => text(&pod.status["hostIP"]),
        _ => return None,
    })
}

fn resource(spec: &Value, reference: &Value) -> String {
    let path = reference["resource"].as_str().unwrap_or_default();
    let (list, name) = path.split_once('.').unwrap_or((path, ""));
    let value = &spec["resources"][list][name];
    let divisor = reference["divisor"]
        .as_str()
        .filter(|text| !text.is_empty() && *text != "0");
    if name == "cpu" {
        let each = divisor
            .and_then(|text| pod::millicores(&text.into()))
            .unwrap_or(1000)
            .max(1);
        return pod::millicores(value)
            .unwrap_or(0)
            .div_ceil(each)
            .to_string();
    }
    let each = divisor
        .and_then(|text| pod::bytes(&text.into()))
        .unwrap_or(1)
        .max(1);
    pod::bytes(value).unwrap_or(0).div_ceil(each).to_string()
}

/// Replaces `$(NAME)` by known variables; `$$` escapes, unknown names stay.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let closed = rest
            .strip_prefix('(')
            .and_then(|inside| inside.split_once(')'));
        match closed {
            Some((name, after)) => {
                match lookup(name) {
                    Some(value) => out.push_str(&value),
                    None => out.push_str(&format!("$({name})")),
                }
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
    out
}

fn service_variables(world: &World, namespace: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for service in world.store.within(Kind::Service, namespace) {
        all.extend(variables_of(service));
    }
    all.extend(kubernetes_service(world));
    all
}

fn kubernetes_service(world: &World) -> BTreeMap<String, String> {
    world
        .store
        .get(Kind::Service, "default", "kubernetes")
        .map(|service| variables_of(service))
        .unwrap_or_default()
}

fn variables_of(service: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let ip = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    if ip.is_empty() || ip == "None" {
        return all;
    }
    let upper = |text: &str| text.to_uppercase().replace('-', "_");
    let prefix = upper(name);
    let ports = service["spec"]["ports"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for (index, port) in ports.iter().enumerate() {
        let number = port["port"].as_u64().unwrap_or(0);
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let url = format!("{}://{ip}:{number}", protocol.to_lowercase());
        if index == 0 {
            all.insert(format!("{prefix}_SERVICE_HOST"), ip.to_owned());
            all.insert(format!("{prefix}_SERVICE_PORT"), number.to_string());
            all.insert(format!("{prefix}_PORT"), url.clone());
        }
        if let Some(port_name) = port["name"].as_str() {
            all.insert(
                format!("{prefix}_SERVICE_PORT_{}", upper(port_name)),
                number.to_string(),
            );
        }
        let stem = format!("{prefix}_PORT_{number}_{protocol}");
        all.insert(stem.clone(), url);
        all.insert(format!("{stem}_PROTO"), protocol.to_lowercase());
        all.insert(format!("{stem}_PORT"), number.to_string());
        all.insert(format!("{stem}_ADDR"), ip.to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_expand_and_unknown_ones_stay() {
        let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(expand("$(A) $(B) $$(A) $A", &lookup), "1 $(B) $(A) $A");
    }
}
