//! Defaults of pods and pod templates, and the quality-of-service class.

use serde_json::{Map, Value, json};

use crate::embedded::api::defaults::{each, fill};
use crate::embedded::quantity::Quantity;

/// File mode of projected files: 0644.
const FILE_MODE: u32 = 0o644;

/// A whole pod: what templates get, and limits copied to requests.
pub fn pod(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "enableServiceLinks", true);
    for list in ["initContainers", "containers"] {
        if let Some(list) = spec.get_mut(list) {
            each(list, requests_from_limits);
        }
    }
    pod_spec(spec);
}

/// The spec of a pod or of a template.
pub fn pod_spec(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "securityContext", json!({}));
    mirror_service_account(spec);
    for list in ["initContainers", "containers"] {
        if let Some(list) = spec.get_mut(list) {
            each(list, container);
        }
    }
    if let Some(volumes) = spec.get_mut("volumes") {
        each(volumes, volume);
    }
}

/// The old name of the field is kept equal to the new one, which wins.
fn mirror_service_account(spec: &mut Value) {
    let named = |field: &str| {
        spec.get(field)
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    if let Some(name) = named("serviceAccountName").or_else(|| named("serviceAccount")) {
        spec["serviceAccountName"] = name.as_str().into();
        spec["serviceAccount"] = name.into();
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else {
        return;
    };
    for (resource, amount) in limits {
        fill(&mut container["resources"]["requests"], &resource, amount);
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if uses_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    if let Some(ports) = container.get_mut("ports") {
        each(ports, |port| fill(port, "protocol", "TCP"));
    }
    if let Some(env) = container.get_mut("env") {
        each(env, |entry| {
            if let Some(field) = entry.pointer_mut("/valueFrom/fieldRef") {
                fill(field, "apiVersion", "v1");
            }
            if let Some(resource) = entry.pointer_mut("/valueFrom/resourceFieldRef") {
                fill(resource, "divisor", "0");
            }
        });
    }
    for name in ["readinessProbe", "livenessProbe", "startupProbe"] {
        if let Some(found) = container.get_mut(name).filter(|probe| probe.is_object()) {
            probe(found);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) = container.pointer_mut(&format!("/lifecycle/{hook}/httpGet")) {
            http_get(get);
        }
    }
}

fn probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    // Zero means "not given" to the real types.
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe[field] == 0 {
            probe[field] = value.into();
        }
    }
    if probe["initialDelaySeconds"] == 0
        && let Some(map) = probe.as_object_mut()
    {
        map.remove("initialDelaySeconds");
    }
    if let Some(get) = probe.get_mut("httpGet") {
        http_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(get: &mut Value) {
    fill(get, "path", "/");
    fill(get, "scheme", "HTTP");
}

fn volume(volume: &mut Value) {
    let Some(map) = volume.as_object_mut() else {
        return;
    };
    if map.len() == 1 && map.contains_key("name") {
        map.insert("emptyDir".to_owned(), Value::Object(Map::new()));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = map.get_mut(source) {
            fill(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(path) = map.get_mut("hostPath") {
        fill(path, "type", "");
    }
    if let Some(items) = map.get_mut("downwardAPI").and_then(|v| v.get_mut("items")) {
        each(items, downward_item);
    }
    if let Some(sources) = map.get_mut("projected").and_then(|v| v.get_mut("sources")) {
        each(sources, |source| {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(items) = source.pointer_mut("/downwardAPI/items") {
                each(items, downward_item);
            }
        });
    }
}

fn downward_item(item: &mut Value) {
    if let Some(field) = item.get_mut("fieldRef") {
        fill(field, "apiVersion", "v1");
    }
}

/// Whether an image reference has the tag `latest`, or neither tag nor digest.
fn uses_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.rsplit_once(':') {
        Some((_, tag)) => tag == "latest",
        None => true,
    }
}

/// `Guaranteed` when every container's cpu and memory limits are set and equal its requests, `BestEffort` when
/// no container has any, else `Burstable`.
pub fn qos_class(pod: &Value) -> &'static str {
    let mut any = false;
    let mut all = true;
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array().map_or(&[][..], Vec::as_slice) {
            for resource in ["cpu", "memory"] {
                let amount = |which: &str| {
                    Quantity::from_json(&container["resources"][which][resource])
                        .ok()
                        .filter(|amount| !amount.is_zero())
                };
                let (request, limit) = (amount("requests"), amount("limits"));
                any |= request.is_some() || limit.is_some();
                all &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
            }
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, latest) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1.36", false),
            ("reg:5000/busybox", true),
            ("reg:5000/busybox:1", false),
            ("busybox@sha256:aa", false),
        ] {
            assert_eq!(uses_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn limits_become_requests_and_decide_the_class() {
        let with = |resources: Value| {
            let mut object = json!({"spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]}});
            pod(&mut object);
            object
        };
        let limited = with(json!({"limits": {"cpu": "1", "memory": "1Gi"}}));
        assert_eq!(
            limited["spec"]["containers"][0]["resources"]["requests"],
            json!({"cpu": "1", "memory": "1Gi"})
        );
        assert_eq!(qos_class(&limited), "Guaranteed");
        assert_eq!(
            qos_class(&with(json!({"limits": {"cpu": "1"}}))),
            "Burstable"
        );
        assert_eq!(qos_class(&with(json!({}))), "BestEffort");
    }
}
