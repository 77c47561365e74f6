//! What the rules agent tells at the end: its postmortem, and the hypotheses on the way.

use tokio::time::Instant;

use crate::agent::finding::{Finding, Repair};
use crate::agent::{Notebook, StatedHypothesis};
use crate::ids::CategoryId;
use crate::record::{ActionTaken, Exemplar, Postmortem};

/// Quotes in a diagnosis; more than these repeat each other.
const MAX_QUOTES: usize = 6;
/// The confidence of a diagnosis whose repair was seen to work.
const PROVEN: f64 = 0.97;

/// Keeps what has to be told.
pub struct Account {
    started: Instant,
    notes: Notebook,
    last_stated: Option<String>,
    /// When each explanation was first stated.
    stated_at: Vec<(String, f64)>,
    actions: Vec<ActionTaken>,
    did_not_work: Vec<String>,
    mended: Option<(Finding, f64)>,
    fixes: Vec<String>,
    consulted: Vec<String>,
}

impl Account {
    pub fn new(notes: Notebook) -> Account {
        Account {
            started: Instant::now(),
            notes,
            last_stated: None,
            stated_at: Vec::new(),
            actions: Vec::new(),
            did_not_work: Vec::new(),
            mended: None,
            fixes: Vec::new(),
            consulted: Vec::new(),
        }
    }

    fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// States a hypothesis, unless it is the one stated last.
    pub fn state(&mut self, finding: &Finding) {
        if self.last_stated.as_ref() == Some(&finding.key) {
            return;
        }
        self.last_stated = Some(finding.key.clone());
        let at = self.elapsed_s();
        if !self.stated_at.iter().any(|(key, _)| *key == finding.key) {
            self.stated_at.push((finding.key.clone(), at));
        }
        self.notes.hypothesis(StatedHypothesis {
            primary_category: CategoryId::new(finding.category.clone()),
            secondary_categories: finding
                .secondary
                .iter()
                .map(|c| CategoryId::new(*c))
                .collect(),
            confidence: f64::from(finding.confidence) / 100.0,
            reasoning: diagnosis(finding),
        });
    }

    /// Past incidents that were read, whether or not they fitted.
    pub fn read(&mut self, exemplars: &[Exemplar]) {
        self.consulted.extend(exemplars.iter().map(|e| {
            format!(
                "{} ({}, distance {:.2})",
                e.id, e.primary_category, e.distance
            )
        }));
    }

    pub fn looked(&mut self, time: &str) {
        for (tool, what) in [
            (
                "kubectl_get",
                "workloads, pods, events, services, configuration of the namespaces",
            ),
            (
                "kubectl_logs",
                "current and previous logs of containers that are not ready",
            ),
        ] {
            self.action(tool, 0.0, what.to_owned(), time, None);
        }
    }

    pub fn did(&mut self, repair: &Repair, time: &str) {
        if !repair.fields.is_empty() {
            let scales = repair
                .fields
                .iter()
                .all(|field| field.dotted() == "spec.replicas");
            let tool = if scales {
                "kubectl_scale"
            } else {
                "kubectl_patch"
            };
            let words = Repair {
                restart: None,
                ..repair.clone()
            }
            .words();
            self.action(tool, 0.3, words, time, None);
        }
        if let Some(workload) = &repair.restart {
            self.action(
                "kubectl_rollout_restart",
                0.3,
                workload.to_string(),
                time,
                None,
            );
        }
    }

    fn action(
        &mut self,
        tool: &str,
        reversibility: f64,
        what: String,
        time: &str,
        reason: Option<String>,
    ) {
        self.actions.push(ActionTaken {
            tool: tool.to_owned(),
            reversibility,
            input_summary: what,
            at: time.to_owned(),
            reverted: reason.is_some(),
            revert_reason_mechanical: reason,
        });
    }

    /// A repair that was refused or brought nothing, and whether it was taken back.
    pub fn failed(&mut self, repair: &Repair, why: &str, reverted: bool) {
        let end = if reverted { "; taken back" } else { "" };
        self.did_not_work
            .push(format!("{}: {why}{end}", repair.words()));
        if reverted {
            for action in self
                .actions
                .iter_mut()
                .rev()
                .take(usize::from(!repair.fields.is_empty()))
            {
                action.reverted = true;
                action.revert_reason_mechanical = Some(why.to_owned());
            }
        }
    }

    pub fn helped(&mut self, finding: &Finding, repair: &Repair, mended: bool) {
        self.fixes
            .push(format!("{} ({})", repair.words(), repair.why));
        if mended {
            self.mended = Some((finding.clone(), self.elapsed_s()));
        }
    }

    pub fn has_mended(&self) -> bool {
        self.mended.is_some()
    }

    /// Writes the postmortem: about the explanation whose repair worked, else about the best one left. Nothing is
    /// written when nothing was seen to be wrong.
    pub fn close(mut self, best: Option<&Finding>) {
        let proven = self.mended.clone();
        let subject = proven
            .as_ref()
            .map(|(finding, _)| finding)
            .or(best)
            .cloned();
        let Some(finding) = subject else {
            // A cause that was never seen is not named, only to have named one.
            return;
        };
        self.state(&finding);
        let end = self.elapsed_s();
        let confidence = match proven {
            Some(_) => PROVEN,
            None => f64::from(finding.confidence) / 100.0,
        };
        let diagnosed = self
            .stated_at
            .iter()
            .find(|(key, _)| *key == finding.key)
            .map_or(end, |(_, at)| *at);
        let side_effects = match self.consulted.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "past incidents read: {}",
                self.consulted.join(", ")
            )],
        };
        self.notes.postmortem(Postmortem {
            final_diagnosis: diagnosis(&finding),
            primary_category: CategoryId::new(finding.category.clone()),
            secondary_categories: finding
                .secondary
                .iter()
                .copied()
                .map(CategoryId::new)
                .collect(),
            confidence,
            actions_taken: self.actions,
            fix_applied: match self.fixes.is_empty() {
                true => "none".to_owned(),
                false => self.fixes.join("; then "),
            },
            what_did_not_work: self.did_not_work,
            time_to_diagnose_s: diagnosed,
            time_to_fix_s: proven.map_or(end, |(_, at)| at),
            side_effects_observed: side_effects,
        });
    }
}

fn diagnosis(finding: &Finding) -> String {
    let mut text = finding.statement.clone();
    for quote in finding.quotes.iter().take(MAX_QUOTES) {
        text.push_str("\n- ");
        text.push_str(quote);
    }
    text
}
