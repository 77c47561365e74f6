//! One incident's work: look, read, believe, repair, perhaps watch, perhaps try again, write.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::agent::account::Account;
use crate::agent::diagnose::{findings, symptoms};
use crate::agent::evidence::Evidence;
use crate::agent::finding::{Finding, Repair};
use crate::agent::pace::Pace;
use crate::agent::repair;
use crate::agent::rules::{chain, patient_look, time_of};
use crate::agent::simulated::belief::{Ground, Leaning, restart_of};
use crate::agent::simulated::chance::Chance;
use crate::agent::simulated::model::Model;
use crate::agent::verify::{Verdict, Watch};
use crate::agent::{AgentError, Desk};
use crate::record::Exemplar;

/// Percent from which an explanation is acted upon at once, as the rules do.
const SURE: u8 = 80;
/// Repairs in one incident; who needs more has lost the thread.
const MAX_ATTEMPTS: u64 = 5;

/// One incident's work.
pub(super) struct Shift {
    desk: Desk,
    model: Model,
    chance: Chance,
    pace: Pace,
    started: Instant,
    account: Account,
    looks: u64,
    tried: BTreeSet<String>,
    given_up: BTreeSet<String>,
}

/// What comes after a repair.
enum Next {
    Close,
    /// The belief failed, and is kept or was given up.
    GoOn,
    /// Another trouble has come to light, and asks for another belief.
    Anew,
}

impl Shift {
    pub fn new(desk: Desk, model: Model) -> Shift {
        Shift {
            chance: Chance(desk.seed.child("simulated", 0)),
            pace: Pace::of_budget(desk.task.time_budget_s),
            started: Instant::now(),
            account: Account::new(desk.notes.clone()),
            looks: 0,
            tried: BTreeSet::new(),
            given_up: BTreeSet::new(),
            model,
            desk,
        }
    }

    pub async fn work(mut self) -> Result<(), AgentError> {
        let (mut evidence, mut found) = self.clear_evidence().await?;
        self.account.looked(&time_of(&evidence));
        let past = self.desk.past.similar_to(&symptoms(&evidence));
        self.account.read(&past);
        let mut belief: Option<Finding> = None;
        for attempt in 0..MAX_ATTEMPTS {
            let ground = Ground {
                found: &found,
                past: &past,
                given_up: &self.given_up,
            };
            let leaning = ground.leaning();
            let kept = belief.filter(|belief| !self.given_up.contains(&belief.key));
            belief = kept.or_else(|| ground.belief(&self.model, self.chance, attempt));
            let Some(believed) = belief.clone() else {
                break;
            };
            self.account.state(&believed);
            let Some(meant) = self.untried(&believed) else {
                break;
            };
            let made = self.carried_out(meant, &believed, &found, leaning, attempt);
            match self
                .attempt(&believed, &made, &evidence, leaning, attempt)
                .await?
            {
                Next::Close => break,
                _ if self.is_late() => break,
                Next::GoOn => {}
                Next::Anew => belief = None,
            }
            (evidence, found) = self.look().await?;
        }
        self.close(belief.as_ref(), &found, &past);
        Ok(())
    }

    /// Looks until something is sure, or for as long as patience lasts.
    async fn clear_evidence(&mut self) -> Result<(Evidence, Vec<Finding>), AgentError> {
        loop {
            let (evidence, found) = self.look().await?;
            let sure = found.iter().any(|finding| finding.confidence >= SURE);
            if sure || self.started.elapsed() >= self.pace.patience {
                return Ok((evidence, found));
            }
            sleep(self.pace.look_every).await;
        }
    }

    /// A look at everything, and the time to read it.
    async fn look(&mut self) -> Result<(Evidence, Vec<Finding>), AgentError> {
        let evidence = patient_look(&self.desk.client, &self.desk.task.namespaces).await?;
        // Half to one and a half times the mean.
        let share = 0.5 + self.chance.unit("reading", self.looks);
        self.looks += 1;
        sleep(Duration::from_secs_f64(self.model.reading_s * share)).await;
        let found = findings(&evidence, self.desk.seed);
        Ok((evidence, found))
    }

    fn untried(&self, finding: &Finding) -> Option<Repair> {
        let mut repairs = finding.repairs.iter();
        repairs
            .find(|repair| !self.tried.contains(&repair.signature()))
            .cloned()
    }

    fn is_late(&self) -> bool {
        self.started.elapsed() >= self.pace.last_call
    }

    /// The repair as it is really made: now and then another field, another object, or only the restart.
    fn carried_out(
        &self,
        meant: Repair,
        belief: &Finding,
        found: &[Finding],
        leaning: Leaning,
        attempt: u64,
    ) -> Repair {
        let probability = leaning.careless(&self.model, self.model.slip);
        if !self.chance.happens("slip", attempt, probability) {
            return meant;
        }
        let others: Vec<Repair> = belief
            .repairs
            .iter()
            .chain(found.iter().flat_map(|finding| &finding.repairs))
            .filter(|repair| repair.signature() != meant.signature())
            .cloned()
            .collect();
        let slipped = self.chance.pick("slipped to", attempt, &others);
        slipped.cloned().unwrap_or_else(|| restart_of(belief))
    }

    async fn attempt(
        &mut self,
        belief: &Finding,
        made: &Repair,
        evidence: &Evidence,
        leaning: Leaning,
        attempt: u64,
    ) -> Result<Next, AgentError> {
        self.tried.insert(made.signature());
        let time = time_of(evidence);
        let (client, namespaces) = (&self.desk.client, &self.desk.task.namespaces);
        if let Err(error) = repair::apply(client, namespaces, made, &time).await {
            self.account.failed(made, &chain(&error), false);
            return Ok(self.after_failure(belief, leaning, attempt));
        }
        self.account.did(made, &time);
        let unverified = leaning.careless(&self.model, self.model.unverified);
        if self.chance.happens("unverified", attempt, unverified) {
            // It is taken to have worked.
            self.account.helped(belief, made, true);
            return Ok(Next::Close);
        }
        let watch = Watch {
            client,
            namespaces,
            pace: self.pace,
            seed: self.desk.seed,
            until: self.started + self.pace.last_call,
        };
        let verdict = watch.outcome(belief, made).await;
        match verdict.map_err(|error| AgentError::Cluster(Box::new(error)))? {
            Verdict::Mended => {
                self.account.helped(belief, made, true);
                Ok(Next::Close)
            }
            Verdict::Progressed => {
                self.account.helped(belief, made, false);
                Ok(Next::Anew)
            }
            Verdict::NotBetter(why) => {
                let reverted = !made.fields.is_empty()
                    && repair::revert(client, namespaces, made, &time)
                        .await
                        .is_ok();
                self.account.failed(made, &why, reverted);
                Ok(self.after_failure(belief, leaning, attempt))
            }
        }
    }

    /// Gives up, holds on to the belief, or discards it.
    fn after_failure(&mut self, belief: &Finding, leaning: Leaning, attempt: u64) -> Next {
        let early = leaning.careless(&self.model, self.model.early_stop);
        if self.chance.happens("early stop", attempt, early) {
            return Next::Close;
        }
        let stubborn = self
            .chance
            .happens("stubborn", attempt, self.model.stubbornness);
        if stubborn && self.untried(belief).is_none() {
            // Nothing is left to try, and it can be nothing else.
            return Next::Close;
        }
        if !stubborn {
            self.given_up.insert(belief.key.clone());
        }
        Next::GoOn
    }

    /// Writes about the last belief; without one, about the best explanation of its own.
    fn close(self, belief: Option<&Finding>, found: &[Finding], past: &[Exemplar]) {
        let ground = Ground {
            found,
            past,
            given_up: &self.given_up,
        };
        let last = belief.or_else(|| ground.best()).cloned();
        self.account.close(last.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_leaves_time_for_a_repair_in_every_budget() {
        let slowest = crate::agent::simulated::model::PARAMETERS
            .iter()
            .find(|one| one.name == "reading_s")
            .map(|one| one.max * 1.5)
            .unwrap();
        assert!(slowest < Pace::of_budget(600).last_call.as_secs_f64() / 2.0);
    }
}
