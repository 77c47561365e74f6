//! How long the rules agent waits for what, relative to the budget of its task.

use std::time::Duration;

/// Waiting times of one incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks while waiting.
    pub look_every: Duration,
    /// How long clear evidence is waited for before acting on what there is.
    pub patience: Duration,
    /// How long a repair may take to show.
    pub verify: Duration,
    /// How long a workload must stay well, without a restart, to count as mended. Longer than the usual cycle of
    /// a liveness probe that kills (30 s), within which a sick workload looks well.
    pub steady: Duration,
    /// Before the end of the budget the account must be written, whatever has been reached.
    pub last_call: Duration,
}

impl Pace {
    /// For a budget of 600 s: looks every 5 s, 100 s of patience, 150 s per repair, 45 s of steadiness.
    pub fn of_budget(budget_s: u32) -> Pace {
        let budget = Duration::from_secs(u64::from(budget_s));
        Pace {
            look_every: (budget / 120).clamp(Duration::from_secs(1), Duration::from_secs(10)),
            patience: budget / 6,
            verify: (budget / 4).clamp(Duration::from_secs(20), Duration::from_secs(300)),
            steady: (budget / 8).clamp(Duration::from_secs(5), Duration::from_secs(45)),
            last_call: budget - budget / 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_fit_into_every_allowed_budget() {
        for budget_s in [60, 600, 7200] {
            let pace = Pace::of_budget(budget_s);
            assert!(pace.steady < pace.verify, "{pace:?}");
            assert!(
                pace.patience + pace.verify + pace.steady < pace.last_call,
                "{pace:?}"
            );
        }
    }
}
