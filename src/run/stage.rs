//! The stages of a run as an enum, and the step function that consumes one and returns the next.
//!
//! Whatever a step does (fail, panic, be interrupted), the run goes on to undo what was written and ends with exactly one
//! record. The plan of the fault is kept here and not in a stage, so that no failure can lose it.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tokio::time::Instant;

use crate::agent::Agent;
use crate::cluster::ClusterError;
use crate::cluster::fixture::Fixture;
use crate::cluster::reset::Owned;
use crate::cluster::state::ClusterState;
use crate::cluster::target::Target;
use crate::detect::expression::Needs;
use crate::inject::change::Plan;
use crate::inject::journal::Place;
use crate::observe::Observer;
use crate::record::{
    AgentFacts, ClusterFacts, DetectorOutcome, FrameworkCode, RECORD_FORMAT, Record,
    RetrievalFacts, RunState, StageEntry, StageName, UndoOutcome,
};
use crate::run::event::Event;
use crate::run::work::Worked;
use crate::run::{Order, Proven, RunKind, Setting, identity};

/// Where a run stands. Each variant holds what only that stage needs.
pub(super) enum Stage {
    Prepare,
    Healthy,
    Inject,
    Manifest,
    Work,
    Settle(Box<Worked>),
    Undo,
    Clean,
    Done,
}

impl Stage {
    fn name(&self) -> Option<StageName> {
        match self {
            Stage::Prepare => Some(StageName::Prepare),
            Stage::Healthy => Some(StageName::Healthy),
            Stage::Inject => Some(StageName::Inject),
            Stage::Manifest => Some(StageName::Manifest),
            Stage::Work => Some(StageName::Work),
            Stage::Settle(_) => Some(StageName::Settle),
            Stage::Undo => Some(StageName::Undo),
            Stage::Clean => Some(StageName::Clean),
            Stage::Done => None,
        }
    }
}

/// Our own failure in a stage.
#[derive(Debug)]
pub(super) struct Failed {
    pub code: FrameworkCode,
    pub message: String,
}

impl Failed {
    pub(super) fn new(code: FrameworkCode, message: impl Into<String>) -> Failed {
        Failed {
            code,
            message: message.into(),
        }
    }

    /// An error with all of its causes in one line. Where the cluster could not be worked with at all, that is the
    /// failure, whatever was being done.
    pub(super) fn because(
        code: FrameworkCode,
        error: &(dyn std::error::Error + 'static),
    ) -> Failed {
        let causes = std::iter::successors(Some(error), |error| error.source());
        let outage = causes
            .filter_map(|cause| cause.downcast_ref::<ClusterError>())
            .any(ClusterError::is_outage);
        let code = if outage {
            FrameworkCode::ClusterUnreachable
        } else {
            code
        };
        Failed::new(code, chain(error))
    }

    /// The detectors saw too little to say anything, for this reason.
    pub(super) fn blind(reason: &str) -> Failed {
        Failed::new(
            FrameworkCode::ClusterUnreachable,
            format!("the detectors could not see: {reason}"),
        )
    }
}

/// An error's message with those of its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// One run under way.
pub(super) struct Run<'a> {
    pub setting: &'a Setting,
    pub order: &'a Order,
    pub agent: &'a dyn Agent,
    pub target: &'a Target,
    pub client: kube::Client,
    pub observer: Observer,
    pub started: Instant,
    pub record: Record,
    pub fixture: Option<Fixture>,
    pub owned: Owned,
    /// The state before the fault, which the clean stage must reach again.
    pub reference: Option<ClusterState>,
    /// What was, or may have been, written.
    pub plan: Option<Plan>,
    pub proven: Proven,
    pub emit: &'a mut dyn FnMut(Event),
    /// A note for the stage's entry.
    pub note: Option<String>,
}

/// Drives a run from its first stage to its record.
pub(super) async fn drive(
    setting: &Setting,
    order: &Order,
    agent: &dyn Agent,
    target: &Target,
    emit: &mut dyn FnMut(Event),
) -> (Record, Proven) {
    let mut run = Run::new(setting, order, agent, target, emit);
    (run.emit)(Event::Started {
        run_id: run.record.run_id.clone(),
        seed: order.seed.0,
    });
    let mut stage = Stage::Prepare;
    while let Some(name) = stage.name() {
        let started_ms = run.now_ms();
        (run.emit)(Event::Stage {
            stage: name,
            at_ms: started_ms,
        });
        let next = run.guarded(stage, name).await;
        let entry = StageEntry {
            stage: name,
            started_ms,
            ended_ms: run.now_ms(),
            note: run.note.take(),
        };
        run.record.stages.push(entry);
        stage = next;
    }
    run.record.virtual_ms = run.now_ms();
    (run.record, run.proven)
}

impl<'a> Run<'a> {
    fn new(
        setting: &'a Setting,
        order: &'a Order,
        agent: &'a dyn Agent,
        target: &'a Target,
        emit: &'a mut dyn FnMut(Event),
    ) -> Run<'a> {
        let started = Instant::now();
        let client = target.client();
        let scenario = &order.scenario;
        let conditions = scenario
            .detector
            .fixed_when
            .iter()
            .chain(&scenario.detector.regressed_when)
            .chain(&scenario.manifest_when);
        let needs = Needs::of(conditions.map(|condition| &condition.expression));
        Run {
            observer: Observer::new(client.clone(), needs, started)
                .asking(setting.prometheus.clone()),
            record: blank_record(
                setting,
                order,
                agent,
                &Place::of(target),
                target.facts(),
                target.now_text(),
            ),
            setting,
            order,
            agent,
            target,
            client,
            started,
            fixture: setting.fixtures.load(&scenario.fixture).ok(),
            owned: Owned::default(),
            reference: None,
            plan: None,
            proven: Proven::Restored,
            emit,
            note: None,
        }
    }

    /// Milliseconds on the run's clock.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// One step that always has a next stage: failures, panics and interruptions lead to undo and clean.
    async fn guarded(&mut self, stage: Stage, name: StageName) -> Stage {
        // What undoes is what an interruption asks for. A write on its way might arrive after the undo had looked, so the
        // fault is written to the end too; the next stage is then not begun.
        let to_its_end = matches!(name, StageName::Inject | StageName::Undo | StageName::Clean);
        let mut interrupted = self.setting.interrupted.clone();
        let step = AssertUnwindSafe(self.step(stage)).catch_unwind();
        let outcome = if to_its_end {
            step.await
        } else {
            tokio::select! {
                biased;
                () = signalled(&mut interrupted) => Ok(Err(Failed::new(
                    FrameworkCode::Interrupted,
                    "interrupted by the user",
                ))),
                outcome = step => outcome,
            }
        };
        let failed = match outcome {
            Ok(Ok(next)) => return next,
            Ok(Err(failed)) => self.explained(failed).await,
            Err(panic) => Failed::new(FrameworkCode::Internal, panic_text(panic.as_ref())),
        };
        (self.emit)(Event::Failed {
            code: failed.code.as_str(),
            message: failed.message.clone(),
        });
        self.note = Some(failed.message.clone());
        if name == StageName::Clean || name == StageName::Undo {
            // The finished run keeps its state: excluding it would exclude messy agents.
            self.record.undo.quarantined = true;
        } else {
            self.record.state = RunState::FrameworkError {
                code: failed.code,
                message: failed.message,
            };
        }
        match name {
            StageName::Prepare | StageName::Clean => Stage::Done,
            StageName::Undo => Stage::Clean,
            _ if self.plan.is_some() => Stage::Undo,
            // The agent was at work without a fault of ours; what it did must be taken back all the same.
            StageName::Work | StageName::Settle => Stage::Clean,
            _ => Stage::Done,
        }
    }

    async fn step(&mut self, stage: Stage) -> Result<Stage, Failed> {
        match stage {
            Stage::Prepare => self.prepare().await,
            Stage::Healthy => self.healthy().await,
            Stage::Inject => self.inject().await,
            Stage::Manifest => self.manifest().await,
            Stage::Work => self.work().await,
            Stage::Settle(worked) => self.settle(*worked).await,
            Stage::Undo => self.undo().await,
            Stage::Clean => self.clean().await,
            Stage::Done => Ok(Stage::Done),
        }
    }
}

/// Resolves when the user wants to stop; never, when nobody can say so any more.
async fn signalled(interrupted: &mut tokio::sync::watch::Receiver<bool>) {
    if interrupted.wait_for(|wanted| *wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    format!("a defect of breakage: {text}")
}

/// The record of a run in which nothing has happened yet.
pub(super) fn blank_record(
    setting: &Setting,
    order: &Order,
    agent: &dyn Agent,
    place: &Place,
    cluster: ClusterFacts,
    ran_at: String,
) -> Record {
    let scenario = &order.scenario;
    let policy = &setting.policy;
    Record {
        format: RECORD_FORMAT,
        run_id: identity::run_id(setting, order, agent, place),
        incident_id: identity::incident_id(&scenario.id, order.seed),
        scenario_id: scenario.id.clone(),
        scenario_sha256: scenario.sha256.clone(),
        scenario_text: scenario.text.clone(),
        scenario_override: scenario.is_override,
        rubric: setting.rubric.id.clone(),
        seed: order.seed,
        cluster,
        agent: AgentFacts {
            name: agent.name().to_owned(),
            version: agent.version().to_owned(),
            simulation: agent.is_simulation(),
        },
        retrieval: RetrievalFacts {
            embedder: setting.embedder.identity(),
            k: policy.k,
            max_distance: policy.max_distance,
            pool_cap: policy.pool_cap,
            excluded_scenarios: policy.excluded_scenarios.iter().cloned().collect(),
            corpus_size: setting.snapshot.eligible(policy),
        },
        qualified: order.qualified,
        ran_at,
        stages: Vec::new(),
        state: RunState::FrameworkError {
            code: FrameworkCode::Internal,
            message: "the run did not finish".to_owned(),
        },
        healthy: order.kind == RunKind::Healthy,
        injected: false,
        detector: DetectorOutcome::default(),
        state_changes: Vec::new(),
        actions: Vec::new(),
        hypotheses: Vec::new(),
        postmortem: None,
        retrievals: Vec::new(),
        undo: UndoOutcome::default(),
        state_hash_before: None,
        state_hash_after: None,
        virtual_ms: 0,
        breakage_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: order.part.as_ref().map(|part| part.membership.clone()),
    }
}
