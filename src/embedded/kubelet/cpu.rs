//! Processor time under a cgroup's quota: how long work takes, and how much was used.
//!
//! The quota refills every 100 ms. Work that exceeds it waits for the next periods, which is what throttling
//! is. Work is served in the order of arrival; demands of one container are small in number.

use std::collections::VecDeque;
use std::time::Duration;

use crate::embedded::time::Time;

/// The kernel's default `cpu.cfs_period_us`.
pub const PERIOD_US: i64 = 100_000;

/// How far back usage can be asked for.
const KEPT: Duration = Duration::from_secs(60);

/// One cgroup's processor account.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Microseconds per period; `None` is unlimited.
    quota: Option<i64>,
    period: i64,
    used: i64,
    busy_until: Time,
    /// Spent time: end of the work and its microseconds.
    spent: VecDeque<(Time, i64)>,
}

impl Cpu {
    /// A limit of so many millicores.
    pub fn limited(millicores: Option<u64>) -> Cpu {
        Cpu {
            quota: millicores.map(|m| {
                // The kubelet's floor for a quota is one millisecond per period.
                (i64::try_from(m).unwrap_or(i64::MAX / 200) * PERIOD_US / 1000).max(1000)
            }),
            ..Cpu::default()
        }
    }

    /// As [`Cpu::charge`], but what is not done by `end` is left undone. The answer then lies after `end`.
    pub fn charge_until(&mut self, now: Time, micros: u64, end: Time) -> Time {
        let mut trial = self.clone();
        let done = trial.charge(now, micros);
        if done <= end {
            *self = trial;
            return done;
        }
        // The most that can be done in time, found by halving: under a quota it is no simple product.
        let (mut fits, mut exceeds) = (0, micros);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if self.clone().charge(now, middle) <= end {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        if fits > 0 {
            self.charge(now, fits);
        }
        end + Duration::from_micros(1)
    }

    /// Does `micros` of work from `now` on, after whatever is queued already; answers when it is done.
    pub fn charge(&mut self, now: Time, micros: u64) -> Time {
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        let mut at = now.max(self.busy_until).micros();
        let Some(quota) = self.quota else {
            self.busy_until = Time::from_micros(at.saturating_add(micros));
            self.note(self.busy_until, micros);
            return self.busy_until;
        };
        let mut left = micros;
        while left > 0 {
            let period = at.div_euclid(PERIOD_US);
            if period != self.period {
                self.period = period;
                self.used = 0;
            }
            let end = (period + 1) * PERIOD_US;
            // A quota above one period means several cores; one piece of work uses one.
            let take = left.min(quota - self.used).min(end - at);
            if take > 0 {
                at += take;
                left -= take;
                self.used += take;
                self.note(Time::from_micros(at), take);
            }
            if left > 0 && (self.used >= quota || at >= end) {
                at = end;
            }
        }
        self.busy_until = Time::from_micros(at);
        self.busy_until
    }

    /// Whether earlier work is still queued at `now`.
    pub fn is_busy(&self, now: Time) -> bool {
        self.busy_until > now
    }

    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// How long `micros` take when nothing else runs, throttling included.
    pub fn alone(&self, micros: u64) -> Duration {
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        let total = match self.quota {
            Some(quota) if quota < PERIOD_US => {
                (micros / quota).saturating_mul(PERIOD_US) + micros % quota
            }
            _ => micros,
        };
        Duration::from_micros(u64::try_from(total).unwrap_or(0))
    }

    /// Nanocores used on average over the window before `now`.
    pub fn nanocores(&self, now: Time, window: Duration) -> u64 {
        let from = now - window;
        let spent: i64 = self
            .spent
            .iter()
            .filter(|(end, _)| *end > from && *end <= now)
            .map(|(_, micros)| micros)
            .sum();
        let window = i64::try_from(window.as_micros()).unwrap_or(i64::MAX).max(1);
        u64::try_from(spent.saturating_mul(1_000_000) / window * 1000).unwrap_or(0)
    }

    fn note(&mut self, end: Time, micros: i64) {
        while self.spent.front().is_some_and(|(old, _)| *old + KEPT < end) {
            self.spent.pop_front();
        }
        self.spent.push_back((end, micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_millicores_stretch_ten_milliseconds_to_a_second() {
        let mut cpu = Cpu::limited(Some(10));
        let start = Time::from_micros(0);
        let took = cpu.charge(start, 10_000).since(start);
        assert_eq!(took, Duration::from_millis(901));
    }

    #[test]
    fn without_a_limit_work_takes_its_own_time_and_queues() {
        let mut cpu = Cpu::limited(None);
        let start = Time::from_micros(5);
        assert_eq!(
            cpu.charge(start, 100).since(start),
            Duration::from_micros(100)
        );
        assert_eq!(
            cpu.charge(start, 100).since(start),
            Duration::from_micros(200)
        );
        assert!(cpu.is_busy(start));
    }

    #[test]
    fn work_that_is_given_up_leaves_only_what_was_done_by_then() {
        let start = Time::from_micros(0);
        let second = start + Duration::from_secs(1);
        let mut cpu = Cpu::limited(Some(10));
        assert!(cpu.charge_until(start, 100_000, second) > second);
        assert!(!cpu.is_busy(second));
        assert_eq!(
            cpu.nanocores(second, Duration::from_secs(1)),
            10_000_000,
            "the quota of a second was spent and no more"
        );
        let mut free = Cpu::limited(None);
        let done = free.charge_until(start, 100_000, second);
        assert_eq!(done.since(start), Duration::from_millis(100));
    }
}
