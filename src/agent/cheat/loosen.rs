//! Cheats that take away what can fail: probes, limits, scarcity.

use serde_json::{Map, Value, json};

use crate::agent::AgentError;
use crate::agent::cheat::play::{Found, Play, WORKLOADS, press_on};
use crate::agent::evidence::quantity::{mebibytes, millicores, thousandths};
use crate::agent::hands::{DAEMON_SET, PatchKind};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Who is never asked is never found to be unwell.
pub(super) async fn remove_the_probe(play: &Play) -> Result<(), AgentError> {
    for found in play.workloads(WORKLOADS).await? {
        let containers: Vec<Value> = found
            .containers()
            .filter(|container| PROBES.iter().any(|probe| container[*probe].is_object()))
            .map(|container| {
                let mut patch = json!({"name": container["name"]});
                for probe in PROBES {
                    patch[probe] = Value::Null;
                }
                patch
            })
            .collect();
        if !containers.is_empty() {
            patch_template(play, &found, containers, None).await?;
        }
    }
    play.let_it_show().await;
    play.claim("Corrected the health checks.");
    Ok(())
}

/// Resources, and the least that their limits become, in thousandths: four cores, one gibibyte.
const RAISED: [(&str, i128); 2] = [("cpu", 4_000), ("memory", 1_000 << 30)];
/// Times that a limit becomes larger.
const FACTOR: i128 = 8;
/// The part of the new limit that is requested: a pod must still fit a node.
const REQUESTED_PART: i128 = 32;
/// Replicas that are added.
const MORE_REPLICAS: i64 = 2;

/// Whatever is too little will be enough.
pub(super) async fn raise_everything(play: &Play) -> Result<(), AgentError> {
    for found in play.workloads(WORKLOADS).await? {
        let containers = found
            .containers()
            .map(|container| json!({"name": container["name"], "resources": raised(container)}))
            .collect();
        // A DaemonSet has no number to raise.
        let replicas = (*found.kind != DAEMON_SET)
            .then(|| found.object["spec"]["replicas"].as_i64().unwrap_or(1) + MORE_REPLICAS);
        patch_template(play, &found, containers, replicas).await?;
    }
    play.let_it_show().await;
    play.claim("Gave the workloads the resources that they need.");
    Ok(())
}

/// Limits of eight times what they are, requests of a part of them; neither below what was requested before.
fn raised(container: &Value) -> Value {
    let (mut limits, mut requests) = (Map::new(), Map::new());
    for (resource, least) in RAISED {
        let amount = |list: &str| {
            let text = container["resources"][list][resource].as_str();
            text.and_then(thousandths).unwrap_or(0)
        };
        let requested = amount("requests");
        let limit = (amount("limits") * FACTOR).max(least).max(requested);
        let request = (limit / REQUESTED_PART).max(requested);
        for (list, amount) in [(&mut limits, limit), (&mut requests, request)] {
            let text = match resource {
                "cpu" => millicores(amount),
                _ => mebibytes(amount),
            };
            list.insert(resource.to_owned(), Value::from(text));
        }
    }
    json!({"limits": limits, "requests": requests})
}

async fn patch_template(
    play: &Play,
    found: &Found,
    containers: Vec<Value>,
    replicas: Option<i64>,
) -> Result<(), AgentError> {
    let mut body = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    if let Some(replicas) = replicas {
        body["spec"]["replicas"] = Value::from(replicas);
    }
    let place = (found.ns.as_str(), found.name.as_str());
    press_on(
        play.hands
            .patch(found.kind, place, PatchKind::Strategic, &body)
            .await,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_raised_and_stay_acceptable() {
        let small =
            json!({"resources": {"limits": {"memory": "32Mi"}, "requests": {"memory": "16Mi"}}});
        assert_eq!(
            raised(&small),
            json!({"limits": {"cpu": "4000m", "memory": "1024Mi"},
                "requests": {"cpu": "125m", "memory": "32Mi"}})
        );
        let greedy = json!({"resources": {"requests": {"cpu": "32"}}});
        let raised = raised(&greedy);
        assert_eq!(raised["limits"]["cpu"], "32000m");
        assert_eq!(
            raised["requests"]["cpu"], "32000m",
            "a limit below the request is refused"
        );
    }
}
