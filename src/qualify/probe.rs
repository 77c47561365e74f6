//! The runs of a qualification: each an order with an agent whose outcome is known beforehand.

use std::sync::{Arc, Mutex, PoisonError};

use crate::agent::Agent;
use crate::agent::cheat::Cheat;
use crate::agent::noop::Noop;
use crate::experience::policy::Policy;
use crate::ids::{MicroPoints, Seed};
use crate::qualify::check::CHEAT;
use crate::qualify::leak::Finding;
use crate::qualify::reader::{Reader, Reading};
use crate::qualify::repairer::Repairer;
use crate::qualify::wrecker::Wrecker;
use crate::qualify::{Materials, QualifyError, SEED, leak};
use crate::run::repeat::{Progress, Repetitions, repeat};
use crate::run::{Finished, RunKind, Setting, Watching};
use crate::scenario::model::Scenario;
use crate::store::Store;

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

    /// Carries it out on this thread.
    ///
    /// # Errors
    /// A run that could not be begun. One that ends as a framework error is evidence.
    pub fn take(
        self,
        materials: &Materials,
        scenario: &Arc<Scenario>,
    ) -> Result<Evidence, QualifyError> {
        let plain = |finished| Evidence {
            probe: self,
            finished,
            lucky: 0,
            leaks: None,
        };
        let go = |watching, agent: &(dyn Fn() -> Box<dyn Agent> + Sync)| {
            run(
                materials,
                scenario,
                RunKind::Incident,
                watching,
                SEED,
                agent,
            )
        };
        match self {
            Probe::Control => run(
                materials,
                scenario,
                RunKind::Healthy,
                Watching::WholeBudget,
                SEED,
                &|| Box::new(Noop),
            )
            .map(plain),
            Probe::LeftAlone => go(Watching::WholeBudget, &|| Box::new(Noop)).map(plain),
            Probe::Reference => go(Watching::AsNeeded, &|| {
                Box::new(Repairer::of(scenario.clone()))
            })
            .map(plain),
            Probe::Destructive => {
                let fixture = materials.fixtures.load(&scenario.fixture).ok();
                go(Watching::AsNeeded, &|| {
                    Box::new(Wrecker::of(scenario.clone(), fixture.clone()))
                })
                .map(plain)
            }
            Probe::Leak => {
                let reading = Arc::new(Mutex::new(Reading::default()));
                let finished = go(Watching::AsNeeded, &|| {
                    Box::new(Reader::into(reading.clone()))
                })?;
                let mut held = reading.lock().unwrap_or_else(PoisonError::into_inner);
                let reading = std::mem::take(&mut *held);
                let found = leak::lint(&reading, scenario, &materials.vocabulary);
                Ok(Evidence {
                    leaks: Some((found, reading)),
                    ..plain(finished)
                })
            }
            Probe::Cheat(name) => draws(materials, scenario, name),
        }
    }
}

/// Runs a cheat until it does not name the truth by luck. Only the first draw has past incidents to copy from: the
/// nearest of them would be the same at every draw.
fn draws(
    materials: &Materials,
    scenario: &Arc<Scenario>,
    name: &'static str,
) -> Result<Evidence, QualifyError> {
    let full = format!("{CHEAT}{name}");
    let mut lucky = 0;
    loop {
        let finished = run(
            materials,
            scenario,
            RunKind::Incident,
            Watching::AsNeeded,
            Seed(SEED.0 + lucky),
            &|| {
                Box::new(
                    Cheat::named(&full).expect("the list of cheats holds only agents that exist"),
                )
            },
        )?;
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

/// One run with a store that ends with it.
fn run(
    materials: &Materials,
    scenario: &Arc<Scenario>,
    kind: RunKind,
    watching: Watching,
    seed: Seed,
    agent: &(dyn Fn() -> Box<dyn Agent> + Sync),
) -> Result<Finished, QualifyError> {
    let mut policy = match seed {
        SEED => Policy::default_for(materials.embedder.as_ref()),
        _ => Policy::off(materials.embedder.as_ref()),
    };
    policy.excluded_scenarios.insert(scenario.id.clone());
    let setting = Setting {
        store: Arc::new(Store::in_memory()?),
        vocabulary: materials.vocabulary.clone(),
        fixtures: materials.fixtures.clone(),
        rubric: materials.rubric.clone(),
        embedder: materials.embedder.clone(),
        policy,
        snapshot: materials.snapshot.clone(),
        learn: false,
        interrupted: materials.interrupted.clone(),
    };
    let once = Repetitions {
        scenario: scenario.clone(),
        qualified: false,
        kind,
        watching,
        base: seed,
        count: 1,
        jobs: 1,
        agent,
    };
    let mut outcome = None;
    repeat(&setting, &once, |progress| {
        if let Progress::Done { outcome: done, .. } = progress {
            outcome = Some(*done);
        }
    });
    Ok(outcome.ok_or(QualifyError::Interrupted)??)
}
