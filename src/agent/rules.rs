//! The agent without a model: reads the cluster, reasons by rules, repairs the narrowest field, verifies.
//!
//! Look until something explains what is seen; state it; read what past incidents say; make the surest repair;
//! watch; take it back when it does not help, and try the next. The alert's text is not used: what is wrong must
//! follow from the cluster.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use futures::future::LocalBoxFuture;
use tokio::time::{Duration, Instant, sleep};

use crate::agent::account::Account;
use crate::agent::diagnose::{findings, is_unwell, symptoms};
use crate::agent::evidence::{Evidence, observe};
use crate::agent::finding::{Finding, Repair};
use crate::agent::pace::Pace;
use crate::agent::repair;
use crate::agent::verify::{Verdict, Watch};
use crate::agent::{Agent, AgentError, Desk};
use crate::record::{Exemplar, Outcome};

/// See the module.
pub struct Rules;

impl Agent for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn version(&self) -> &'static str {
        "2"
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(Shift::new(desk).work())
    }
}

/// Percent from which an explanation is acted upon at once.
const SURE: u8 = 80;
/// Below it an explanation is not acted upon at all.
const WORTH_TRYING: u8 = 35;
/// Percent that past incidents can move an explanation: enough to decide between near equals, never more.
const PRIOR: i16 = 4;
/// Looks that fail before the agent gives up, with a pause between them.
const FAILED_LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_secs(2);

/// One incident's work.
struct Shift {
    desk: Desk,
    pace: Pace,
    started: Instant,
    account: Account,
    tried: BTreeSet<String>,
    /// What past incidents say, once asked.
    past: Option<Vec<Exemplar>>,
}

impl Shift {
    fn new(desk: Desk) -> Shift {
        Shift {
            pace: Pace::of_budget(desk.task.time_budget_s),
            started: Instant::now(),
            account: Account::new(desk.notes.clone()),
            tried: BTreeSet::new(),
            past: None,
            desk,
        }
    }

    async fn work(mut self) -> Result<(), AgentError> {
        let first = patient_look(&self.desk.client, &self.desk.task.namespaces).await?;
        self.account.looked(&time_of(&first));
        let mut evidence = first;
        let mut waiting_since = Instant::now();
        loop {
            let found = self.ranked(&evidence);
            let next = found.iter().find_map(|finding| {
                let repair = self.untried(finding)?;
                Some((finding.clone(), repair.clone()))
            });
            let patient = Instant::now().duration_since(waiting_since) < self.pace.patience;
            let nothing_wrong = !found.iter().any(|f| f.confidence >= SURE)
                && !evidence.workloads.iter().any(is_unwell);
            if self.is_late() || (nothing_wrong && self.account.has_mended()) {
                self.account.close(found.first());
                return Ok(());
            }
            if let Some(surest) = found.first().filter(|f| f.confidence >= SURE) {
                self.account.state(surest);
            }
            let ready = next.filter(|(finding, _)| {
                finding.confidence >= SURE || (!patient && finding.confidence >= WORTH_TRYING)
            });
            match ready {
                Some((finding, repair)) => {
                    self.consult(&evidence);
                    self.attempt(&finding, &repair, &time_of(&evidence)).await?;
                    waiting_since = Instant::now();
                }
                None if !patient => {
                    self.account.close(found.first());
                    return Ok(());
                }
                None => sleep(self.pace.look_every).await,
            }
            evidence = patient_look(&self.desk.client, &self.desk.task.namespaces).await?;
        }
    }

    /// Explanations in the order in which they are worth acting upon.
    fn ranked(&self, evidence: &Evidence) -> Vec<Finding> {
        let mut found = findings(evidence, self.desk.seed);
        let past = self.past.as_deref().unwrap_or_default();
        found.sort_by_key(|finding| Reverse(i16::from(finding.confidence) + prior(finding, past)));
        found
    }

    fn untried<'a>(&self, finding: &'a Finding) -> Option<&'a Repair> {
        finding
            .repairs
            .iter()
            .find(|repair| !self.tried.contains(&repair.signature()))
    }

    fn is_late(&self) -> bool {
        self.started.elapsed() >= self.pace.last_call
    }

    /// Asks for past incidents, once, with what was seen and nothing else.
    fn consult(&mut self, evidence: &Evidence) {
        if self.past.is_none() {
            let exemplars = self.desk.past.similar_to(&symptoms(evidence));
            self.account.read(&exemplars);
            self.past = Some(exemplars);
        }
    }

    async fn attempt(
        &mut self,
        finding: &Finding,
        repair: &Repair,
        time: &str,
    ) -> Result<(), AgentError> {
        self.account.state(finding);
        self.tried.insert(repair.signature());
        let (client, namespaces) = (&self.desk.client, &self.desk.task.namespaces);
        if let Err(error) = repair::apply(client, namespaces, repair, time).await {
            // A change may have been made before its restart was refused.
            let reverted = repair::revert(client, namespaces, repair, time)
                .await
                .is_ok();
            self.account.failed(repair, &chain(&error), reverted);
            return Ok(());
        }
        self.account.did(repair, time);
        let watch = Watch {
            client,
            namespaces,
            pace: self.pace,
            seed: self.desk.seed,
            until: self.started + self.pace.last_call,
        };
        let verdict = watch
            .outcome(finding, repair)
            .await
            .map_err(|e| AgentError::Cluster(Box::new(e)))?;
        match verdict {
            Verdict::Mended => self.account.helped(finding, repair, true),
            Verdict::Progressed => self.account.helped(finding, repair, false),
            Verdict::NotBetter(why) => {
                let reverted = !repair.fields.is_empty()
                    && repair::revert(client, namespaces, repair, time)
                        .await
                        .is_ok();
                self.account.failed(repair, &why, reverted);
            }
        }
        Ok(())
    }
}

/// A full look, patient with a server that stumbles.
pub(super) async fn patient_look(
    client: &kube::Client,
    namespaces: &[String],
) -> Result<Evidence, AgentError> {
    let mut failures = 0;
    loop {
        match observe::everything(client, namespaces).await {
            Ok(evidence) => return Ok(evidence),
            Err(error) if failures + 1 >= FAILED_LOOKS => {
                return Err(AgentError::Cluster(Box::new(error)));
            }
            Err(_) => failures += 1,
        }
        sleep(PAUSE).await;
    }
}

/// How far past incidents move an explanation: towards what was resolved before, away from what went wrong.
fn prior(finding: &Finding, past: &[Exemplar]) -> i16 {
    let of_category = |outcome| {
        past.iter()
            .any(|e| e.outcome == outcome && e.primary_category.as_str() == finding.category)
    };
    match (
        of_category(Outcome::Resolved),
        of_category(Outcome::Regressed),
    ) {
        (true, _) => PRIOR,
        (false, true) => -PRIOR,
        (false, false) => 0,
    }
}

/// The cluster's own time, for stamps. Never the wall clock of this process.
pub(super) fn time_of(evidence: &Evidence) -> String {
    evidence
        .latest_time
        .clone()
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
