//! Watches: changes of a kind as a stream of JSON lines, from a resource version on.
//!
//! A watch sees every change exactly once and in order, since it reads the store's log from the version it has
//! reached; being woken late or twice does not matter.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::embedded::api::handle::{self, Call};
use crate::embedded::api::read::{self, ListOptions};
use crate::embedded::api::shape::{self, Form};
use crate::embedded::api::status::Status;
use crate::embedded::cluster::{Shared, Subscription};
use crate::embedded::kind::Kind;
use crate::embedded::store::{Change, ChangeKind, key_of};
use crate::embedded::time::Time;
use crate::embedded::world::World;

/// How long a watch lasts that names no end: the lower bound of the real server's random choice.
const DEFAULT_LENGTH: Duration = Duration::from_secs(1800);
/// Time between bookmarks, as in the real server's cache.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Marks the bookmark after the last of the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

struct Watch {
    subscription: Subscription,
    kind: Kind,
    namespace: String,
    chosen: ListOptions,
    /// Every change up to this resource version has been seen.
    seen: u64,
    bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
    ended: bool,
    form: Form,
    /// Tables name their columns in the first event only.
    headed: Cell<bool>,
}

/// What a watch asks for beside its selectors.
struct Start {
    /// `None`: from now on, after events for all that is there.
    from: Option<u64>,
    initial_events: bool,
    mark_initial_end: bool,
}

/// The body of a watch's answer.
pub fn stream(shared: &Arc<Shared>, call: &Call) -> Result<Body, Status> {
    let mut chosen = handle::list_options(call)?;
    chosen.limit = 0;
    chosen.continue_token = None;
    let start = start(call)?;
    let length = call
        .query
        .number("timeoutSeconds")
        .map_or(DEFAULT_LENGTH, Duration::from_secs);
    let subscription = shared.subscribe();
    let now = Instant::now();
    let mut watch = Watch {
        subscription,
        kind: call.target.kind,
        namespace: call.target.namespace.clone(),
        chosen,
        seen: 0,
        bookmarks: call.query.is_true("allowWatchBookmarks"),
        next_bookmark: now + BOOKMARK_EVERY,
        end: now + length,
        ended: false,
        form: call.form,
        headed: Cell::new(true),
    };
    watch.plan_bookmark(now);
    let mut first = shared.with(|world| watch.begin(world, &start))?;
    let lines = futures::stream::unfold(watch, move |mut watch| {
        let first = std::mem::take(&mut first);
        async move {
            let lines = if first.is_empty() {
                watch.next_lines().await?
            } else {
                first
            };
            Some((Ok::<_, Infallible>(Bytes::from(lines)), watch))
        }
    });
    Ok(Body::from_stream(lines))
}

fn start(call: &Call) -> Result<Start, Status> {
    let query = &call.query;
    let version = query.get("resourceVersion").unwrap_or_default();
    let from: u64 = if version.is_empty() {
        0
    } else {
        version
            .parse()
            .map_err(|_| Status::bad_request(format!("invalid resource version \"{version}\"")))?
    };
    let wanted = query.get("sendInitialEvents");
    if wanted.is_some() && query.get("resourceVersionMatch") != Some("NotOlderThan") {
        return Err(Status::bad_list_options(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    let initial_events = match wanted {
        Some(_) => query.is_true("sendInitialEvents"),
        None => from == 0,
    };
    Ok(Start {
        from: (from > 0 && !initial_events).then_some(from),
        initial_events,
        mark_initial_end: wanted.is_some() && initial_events,
    })
}

impl Watch {
    /// The lines that are due at once.
    fn begin(&mut self, world: &World, start: &Start) -> Result<String, Status> {
        let newest = world.store.resource_version();
        self.seen = start.from.unwrap_or(newest);
        let mut lines = String::new();
        if start.initial_events {
            let page = read::list(world, self.kind, &self.namespace, &self.chosen)?;
            for object in &page.items {
                self.push_object(&mut lines, "ADDED", object, world.now());
            }
        }
        if start.mark_initial_end && self.bookmarks {
            let mut mark = self.bookmark();
            mark["metadata"]["annotations"] = json!({ INITIAL_END: "true" });
            self.push_object(&mut lines, "BOOKMARK", &mark, world.now());
        }
        lines.push_str(&self.catch_up(world));
        Ok(lines)
    }

    /// Waits for the next lines; `None` at the end of the watch.
    async fn next_lines(&mut self) -> Option<String> {
        loop {
            if self.ended {
                return None;
            }
            let lines = {
                let shared = self.subscription.cluster()?;
                shared.with(|world| self.catch_up(world))
            };
            if !lines.is_empty() {
                return Some(lines);
            }
            tokio::select! {
                biased;
                alive = self.subscription.changed() => {
                    if !alive {
                        return None;
                    }
                }
                () = tokio::time::sleep_until(self.end) => return None,
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    return Some(self.due_bookmark());
                }
            }
        }
    }

    fn due_bookmark(&mut self) -> String {
        self.plan_bookmark(Instant::now());
        let mut line = String::new();
        let now = self
            .subscription
            .cluster()
            .map_or(Time::default(), |shared| shared.now());
        self.push_object(&mut line, "BOOKMARK", &self.bookmark(), now);
        line
    }

    /// Sets the time of the next bookmark: one period on, but never missing the one before the end.
    fn plan_bookmark(&mut self, now: Instant) {
        let last = self
            .end
            .checked_sub(BOOKMARK_BEFORE_END)
            .unwrap_or(self.end);
        let next = now + BOOKMARK_EVERY;
        self.next_bookmark = if last > now { next.min(last) } else { next };
    }

    fn bookmark(&self) -> Value {
        json!({
            "kind": self.kind.info().name, "apiVersion": self.kind.api_version(),
            "metadata": { "resourceVersion": self.seen.to_string(), "creationTimestamp": null },
        })
    }

    /// The lines for all changes since the last look.
    fn catch_up(&mut self, world: &World) -> String {
        let mut lines = String::new();
        let Some(changes) = world.store.changes_since(self.seen) else {
            let oldest = world.store.oldest_version();
            let why = format!("too old resource version: {} ({oldest})", self.seen);
            push_line(&mut lines, "ERROR", &Status::expired(why).to_value());
            self.ended = true;
            return lines;
        };
        for change in changes.filter(|change| change.kind == self.kind) {
            self.push_change(&mut lines, change, world.now());
        }
        self.seen = self.seen.max(world.store.resource_version());
        lines
    }

    fn push_change(&self, lines: &mut String, change: &Change, now: Time) {
        if !self.namespace.is_empty() && key_of(&change.object).0 != self.namespace {
            return;
        }
        let chosen = |object: &Value| {
            self.chosen.labels.matches(object) && self.chosen.fields.matches(object)
        };
        let before = match change.what {
            ChangeKind::Added => false,
            ChangeKind::Modified | ChangeKind::Deleted => change.old.as_deref().is_some_and(chosen),
        };
        let after = change.what != ChangeKind::Deleted && chosen(&change.object);
        match (before, after) {
            (false, true) => self.push_object(lines, "ADDED", &change.object, now),
            (true, true) => self.push_object(lines, "MODIFIED", &change.object, now),
            (true, false) => {
                // The state that was chosen last, at the version at which it ceased to be.
                let mut last = change.old.as_deref().cloned().unwrap_or_default();
                last["metadata"]["resourceVersion"] = change.resource_version.to_string().into();
                self.push_object(lines, "DELETED", &last, now);
            }
            (false, false) => {}
        }
    }

    /// Adds an event in the form that the client wants.
    fn push_object(&self, lines: &mut String, what: &str, object: &Value, now: Time) {
        if self.form == Form::Whole {
            return push_line(lines, what, object);
        }
        match shape::one(self.form, self.kind, object, now, self.headed.get()) {
            Ok(shaped) => push_line(lines, what, &shaped),
            Err(status) => push_line(lines, "ERROR", &status.to_value()),
        }
        self.headed.set(false);
    }
}

fn push_line(lines: &mut String, what: &str, object: &Value) {
    lines.push_str("{\"type\":\"");
    lines.push_str(what);
    lines.push_str("\",\"object\":");
    lines.push_str(&handle::json_text(object));
    lines.push_str("}\n");
}
