//! Virtual wall-clock time of the cluster: microseconds since the Unix epoch, and its Kubernetes spellings.

use std::time::Duration;

/// A moment in the cluster's own wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// RFC 3339 to the second, as in `metav1.Time`: `2026-03-02T09:41:07Z`.
    pub fn seconds_text(self) -> String {
        self.stamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// RFC 3339 with microseconds, as in `metav1.MicroTime`.
    pub fn micros_text(self) -> String {
        self.stamp().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    }

    /// Parses either spelling.
    pub fn parse(text: &str) -> Option<Time> {
        let stamp: jiff::Timestamp = text.parse().ok()?;
        Some(Time(stamp.as_microsecond()))
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    fn stamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Time;

    fn add(self, by: Duration) -> Time {
        Time(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl std::ops::Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, by: Duration) -> Time {
        Time(
            self.0
                .saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_parse_back() {
        let time = Time::from_micros(1_772_444_467_123_456);
        assert_eq!(time.micros_text(), "2026-03-02T09:41:07.123456Z");
        assert_eq!(Time::parse(&time.micros_text()), Some(time));
        assert_eq!(time.seconds_text(), "2026-03-02T09:41:07Z");
    }
}
