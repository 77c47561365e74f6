//! Events of both shapes: those that count (`count`, `lastTimestamp`) and those of the scheduler (`eventTime`,
//! `series`).

use serde_json::Value;

use crate::agent::evidence::Event;
use crate::agent::evidence::reading::text;

/// Reads one event.
pub fn event(object: &Value) -> Event {
    let times = [
        &object["series"]["lastObservedTime"],
        &object["lastTimestamp"],
        &object["eventTime"],
        &object["firstTimestamp"],
        &object["metadata"]["creationTimestamp"],
    ];
    Event {
        warning: object["type"] == "Warning",
        reason: text(&object["reason"]),
        message: text(&object["message"]),
        count: object["series"]["count"]
            .as_i64()
            .or(object["count"].as_i64())
            .unwrap_or(1),
        about: (
            text(&object["involvedObject"]["kind"]),
            text(&object["involvedObject"]["name"]),
        ),
        container: object["involvedObject"]["fieldPath"]
            .as_str()
            .and_then(|path| path.split_once('{'))
            .and_then(|(_, rest)| rest.strip_suffix('}'))
            .map(str::to_owned),
        last_time: times
            .into_iter()
            .find_map(|time| time.as_str())
            .unwrap_or_default()
            .to_owned(),
    }
}

/// From how many to how many a ReplicaSet was scaled: `Scaled down replica set web-1 from 3 to 1`.
pub fn scaling(event: &Event) -> Option<(&str, i64, i64)> {
    if event.reason != "ScalingReplicaSet" {
        return None;
    }
    let (_, rest) = event.message.split_once("replica set ")?;
    let (set, rest) = rest.split_once(" from ")?;
    let (from, to) = rest.split_once(" to ")?;
    Some((set, from.parse().ok()?, to.parse().ok()?))
}

/// The newest of the times that an object carries where every object does, cut to whole seconds. RFC 3339 in UTC
/// sorts as text.
pub fn newest_time(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    conditions
        .map(|condition| &condition["lastTransitionTime"])
        .chain([
            &object["metadata"]["creationTimestamp"],
            &object["lastTimestamp"],
            &object["eventTime"],
        ])
        .filter_map(|time| time.as_str())
        .filter_map(|time| time.get(..19))
        .map(|time| format!("{time}Z"))
        .max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_shapes_of_events_are_read() {
        let counted = event(
            &json!({"type": "Warning", "reason": "BackOff", "message": "m", "count": 7,
            "lastTimestamp": "2026-01-01T00:00:09Z", "involvedObject": {"kind": "Pod", "name": "p"}}),
        );
        assert_eq!(
            (counted.count, counted.last_time.as_str()),
            (7, "2026-01-01T00:00:09Z")
        );
        let series = event(
            &json!({"reason": "FailedScheduling", "eventTime": "2026-01-01T00:00:01.000000Z",
            "lastTimestamp": null, "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}}),
        );
        assert_eq!(
            (series.count, series.last_time.as_str()),
            (2, "2026-01-01T00:00:05.000000Z")
        );
    }

    #[test]
    fn scaling_events_tell_from_how_many_to_how_many() {
        let mut seen = event(
            &json!({"reason": "ScalingReplicaSet", "message": "Scaled down replica set web-6d4 from 3 to 1"}),
        );
        assert_eq!(scaling(&seen), Some(("web-6d4", 3, 1)));
        seen.message = "Scaled down replica set web-6d4 to 1".to_owned();
        assert_eq!(scaling(&seen), None);
    }
}
