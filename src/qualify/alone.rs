//! A fault that is left alone: when does it count as fixed?
//!
//! The same measurement as on a real cluster: the fixture at rest, the fault written, nobody repairing anything, the
//! detector read every two seconds. It asks for no manifestation, so that it also tells of faults that never show.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::reset::{self, Owned};
use crate::cluster::target::Target;
use crate::detect::expression::Needs;
use crate::detect::watch::Watch;
use crate::inject::{self, InjectError};
use crate::observe::{self, Observer};
use crate::qualify::{Materials, QualifyError, SEED};
use crate::run::MIN_AGE;
use crate::scenario::model::Scenario;

/// What came of a fault that nobody touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftAlone {
    /// `fixed_when` had held for its windows so many seconds after the fault was written.
    FixedAfter(u64),
    /// Not within the time.
    NotFixed,
}

/// Writes a scenario's fault to a fresh embedded cluster and watches.
///
/// # Errors
/// The runtime; a fixture or fault that cannot be written counts as a defect of the scenario and is told as a text.
pub fn watch(
    materials: &Materials,
    scenario: &Scenario,
    limit: Duration,
) -> Result<Result<LeftAlone, String>, QualifyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(QualifyError::Runtime)?;
    Ok(runtime.block_on(async {
        let target = Target::embedded(SEED);
        watched(materials, scenario, &target, limit).await
    }))
}

async fn watched(
    materials: &Materials,
    scenario: &Scenario,
    target: &Target,
    limit: Duration,
) -> Result<LeftAlone, String> {
    let client = target.client();
    let fixture = materials.fixtures.load(&scenario.fixture).map_err(text)?;
    let mut owned = Owned::default();
    reset::apply(&client, &fixture, &mut owned)
        .await
        .map_err(text)?;
    target.grow_older(MIN_AGE);
    reset::at_rest(&client, reset::REST_DEADLINE, &fixture.namespaces)
        .await
        .map_err(text)?;
    match inject::plan(&client, &scenario.injector, &target.now_text()).await {
        Ok(mut plan) => inject::write::apply(&client, &mut plan)
            .await
            .map_err(text)?,
        // A patch that changes nothing is written by kubectl all the same, and nothing comes of it.
        Err(InjectError::WithoutEffect { .. }) => {}
        Err(other) => return Err(text(other)),
    }
    let started = Instant::now();
    let conditions = &scenario.detector.fixed_when;
    let needs = Needs::of(conditions.iter().map(|condition| &condition.expression));
    let observer = Observer::new(client, needs, started);
    let mut watch = Watch::new(conditions, &[]);
    let fixed = observe::until(&observer, started + limit, |observation| {
        watch.feed(observation);
        watch
            .fixed()
            .passed_since_ms()
            .map(|_| observation.at_ms.div_ceil(1000))
    })
    .await;
    Ok(fixed.map_or(LeftAlone::NotFixed, LeftAlone::FixedAfter))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
