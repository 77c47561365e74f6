//! The settling time: the agent is out, and the detectors are asked again, so that a lucky instant does not count.
//!
//! A repair that the agent has written may still be rolling out. Where the agent changed anything, the detectors watch
//! on until the repair shows or the budget ends. Where it changed nothing they watch on long enough to see a fault that
//! heals itself, so that no agent is scored on it, however early it left.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::state::{self, ObjectKey};
use crate::inject::change::Plan;
use crate::observe;
use crate::record::{DetectorOutcome, FrameworkCode};
use crate::run::others::Reach;
use crate::run::stage::{Failed, Run, Stage};
use crate::run::work::{self, Worked};
use crate::run::{QUIET_WATCH, RunKind, SETTLE, Watching, changes};

impl Run<'_> {
    pub(super) async fn settle(&mut self, worked: Worked) -> Result<Stage, Failed> {
        let Worked {
            mut watch,
            started_ms,
            budget_end,
        } = worked;
        let settled = Instant::now() + SETTLE;
        let pending = self
            .record
            .actions
            .iter()
            .any(|action| action.changed_something);
        let latest = if pending {
            budget_end
        } else {
            budget_end.min(Instant::now() + self.quiet_watch())
        };
        let whole_budget = self.order.watching == Watching::WholeBudget;
        let latest = if whole_budget { budget_end } else { latest };
        let latest = latest.max(settled);
        // Whether it ever counted as fixed is what a whole budget is watched for, not whether it does at the end.
        let mut first_fixed = None;
        observe::until(&self.observer, latest, |observation| {
            watch.feed(observation);
            let fixed = watch.fixed().passed_since_ms();
            first_fixed = first_fixed.or(fixed);
            (fixed.is_some() && !whole_budget && Instant::now() >= settled).then_some(())
        })
        .await;
        let fixed_at_ms = match self.order.watching {
            Watching::WholeBudget => first_fixed,
            Watching::AsNeeded => watch.fixed().passed_since_ms(),
        };
        let lapses = match self.order.kind {
            RunKind::Healthy => watch.lapses(),
            RunKind::Incident => Vec::new(),
        };
        self.record.detector = DetectorOutcome {
            fixed: fixed_at_ms.is_some(),
            fixed_at_ms,
            regressions: watch
                .regressions()
                .map(|tripped| format!("{}: {}", tripped.condition, tripped.seen))
                .collect(),
            violated: Vec::new(),
            lapses,
            unmet: watch.fixed().unmet(),
            skipped: watch.skipped(),
            elapsed_ms: self.now_ms().saturating_sub(started_ms),
            unknown_readings: watch.fixed().unknown_readings(),
        };
        if let Some(reason) = watch.blind() {
            return Err(Failed::blind(&reason));
        }
        if let Err(reason) = self.observer.confirm().await {
            return Err(Failed::blind(&reason));
        }
        let lost = self.note_state_changes().await?;
        if self.order.kind == RunKind::Healthy {
            return Ok(Stage::Clean);
        }
        work::vanished(self, &lost)?;
        Ok(Stage::Undo)
    }

    /// How long an untouched fault is watched: long enough for every `fixed_when` to pass its window and to settle.
    fn quiet_watch(&self) -> Duration {
        let fixed_when = &self.order.scenario.detector.fixed_when;
        let longest = fixed_when.iter().map(|c| c.sustained_for_s).max();
        let window = Duration::from_secs(u64::from(longest.unwrap_or(0)));
        QUIET_WATCH.max(window + SETTLE)
    }

    /// How far what the agent wrote may have reached.
    pub(super) fn reach(&self) -> Reach {
        let ours = self.fixture.as_ref().map(|fixture| &fixture.namespaces);
        Reach::of(&self.record.actions, ours.unwrap_or(&BTreeSet::new())).beside(self.plan.as_ref())
    }

    /// A failure that a lost node, or somebody else's limit in our namespaces, explains is told as that.
    pub(super) async fn explained(&self, failed: Failed) -> Failed {
        let symptom = matches!(
            failed.code,
            FrameworkCode::BaselineUnhealthy
                | FrameworkCode::FaultNotManifest
                | FrameworkCode::FaultVanished
        );
        let Some(before) = self.reference.as_ref().filter(|_| symptom) else {
            return failed;
        };
        let Ok(now) = state::read(&self.client).await else {
            return failed;
        };
        let spoilt = self.reach().interference(before, &now);
        if spoilt.is_empty() {
            return failed;
        }
        let message = format!("{}; therefore {}", spoilt.join("; "), failed.message);
        Failed::new(FrameworkCode::ClusterChanged, message)
    }

    /// Answers the objects of the fault that are gone, or are others by now.
    async fn note_state_changes(&mut self) -> Result<Vec<String>, Failed> {
        let Some(before) = &self.reference else {
            return Ok(Vec::new());
        };
        let nothing = Plan::default();
        let plan = self.plan.as_ref().unwrap_or(&nothing);
        let now = state::read(&self.client)
            .await
            .map_err(|error| Failed::because(FrameworkCode::ClusterUnreachable, &error))?;
        let reach = self.reach();
        let spoilt = reach.interference(before, &now);
        if !spoilt.is_empty() {
            return Err(Failed::new(
                FrameworkCode::ClusterChanged,
                spoilt.join("; "),
            ));
        }
        let (now, _) = reach.apart(before, now);
        self.record.state_changes =
            changes::beyond_the_fault(before, &now, plan, &self.order.scenario);
        self.record.detector.violated = changes::violated(&self.record.state_changes);
        let objects = plan.changes.iter().map(|change| &change.object);
        let lost = objects.filter(|object| {
            let key = ObjectKey {
                kind: object.kind.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
            };
            now.objects
                .get(&key)
                .is_none_or(|state| state.uid != object.uid)
        });
        Ok(lost.map(ToString::to_string).collect())
    }
}
