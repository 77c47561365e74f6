//! What each arm and tier is served: the embedder, the part of the corpus and the policy of its runs.

use std::sync::Arc;

use crate::embed::control::Control;
use crate::embed::{BuiltIn, Embedder};
use crate::experience::frozen::{Frozen, ThawError};
use crate::experience::learner::Lesson;
use crate::experience::policy::{Policy, PolicyError};
use crate::experience::snapshot::Snapshot;
use crate::experiment::ledger::outcome::millionths;
use crate::experiment::plan::{Cell, Plan, Retrieval, Serving as Served, TierKind};
use crate::experiment::registration::Registration;
use crate::ids::{ArmId, RegistrationHash};
use crate::run::part::Serving;
use crate::scenario::model::Scenario;
use crate::store::{Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    #[error("the frozen corpus cannot be read")]
    Store(#[from] StoreError),
    #[error("the frozen corpus {0} of the experiment is not in this workspace")]
    NoCorpus(String),
    #[error("the corpus is not what was locked")]
    Corpus(#[from] ThawError),
    #[error("the corpus is not what was locked: locked {locked}, here {here}")]
    OtherCorpus { locked: String, here: String },
    #[error("the plan's embedder {0:?} is none of this breakage's")]
    Embedder(String),
    #[error("arm {arm} cannot be served")]
    Policy {
        arm: ArmId,
        #[source]
        source: PolicyError,
    },
}

/// The frozen corpus of an experiment, with what earlier blocks learned where the plan says so.
pub struct Corpus {
    registration: RegistrationHash,
    embedder: Arc<dyn Embedder>,
    snapshot: Snapshot,
}

/// What an arm's runs retrieve with.
#[derive(Clone)]
pub struct ArmSetting {
    pub arm: ArmId,
    pub tier: Option<String>,
    pub embedder: Arc<dyn Embedder>,
    pub snapshot: Arc<Snapshot>,
    /// Without the scenario that is excluded, which is each run's own.
    policy: Policy,
    same_scenario: bool,
    pub serving: Serving,
    /// The vectors carry no meaning, and how near they come is measured before every run.
    pub is_deterministic_control: bool,
}

impl Corpus {
    /// Reads the corpus that was locked.
    pub fn open(
        store: &Store,
        registration: &Registration,
        hash: &RegistrationHash,
    ) -> Result<Corpus, ArmError> {
        let locked = &registration.corpus;
        let name = &registration.plan.corpus.embedder;
        let embedder: BuiltIn = name.parse().map_err(|_| ArmError::Embedder(name.clone()))?;
        let embedder = embedder.embedder();
        let text = store
            .experiment_corpus(&locked.sha256)?
            .ok_or_else(|| ArmError::NoCorpus(locked.sha256.clone()))?;
        let snapshot = Frozen::thaw(&text, embedder.as_ref())?;
        if snapshot.content_hash() != locked.sha256 {
            return Err(ArmError::OtherCorpus {
                locked: locked.sha256.clone(),
                here: snapshot.content_hash().to_owned(),
            });
        }
        Ok(Corpus {
            registration: hash.clone(),
            embedder,
            snapshot,
        })
    }

    /// With what earlier blocks learned.
    pub fn grown(&self, lessons: Vec<Lesson>) -> Corpus {
        Corpus {
            registration: self.registration.clone(),
            embedder: self.embedder.clone(),
            snapshot: self.snapshot.with_lessons(self.embedder.as_ref(), lessons),
        }
    }

    /// The setting of every arm and tier of the plan.
    pub fn arms(&self, plan: &Plan) -> Result<Vec<ArmSetting>, ArmError> {
        let mut made: Vec<ArmSetting> = Vec::new();
        for cell in plan.cells() {
            let known = |one: &ArmSetting| one.arm == cell.arm && one.tier == cell.tier;
            if !made.iter().any(known) {
                made.push(self.arm(plan, &cell)?);
            }
        }
        Ok(made)
    }

    fn arm(&self, plan: &Plan, cell: &Cell) -> Result<ArmSetting, ArmError> {
        let off = Retrieval::Off;
        let retrieval = plan.arm(&cell.arm).map_or(&off, |arm| &arm.retrieval);
        let is_deterministic_control = matches!(retrieval, Retrieval::DeterministicControl(_));
        let embedder: Arc<dyn Embedder> = if is_deterministic_control {
            Arc::new(Control)
        } else {
            self.embedder.clone()
        };
        let (served, serving) = match retrieval {
            Retrieval::Off => (None, Serving::Nothing),
            Retrieval::On(served) => (Some(served), Serving::Nearest),
            Retrieval::DeterministicControl(served) => (Some(served), Serving::Nothing),
            Retrieval::Placebo(served) => (Some(served), Serving::Placebo),
        };
        let mut policy = match served {
            None => Policy::off(embedder.as_ref()),
            Some(served) => policy_of(served, embedder.as_ref()),
        };
        let mut snapshot = self.snapshot.without_quarantined();
        if let (Some(tiers), Some(tier)) = (&plan.tiers, &cell.tier) {
            let size = tiers.tiers.iter().find(|one| one.id == *tier);
            match (tiers.kind, size.and_then(|tier| tier.size)) {
                (TierKind::Corpus, Some(size)) => {
                    snapshot = snapshot.nested_subset(&self.registration, size);
                }
                (TierKind::Corpus, None) => {}
                // "full" looks at all of them.
                (TierKind::PoolCap, size) => {
                    policy.pool_cap = Some(size.unwrap_or(snapshot.len()).max(1));
                }
            }
        }
        if is_deterministic_control {
            snapshot = snapshot.embedded_with(embedder.as_ref());
        }
        policy.check().map_err(|source| ArmError::Policy {
            arm: cell.arm.clone(),
            source,
        })?;
        Ok(ArmSetting {
            arm: cell.arm.clone(),
            tier: cell.tier.clone(),
            embedder,
            snapshot: Arc::new(snapshot),
            policy,
            same_scenario: served.is_some_and(|served| served.same_scenario),
            serving,
            is_deterministic_control,
        })
    }
}

fn policy_of(served: &Served, embedder: &dyn Embedder) -> Policy {
    let mut policy = Policy::default_for(embedder);
    policy.k = served.k;
    if let Some(distance) = served.max_distance {
        policy.max_distance = f64::from(distance) / 1e6;
    }
    policy.pool_cap = served.pool_cap;
    policy.sources = served.sources.iter().copied().collect();
    policy
}

impl ArmSetting {
    /// The policy of a run of this scenario.
    pub fn policy(&self, scenario: &Scenario) -> Policy {
        let mut policy = self.policy.clone();
        if !self.same_scenario {
            policy.excluded_scenarios.insert(scenario.id.clone());
        }
        policy
    }

    /// For the deterministic control: the distance from the task's own text to the nearest incident that could be served,
    /// in millionths. Nothing where there is none.
    pub fn control_nearest(&self, scenario: &Scenario) -> Option<u32> {
        if !self.is_deterministic_control {
            return None;
        }
        let policy = self.policy(scenario);
        let query = self.embedder.embed(&scenario.task().alert).ok()?;
        let nearest = self
            .snapshot
            .nearest_distance(&query, |entry| policy.admits(entry));
        nearest.map(millionths)
    }
}
