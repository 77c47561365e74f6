//! Spans of time as people read them, with two or three significant figures.

use serde_json::Value;

use crate::embedded::time::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago a timestamp was.
pub(super) fn since(timestamp: &Value, now: Time) -> String {
    match moment(timestamp) {
        Some(then) => span((now.micros() - then.micros()).div_euclid(1_000_000)),
        None => "<unknown>".to_owned(),
    }
}

/// A timestamp; nothing when it is absent.
pub(super) fn moment(timestamp: &Value) -> Option<Time> {
    timestamp.as_str().and_then(Time::parse)
}

/// A span of whole seconds. One that ends a second early is taken for none, since clocks differ; one that ends
/// earlier is a mistake and said to be one.
pub(super) fn span(seconds: i64) -> String {
    let pair = |big: i64, big_unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    let (minutes, hours, days) = (seconds / MINUTE, seconds / HOUR, seconds / DAY);
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(minutes, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{minutes}m"),
        _ if seconds < 8 * HOUR => pair(hours, 'h', minutes % 60, 'm'),
        _ if seconds < 2 * DAY => format!("{hours}h"),
        _ if seconds < 8 * DAY => pair(days, 'd', hours % 24, 'h'),
        _ if seconds < 2 * YEAR => format!("{days}d"),
        _ if seconds < 8 * YEAR => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_keep_two_or_three_figures() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (301, "5m1s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_600, "3h30m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }
}
