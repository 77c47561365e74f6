//! Qualification in a cluster that outlives the process: one run after another, each kept as evidence until the scenario
//! has been asked everything, so that an interruption costs one run and not hours.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::target::Target;
use crate::qualify::check::Qualification;
use crate::qualify::probe::{Evidence, Probe};
use crate::qualify::repairer::BEFORE_REPAIR;
use crate::qualify::stand::Stand;
use crate::qualify::{Depth, Materials, QualifyError, judge, keep, waiting};
use crate::record::{FrameworkCode, Record, RunState};
use crate::run::{HEALTHY_DEADLINE, MANIFEST_DEADLINE, QUIET_WATCH, SETTLE};
use crate::scenario::model::Scenario;
use crate::store::Store;

/// What a run takes besides its waits: the fixture made anew, and everything gone before that.
const RESET: Duration = Duration::from_secs(60);

/// What is told on the way.
pub enum Told<'a> {
    /// A qualification is known, and nothing is run.
    Known(&'a Qualification),
    /// A run begins.
    Begins(&'a Scenario, Probe),
    /// A run is over, or one from an earlier qualification stands for it.
    Ended(&'a Scenario, Probe),
    /// The scenario's remaining runs would say nothing.
    CutShort(&'a Scenario),
}

/// What is to be asked of which scenarios, where.
pub struct Bench<'a> {
    pub materials: &'a Materials,
    pub target: &'a Target,
    pub store: &'a Arc<Store>,
    pub depth: Depth,
    /// Also what is known already.
    pub again: bool,
}

impl Depth {
    /// The runs, with the longest that each may take on the cluster's clock.
    fn longest(self, scenario: &Scenario, has_prometheus: bool) -> Vec<(Probe, Duration)> {
        if !waiting::for_what(scenario, has_prometheus).is_empty() {
            return Vec::new();
        }
        let probes = self.probes().into_iter();
        probes
            .map(|probe| (probe, longest(probe, scenario)))
            .collect()
    }
}

fn longest(probe: Probe, scenario: &Scenario) -> Duration {
    let budget = Duration::from_secs(u64::from(scenario.scorer.time_budget_s));
    let around = RESET + HEALTHY_DEADLINE / 2;
    let work = match probe {
        Probe::Control => return budget + around,
        Probe::Leak => BEFORE_REPAIR + QUIET_WATCH + SETTLE,
        // What changed something without repairing it is watched to the end of the budget.
        Probe::LeftAlone | Probe::Reference | Probe::Destructive | Probe::Cheat(_) => {
            budget + SETTLE
        }
    };
    around + MANIFEST_DEADLINE / 2 + work
}

impl Bench<'_> {
    /// The runs of a scenario, with the longest that each may take on the cluster's clock.
    pub fn longest(&self, scenario: &Scenario) -> Vec<(Probe, Duration)> {
        let has_prometheus = self.materials.prometheus.is_some();
        self.depth.longest(scenario, has_prometheus)
    }

    /// Qualifies scenarios one after another. `tell` is called around every run.
    ///
    /// # Errors
    /// The first run that says nothing about its scenario or leaves the cluster closed; an interruption. What was learned
    /// until then is kept and not asked again.
    pub async fn qualify(
        &self,
        scenarios: &[Arc<Scenario>],
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<Vec<Qualification>, QualifyError> {
        let mut all = Vec::new();
        for scenario in scenarios {
            all.push(self.one(scenario, tell).await?);
        }
        Ok(all)
    }

    async fn one(
        &self,
        scenario: &Arc<Scenario>,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<Qualification, QualifyError> {
        let facts = self.target.facts();
        let (store, fixtures) = (self.store, &self.materials.fixtures);
        let asked = (&facts, self.depth);
        let waits = waiting::for_what(scenario, self.materials.prometheus.is_some());
        if !waits.is_empty() {
            return Ok(judge::qualification(
                self.materials,
                scenario,
                asked,
                waits,
                &[],
            ));
        }
        if self.again {
            keep::forget_evidence(store, scenario, fixtures, &facts)?;
        } else if let Some(known) = keep::known(store, scenario, fixtures, &facts)? {
            tell(Told::Known(&known));
            return Ok(known);
        }
        let mut evidence: Vec<Evidence> = Vec::new();
        for probe in self.depth.probes() {
            if evidence.len() == 2 && !judged_worth_it(&evidence) {
                tell(Told::CutShort(scenario));
                break;
            }
            evidence.push(self.probe(scenario, probe, tell).await?);
            tell(Told::Ended(scenario, probe));
        }
        let done = judge::qualification(self.materials, scenario, asked, Vec::new(), &evidence);
        keep::keep(store, &done)?;
        Ok(done)
    }

    async fn probe(
        &self,
        scenario: &Arc<Scenario>,
        probe: Probe,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<Evidence, QualifyError> {
        let facts = self.target.facts();
        let (store, materials) = (self.store, self.materials);
        let kept = keep::kept_evidence(store, scenario, materials, &facts, probe)?;
        if let Some(kept) = kept {
            return Ok(kept);
        }
        tell(Told::Begins(scenario, probe));
        let stand = Stand::Lasting {
            target: self.target,
            store,
        };
        let evidence = probe.take_on(&stand, materials, scenario).await?;
        let record = &evidence.finished.record;
        if *materials.interrupted.borrow() {
            return Err(QualifyError::Interrupted);
        }
        if record.undo.quarantined {
            let told = record
                .stages
                .iter()
                .rev()
                .find_map(|entry| entry.note.clone());
            return Err(QualifyError::Closed {
                reason: told
                    .unwrap_or_else(|| "the last run could not be proven to be undone".to_owned()),
            });
        }
        if let Some(reason) = no_evidence(record) {
            return Err(QualifyError::NoEvidence {
                scenario: scenario.id.clone(),
                probe: probe.name(),
                reason: reason.to_owned(),
            });
        }
        keep::keep_evidence(store, scenario, &materials.fixtures, &facts, &evidence)?;
        Ok(evidence)
    }
}

/// The first two runs are the baseline and the fault left alone. Where they fail, nothing else would be judged.
fn judged_worth_it(evidence: &[Evidence]) -> bool {
    let record = |index: usize| &evidence[index].finished.record;
    judge::stands(record(0), record(1))
}

/// Why a run tells of the cluster or of us and not of the scenario.
fn no_evidence(record: &Record) -> Option<&str> {
    let RunState::FrameworkError { code, message } = &record.state else {
        return None;
    };
    let ours = matches!(
        code,
        FrameworkCode::ClusterUnreachable
            | FrameworkCode::ClusterChanged
            | FrameworkCode::ResetNotProven
            | FrameworkCode::StoreUnavailable
            | FrameworkCode::Interrupted
            | FrameworkCode::Crashed
            | FrameworkCode::Internal
    );
    ours.then_some(message.as_str())
}
