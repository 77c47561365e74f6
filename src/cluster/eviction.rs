//! One request of the eviction API: a delete of a pod that asks its disruption budgets first.
//!
//! Answers are kept apart here, since the time to wait stands in a header that a plain request loses.

use std::time::Duration;

use http::Request;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::{Value, json};

use crate::cluster::ClusterError;
use crate::cluster::resource;
use crate::cluster::retry::{self, Asked};

/// What the server answers to an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The pod is on its way out.
    Evicted,
    /// No pod of this name and uid is there.
    Gone,
    /// A budget does not allow it at this moment.
    NotNow {
        /// What the server asks for, if it says.
        wait: Option<Duration>,
        /// The server's words.
        message: String,
    },
    /// Refused for good.
    Refused { code: u16, message: String },
    /// The server broke down over it, and may have done it.
    Unclear { code: u16, message: String },
}

/// Asks for the eviction of one pod, known by its uid. With `dry_run` nothing is stored.
///
/// # Errors
/// A server that does not answer.
pub async fn evict(
    client: &kube::Client,
    namespace: &str,
    pod: &str,
    uid: &str,
    dry_run: bool,
) -> Result<Answer, ClusterError> {
    let pods = resource::of_kind("Pod")?;
    let path = format!("{}/eviction", pods.path(namespace, pod));
    let mut options = json!({"preconditions": {"uid": uid}});
    if dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace}, "deleteOptions": options,
    });
    let request = Request::post(&path)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(|source| ClusterError::Request {
            path: path.clone(),
            source,
        })?;
    let asked = Asked {
        label: format!("POST {path}"),
        plural: pods.plural,
        request,
    };
    let (head, body) = retry::exchange(client, &asked).await?;
    if head.status.is_success() {
        return Ok(Answer::Evicted);
    }
    let header = head
        .headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let status: Value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&body)}));
    Ok(judged(head.status.as_u16(), header, &status))
}

/// Takes a refusal apart; `header` is the `Retry-After` in seconds.
fn judged(code: u16, header: Option<u64>, status: &Value) -> Answer {
    let details = &status["details"];
    let mut message = status["message"].as_str().unwrap_or_default().to_owned();
    let causes = details["causes"].as_array().into_iter().flatten();
    for cause in causes.filter_map(|cause| cause["message"].as_str()) {
        message.push(' ');
        message.push_str(cause);
    }
    match code {
        // 409: the uid in the precondition is not that of the pod.
        404 | 409 => Answer::Gone,
        429 => Answer::NotNow {
            wait: header
                .or_else(|| details["retryAfterSeconds"].as_u64())
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            message,
        },
        408 | 500.. => Answer::Unclear { code, message },
        code => Answer::Refused { code, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_comes_from_the_header_else_from_the_body_and_zero_says_nothing() {
        let body =
            |seconds: u64| json!({"message": "m", "details": {"retryAfterSeconds": seconds}});
        let wait = |answer| match answer {
            Answer::NotNow { wait, .. } => wait.map(|wait| wait.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(judged(429, Some(7), &body(10))), Some(7));
        assert_eq!(wait(judged(429, None, &body(10))), Some(10));
        assert_eq!(wait(judged(429, None, &body(0))), None);
        assert_eq!(wait(judged(429, None, &json!({}))), None);
    }

    #[test]
    fn causes_are_told_with_the_message() {
        let status = json!({"message": "Cannot evict.", "details": {"causes": [
            {"reason": "DisruptionBudget", "message": "The disruption budget web needs 3."},
        ]}});
        let Answer::NotNow { message, .. } = judged(429, None, &status) else {
            panic!("not a refusal for now")
        };
        assert_eq!(message, "Cannot evict. The disruption budget web needs 3.");
        assert_eq!(judged(409, None, &status), Answer::Gone);
    }
}
