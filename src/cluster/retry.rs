//! How our own requests meet a server that is slow, busy, broken, behind or gone: the one policy.
//!
//! What changes nothing is asked again a bounded number of times. A write is repeated only where the server says that
//! it did nothing; where that is not known, the error says so ([`ClusterError::is_unclear`]) and whoever wrote reads
//! again what became of it. Follows (watches, logs) do not go through here and have no time limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;

use crate::cluster::ClusterError;

/// How long one request may take. Listing a large cluster takes seconds; a server that has not answered by now has
/// lost the request or hangs.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// Attempts of one request. With the back-off below they span 15 s, in which an API server restarts.
pub const ATTEMPTS: u32 = 6;
/// The wait after the first failure; it doubles with each further one.
pub const BACK_OFF: Duration = Duration::from_millis(500);
/// A server's `Retry-After` is followed up to this; priority and fairness asks for 1 s, a proxy may ask for an hour.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// A larger answer is none: ten thousand pods take a tenth of it.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;
/// So much of a refusal that is no Status is told to people; a proxy's error page says in its first words what it is.
const SHOWN_CHARACTERS: usize = 200;

/// What the repetition of a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Reads and dry runs change nothing: asked again after every failure that may pass.
    Harmless,
    /// A write: again only when the server refused it unseen (429).
    WhenRefused,
    /// Asked once, by those who come back anyway (readings).
    Never,
}

/// A request with what people call it.
pub struct Asked {
    /// Method and path, for errors.
    pub label: String,
    /// The plural of the resource type: versions are compared within it.
    pub plural: &'static str,
    pub request: Request<Vec<u8>>,
}

/// The newest resource versions that answers of one cluster have shown, by resource type. A list that is older comes
/// from a server that lags behind, and is no evidence.
///
/// Compared within a type only: types may be kept in different stores, which count apart.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    newest: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Versions {
    /// Notes a version that exists. Versions that are no numbers cannot be compared and are left out.
    pub fn saw(&self, plural: &str, version: u64) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = newest.entry(plural.to_owned()).or_default();
        *entry = version.max(*entry);
    }

    /// The newest known version of a type; 0 for none.
    pub fn newest(&self, plural: &str) -> u64 {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.get(plural).copied().unwrap_or(0)
    }
}

/// Sends a request under the policy.
///
/// # Errors
/// What the last attempt met.
pub async fn send(
    client: &kube::Client,
    asked: &Asked,
    repeat: Repeat,
) -> Result<Value, ClusterError> {
    let mut attempt = 1;
    loop {
        let failure = match once(client, asked).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        let again = match repeat {
            Repeat::Harmless => failure.error.is_outage(),
            Repeat::WhenRefused => failure.error.is_busy(),
            Repeat::Never => false,
        };
        if !again || attempt >= ATTEMPTS {
            return Err(failure.error);
        }
        let wait = failure.retry_after.unwrap_or_else(|| back_off(attempt));
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
}

/// The wait after so many failed attempts, from 1.
pub fn back_off(failed: u32) -> Duration {
    BACK_OFF * 2u32.pow(failed.clamp(1, ATTEMPTS) - 1)
}

/// What one attempt met.
struct Failure {
    error: ClusterError,
    /// What the server asked for.
    retry_after: Option<Duration>,
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        Failure {
            error,
            retry_after: None,
        }
    }
}

/// One exchange within the limit of time and size, whatever the status of the answer.
pub async fn exchange(
    client: &kube::Client,
    asked: &Asked,
) -> Result<(http::response::Parts, Bytes), ClusterError> {
    let request = asked.request.clone().map(Body::from);
    let exchange = async {
        let unreachable = |source| ClusterError::Unreachable {
            request: asked.label.clone(),
            source: Box::new(source),
        };
        let (head, body) = client
            .send(request)
            .await
            .map_err(unreachable)?
            .into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|source| unreachable(kube::Error::Service(source)))?;
        Ok::<_, ClusterError>((head, body.to_bytes()))
    };
    tokio::time::timeout(REQUEST_LIMIT, exchange)
        .await
        .map_err(|_| ClusterError::NoAnswer {
            request: asked.label.clone(),
            seconds: REQUEST_LIMIT.as_secs(),
        })?
}

async fn once(client: &kube::Client, asked: &Asked) -> Result<Value, Failure> {
    let (head, body) = exchange(client, asked).await?;
    if !head.status.is_success() {
        return Err(Failure {
            error: refusal(asked, head.status, &body),
            retry_after: retry_after(&head.headers),
        });
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|error| garbled(asked, &error))?;
    if let Some(versions) = head.extensions.get::<Versions>() {
        compare_versions(asked, versions, &answer)?;
    }
    Ok(answer)
}

/// An answer that cannot be what was asked for.
pub fn garbled(asked: &Asked, reason: &dyn std::fmt::Display) -> ClusterError {
    ClusterError::Garbled {
        request: asked.label.clone(),
        reason: reason.to_string(),
    }
}

fn refusal(asked: &Asked, status: StatusCode, body: &Bytes) -> ClusterError {
    let stated: Option<Value> = serde_json::from_slice(body).ok();
    let message = stated.and_then(|stated| stated["message"].as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        text.chars().take(SHOWN_CHARACTERS).collect()
    });
    ClusterError::Api {
        request: asked.label.clone(),
        code: status.as_u16(),
        message,
    }
}

/// Seconds, as API servers say it; a date is left to our own back-off, for it needs a clock that both share.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = text.trim().parse().ok()?;
    // An answer of 0 must not make a busy loop.
    Some(Duration::from_secs(seconds).clamp(BACK_OFF, MAX_RETRY_AFTER))
}

fn compare_versions(
    asked: &Asked,
    versions: &Versions,
    answer: &Value,
) -> Result<(), ClusterError> {
    // The answer to a dry run may carry a version that will never exist.
    let dry_run = asked
        .request
        .uri()
        .query()
        .is_some_and(|query| query.contains("dryRun="));
    let version = answer["metadata"]["resourceVersion"].as_str();
    let Some(version) = version.and_then(|text| text.parse::<u64>().ok()) else {
        return Ok(());
    };
    if dry_run {
        return Ok(());
    }
    let newest = versions.newest(asked.plural);
    if answer.get("items").is_some() && version < newest {
        return Err(ClusterError::Stale {
            request: asked.label.clone(),
            version,
            newest,
        });
    }
    versions.saw(asked.plural, version);
    Ok(())
}

#[cfg(test)]
mod tests;
