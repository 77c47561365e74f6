//! Requests of pods, summed as the scheduler and quotas count them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::embedded::controllers::object::items;
use crate::embedded::quantity::Quantity;

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// A map of quantities in an object; entries that are no quantities are left out.
pub fn amounts(map: &Value) -> Amounts {
    map.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?)))
        .collect()
}

/// Adds amounts to a sum.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_insert(Quantity::ZERO);
        *entry = entry.plus(*amount);
    }
}

/// What a pod needs at once of `requests` or `limits`: its containers together, or an init container alone
/// if that is more; restartable init containers run beside everything that follows them.
pub fn of_pod(pod: &Value, what: &str) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][what]);
    let mut running = Amounts::new();
    for container in items(&pod["spec"]["containers"]) {
        add(&mut running, &of(container));
    }
    let mut beside = Amounts::new();
    let mut peak = Amounts::new();
    for container in items(&pod["spec"]["initContainers"]) {
        let mut alone = of(container);
        add(&mut alone, &beside);
        if container["restartPolicy"] == "Always" {
            beside.clone_from(&alone);
        }
        raise(&mut peak, &alone);
    }
    add(&mut running, &beside);
    raise(&mut running, &peak);
    if !running.is_empty() || what == "requests" {
        add(&mut running, &amounts(&pod["spec"]["overhead"]));
    }
    running
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = most.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn container(cpu: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_pod_needs_its_containers_together_or_its_largest_init_container() {
        let pod = json!({"spec": {
            "containers": [container("100m"), container("200m")],
            "initContainers": [container("250m")],
        }});
        assert_eq!(of_pod(&pod, "requests")["cpu"], Quantity::millis(300));
        let pod = json!({"spec": {
            "containers": [container("100m")],
            "initContainers": [container("250m")],
        }});
        assert_eq!(of_pod(&pod, "requests")["cpu"], Quantity::millis(250));
    }

    #[test]
    fn a_restartable_init_container_counts_beside_the_others() {
        let mut sidecar = container("50m");
        sidecar["restartPolicy"] = "Always".into();
        let pod = json!({"spec": {"containers": [container("100m")], "initContainers": [sidecar]}});
        assert_eq!(of_pod(&pod, "requests")["cpu"], Quantity::millis(150));
    }
}
