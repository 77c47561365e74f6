//! Defaults of the workload types.

use serde_json::{Value, json};

use crate::embedded::api::defaults::{each, fill, pod};

fn template(spec: &mut Value) {
    pod::pod_spec(&mut spec["template"]["spec"]);
}

pub fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    let strategy = &mut spec["strategy"];
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
    template(spec);
}

pub fn replica_set(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "replicas", 1);
    template(spec);
}

pub fn stateful_set(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "replicas", 1);
    fill(spec, "podManagementPolicy", "OrderedReady");
    fill(spec, "revisionHistoryLimit", 10);
    let strategy = &mut spec["updateStrategy"];
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        fill(&mut strategy["rollingUpdate"], "partition", 0);
    }
    let retention = &mut spec["persistentVolumeClaimRetentionPolicy"];
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    if let Some(claims) = spec.get_mut("volumeClaimTemplates") {
        each(claims, |claim| {
            fill(claim, "apiVersion", "v1");
            fill(claim, "kind", "PersistentVolumeClaim");
            fill(&mut claim["spec"], "volumeMode", "Filesystem");
            fill(&mut claim["status"], "phase", "Pending");
        });
    }
    template(spec);
}

pub fn daemon_set(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "revisionHistoryLimit", 10);
    let strategy = &mut spec["updateStrategy"];
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        fill(rolling, "maxSurge", 0);
        fill(rolling, "maxUnavailable", 1);
    }
    template(spec);
}

/// The spec of a Job, or of a CronJob's template.
pub fn job(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", 6);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed");
    template(spec);
}

pub fn cron_job(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    pod::pod_spec(&mut spec["jobTemplate"]["spec"]["template"]["spec"]);
}

/// A new Job selects its pods by its own uid, unless it brings a selector of its own.
pub fn job_selector(object: &mut Value) {
    object["status"] = json!({});
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let uid = object["metadata"]["uid"].clone();
    let name = object["metadata"]["name"].clone();
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels[key] = value.clone();
    }
    object["spec"]["selector"] =
        json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
}
