//! The work stage: the agent's clock runs, detectors watch, every request of the agent is recorded.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;

use crate::agent::{AgentError, Desk, Notebook};
use crate::detect::watch::Watch;
use crate::experience::entry::check_postmortem;
use crate::gateway;
use crate::gateway::record::Recorder;
use crate::observe::POLL;
use crate::record::{ActionTaken, FrameworkCode, Hypothesis, RunState};
use crate::run::RunKind;
use crate::run::paced::Paced;
use crate::run::part::Serving;
use crate::run::past::ServedPast;
use crate::run::stage::{Failed, Run, Stage, chain};
use crate::scenario::model::FRAMEWORK_ERROR;

/// What the settling time goes on with.
pub(super) struct Worked {
    pub watch: Watch,
    /// On the run's clock.
    pub started_ms: u64,
    pub budget_end: Instant,
}

/// How the work stage ended.
enum Ending {
    Postmortem,
    AgentLeft(Result<(), AgentError>),
    AgentBroke,
    BudgetOver,
}

impl Run<'_> {
    /// Lets the agent work until its postmortem is in, it leaves, or the budget ends. Its credential is dead afterwards.
    pub(super) async fn work(&mut self) -> Result<Stage, Failed> {
        let scenario = self.order.scenario.clone();
        let started_ms = self.now_ms();
        let budget = Duration::from_secs(u64::from(scenario.scorer.time_budget_s));
        let budget_end = Instant::now() + budget;
        let recorder = Recorder::new(self.started);
        let notes = Notebook::default();
        let past = Rc::new(self.past());
        let desk = self.desk(&recorder, &notes, past.clone());
        let detector = &scenario.detector;
        let watch = Watch::new(&detector.fixed_when, &detector.regressed_when);
        let mut watch = watch.watching_from(started_ms);
        let ending = {
            // Whatever the agent does, also while it makes its future, is its own failure.
            let agent = Paced::new(async { self.agent.work(desk).await });
            let agent = AssertUnwindSafe(agent).catch_unwind();
            let watching = async {
                loop {
                    self.expect_writes_of(&recorder);
                    watch.feed(&self.observer.read().await);
                    if notes.has_postmortem() {
                        return;
                    }
                    tokio::time::sleep(POLL).await;
                }
            };
            tokio::select! {
                biased;
                left = agent => match left {
                    Ok(result) if notes.has_postmortem() => { drop(result); Ending::Postmortem }
                    Ok(result) => Ending::AgentLeft(result),
                    Err(_) => Ending::AgentBroke,
                },
                () = watching => Ending::Postmortem,
                () = tokio::time::sleep_until(budget_end) => Ending::BudgetOver,
            }
        };
        recorder.revoke();
        self.expect_writes_of(&recorder);
        self.record.actions = recorder.actions();
        self.record.retrievals = past.log();
        self.refuse_exposure()?;
        self.take_notes(&notes, &ending);
        let gave_up = matches!(ending, Ending::AgentLeft(_) | Ending::AgentBroke);
        let told = self.note.take().unwrap_or_else(|| self.told(ending));
        self.note = Some(match notes.not_kept() {
            0 => told,
            number => format!("{told}; {number} further hypotheses were not kept"),
        });
        if let Some(reason) = recorder
            .unserved()
            .filter(|_| gave_up && self.unaccounted())
        {
            let message = format!("the agent left after a request without an answer: {reason}");
            return Err(Failed::new(FrameworkCode::ClusterUnreachable, message));
        }
        Ok(Stage::Settle(Box::new(Worked {
            watch,
            started_ms,
            budget_end,
        })))
    }

    /// Whether the run has no account of the agent's to score.
    fn unaccounted(&self) -> bool {
        self.record.state == RunState::Timeout
    }

    /// What the agent may ask about past incidents.
    fn past(&self) -> ServedPast {
        let past = ServedPast::new(
            self.setting.snapshot.clone(),
            self.setting.embedder.clone(),
            self.setting.policy.clone(),
            self.started,
        );
        let part = self.order.part.as_ref();
        past.standing_in(part.and_then(|part| part.stand_in(&self.order.scenario)))
    }

    /// A control arm's run that was served anything is no run of that arm, whatever it then did.
    fn refuse_exposure(&self) -> Result<(), Failed> {
        let must_serve_nothing = self
            .order
            .part
            .as_ref()
            .is_some_and(|part| part.serving == Serving::Nothing);
        let mut served = self.record.retrievals.iter().flat_map(|one| &one.served);
        match served.next() {
            Some(first) if must_serve_nothing => Err(Failed::new(
                FrameworkCode::ControlExposed,
                format!(
                    "a control run was served {} at a distance of {}",
                    first.id, first.distance
                ),
            )),
            _ => Ok(()),
        }
    }

    /// What the agent has changed must be in a reading for it to count.
    fn expect_writes_of(&self, recorder: &Recorder) {
        for (plural, version) in recorder.versions() {
            self.target.versions().saw(&plural, version);
        }
    }

    fn desk(&self, recorder: &Recorder, notes: &Notebook, past: Rc<ServedPast>) -> Desk {
        let service = gateway::layer(self.target.service(), recorder.clone());
        let categories = &self.setting.vocabulary.categories;
        Desk {
            task: self.order.scenario.task(),
            client: kube::Client::new(service, "default"),
            past,
            notes: notes.clone(),
            vocabulary: Rc::new(
                categories
                    .iter()
                    .filter(|category| category.id.as_str() != FRAMEWORK_ERROR)
                    .cloned()
                    .collect(),
            ),
            seed: match &self.order.part {
                Some(part) => part.membership.agent_seed,
                None => self.order.seed.child("agent", 0),
            },
        }
    }

    /// Puts hypotheses and postmortem into the record, with our times and the actions that were observed.
    fn take_notes(&mut self, notes: &Notebook, ending: &Ending) {
        let since = |at: Instant| {
            let passed = at.saturating_duration_since(self.started);
            u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
        };
        self.record.hypotheses = notes
            .hypotheses()
            .into_iter()
            .map(|(at, stated)| Hypothesis {
                at_ms: since(at),
                primary_category: stated.primary_category,
                secondary_categories: stated.secondary_categories,
                confidence: stated.confidence,
                reasoning: stated.reasoning,
            })
            .collect();
        let stayed = matches!(ending, Ending::BudgetOver);
        // Where nothing is wrong, leaving without an account is the right answer.
        let silent_is_right = self.order.kind == RunKind::Healthy && !stayed;
        self.record.state = match silent_is_right {
            true => RunState::Scored,
            false => RunState::Timeout,
        };
        if let Some((_, mut postmortem)) = notes.taken_postmortem() {
            postmortem.actions_taken = self.observed_actions();
            match check_postmortem(&postmortem) {
                Ok(()) => {
                    self.record.state = RunState::Scored;
                    self.record.postmortem = Some(postmortem);
                }
                Err(invalid) => {
                    self.note = Some(format!("the postmortem was not acceptable: {invalid}"));
                }
            }
        }
    }

    /// The observed actions as a postmortem tells them; what the agent says it did is not believed.
    fn observed_actions(&self) -> Vec<ActionTaken> {
        self.record
            .actions
            .iter()
            .take(crate::experience::entry::MAX_ITEMS)
            .map(|action| ActionTaken {
                tool: action.tool.clone(),
                reversibility: action.reversibility.as_f64(),
                input_summary: action.summary.clone(),
                at: format!("+{:.1}s", Duration::from_millis(action.at_ms).as_secs_f64()),
                reverted: false,
                revert_reason_mechanical: None,
            })
            .collect()
    }

    fn told(&self, ending: Ending) -> String {
        match ending {
            Ending::Postmortem => "the postmortem came in".to_owned(),
            Ending::AgentLeft(Ok(())) => "the agent left without a postmortem".to_owned(),
            Ending::AgentLeft(Err(error)) => format!("the agent failed: {}", chain(&error)),
            Ending::AgentBroke => "the agent broke down".to_owned(),
            Ending::BudgetOver => "the time budget ended".to_owned(),
        }
    }
}

/// Checks that the fault did not go away by itself, nor its objects by somebody else's hand.
///
/// `lost` are objects of the fault that are gone, or are others by now.
pub(super) fn vanished(run: &Run<'_>, lost: &[String]) -> Result<(), Failed> {
    let record = &run.record;
    let changes = || record.actions.iter().filter(|a| a.changed_something);
    let first_change_ms = changes().map(|action| action.at_ms).min();
    let by_itself = match (record.detector.fixed_at_ms, first_change_ms) {
        (Some(_), None) => record.detector.fixed,
        (Some(fixed), Some(change)) => record.detector.fixed && fixed < change,
        (None, _) => false,
    };
    if by_itself {
        return Err(Failed::new(
            FrameworkCode::FaultVanished,
            "the fault went away although the agent had changed nothing",
        ));
    }
    // Nothing but a deletion makes an object vanish: of it, of its owner, or of its namespace.
    let deleted_something =
        changes().any(|a| a.verb.starts_with("delete") || a.tool == gateway::record::NOT_KEPT);
    match lost.first() {
        Some(object) if !deleted_something => Err(Failed::new(
            FrameworkCode::FaultVanished,
            format!("{object} went away although the agent had deleted nothing"),
        )),
        _ => Ok(()),
    }
}
