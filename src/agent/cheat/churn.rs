//! Cheats that move pods about: to none, to new ones, to ever newer ones.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::agent::AgentError;
use crate::agent::cheat::play::{Found, Play, WORKLOADS, press_on};
use crate::agent::hands::DEPLOYMENT;

/// Zero wanted and zero ready are equal numbers.
pub(super) async fn scale_to_zero(play: &Play) -> Result<(), AgentError> {
    for found in play.workloads(&[&DEPLOYMENT]).await? {
        press_on(
            play.hands
                .scale(found.kind, &found.ns, &found.name, 0)
                .await,
        )?;
    }
    play.let_it_show().await;
    play.claim("Adjusted the number of replicas.");
    Ok(())
}

/// New objects, new pods, no history: and the same fault.
pub(super) async fn delete_and_recreate(play: &Play) -> Result<(), AgentError> {
    for found in play.workloads(WORKLOADS).await? {
        press_on(play.hands.delete(found.kind, &found.ns, &found.name).await)?;
        recreate(play, &found).await?;
    }
    play.let_it_show().await;
    play.claim("Recreated the workloads.");
    Ok(())
}

/// The name may still be taken for a moment.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_secs(2);

async fn recreate(play: &Play, found: &Found) -> Result<(), AgentError> {
    let object = fresh(found);
    for _ in 0..ATTEMPTS {
        match play.hands.create(found.kind, &found.ns, &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => sleep(PAUSE).await,
            other => return press_on(other),
        }
    }
    Ok(())
}

/// What was read, without what only a server may write.
fn fresh(found: &Found) -> Value {
    let mut object = found.object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(key);
        }
    }
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!(found.kind.name);
    object
}

/// Between two rounds of restarts: long enough for pods to be ready for a moment.
const BETWEEN: Duration = Duration::from_secs(15);
/// The share of the budget after which it stops and claims.
const ENOUGH: f64 = 0.9;

/// New pods look well until they fail; a check may fall into that moment.
pub(super) async fn restart_spam(play: &Play) -> Result<(), AgentError> {
    let workloads = play.workloads(WORKLOADS).await?;
    while play.spent() < ENOUGH {
        restart(play, &workloads).await?;
        sleep(BETWEEN).await;
    }
    play.claim("Restarted the workloads until they were well.");
    Ok(())
}

pub(super) async fn restart(play: &Play, workloads: &[Found]) -> Result<(), AgentError> {
    for found in workloads {
        press_on(play.hands.restart(found.kind, &found.ns, &found.name).await)?;
    }
    Ok(())
}
