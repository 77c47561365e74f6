//! The runs of a qualification: each an order with an agent whose outcome is known beforehand.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;

use crate::agent::Agent;
use crate::agent::cheat::Cheat;
use crate::agent::noop::Noop;
use crate::ids::{MicroPoints, Seed};
use crate::qualify::check::{
    CHEAT, CONTROL_SILENT, DESTRUCTIVE_REPAIR, FAULT_LASTS, LEAK_LINT, REFERENCE_REPAIR,
};
use crate::qualify::leak::Finding;
use crate::qualify::reader::{Reader, Reading};
use crate::qualify::repairer::Repairer;
use crate::qualify::stand::{Stand, Trial};
use crate::qualify::wrecker::Wrecker;
use crate::qualify::{Materials, QualifyError, SEED, leak};
use crate::run::{Finished, RunKind, Watching};
use crate::scenario::model::Scenario;

/// Draws of a cheat that guesses: one that names the truth by luck is drawn again. A guess among 23 categories earns
/// something in one of eight draws or fewer, so that eight lucky ones in a row are no luck.
pub const MAX_DRAWS: u64 = 8;

/// One run, or the draws of one cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// No fault, nobody at work, watched for the whole budget.
    Control,
    /// The fault, nobody at work, watched for the whole budget.
    LeftAlone,
    /// The reference repair and the true account.
    Reference,
    /// The repair that deletes and makes anew.
    Destructive,
    /// Reads everything there is to read.
    Leak,
    Cheat(&'static str),
}

/// What a probe brought back.
#[derive(Debug)]
pub struct Evidence {
    pub probe: Probe,
    /// The run that counts.
    pub finished: Finished,
    /// Draws before it that named the truth by luck.
    pub lucky: u64,
    /// What the leak lint found, and how much it read.
    pub leaks: Option<(Vec<Finding>, Reading)>,
}

impl Probe {
    /// In the order of their checks.
    pub const BEFORE_CHEATS: &[Probe] = &[
        Probe::Control,
        Probe::LeftAlone,
        Probe::Reference,
        Probe::Destructive,
        Probe::Leak,
    ];

    /// What it is called in progress and in the store.
    pub fn name(self) -> String {
        match self {
            Probe::Control => CONTROL_SILENT.to_owned(),
            Probe::LeftAlone => FAULT_LASTS.to_owned(),
            Probe::Reference => REFERENCE_REPAIR.to_owned(),
            Probe::Destructive => DESTRUCTIVE_REPAIR.to_owned(),
            Probe::Leak => LEAK_LINT.to_owned(),
            Probe::Cheat(name) => format!("{CHEAT}{name}"),
        }
    }

    /// Carries it out on an embedded cluster, on this thread.
    ///
    /// # Errors
    /// A run that could not be begun. One that ends as a framework error is evidence.
    pub fn take(
        self,
        materials: &Materials,
        scenario: &Arc<Scenario>,
    ) -> Result<Evidence, QualifyError> {
        self.take_on(&Stand::Embedded, materials, scenario)
            .now_or_never()
            .expect("runs on embedded clusters have their own runtime and are not waited for here")
    }

    /// As [`Probe::take`], anywhere.
    ///
    /// # Errors
    /// As there.
    pub async fn take_on(
        self,
        stand: &Stand<'_>,
        materials: &Materials,
        scenario: &Arc<Scenario>,
    ) -> Result<Evidence, QualifyError> {
        let plain = |finished| Evidence {
            probe: self,
            finished,
            lucky: 0,
            leaks: None,
        };
        let one = |kind, watching, agent| Trial {
            scenario,
            kind,
            watching,
            seed: SEED,
            agent,
        };
        let noop: &Maker<'_> = &|| Box::new(Noop);
        let whole = Watching::WholeBudget;
        let (fault, needed) = (RunKind::Incident, Watching::AsNeeded);
        match self {
            Probe::Control => {
                let trial = one(RunKind::Healthy, whole, noop);
                stand.run(materials, &trial).await.map(plain)
            }
            Probe::LeftAlone => {
                let trial = one(fault, whole, noop);
                stand.run(materials, &trial).await.map(plain)
            }
            Probe::Reference => {
                let agent: &Maker<'_> = &|| Box::new(Repairer::of(scenario.clone()));
                let trial = one(fault, needed, agent);
                stand.run(materials, &trial).await.map(plain)
            }
            Probe::Destructive => {
                let fixture = materials.fixtures.load(&scenario.fixture).ok();
                let agent: &Maker<'_> =
                    &|| Box::new(Wrecker::of(scenario.clone(), fixture.clone()));
                let trial = one(fault, needed, agent);
                stand.run(materials, &trial).await.map(plain)
            }
            Probe::Leak => {
                let reading = Arc::new(Mutex::new(Reading::default()));
                let agent: &Maker<'_> = &|| Box::new(Reader::into(reading.clone()));
                let finished = stand.run(materials, &one(fault, needed, agent)).await?;
                let mut held = reading.lock().unwrap_or_else(PoisonError::into_inner);
                let reading = std::mem::take(&mut *held);
                let found = leak::lint(&reading, scenario, &materials.vocabulary);
                Ok(Evidence {
                    leaks: Some((found, reading)),
                    ..plain(finished)
                })
            }
            Probe::Cheat(name) => draws(stand, materials, scenario, name).await,
        }
    }
}

/// Makes an agent for a run, on its thread.
type Maker<'a> = dyn Fn() -> Box<dyn Agent> + Sync + 'a;

/// Runs a cheat until it does not name the truth by luck. Only the first draw has past incidents to copy from: the
/// nearest of them would be the same at every draw.
async fn draws(
    stand: &Stand<'_>,
    materials: &Materials,
    scenario: &Arc<Scenario>,
    name: &'static str,
) -> Result<Evidence, QualifyError> {
    let full = format!("{CHEAT}{name}");
    let mut lucky = 0;
    loop {
        let trial = Trial {
            scenario,
            kind: RunKind::Incident,
            watching: Watching::AsNeeded,
            seed: Seed(SEED.0 + lucky),
            agent: &|| {
                Box::new(
                    Cheat::named(&full).expect("the list of cheats holds only agents that exist"),
                )
            },
        };
        let finished = stand.run(materials, &trial).await?;
        let named_the_truth = finished
            .score
            .as_ref()
            .is_some_and(|score| score.axes.diagnosed.earned > MicroPoints(0));
        if !named_the_truth || lucky + 1 >= MAX_DRAWS {
            return Ok(Evidence {
                probe: Probe::Cheat(name),
                finished,
                lucky,
                leaks: None,
            });
        }
        lucky += 1;
    }
}
