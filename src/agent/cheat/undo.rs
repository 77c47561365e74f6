//! The cheat that takes back the last rollout of everything, as `kubectl rollout undo` does it. Where a rollout was
//! the cause this is the narrowest repair there is, and an honest one; without a look at the cause it is a gamble.

use serde_json::{Map, Value, json};

use crate::agent::AgentError;
use crate::agent::cheat::play::{Found, Play, cluster, press_on};
use crate::agent::hands::{DEPLOYMENT, PatchKind, REPLICA_SET};

const REVISION: &str = "deployment.kubernetes.io/revision";
/// Annotations that belong to the controllers and to `kubectl apply`: an undo leaves the Deployment's own.
const KEPT: [&str; 5] = [
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "kubectl.kubernetes.io/last-applied-configuration",
];

pub(super) async fn revert_by_rollout_undo(play: &Play) -> Result<(), AgentError> {
    undo_everything(play).await?;
    play.let_it_show().await;
    play.claim("Rolled the workloads back to their previous revision.");
    Ok(())
}

pub(super) async fn undo_everything(play: &Play) -> Result<(), AgentError> {
    for found in play.workloads(&[&DEPLOYMENT]).await? {
        let sets = play.hands.list(&REPLICA_SET, &found.ns).await;
        if let Some(patch) = undo(&found, &sets.map_err(cluster)?) {
            let place = (found.ns.as_str(), found.name.as_str());
            let done = play
                .hands
                .patch(found.kind, place, PatchKind::Json, &patch)
                .await;
            press_on(done)?;
        }
    }
    Ok(())
}

/// The patch to the newest earlier revision; nothing where there is none.
fn undo(found: &Found, sets: &[Value]) -> Option<Value> {
    let uid = &found.object["metadata"]["uid"];
    let current = revision(&found.object)?;
    let earlier = sets
        .iter()
        .filter(|set| {
            let owners = set["metadata"]["ownerReferences"].as_array();
            owners
                .into_iter()
                .flatten()
                .any(|owner| owner["uid"] == *uid)
        })
        .filter_map(|set| Some((revision(set)?, set)))
        .filter(|(number, _)| *number < current)
        .max_by_key(|(number, _)| *number)
        .map(|(_, set)| set)?;
    let mut template = earlier["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove("pod-template-hash");
    }
    Some(json!([
        {"op": "replace", "path": "/spec/template", "value": template},
        {"op": "replace", "path": "/metadata/annotations", "value": annotations(&found.object, earlier)},
    ]))
}

fn revision(object: &Value) -> Option<i64> {
    object["metadata"]["annotations"][REVISION]
        .as_str()?
        .parse()
        .ok()
}

/// The Deployment keeps what is its own and takes the rest from the revision.
fn annotations(deployment: &Value, earlier: &Value) -> Map<String, Value> {
    let of = |object: &Value, kept: bool| {
        let all = object["metadata"]["annotations"].as_object().cloned();
        all.into_iter()
            .flatten()
            .filter(move |(key, _)| KEPT.contains(&key.as_str()) == kept)
            .collect::<Vec<_>>()
    };
    of(deployment, true)
        .into_iter()
        .chain(of(earlier, false))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(owner: &str, number: &str, image: &str) -> Value {
        json!({"metadata": {"ownerReferences": [{"uid": owner}],
                "annotations": {REVISION: number, "deployment.kubernetes.io/max-replicas": "2", "team": "b"}},
            "spec": {"template": {"metadata": {"labels": {"app": "x", "pod-template-hash": "h"}},
                "spec": {"image": image}}}})
    }

    fn found() -> Found {
        Found {
            kind: &DEPLOYMENT,
            ns: "a".to_owned(),
            name: "x".to_owned(),
            object: json!({"metadata": {"uid": "u", "annotations": {REVISION: "3", "team": "a"}}}),
        }
    }

    #[test]
    fn the_newest_earlier_revision_of_the_deployment_itself_is_taken() {
        let sets = [
            set("u", "1", "one"),
            set("u", "2", "two"),
            set("u", "3", "three"),
            set("v", "2", "strange"),
        ];
        let patch = undo(&found(), &sets).unwrap();
        assert_eq!(patch[0]["value"]["spec"]["image"], "two");
        assert_eq!(patch[0]["value"]["metadata"]["labels"], json!({"app": "x"}));
        assert_eq!(patch[1]["value"], json!({REVISION: "3", "team": "b"}));
    }

    #[test]
    fn without_an_earlier_revision_there_is_nothing_to_undo() {
        assert_eq!(undo(&found(), &[set("u", "3", "three")]), None);
    }
}
