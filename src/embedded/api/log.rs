//! The log of a container, at once or followed to the end of its run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Response;

use crate::embedded::api::handle::{self, Call};
use crate::embedded::api::read;
use crate::embedded::api::status::Status;
use crate::embedded::cluster::{Shared, Subscription};
use crate::embedded::kind::Kind;
use crate::embedded::kubelet::{self, LogRequest, Position};
use crate::embedded::time::Time;

/// How often a followed log is looked at. Output changes nothing in the store, so nothing tells of it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The answer to `GET …/pods/NAME/log`.
pub fn answer(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let request = request(shared, call);
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let known = shared.with(|world| {
        read::get(world, Kind::Pod, namespace, name)?;
        kubelet::start_following(world, namespace, name, &request).map_err(Status::bad_request)
    });
    let (text, position) = known?;
    match position.filter(|_| call.query.is_true("follow")) {
        None => Ok(handle::plain_text(text)),
        Some(position) => {
            // A line that has not ended yet comes whole, once it has.
            let mut text = text;
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            let follower = Follower {
                subscription: shared.subscribe(),
                first: Some(text),
                position: Some(position),
                timestamps: request.timestamps,
            };
            let pieces = futures::stream::unfold(follower, |mut follower| async move {
                let piece = follower.next().await?;
                Some((Ok::<_, Infallible>(Bytes::from(piece)), follower))
            });
            Ok(handle::plain_text(Body::from_stream(pieces)))
        }
    }
}

fn request(shared: &Shared, call: &Call) -> LogRequest {
    let query = &call.query;
    let now = shared.now();
    let since_time = query
        .get("sinceTime")
        .and_then(Time::parse)
        .map(|since| now.since(since).as_secs());
    LogRequest {
        container: query.get("container").map(str::to_owned),
        previous: query.is_true("previous"),
        tail_lines: query.number("tailLines"),
        since_seconds: query.number("sinceSeconds").or(since_time),
        timestamps: query.is_true("timestamps"),
        limit_bytes: query.number("limitBytes"),
    }
}

/// Reads on in one run's log. It holds a subscription, so that the cluster does its work at its own times.
struct Follower {
    subscription: Subscription,
    first: Option<String>,
    position: Option<Position>,
    timestamps: bool,
}

impl Follower {
    /// The next piece that is not empty; nothing once the run or the cluster has ended.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take().filter(|text| !text.is_empty()) {
            return Some(first);
        }
        while let Some(position) = self.position.take() {
            let text = {
                let shared = self.subscription.cluster()?;
                let (text, next) =
                    shared.with(|world| kubelet::follow(world, &position, self.timestamps));
                self.position = next;
                text
            };
            if !text.is_empty() {
                return Some(text);
            }
            if self.position.is_some() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        None
    }
}
