//! HorizontalPodAutoscalers on cpu and memory: reading use, choosing a size, saying why.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::embedded::controllers::object::{
    condition, items, name, namespace, number, replicas, selects, set_status, time,
};
use crate::embedded::controllers::{Key, pods, wake_at};
use crate::embedded::events::{self, NewEvent};
use crate::embedded::kind::Kind;
use crate::embedded::kubelet;
use crate::embedded::quantity::Quantity;
use crate::embedded::time::Time;
use crate::embedded::world::World;

const COMPONENT: &str = "horizontal-pod-autoscaler";

/// How often an autoscaler looks at its target.
pub(super) const PERIOD: Duration = Duration::from_secs(15);

/// Deviation from the target, in percent of it, that is let pass.
const TOLERANCE: i64 = 10;

/// A young pod's cpu use counts only when it was measured after it had become ready.
const CPU_SETTLES: Duration = Duration::from_secs(300);

/// How long a recommendation keeps the size from going below it.
const STABILISATION: Duration = Duration::from_secs(300);

/// What one metric recommends.
struct Advice {
    size: i64,
    resource: String,
    utilization: i64,
    average: String,
}

pub(super) fn reconcile(world: &mut World, key: &Key) {
    let Some(scaler) = world
        .store
        .get(Kind::HorizontalPodAutoscaler, &key.namespace, &key.name)
        .cloned()
    else {
        world.controllers.recommendations.remove(key);
        return;
    };
    let due = world.now() + PERIOD;
    wake_at(world, key, due);
    let reference = &scaler["spec"]["scaleTargetRef"];
    let kind = reference["kind"].as_str().and_then(Kind::by_name);
    let target_name = reference["name"].as_str().unwrap_or_default();
    let target = kind.and_then(|kind| {
        let object = world.store.get(kind, &key.namespace, target_name)?;
        Some((kind, object.clone()))
    });
    let Some((kind, target)) = target else {
        no_target(world, &scaler, kind, target_name);
        return;
    };
    let able = (
        "AbleToScale",
        "True",
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    );
    if replicas(&target) == 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        let idle = ("ScalingActive", "False", "ScalingDisabled", message);
        report(world, &scaler, &target, None, 0, &[able, idle]);
        return;
    }
    match advise(world, &scaler, &target) {
        Ok(advice) => follow(world, key, &scaler, kind, &target, &advice),
        Err((resource, why)) => {
            let why = format!("failed to get {resource} utilization: {why}");
            tell(world, &scaler, true, "FailedGetResourceMetric", why.clone());
            let all = items(&scaler["spec"]["metrics"]).len();
            let computed = format!(
                "invalid metrics ({all} invalid out of {all}), first error is: failed to get {resource} resource \
                 metric value: {why}"
            );
            tell(
                world,
                &scaler,
                true,
                "FailedComputeMetricsReplicas",
                computed,
            );
            let message = format!("the HPA was unable to compute the replica count: {why}");
            let active = (
                "ScalingActive",
                "False",
                "FailedGetResourceMetric",
                message.as_str(),
            );
            let desired = number(&scaler["status"]["desiredReplicas"]);
            report(world, &scaler, &target, None, desired, &[able, active]);
        }
    }
}

fn no_target(world: &mut World, scaler: &Value, kind: Option<Kind>, target: &str) {
    let plural = kind.map_or_else(String::new, Kind::qualified);
    let missing = format!("{plural} \"{target}\" not found");
    let message =
        format!("the HPA controller was unable to get the target's current scale: {missing}");
    tell(world, scaler, true, "FailedGetScale", missing);
    let unable = ("AbleToScale", "False", "FailedGetScale", message.as_str());
    let mut status = scaler["status"].clone();
    status["conditions"] = with(world, scaler, &[unable]).into();
    set_status(world, Kind::HorizontalPodAutoscaler, scaler, status);
}

/// The largest size that any metric recommends, or the first metric's error with its resource.
fn advise(world: &World, scaler: &Value, target: &Value) -> Result<Advice, (String, String)> {
    let mut best: Option<Advice> = None;
    for metric in items(&scaler["spec"]["metrics"]) {
        let resource = metric["resource"]["name"].as_str().unwrap_or_default();
        let wanted = &metric["resource"]["target"];
        let advice =
            advise_on(world, target, resource, wanted).map_err(|why| (resource.to_owned(), why))?;
        if best.as_ref().is_none_or(|best| advice.size > best.size) {
            best = Some(advice);
        }
    }
    best.ok_or_else(|| ("cpu".to_owned(), "no metrics are specified".to_owned()))
}

fn advise_on(
    world: &World,
    target: &Value,
    resource: &str,
    wanted: &Value,
) -> Result<Advice, String> {
    let selected: Vec<Arc<Value>> = world
        .store
        .within(Kind::Pod, namespace(target))
        .filter(|pod| {
            pods::active(pod) && selects(&target["spec"]["selector"], &pod["metadata"]["labels"])
        })
        .cloned()
        .collect();
    let measured: Vec<kubelet::metrics::ContainerUse> = kubelet::metrics(world)
        .into_iter()
        .filter(|one| {
            one.namespace == namespace(target) && selected.iter().any(|pod| name(pod) == one.pod)
        })
        .collect();
    if measured.is_empty() {
        return Err(format!(
            "unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        ));
    }
    let now = world.now();
    let (mut used, mut requested, mut counted) = (0i128, 0i128, 0i64);
    for pod in &selected {
        let own: Vec<&kubelet::metrics::ContainerUse> =
            measured.iter().filter(|one| one.pod == name(pod)).collect();
        let Some(taken) = own.first().map(|one| one.taken_at) else {
            continue;
        };
        if resource == "cpu" && settling(pod, taken, now) {
            continue;
        }
        counted += 1;
        used += own.iter().map(|one| amount(one, resource)).sum::<i128>();
        requested += requests(pod, resource)?;
    }
    if counted == 0 || requested == 0 {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let utilization = (used * 100 / requested) as i64;
    let goal = wanted["averageUtilization"].as_i64().unwrap_or(80).max(1);
    let near = (utilization - goal).abs() * 100 <= goal * TOLERANCE;
    let size = if near {
        replicas(target)
    } else {
        (utilization * counted + goal - 1) / goal
    };
    Ok(Advice {
        size,
        resource: resource.to_owned(),
        utilization,
        average: spelled(resource, used / i128::from(counted)),
    })
}

/// Whether a young pod's cpu use is still that of its start.
fn settling(pod: &Value, taken: Time, now: Time) -> bool {
    let young = time(&pod["status"]["startTime"]).is_some_and(|start| now < start + CPU_SETTLES);
    let settled = pods::ready(pod)
        && pods::ready_since(pod).is_some_and(|since| taken >= since + kubelet::metrics::WINDOW);
    young && !settled
}

/// Use in billionths of a unit.
fn amount(one: &kubelet::metrics::ContainerUse, resource: &str) -> i128 {
    if resource == "cpu" {
        i128::from(one.cpu_nanocores)
    } else {
        i128::from(one.memory_kib) * 1024 * 1_000_000_000
    }
}

fn requests(pod: &Value, resource: &str) -> Result<i128, String> {
    let mut sum = 0;
    for container in items(&pod["spec"]["containers"]) {
        let request = &container["resources"]["requests"][resource];
        let request = Quantity::from_json(request).map_err(|_| {
            format!(
                "missing request for {resource} in container {} of Pod {}",
                container["name"].as_str().unwrap_or_default(),
                name(pod)
            )
        })?;
        sum += request.nanos();
    }
    Ok(sum)
}

fn spelled(resource: &str, nanos: i128) -> String {
    let unit = if resource == "cpu" {
        1_000_000
    } else {
        1_000_000_000
    };
    let whole = i64::try_from(nanos / unit).unwrap_or(i64::MAX);
    if resource == "cpu" {
        Quantity::millis(whole).to_string()
    } else {
        Quantity::bytes(whole).to_string()
    }
}

/// Brings an advice into its limits and, if the size is to change, changes it.
fn follow(
    world: &mut World,
    key: &Key,
    scaler: &Value,
    kind: Kind,
    target: &Value,
    advice: &Advice,
) {
    let present = replicas(target);
    let steady = stabilised(world, key, advice.size);
    let mut able = (
        "ReadyForNewScale",
        "recommended size matches current size".to_owned(),
    );
    if steady > advice.size {
        able = (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation"
                .to_owned(),
        );
    }
    let (desired, limited) = limit(scaler, present, steady);
    let metric = format!(
        "{} resource utilization (percentage of request)",
        advice.resource
    );
    if desired != present {
        world.update(kind, namespace(target), name(target), |target| {
            target["spec"]["replicas"] = desired.into();
        });
        let reason = if desired > present {
            format!("{metric} above target")
        } else {
            "All metrics below target".to_owned()
        };
        tell(
            world,
            scaler,
            false,
            "SuccessfulRescale",
            format!("New size: {desired}; reason: {reason}"),
        );
        able = (
            "SucceededRescale",
            format!("the HPA controller was able to update the target scale to {desired}"),
        );
    }
    let active =
        format!("the HPA was able to successfully calculate a replica count from {metric}");
    let conditions = [
        ("AbleToScale", "True", able.0, able.1.as_str()),
        ("ScalingActive", "True", "ValidMetricFound", active.as_str()),
        ("ScalingLimited", limited.0, limited.1, limited.2),
    ];
    report(world, scaler, target, Some(advice), desired, &conditions);
}

/// A size within the autoscaler's limits, and the status, reason and message of ScalingLimited.
fn limit(
    scaler: &Value,
    present: i64,
    size: i64,
) -> (i64, (&'static str, &'static str, &'static str)) {
    let least = scaler["spec"]["minReplicas"].as_i64().unwrap_or(1);
    let most = number(&scaler["spec"]["maxReplicas"]).max(least);
    let rate = (2 * present).max(present + 4);
    if size > most {
        let message = "the desired replica count is more than the maximum replica count";
        (most, ("True", "TooManyReplicas", message))
    } else if size < least {
        let message = "the desired replica count is less than the minimum replica count";
        (least, ("True", "TooFewReplicas", message))
    } else if size > rate {
        let message = "the desired replica count is increasing faster than the maximum scale rate";
        (rate, ("True", "ScaleUpLimit", message))
    } else {
        let message = "the desired count is within the acceptable range";
        (size, ("False", "DesiredWithinRange", message))
    }
}

/// The highest recommendation of the last minutes, this one included.
fn stabilised(world: &mut World, key: &Key, size: i64) -> i64 {
    let now = world.now();
    let recent = world
        .controllers
        .recommendations
        .entry(key.clone())
        .or_default();
    recent.retain(|(when, _)| now.since(*when) < STABILISATION);
    recent.push((now, size));
    recent.iter().map(|(_, size)| *size).max().unwrap_or(size)
}

type Condition<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The autoscaler's conditions with some of them set; a transition is a change of status.
fn with(world: &World, scaler: &Value, fresh: &[Condition<'_>]) -> Vec<Value> {
    let mut conditions = items(&scaler["status"]["conditions"]).to_vec();
    for (kind, status, reason, message) in fresh {
        let before = condition(scaler, kind).filter(|before| before["status"] == *status);
        let since = before.map(|before| before["lastTransitionTime"].clone());
        let entry = json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": since.unwrap_or_else(|| world.now().seconds_text().into()),
            "reason": reason,
            "message": message,
        });
        match conditions.iter().position(|c| c["type"] == *kind) {
            Some(at) => conditions[at] = entry,
            None => conditions.push(entry),
        }
    }
    conditions
}

fn report(
    world: &mut World,
    scaler: &Value,
    target: &Value,
    advice: Option<&Advice>,
    desired: i64,
    conditions: &[Condition<'_>],
) {
    let mut status = Map::new();
    let rescaled = conditions.iter().any(|c| c.2 == "SucceededRescale");
    if rescaled {
        status.insert(
            "lastScaleTime".to_owned(),
            world.now().seconds_text().into(),
        );
    } else if let Some(before) = scaler["status"].get("lastScaleTime") {
        status.insert("lastScaleTime".to_owned(), before.clone());
    }
    let current = number(&target["status"]["replicas"]);
    status.insert("currentReplicas".to_owned(), current.into());
    status.insert("desiredReplicas".to_owned(), desired.into());
    let metrics = match advice {
        Some(advice) => json!([{
            "type": "Resource",
            "resource": {
                "name": advice.resource,
                "current": {"averageUtilization": advice.utilization, "averageValue": advice.average},
            },
        }]),
        None => scaler["status"]["currentMetrics"].clone(),
    };
    status.insert("currentMetrics".to_owned(), metrics);
    let conditions = with(world, scaler, conditions);
    status.insert("conditions".to_owned(), conditions.into());
    set_status(world, Kind::HorizontalPodAutoscaler, scaler, status.into());
}

fn tell(world: &mut World, scaler: &Value, warning: bool, reason: &str, message: String) {
    events::record(
        world,
        NewEvent {
            about: scaler,
            field_path: None,
            warning,
            reason,
            message,
            component: COMPONENT,
            host: None,
        },
    );
}

#[cfg(test)]
mod tests;
