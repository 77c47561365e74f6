//! Carries the steps out, one after the other; the first that fails ends the script.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::agent::hands::{Hands, POD};
use crate::agent::script::{Deed, Step, Target};
use crate::agent::{AgentError, Desk};
use crate::scenario::model::PathStep;

/// Between two looks at a field that is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why a step did not come to its end.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Refused(String),
    #[error("{path} is {found}, and did not become {wanted} within {timeout_s} s")]
    NotReached {
        path: String,
        found: Value,
        wanted: Value,
        timeout_s: u32,
    },
    #[error("it has no pods")]
    NoPods,
    /// A dead credential or a cluster that does not answer: no fault of the step.
    #[error("the cluster did not answer")]
    Cluster(#[source] Box<kube::Error>),
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Failed {
        match error {
            kube::Error::Api(status) if status.code != 401 => {
                Failed::Refused(format!("refused with {}: {}", status.code, status.message))
            }
            other => Failed::Cluster(Box::new(other)),
        }
    }
}

pub(super) async fn all(steps: Vec<Step>, desk: Desk) -> Result<(), AgentError> {
    let hands = Hands::new(desk.client.clone());
    let started = Instant::now();
    for step in steps {
        let line = step.line;
        match one(step.deed, &hands, &desk, started).await {
            Ok(()) => {}
            Err(Failed::Cluster(error)) => return Err(AgentError::Cluster(error)),
            Err(failed) => {
                return Err(AgentError::GaveUp(format!(
                    "the step in line {line} failed: {failed}"
                )));
            }
        }
    }
    Ok(())
}

async fn one(deed: Deed, hands: &Hands, desk: &Desk, started: Instant) -> Result<(), Failed> {
    match deed {
        Deed::Get(on) => drop(hands.get(on.kind, &on.namespace, &on.name).await?),
        Deed::List { kind, namespace } => drop(hands.list(kind, &namespace).await?),
        Deed::Logs {
            target,
            container,
            previous,
        } => logs(hands, &target, container.as_deref(), previous).await?,
        Deed::Patch { target, how, body } => {
            let place = (target.namespace.as_str(), target.name.as_str());
            hands.patch(target.kind, place, how, &body).await?;
        }
        Deed::Restart(on) => drop(hands.restart(on.kind, &on.namespace, &on.name).await?),
        Deed::Delete(on) => drop(hands.delete(on.kind, &on.namespace, &on.name).await?),
        Deed::Wait { seconds } => sleep(Duration::from_secs(u64::from(seconds))).await,
        Deed::WaitUntil {
            target,
            path,
            equals,
            timeout_s,
        } => reach(hands, &target, &path, &equals, timeout_s).await?,
        Deed::Retrieve(text) => drop(desk.past.similar_to(&text)),
        Deed::Hypothesis(stated) => desk.notes.hypothesis(stated),
        Deed::Postmortem(mut postmortem) => {
            postmortem.time_to_diagnose_s = started.elapsed().as_secs_f64();
            postmortem.time_to_fix_s = postmortem.time_to_diagnose_s;
            desk.notes.postmortem(postmortem);
        }
    }
    Ok(())
}

/// As `kubectl logs` does it: a workload's logs are those of its first pod.
async fn logs(
    hands: &Hands,
    on: &Target,
    container: Option<&str>,
    previous: bool,
) -> Result<(), Failed> {
    let pod = if *on.kind == POD {
        on.name.clone()
    } else {
        let workload = hands.get(on.kind, &on.namespace, &on.name).await?;
        let pods = hands.list(&POD, &on.namespace).await?;
        first_selected(&workload["spec"]["selector"]["matchLabels"], &pods).ok_or(Failed::NoPods)?
    };
    hands
        .logs((&on.namespace, &pod), container, previous)
        .await?;
    Ok(())
}

fn first_selected(labels: &Value, pods: &[Value]) -> Option<String> {
    let wanted = labels.as_object().filter(|labels| !labels.is_empty())?;
    let selected = pods.iter().filter(|pod| {
        wanted
            .iter()
            .all(|(key, value)| pod["metadata"]["labels"][key] == *value)
    });
    let names = selected.filter_map(|pod| pod["metadata"]["name"].as_str());
    names.min().map(str::to_owned)
}

async fn reach(
    hands: &Hands,
    on: &Target,
    path: &[PathStep],
    wanted: &Value,
    timeout_s: u32,
) -> Result<(), Failed> {
    let deadline = Instant::now() + Duration::from_secs(u64::from(timeout_s));
    loop {
        let object = hands.get(on.kind, &on.namespace, &on.name).await?;
        let found = field(&object, path);
        if found == wanted {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failed::NotReached {
                path: shown(path),
                found: found.clone(),
                wanted: wanted.clone(),
                timeout_s,
            });
        }
        sleep(LOOK_EVERY).await;
    }
}

/// A field by its path; null where there is none.
fn field<'a>(object: &'a Value, path: &[PathStep]) -> &'a Value {
    path.iter().fold(object, |at, step| match step {
        PathStep::Key(key) => &at[key.as_str()],
        PathStep::Index(index) => &at[*index],
        PathStep::Named(name) => at
            .as_array()
            .and_then(|list| list.iter().find(|item| item["name"] == *name))
            .unwrap_or(&Value::Null),
    })
}

fn shown(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if text.is_empty() => text.push_str(key),
            PathStep::Key(key) => text.push_str(&format!(".{key}")),
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
            PathStep::Named(name) => text.push_str(&format!("[name={name}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_by_key_index_and_name_and_are_null_where_they_are_not() {
        let object = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}});
        let list = [
            PathStep::Key("spec".to_owned()),
            PathStep::Key("containers".to_owned()),
        ];
        let image = |step| {
            field(
                &object,
                &[list.as_slice(), &[step, PathStep::Key("image".to_owned())]].concat(),
            )
            .clone()
        };
        assert_eq!(image(PathStep::Index(0)), "x");
        assert_eq!(image(PathStep::Named("a".to_owned())), "x");
        assert_eq!(image(PathStep::Named("c".to_owned())), Value::Null);
        assert_eq!(image(PathStep::Index(7)), Value::Null);
        assert_eq!(shown(&list), "spec.containers");
    }

    #[test]
    fn the_first_pod_of_a_selector_is_taken_and_no_selector_takes_none() {
        let pods = [
            json!({"metadata": {"name": "d-2", "labels": {"app": "d", "x": "1"}}}),
            json!({"metadata": {"name": "d-1", "labels": {"app": "d"}}}),
            json!({"metadata": {"name": "a-1", "labels": {"app": "a"}}}),
        ];
        assert_eq!(
            first_selected(&json!({"app": "d"}), &pods).as_deref(),
            Some("d-1")
        );
        assert_eq!(first_selected(&Value::Null, &pods), None);
    }
}
