//! The stages before the fault: the fixture stands and is proven, and the baseline is healthy for a while.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::reset;
use crate::detect::watch::{Stretch, Window};
use crate::observe;
use crate::record::FrameworkCode;
use crate::run::stage::{Failed, Run, Stage};
use crate::run::{AGE_SPREAD, HEALTHY_DEADLINE, HEALTHY_SOAK_S, MIN_AGE, RunKind};

impl Run<'_> {
    /// Applies the fixture, lets it grow old, and takes the state that the clean stage must reach again.
    pub(super) async fn prepare(&mut self) -> Result<Stage, Failed> {
        let not_proven = |error: &(dyn std::error::Error + 'static)| {
            Failed::because(FrameworkCode::ResetNotProven, error)
        };
        let fixture = self
            .setting
            .fixtures
            .load(&self.order.scenario.fixture)
            .map_err(|error| not_proven(&error))?;
        let lasting = self.target.lasting().map(|remote| remote.uid.clone());
        let state = if let Some(uid) = lasting {
            self.make_stand(&uid, &fixture).await?
        } else {
            reset::apply(&self.client, &fixture, &mut self.owned)
                .await
                .map_err(|error| not_proven(&error))?;
            let spread_ms = u64::try_from(AGE_SPREAD.as_millis()).unwrap_or(u64::MAX);
            let extra = self.order.seed.child("age", 0).0 % spread_ms;
            self.target
                .grow_older(MIN_AGE + Duration::from_millis(extra));
            reset::at_rest(&self.client, reset::REST_DEADLINE, &fixture.namespaces)
                .await
                .map_err(|error| not_proven(&error))?
        };
        self.record.state_hash_before = Some(state.hash());
        self.record.ran_at = self.target.now_text();
        self.reference = Some(state);
        self.fixture = Some(fixture);
        Ok(Stage::Healthy)
    }

    /// Every `fixed_when` holds through the soak and no `regressed_when` does.
    pub(super) async fn healthy(&mut self) -> Result<Stage, Failed> {
        let detector = &self.order.scenario.detector;
        let soak = Stretch::new(&detector.fixed_when, Window::Seconds(HEALTHY_SOAK_S));
        let mut soak = soak.watching_from(self.now_ms());
        let mut bad: Vec<Stretch> = detector
            .regressed_when
            .iter()
            .map(|condition| Stretch::new(std::slice::from_ref(condition), Window::Seconds(0)))
            .collect();
        let deadline = Instant::now() + HEALTHY_DEADLINE;
        let passed = observe::until(&self.observer, deadline, |observation| {
            soak.feed(observation);
            for stretch in &mut bad {
                stretch.feed(observation);
            }
            let hopeless = !soak.unevaluable().is_empty();
            (hopeless || soak.passed_since_ms().is_some()).then_some(())
        })
        .await;
        let unevaluable: Vec<String> = std::iter::once(&soak)
            .chain(&bad)
            .flat_map(Stretch::unevaluable)
            .collect();
        if !unevaluable.is_empty() {
            return Err(Failed::new(
                FrameworkCode::DetectorUnevaluable,
                unevaluable.join("; "),
            ));
        }
        if passed.is_none() || soak.passed_since_ms().is_none() {
            if let Some(reason) = soak.blind() {
                return Err(Failed::blind(&reason));
            }
            return Err(Failed::new(
                FrameworkCode::BaselineUnhealthy,
                format!("before the fault: {}", soak.unmet().join("; ")),
            ));
        }
        if let Some(position) = bad.iter().position(Stretch::holds_now) {
            return Err(Failed::new(
                FrameworkCode::BaselineUnhealthy,
                format!(
                    "regressed before the fault: {}",
                    detector.regressed_when[position].text
                ),
            ));
        }
        Ok(match self.order.kind {
            RunKind::Incident => Stage::Inject,
            // Nothing will be wrong: the agent is called all the same.
            RunKind::Healthy => Stage::Work,
        })
    }
}
