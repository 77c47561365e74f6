//! Defaults: the values that the real server fills in and that show in every object read back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::embedded::kind::Kind;
use crate::embedded::world::World;

pub mod pod;
pub mod service;
pub mod workload;

/// Fills in what a type's defaulting function fills in, for new and for changed objects.
pub fn apply(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => pod::pod(object),
        Kind::Deployment => workload::deployment(object),
        Kind::ReplicaSet => workload::replica_set(object),
        Kind::StatefulSet => workload::stateful_set(object),
        Kind::DaemonSet => workload::daemon_set(object),
        Kind::Job => workload::job(&mut object["spec"]),
        Kind::CronJob => workload::cron_job(object),
        Kind::Service => service::service(object),
        Kind::Secret => secret(object),
        Kind::PersistentVolumeClaim => fill(&mut object["spec"], "volumeMode", "Filesystem"),
        Kind::NetworkPolicy => network_policy(object),
        Kind::StorageClass => {
            fill(object, "reclaimPolicy", "Delete");
            fill(object, "volumeBindingMode", "Immediate");
        }
        Kind::HorizontalPodAutoscaler => fill(&mut object["spec"], "minReplicas", 1),
        Kind::LimitRange => each(&mut object["spec"]["limits"], limit_item),
        Kind::PriorityClass => fill(object, "preemptionPolicy", "PreemptLowerPriority"),
        Kind::ValidatingWebhookConfiguration | Kind::MutatingWebhookConfiguration => {
            each(&mut object["webhooks"], webhook);
        }
        Kind::RoleBinding | Kind::ClusterRoleBinding => {
            fill(
                &mut object["roleRef"],
                "apiGroup",
                "rbac.authorization.k8s.io",
            );
        }
        _ => {}
    }
}

/// What only creation fills in: allocated addresses, the first status.
pub fn fill_new(world: &mut World, kind: Kind, object: &mut Value) {
    match kind {
        Kind::Namespace => {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"]["phase"] = "Active".into();
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        Kind::Pod => {
            object["status"] = json!({ "phase": "Pending", "qosClass": pod::qos_class(object) });
        }
        Kind::Service => {
            service::allocate(world, object);
            object["status"] = json!({ "loadBalancer": {} });
        }
        Kind::PersistentVolumeClaim | Kind::PersistentVolume => {
            object["status"] = json!({ "phase": "Pending" });
        }
        Kind::Job => workload::job_selector(object),
        Kind::Deployment
        | Kind::DaemonSet
        | Kind::CronJob
        | Kind::ResourceQuota
        | Kind::Ingress => object["status"] = json!({}),
        Kind::ReplicaSet | Kind::StatefulSet => object["status"] = json!({ "replicas": 0 }),
        _ => {}
    }
}

/// Keeps allocated values that a change leaves out.
pub fn keep_allocated(kind: Kind, old: &Value, object: &mut Value) {
    match kind {
        Kind::Service => service::keep(old, object),
        Kind::Namespace => object["spec"] = old["spec"].clone(),
        _ => {}
    }
}

/// Sets a field that is absent or null. Does nothing when `object` itself is neither a map nor absent.
pub(crate) fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    if let Some(map) = object.as_object_mut()
        && map.get(field).is_none_or(Value::is_null)
    {
        map.insert(field.to_owned(), value.into());
    }
}

/// Applies a function to every element of a list, if it is one.
pub(crate) fn each(list: &mut Value, f: impl FnMut(&mut Value)) {
    if let Some(list) = list.as_array_mut() {
        list.iter_mut().for_each(f);
    }
}

/// `stringData` is written over `data` and never read back.
fn secret(object: &mut Value) {
    fill(object, "type", "Opaque");
    let Some(map) = object.as_object_mut() else {
        return;
    };
    let Some(Value::Object(plain)) = map.remove("stringData") else {
        return;
    };
    let data = map
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    for (key, value) in plain {
        if let Some(text) = value.as_str() {
            data[key] = STANDARD.encode(text).into();
        }
    }
}

fn network_policy(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec.is_null() {
        *spec = Value::Object(Map::new());
    }
    if spec.get("policyTypes").is_none() {
        let egress = spec.get("egress").is_some();
        spec["policyTypes"] = if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
    }
    for direction in ["ingress", "egress"] {
        if let Some(rules) = spec.get_mut(direction) {
            each(rules, |rule| {
                if let Some(ports) = rule.get_mut("ports") {
                    each(ports, |port| fill(port, "protocol", "TCP"));
                }
            });
        }
    }
}

/// A container's default limits come from its maxima, its default requests from its default limits.
fn limit_item(item: &mut Value) {
    if item["type"] != "Container" {
        return;
    }
    let copied = [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ];
    for (from, to) in copied {
        let Some(source) = item.get(from).and_then(Value::as_object).cloned() else {
            continue;
        };
        for (resource, amount) in source {
            fill(&mut item[to], &resource, amount);
        }
    }
}

fn webhook(hook: &mut Value) {
    fill(hook, "failurePolicy", "Fail");
    fill(hook, "matchPolicy", "Equivalent");
    fill(hook, "timeoutSeconds", 10);
    fill(hook, "namespaceSelector", json!({}));
    fill(hook, "objectSelector", json!({}));
    if let Some(rules) = hook.get_mut("rules") {
        each(rules, |rule| fill(rule, "scope", "*"));
    }
    if hook["clientConfig"].get("service").is_some() {
        fill(&mut hook["clientConfig"]["service"], "port", 443);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_only_ever_adds_to_data() {
        let mut secret = json!({"data": {"user": "dQ==", "pass": "cA=="}, "stringData": {"pass": "new", "x": null}});
        apply(Kind::Secret, &mut secret);
        assert_eq!(
            secret,
            json!({"type": "Opaque", "data": {"user": "dQ==", "pass": "bmV3"}})
        );
    }

    #[test]
    fn deployment_templates_get_pod_defaults_but_not_those_of_pods() {
        let mut deployment = json!({"spec": {"template": {"spec": {"containers": [{
            "name": "c", "image": "busybox", "resources": {"limits": {"cpu": "1"}},
            "readinessProbe": {"httpGet": {"port": 80}}, "ports": [{"containerPort": 80}],
        }], "volumes": [{"name": "v"}]}}}});
        apply(Kind::Deployment, &mut deployment);
        let spec = &deployment["spec"]["template"]["spec"];
        let container = &spec["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
        assert_eq!(
            container["readinessProbe"],
            json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                   "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
        );
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
        assert!(spec.get("enableServiceLinks").is_none());
        assert_eq!(
            deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"],
            "25%"
        );
        assert_eq!(deployment["spec"]["progressDeadlineSeconds"], 600);
    }
}
