//! Recording of Events: count-up of repeats, the clients' burst limits, both event shapes.
//!
//! The kubelet and the controllers write core/v1 events: a repeat counts the stored one up, ten or more similar
//! ones within ten minutes are combined, and a source that has much to say about one object is limited to a
//! burst. The scheduler writes the newer shape: a time, an action, no count, a series for repeats. Events are
//! kept for an hour after their last write. Nothing in the cluster reads events to decide anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::embedded::bootstrap::NODE;
use crate::embedded::controllers;
use crate::embedded::kind::Kind;
use crate::embedded::time::Time;
use crate::embedded::world::{Work, World};

/// How long an event is kept after it was last written.
pub const EVENT_LIFETIME: Duration = Duration::from_secs(3600);

/// Different messages of one source, object and reason from which on they are combined into one event.
const SIMILAR_EVENTS: usize = 10;

/// Similar events further apart than this are no longer counted together.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);

/// Events of one type that one source may write about one object at once; afterwards one per `BURST_REFILL`.
const BURST: f64 = 25.0;

const BURST_REFILL: Duration = Duration::from_secs(300);

/// Aggregation memory of the event clients.
#[derive(Debug, Default)]
pub struct State {
    /// Counts event names, to keep those of one microsecond apart.
    named: i64,
    similar: BTreeMap<String, Similar>,
    seen: BTreeMap<String, Seen>,
    buckets: BTreeMap<String, Bucket>,
    series: BTreeMap<String, Series>,
    /// Written events in the order of their writing, with the time at which they may go.
    expiring: VecDeque<(Time, String, String)>,
}

#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Time,
}

#[derive(Debug)]
struct Seen {
    name: String,
    count: u64,
    first: Time,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Time,
}

#[derive(Debug)]
struct Series {
    name: String,
    count: u64,
}

/// An event to record.
#[derive(Clone, Debug)]
pub struct NewEvent<'a> {
    /// The involved object (kind, apiVersion, metadata).
    pub about: &'a Value,
    /// Such as `spec.containers{api}`.
    pub field_path: Option<String>,
    pub warning: bool,
    pub reason: &'a str,
    pub message: String,
    /// Such as `kubelet`, `deployment-controller`.
    pub component: &'a str,
    /// Node name, for the kubelet's.
    pub host: Option<&'a str>,
}

/// An event of the scheduler's shape.
#[derive(Clone, Debug)]
pub struct SchedulerEvent<'a> {
    /// The pod.
    pub about: &'a Value,
    pub warning: bool,
    pub reason: &'a str,
    /// `Binding` or `Scheduling`.
    pub action: &'a str,
    pub message: String,
}

/// Records an event or counts an earlier equal one up.
pub fn record(world: &mut World, event: NewEvent<'_>) {
    let now = world.now();
    let about = reference(event.about, event.field_path.as_deref());
    let object = object_key(&about);
    let source = format!("{}/{}", event.component, event.host.unwrap_or_default());
    let kind = if event.warning { "Warning" } else { "Normal" };
    let group = format!("{source}/{object}/{kind}/{}", event.reason);
    let combined = world.events.combines(&group, &event.message, now);
    let (key, message) = if combined {
        let message = format!("(combined from similar events): {}", event.message);
        (group, message)
    } else {
        let path = event.field_path.as_deref().unwrap_or_default();
        (format!("{group}/{path}/{}", event.message), event.message)
    };
    let fresh_name = event_name(world, &about);
    let seen = world.events.seen.entry(key).or_insert_with(|| Seen {
        name: fresh_name,
        count: 0,
        first: now,
    });
    seen.count += 1;
    let (name, count, first) = (seen.name.clone(), seen.count, seen.first);
    // What the limit swallows still counts towards the next event that passes.
    if !world
        .events
        .admits(&format!("{source}/{object}/{kind}"), now)
    {
        return;
    }
    let namespace = event_namespace(&about);
    let known = count > 1
        && world.update(Kind::Event, &namespace, &name, |stored| {
            stored["count"] = count.into();
            stored["lastTimestamp"] = now.seconds_text().into();
            stored["message"] = message.as_str().into();
        });
    if !known {
        let mut source = json!({"component": event.component});
        if let Some(host) = event.host {
            source["host"] = host.into();
        }
        let stored = json!({
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": event.reason,
            "message": message,
            "source": source,
            "firstTimestamp": first.seconds_text(),
            "lastTimestamp": now.seconds_text(),
            "count": count,
            "type": kind,
            "eventTime": null,
            // The combined event is built anew by the client, without these two.
            "reportingComponent": if combined { "" } else { event.component },
            "reportingInstance": if combined { "" } else { event.host.unwrap_or_default() },
        });
        store(world, stored);
    }
    keep(world, namespace, name);
}

/// Records an event of the scheduler: a repeat about the unchanged pod becomes a series.
pub fn record_scheduler(world: &mut World, event: SchedulerEvent<'_>) {
    let now = world.now();
    let about = reference(event.about, None);
    let key = format!(
        "{}/{}/{}/{}",
        object_key(&about),
        about["resourceVersion"].as_str().unwrap_or_default(),
        event.reason,
        event.action
    );
    let namespace = event_namespace(&about);
    if let Some(series) = world.events.series.get_mut(&key) {
        series.count += 1;
        // Later repeats reach the server only with the client's half-hourly refresh.
        if series.count == 2 {
            let name = series.name.clone();
            world.update(Kind::Event, &namespace, &name, |stored| {
                stored["series"] = json!({"count": 2, "lastObservedTime": now.micros_text()});
            });
        }
        return;
    }
    let name = event_name(world, &about);
    let stored = json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "reason": event.reason,
        "message": event.message,
        "source": {},
        "firstTimestamp": null,
        "lastTimestamp": null,
        "type": if event.warning { "Warning" } else { "Normal" },
        "eventTime": now.micros_text(),
        "action": event.action,
        "reportingComponent": "default-scheduler",
        "reportingInstance": format!("default-scheduler-{NODE}"),
    });
    store(world, stored);
    if event.warning {
        world.events.series.insert(
            key,
            Series {
                name: name.clone(),
                count: 1,
            },
        );
    }
    keep(world, namespace, name);
}

/// Removes the events whose hour is over and says when to look again.
pub fn expire(world: &mut World) {
    let now = world.now();
    while let Some((due, namespace, name)) = world.events.expiring.front().cloned() {
        if due > now {
            world.at(due, Work::Controller(controllers::Work::ExpireEvents));
            return;
        }
        world.events.expiring.pop_front();
        let Some(stored) = world.store.get(Kind::Event, &namespace, &name) else {
            continue;
        };
        let last = ["lastTimestamp", "eventTime"]
            .iter()
            .find_map(|field| Time::parse(stored[*field].as_str()?));
        let rewritten =
            last.is_some_and(|last| last + EVENT_LIFETIME > now + Duration::from_secs(1));
        if !rewritten {
            // Nothing else removes events one by one, so it is there.
            let _ = world.store.remove(Kind::Event, &namespace, &name);
        }
    }
}

impl State {
    /// Whether this message is one too many of its group to get an event of its own.
    fn combines(&mut self, group: &str, message: &str, now: Time) -> bool {
        let similar = self
            .similar
            .entry(group.to_owned())
            .or_insert_with(|| Similar {
                messages: BTreeSet::new(),
                last: now,
            });
        if now.since(similar.last) > SIMILAR_WITHIN {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        if similar.messages.len() < SIMILAR_EVENTS {
            return false;
        }
        similar.messages.remove(message);
        true
    }

    /// Takes a token of the source's bucket for the object, if there is one.
    fn admits(&mut self, key: &str, now: Time) -> bool {
        let bucket = self.buckets.entry(key.to_owned()).or_insert(Bucket {
            tokens: BURST,
            filled: now,
        });
        let refilled = now.since(bucket.filled).as_secs_f64() / BURST_REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + refilled).min(BURST);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

/// Notes when a written event may go, and starts the clock when it is the only one.
fn keep(world: &mut World, namespace: String, name: String) {
    let due = world.now() + EVENT_LIFETIME;
    if world.events.expiring.is_empty() {
        world.at(due, Work::Controller(controllers::Work::ExpireEvents));
    }
    world.events.expiring.push_back((due, namespace, name));
}

fn store(world: &mut World, event: Value) {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let open = world
        .store
        .get(Kind::Namespace, "", namespace)
        .is_some_and(|ns| ns["metadata"].get("deletionTimestamp").is_none());
    if open {
        // A name taken by chance loses this event, as a refused write does on a real cluster.
        let _ = world.create(Kind::Event, event);
    }
}

/// Events about objects without a namespace live in `default`.
fn event_namespace(about: &Value) -> String {
    about["namespace"].as_str().unwrap_or("default").to_owned()
}

/// `object.` and the time in nanoseconds as hex, as the clients name events.
fn event_name(world: &mut World, about: &Value) -> String {
    // The clock counts microseconds; the count below them keeps the events of one moment apart.
    world.events.named = (world.events.named + 1) % 1000;
    let nanos = world.now().micros() * 1000 + world.events.named;
    format!("{}.{nanos:x}", about["name"].as_str().unwrap_or_default())
}

fn reference(object: &Value, field_path: Option<&str>) -> Value {
    let meta = &object["metadata"];
    let mut about = serde_json::Map::new();
    let mut put = |field: &str, value: &Value| {
        if !value.is_null() {
            about.insert(field.to_owned(), value.clone());
        }
    };
    put("kind", &object["kind"]);
    put("namespace", &meta["namespace"]);
    put("name", &meta["name"]);
    put("uid", &meta["uid"]);
    put("apiVersion", &object["apiVersion"]);
    put("resourceVersion", &meta["resourceVersion"]);
    if let Some(path) = field_path {
        about.insert("fieldPath".to_owned(), path.into());
    }
    about.into()
}

fn object_key(about: &Value) -> String {
    let text = |field: &str| about[field].as_str().unwrap_or_default();
    format!(
        "{}/{}/{}/{}/{}",
        text("kind"),
        text("namespace"),
        text("name"),
        text("uid"),
        text("apiVersion")
    )
}

#[cfg(test)]
mod tests;
