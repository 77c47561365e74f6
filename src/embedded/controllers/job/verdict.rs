//! Whether a Job is over, and why: enough successes, too many failures, its deadline, or its failure policy.

use serde_json::Value;

use crate::embedded::controllers::job::Tally;
use crate::embedded::controllers::object::{items, name, namespace, number, time};
use crate::embedded::time::Time;

/// Failed pods that a Job may have when it does not say.
const DEFAULT_BACKOFF_LIMIT: i64 = 6;

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub success: bool,
    pub reason: String,
    pub message: String,
}

impl End {
    fn failure(reason: &str, message: String) -> End {
        End {
            success: false,
            reason: reason.to_owned(),
            message,
        }
    }

    /// The condition that announces it, and the one that seals it when no pod is left.
    pub fn conditions(&self) -> [&'static str; 2] {
        if self.success {
            ["SuccessCriteriaMet", "Complete"]
        } else {
            ["FailureTarget", "Failed"]
        }
    }
}

/// When a Job's time is up.
pub(super) fn deadline(job: &Value) -> Option<Time> {
    let seconds = job["spec"]["activeDeadlineSeconds"].as_u64()?;
    let started = time(&job["status"]["startTime"])?;
    Some(started + std::time::Duration::from_secs(seconds))
}

pub(super) fn end(job: &Value, tally: &Tally, now: Time) -> Option<End> {
    let announced = items(&job["status"]["conditions"]).iter().find(|c| {
        matches!(
            c["type"].as_str(),
            Some("FailureTarget" | "SuccessCriteriaMet")
        )
    });
    if let Some(condition) = announced {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        return Some(End {
            success: condition["type"] == "SuccessCriteriaMet",
            reason: text("reason"),
            message: text("message"),
        });
    }
    if let Some(message) = tally.failed.iter().find_map(|pod| failing_rule(job, pod)) {
        return Some(End::failure("PodFailurePolicy", message));
    }
    let limit = job["spec"]["backoffLimit"]
        .as_i64()
        .unwrap_or(DEFAULT_BACKOFF_LIMIT);
    if tally.failed_count(job) > limit || restarted_too_often(job, tally, limit) {
        let message = "Job has reached the specified backoff limit".to_owned();
        return Some(End::failure("BackoffLimitExceeded", message));
    }
    if deadline(job).is_some_and(|due| due <= now) {
        let message = "Job was active longer than specified deadline".to_owned();
        return Some(End::failure("DeadlineExceeded", message));
    }
    let enough = match job["spec"]["completions"].as_i64() {
        Some(wanted) => tally.succeeded >= wanted,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    enough.then(|| End {
        success: true,
        reason: "CompletionsReached".to_owned(),
        message: "Reached expected number of succeeded pods".to_owned(),
    })
}

/// Containers that are restarted in place count as failures, too.
fn restarted_too_often(job: &Value, tally: &Tally, limit: i64) -> bool {
    if job["spec"]["template"]["spec"]["restartPolicy"] != "OnFailure" {
        return false;
    }
    let restarts: i64 = tally
        .active
        .iter()
        .flat_map(|pod| {
            let status = &pod["status"];
            items(&status["initContainerStatuses"])
                .iter()
                .chain(items(&status["containerStatuses"]))
        })
        .map(|status| number(&status["restartCount"]))
        .sum();
    if limit == 0 {
        restarts > 0
    } else {
        restarts >= limit
    }
}

/// What the first rule that matches a failed pod says, and its place.
fn rule<'a>(job: &'a Value, pod: &Value) -> Option<(usize, &'a str, String)> {
    items(&job["spec"]["podFailurePolicy"]["rules"])
        .iter()
        .enumerate()
        .find_map(|(at, rule)| {
            let what = matched(rule, pod)?;
            Some((at, rule["action"].as_str().unwrap_or_default(), what))
        })
}

/// Whether a failed pod is not to be counted.
pub(super) fn ignored(job: &Value, pod: &Value) -> bool {
    rule(job, pod).is_some_and(|(_, action, _)| action == "Ignore")
}

fn failing_rule(job: &Value, pod: &Value) -> Option<String> {
    let (at, action, what) = rule(job, pod)?;
    (action == "FailJob").then(|| format!("{what} matching FailJob rule at index {at}"))
}

/// In which way a rule matches a failed pod, in words.
fn matched(rule: &Value, pod: &Value) -> Option<String> {
    let place = format!("{}/{}", namespace(pod), name(pod));
    let codes = &rule["onExitCodes"];
    if codes.is_object() {
        let status = &pod["status"];
        return items(&status["initContainerStatuses"])
            .iter()
            .chain(items(&status["containerStatuses"]))
            .filter(|status| {
                codes["containerName"].is_null() || codes["containerName"] == status["name"]
            })
            .find_map(|status| {
                let code = status["state"]["terminated"]["exitCode"]
                    .as_i64()
                    .filter(|code| *code != 0)?;
                let listed = items(&codes["values"])
                    .iter()
                    .any(|one| one.as_i64() == Some(code));
                let wanted = codes["operator"] == "In";
                (listed == wanted).then(|| {
                    let container = status["name"].as_str().unwrap_or_default();
                    format!("Container {container} for pod {place} failed with exit code {code}")
                })
            });
    }
    items(&rule["onPodConditions"]).iter().find_map(|wanted| {
        let kind = wanted["type"].as_str()?;
        let status = wanted["status"].as_str().unwrap_or("True");
        items(&pod["status"]["conditions"])
            .iter()
            .any(|c| c["type"] == kind && c["status"] == status)
            .then(|| format!("Pod {place} has condition {kind}"))
    })
}
