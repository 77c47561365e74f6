//! Watches whether a repair helps: well and steady, still sick in the same way, or sick in another.

use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep};

use crate::agent::diagnose::findings;
use crate::agent::evidence::{Evidence, Subject, observe};
use crate::agent::finding::{Finding, Repair};
use crate::agent::pace::Pace;
use crate::ids::Seed;

/// What became of a repair.
#[derive(Debug)]
pub enum Verdict {
    /// Everything concerned was well for the whole steady time.
    Mended,
    /// The same explanation still holds, or nothing came of it in time.
    NotBetter(String),
    /// The explanation is gone and another has come to light: keep the change, go on.
    Progressed,
}

/// A verdict that is surely wrong this early: new pods have not had time to fail.
const GRACE: Duration = Duration::from_secs(20);
/// Between two thorough looks while things are not well.
const THOROUGH_EVERY: Duration = Duration::from_secs(15);
/// The same explanation must be seen this often before a change of a template is given up early.
const SEEN_AGAIN: u32 = 2;
/// Below it an explanation does not outlive or displace another.
const SURE: u8 = 80;

/// Where and how to watch.
pub struct Watch<'a> {
    pub client: &'a Client,
    pub namespaces: &'a [String],
    pub pace: Pace,
    pub seed: Seed,
    /// The last moment to come to a verdict.
    pub until: Instant,
}

impl Watch<'_> {
    /// Watches from now on, the repair having just been made.
    pub async fn outcome(
        &self,
        finding: &Finding,
        repair: &Repair,
    ) -> Result<Verdict, kube::Error> {
        let started = Instant::now();
        let deadline = (started + self.pace.verify).min(self.until);
        let concerned = concerned(finding, repair);
        let remakes_pods = repair.restart.is_some()
            || repair.fields.iter().any(|f| f.is_at(&["spec", "template"]));
        let mut steady: Option<(Instant, i64)> = None;
        let mut thorough = started + GRACE;
        let mut again = 0;
        loop {
            let seen = observe::workloads(self.client, self.namespaces).await?;
            let now = Instant::now();
            let well = all_well(&seen, &concerned);
            let restarts = restarts(&seen, &concerned);
            steady = match (well, steady) {
                (true, Some((since, before))) if restarts <= before => Some((since, before)),
                (true, _) => Some((now, restarts)),
                (false, _) => None,
            };
            if let Some((since, _)) = steady
                && now.duration_since(since) >= self.pace.steady
            {
                return self.last_word(finding).await;
            }
            if steady.is_none() && now >= thorough {
                thorough = now + THOROUGH_EVERY;
                match self.thorough_look(finding).await? {
                    Still::Same if remakes_pods => again += 1,
                    Still::Other if remakes_pods => return Ok(Verdict::Progressed),
                    _ => {}
                }
                if again >= SEEN_AGAIN {
                    return Ok(Verdict::NotBetter(
                        "new pods fail in the same way".to_owned(),
                    ));
                }
            }
            // A steady stretch under way may run to its end as long as the budget lasts.
            let limit = if steady.is_some() {
                self.until
            } else {
                deadline
            };
            if now >= limit {
                let waited = now.duration_since(started).as_secs();
                return Ok(Verdict::NotBetter(format!("not well after {waited} s")));
            }
            sleep(self.pace.look_every).await;
        }
    }

    /// Well and steady; but some troubles do not show in a workload's own state.
    async fn last_word(&self, finding: &Finding) -> Result<Verdict, kube::Error> {
        match self.thorough_look(finding).await? {
            Still::Same => Ok(Verdict::NotBetter(
                "the same explanation still holds".to_owned(),
            )),
            _ => Ok(Verdict::Mended),
        }
    }

    async fn thorough_look(&self, finding: &Finding) -> Result<Still, kube::Error> {
        let evidence = observe::everything(self.client, self.namespaces).await?;
        let found = findings(&evidence, self.seed);
        let of_subject: Vec<&Finding> = found
            .iter()
            .filter(|f| f.subject == finding.subject)
            .collect();
        let same = of_subject
            .iter()
            .any(|f| f.key == finding.key && f.confidence >= SURE.min(finding.confidence));
        let other = of_subject
            .first()
            .is_some_and(|f| f.key != finding.key && f.confidence >= SURE);
        Ok(match (same, other) {
            (true, _) => Still::Same,
            (false, true) => Still::Other,
            (false, false) => Still::Neither,
        })
    }
}

enum Still {
    Same,
    Other,
    Neither,
}

/// The workloads that must be well: what was explained, what was changed, what was restarted.
fn concerned(finding: &Finding, repair: &Repair) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = [
        Some(&finding.subject),
        Some(&repair.target),
        repair.restart.as_ref(),
    ]
    .into_iter()
    .flatten()
    .filter(|subject| matches!(subject.kind, "Deployment" | "StatefulSet" | "DaemonSet"))
    .cloned()
    .collect();
    subjects.sort();
    subjects.dedup();
    subjects
}

fn all_well(evidence: &Evidence, subjects: &[Subject]) -> bool {
    subjects.iter().all(|subject| {
        evidence
            .workload(subject)
            .is_some_and(|workload| workload.desired > 0 && workload.is_settled())
    })
}

fn restarts(evidence: &Evidence, subjects: &[Subject]) -> i64 {
    subjects
        .iter()
        .filter_map(|subject| evidence.workload(subject))
        .map(|workload| workload.restarts())
        .sum()
}
