//! Validation, compared with what a Kubernetes v1.34.4 cluster was recorded to say.

use serde_json::json;

use super::*;
use crate::embedded::api::defaults;
use crate::embedded::api::status::Status;

fn deployment() -> Value {
    json!({
        "metadata": {"name": "advocate-api"},
        "spec": {
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {
                "metadata": {"labels": {"app": "shop"}},
                "spec": {"containers": [{"name": "api", "image": "i:1",
                    "resources": {"limits": {"memory": "256Mi"}, "requests": {"memory": "16Mi"}}}]},
            },
        },
    })
}

/// The message about a Deployment after `change`, when it takes the place of the plain one.
fn refused(change: impl Fn(&mut Value)) -> String {
    let mut old = deployment();
    defaults::apply(Kind::Deployment, &mut old);
    let mut object = deployment();
    change(&mut object);
    defaults::apply(Kind::Deployment, &mut object);
    let errors = changed_object(Kind::Deployment, &old, &object, Part::Main);
    Status::invalid(Kind::Deployment, "advocate-api", &errors).message
}

#[test]
fn a_request_above_its_limit_is_refused_as_recorded() {
    let message = refused(|object| {
        object["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] =
            "512Mi".into();
    });
    assert_eq!(
        message,
        "Deployment.apps \"advocate-api\" is invalid: spec.template.spec.containers[0].resources.requests: Invalid \
         value: \"512Mi\": must be less than or equal to memory limit of 256Mi"
    );
}

#[test]
fn a_changed_selector_is_refused_with_both_errors() {
    let message = refused(|object| {
        object["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    });
    assert_eq!(
        message,
        "Deployment.apps \"advocate-api\" is invalid: [spec.template.metadata.labels: Invalid value: {\"app\":\"shop\"}: \
         `selector` does not match template `labels`, spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: \
         field is immutable]"
    );
}

#[test]
fn containers_are_checked_field_by_field() {
    let at = "spec.template.spec.containers[0]";
    for (change, error) in [
        (json!({"name": null}), format!("{at}.name: Required value")),
        (json!({"image": ""}), format!("{at}.image: Required value")),
        (
            json!({"env": [{"name": "P", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
            format!(
                "{at}.env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"
            ),
        ),
        (
            json!({"ports": [{"containerPort": 70000}]}),
            format!(
                "{at}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
            ),
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": 80}, "successThreshold": 2}}),
            format!("{at}.livenessProbe.successThreshold: Invalid value: 2: must be 1"),
        ),
        (
            json!({"readinessProbe": {"periodSeconds": -5, "tcpSocket": {"port": "a_b"}}}),
            format!(
                "[{at}.readinessProbe.tcpSocket.port: Invalid value: \"a_b\": must contain only alpha-numeric \
                     characters (a-z, 0-9), and hyphens (-), {at}.readinessProbe.periodSeconds: Invalid value: -5: must be \
                     greater than or equal to 0]"
            ),
        ),
        (
            json!({"readinessProbe": {"periodSeconds": 5}}),
            format!("{at}.readinessProbe: Required value: must specify a handler type"),
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
            format!("{at}.volumeMounts[0].name: Not found: \"v\""),
        ),
        (
            json!({"imagePullPolicy": "Sometimes"}),
            format!(
                "{at}.imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
                     \"IfNotPresent\", \"Never\""
            ),
        ),
        (
            json!({"resources": {"limits": {"memory": "-1"}}}),
            format!(
                "{at}.resources.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0"
            ),
        ),
    ] {
        let message = refused(|object| {
            let container = object["spec"]["template"]["spec"]["containers"][0]
                .as_object_mut()
                .unwrap();
            container.extend(change.as_object().unwrap().clone());
        });
        assert_eq!(
            message,
            format!("Deployment.apps \"advocate-api\" is invalid: {error}")
        );
    }
}

#[test]
fn strategies_and_counts_are_checked() {
    for (change, error) in [
        (
            json!({"replicas": -1}),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
        ),
        (
            json!({"minReadySeconds": 600}),
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
    ] {
        let message = refused(|object| {
            object["spec"]
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
        });
        assert_eq!(
            message,
            format!("Deployment.apps \"advocate-api\" is invalid: {error}")
        );
    }
}

#[test]
fn a_pod_changes_only_images_tolerations_and_deadline() {
    let pod = json!({"spec": {"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}]}],
                     "tolerations": [{"key": "k", "operator": "Exists"}]}});
    let errors = |change: fn(&mut Value)| {
        let mut object = pod.clone();
        change(&mut object);
        changed_object(Kind::Pod, &pod, &object, Part::Main)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert!(errors(|pod| pod["spec"]["containers"][0]["image"] = "i:2".into()).is_empty());
    assert!(
        errors(|pod| pod["spec"]["tolerations"]
            .as_array_mut()
            .unwrap()
            .push(json!({"operator": "Exists"})))
        .is_empty()
    );
    let env = errors(|pod| pod["spec"]["containers"][0]["env"] = json!([]));
    assert!(env[0].starts_with(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    ));
    let gone = errors(|pod| pod["spec"]["tolerations"] = json!([]));
    assert!(
        gone[0].starts_with("spec.tolerations: Forbidden: existing toleration can not be modified")
    );
}

#[test]
fn names_labels_and_sizes_are_checked() {
    let errors = |kind: Kind, object: Value| {
        new_object(kind, &object)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        errors(Kind::ConfigMap, json!({"metadata": {}})),
        ["metadata.name: Required value: name or generateName is required"]
    );
    assert!(
        errors(Kind::ConfigMap, json!({"metadata": {"name": "A"}}))[0].starts_with(
            "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of"
        )
    );
    assert!(
        errors(
            Kind::Service,
            json!({"metadata": {"name": "1a"}, "spec": {"clusterIP": "None"}})
        )[0]
        .starts_with("metadata.name: Invalid value: \"1a\": a DNS-1035 label must")
    );
    let big = "x".repeat(300 * 1024);
    assert_eq!(
        errors(
            Kind::ConfigMap,
            json!({"metadata": {"name": "a", "annotations": {"k": big}}})
        ),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
    assert!(
        errors(
            Kind::ConfigMap,
            json!({"metadata": {"name": "a"}, "data": {"k": big}})
        )
        .is_empty()
    );
    let too_big = "x".repeat(1_060_000);
    assert_eq!(
        errors(
            Kind::ConfigMap,
            json!({"metadata": {"name": "a"}, "data": {"k": too_big}})
        ),
        ["[]: Too long: may not be more than 1048576 bytes"]
    );
    let label = errors(
        Kind::ConfigMap,
        json!({"metadata": {"name": "a", "labels": {"k": "a b"}}}),
    );
    assert!(label[0].starts_with(
        "metadata.labels: Invalid value: \"a b\": a valid label must be an empty string or"
    ));
}

#[test]
fn immutable_data_does_not_change() {
    let old = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": "1"}});
    let mut object = old.clone();
    object["data"]["k"] = "2".into();
    let errors = changed_object(Kind::ConfigMap, &old, &object, Part::Main);
    assert_eq!(
        errors[0].to_string(),
        "data: Forbidden: field is immutable when `immutable` is set"
    );
}

/// A change, its path, and what the real server says of it.
type Refused = (&'static str, Value, &'static str);

#[test]
fn pod_specs_are_refused_with_the_texts_of_the_real_server() {
    let cases: [Refused; 9] = [
        (
            "dnsPolicy",
            json!("None"),
            "spec.template.spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            "securityContext",
            json!({"runAsUser": -5}),
            "spec.template.spec.securityContext.runAsUser: Invalid value: -5: must be between 0 and 2147483647, inclusive",
        ),
        (
            "hostAliases",
            json!([{"ip": "x"}]),
            "spec.template.spec.hostAliases[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}]),
            "spec.template.spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
        ),
        (
            "affinity",
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
            "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
        ),
        (
            "initContainers",
            json!([{"name": "i", "image": "x", "livenessProbe": {"tcpSocket": {"port": 1}}}]),
            "spec.template.spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        (
            "containers",
            json!([{"name": "c", "image": "x", "ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}]),
            "spec.template.spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//5\"",
        ),
        (
            "containers",
            json!([{"name": "c", "image": "x", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.zz"}}}]}]),
            "spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.zz\": error converting fieldPath: field label not supported: spec.zz",
        ),
        (
            "containers",
            json!([{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]),
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
        ),
    ];
    for (field, value, wanted) in cases {
        let message = refused(|object| object["spec"]["template"]["spec"][field] = value.clone());
        assert_eq!(
            message,
            format!("Deployment.apps \"advocate-api\" is invalid: {wanted}")
        );
    }
}

#[test]
fn a_stateful_set_may_mount_what_its_claim_templates_name() {
    let mut object = deployment();
    object["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "d"}}]);
    object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "d", "mountPath": "/d"}]);
    defaults::apply(Kind::StatefulSet, &mut object);
    assert!(new_object(Kind::StatefulSet, &object).is_empty());
}

#[test]
fn an_unknown_strategy_is_shown_as_the_real_server_prints_its_struct() {
    let message = refused(|object| object["spec"]["strategy"] = json!({"type": "Foo"}));
    assert!(
        message.contains("spec.strategy: Unsupported value: {\"Type\":\"Foo\",\"RollingUpdate\":")
    );
}
