//! The nodes: whether any takes pods, what kind of machine they are, and whether the fixture fits on them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::examine::{Finding, Grade};
use crate::cluster::fixture::Fixture;
use crate::cluster::ownership::Owned;
use crate::cluster::{ClusterError, image, pull, resource};
use crate::embedded::quantity::Quantity;

/// What pods ask for: thousandths of a core, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    milli_cpu: i64,
    bytes: i64,
}

impl Amount {
    fn of(list: &Value) -> Amount {
        let read = |name: &str| Quantity::from_json(&list[name]).ok();
        Amount {
            milli_cpu: read("cpu").map_or(0, Quantity::milli_value),
            bytes: read("memory").map_or(0, Quantity::value),
        }
    }

    /// What a pod's containers ask for together.
    fn of_pod(spec: &Value) -> Amount {
        let containers = spec["containers"].as_array().into_iter().flatten();
        containers.fold(Amount::default(), |sum, one| {
            sum.plus(Amount::of(&one["resources"]["requests"]))
        })
    }

    fn plus(self, other: Amount) -> Amount {
        Amount {
            milli_cpu: self.milli_cpu.saturating_add(other.milli_cpu),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount {
            milli_cpu: self.milli_cpu.saturating_sub(other.milli_cpu),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn holds(self, other: Amount) -> bool {
        self.milli_cpu >= other.milli_cpu && self.bytes >= other.bytes
    }

    fn text(self) -> String {
        format!("{} millicores and {} MiB", self.milli_cpu, self.bytes >> 20)
    }
}

/// Checks of the nodes.
pub async fn findings(client: &kube::Client, fixture: &Fixture, owned: &Owned) -> Vec<Finding> {
    match read(client).await {
        Ok((nodes, pods)) => vec![
            machines(&nodes, image::program().is_some(), std::env::consts::ARCH),
            room(&nodes, &pods, fixture, owned),
        ],
        Err(error) => ["nodes", "room"]
            .map(|check| Finding::not_told(check, &error))
            .into(),
    }
}

async fn read(client: &kube::Client) -> Result<(Vec<Value>, Vec<Value>), ClusterError> {
    let nodes = resource::of_kind("Node")?.list(client, "").await?;
    let pods = resource::of_kind("Pod")?.list(client, "").await?;
    Ok((nodes, pods))
}

/// As Kubernetes calls a kind of machine.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Which nodes take pods, and whether the image that this build carries is for them.
fn machines(nodes: &[Value], carried: bool, ours: &str) -> Finding {
    const CHECK: &str = "nodes";
    let taking: Vec<&Value> = nodes.iter().filter(|node| pull::takes_pods(node)).collect();
    if taking.is_empty() {
        let found = format!("none of {} takes pods", nodes.len());
        return Finding::new(CHECK, Grade::Problem, found)
            .todo("kubectl get nodes: make one ready, uncordon it, or take its taints away");
    }
    let kinds: BTreeMap<&str, usize> = taking.iter().fold(BTreeMap::new(), |mut kinds, node| {
        let kind = node["status"]["nodeInfo"]["architecture"].as_str();
        *kinds.entry(kind.unwrap_or("unknown")).or_default() += 1;
        kinds
    });
    let listed: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    let found = format!(
        "{} of {} take pods: {}",
        taking.len(),
        nodes.len(),
        listed.join(", ")
    );
    let ours = architecture(ours);
    if carried && kinds.keys().any(|kind| *kind != ours && *kind != "unknown") {
        return Finding::new(
            CHECK,
            Grade::Warning,
            format!("{found}; the image that this breakage carries is for {ours}"),
        )
        .todo("run breakage from a machine of the nodes' kind, or push an image for it and name it with --image");
    }
    Finding::new(CHECK, Grade::Good, found)
}

/// Whether the fixture's pods find room beside what others ask for.
fn room(nodes: &[Value], pods: &[Value], fixture: &Fixture, owned: &Owned) -> Finding {
    const CHECK: &str = "room";
    let ours = owned.names();
    let mut free: BTreeMap<&str, Amount> = nodes
        .iter()
        .filter(|node| pull::takes_pods(node))
        .filter_map(|node| {
            let name = node["metadata"]["name"].as_str()?;
            Some((name, Amount::of(&node["status"]["allocatable"])))
        })
        .collect();
    for pod in pods {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let ended = ["Succeeded", "Failed"]
            .map(Value::from)
            .contains(&pod["status"]["phase"]);
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if !ended
            && !ours.contains(namespace)
            && let Some(left) = free.get_mut(node)
        {
            *left = left.minus(Amount::of_pod(&pod["spec"]));
        }
    }
    let wanted = pods_of(fixture);
    let total = wanted
        .iter()
        .fold(Amount::default(), |sum, (_, one)| sum.plus(*one));
    let most = free
        .values()
        .copied()
        .max_by_key(|amount| (amount.milli_cpu, amount.bytes));
    for (name, one) in &wanted {
        // The largest first, each on the first node that holds it: pods of fixtures are small against nodes.
        match free.values_mut().find(|left| left.holds(*one)) {
            Some(left) => *left = left.minus(*one),
            None => {
                let found = format!(
                    "fixture {} asks for {} in all, and {name} finds no room; the emptiest node has {}",
                    fixture.name,
                    total.text(),
                    most.unwrap_or_default().text()
                );
                return Finding::new(CHECK, Grade::Problem, found)
                    .todo("make room on a node, or add one: kubectl describe node shows what is asked for");
            }
        }
    }
    let found = format!(
        "fixture {} asks for {}, and there is room",
        fixture.name,
        total.text()
    );
    Finding::new(CHECK, Grade::Good, found)
}

/// Every pod of a fixture with what it asks for, the largest first.
fn pods_of(fixture: &Fixture) -> Vec<(String, Amount)> {
    let mut pods = Vec::new();
    for object in &fixture.objects {
        let spec = &object["spec"]["template"]["spec"];
        if spec.is_null() {
            continue;
        }
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        for _ in 0..replicas {
            pods.push((name.to_owned(), Amount::of_pod(spec)));
        }
    }
    pods.sort_by_key(|(_, amount)| std::cmp::Reverse((amount.milli_cpu, amount.bytes)));
    pods
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fixture::Fixtures;
    use crate::ids::FixtureId;
    use serde_json::json;

    fn node(name: &str, kind: &str, cpu: &str) -> Value {
        json!({
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"architecture": kind},
                "allocatable": {"cpu": cpu, "memory": "8Gi"},
            },
        })
    }

    fn fixture() -> Fixture {
        let id = [FixtureId::new("advocate")];
        Fixtures::compiled_in().load(&id).unwrap()
    }

    #[test]
    fn nodes_of_another_kind_of_machine_are_told_apart_from_the_images() {
        let nodes = [node("a", "amd64", "2"), node("b", "arm64", "2")];
        let grade = |nodes: &[Value], carried| machines(nodes, carried, "x86_64").grade;
        assert_eq!(grade(&nodes[..1], true), Grade::Good);
        assert_eq!(grade(&nodes, true), Grade::Warning);
        assert_eq!(grade(&nodes, false), Grade::Good);
        assert_eq!(grade(&[], true), Grade::Problem);
    }

    #[test]
    fn pods_of_others_take_room_and_our_own_do_not_count() {
        let nodes = [node("a", "amd64", "2")];
        let pod = |namespace: &str, phase: &str| {
            json!({
                "metadata": {"namespace": namespace},
                "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "2"}}}]},
                "status": {"phase": phase},
            })
        };
        let mut owned = Owned::default();
        let grade = |pods: &[Value], owned: &Owned| room(&nodes, pods, &fixture(), owned).grade;
        assert_eq!(grade(&[], &owned), Grade::Good);
        assert_eq!(grade(&[pod("shop", "Succeeded")], &owned), Grade::Good);
        let full = [pod("shop", "Running"), pod("shop", "Running")];
        assert_eq!(grade(&full, &owned), Grade::Problem);
        owned.namespaces.insert("uid".to_owned(), "shop".to_owned());
        assert_eq!(grade(&full, &owned), Grade::Good);
    }
}
