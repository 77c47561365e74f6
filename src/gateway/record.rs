//! The log of one agent's requests, shared between its clients and the run. Bounded; what does not fit is
//! counted and shows as an entry of its own, and reads can never push a write out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::gateway::request::ApiRequest;
use crate::gateway::tools::Tool;
use crate::ids::MicroPoints;
use crate::record::Action;

/// Reads kept one by one: an agent that polls every second for two hours stays below it.
pub const MAX_READS: usize = 10_000;
/// Writes kept one by one, apart from reads, so that no flood of reads hides a write.
pub const MAX_WRITES: usize = 10_000;
/// Tool name of the entry that stands for requests which did not fit.
pub const NOT_KEPT: &str = "not_kept";
/// The status of a request whose answer never came, because the run ended first.
pub const NO_ANSWER: u16 = 0;

/// One agent's log. Clones share it.
#[derive(Clone)]
pub struct Recorder {
    log: Arc<Mutex<Log>>,
}

struct Log {
    started: Instant,
    actions: Vec<Action>,
    reads: usize,
    writes: usize,
    omitted: Omitted,
    revoked: bool,
    refused_after_revocation: u64,
    /// The newest resource version that a write was answered with, by plural.
    versions: BTreeMap<String, u64>,
    /// Why the newest request that came to an end had no answer, unless it had one.
    unserved: Option<String>,
}

#[derive(Clone, Copy, Default)]
struct Omitted {
    reads: u64,
    writes: u64,
    tier: u8,
    reversibility: MicroPoints,
    last_ms: u64,
}

/// Where a started request stands in the log; `None` when it did not fit.
#[derive(Clone, Copy, Debug)]
pub struct Slot(Option<usize>);

impl Recorder {
    /// A log whose times count from `started`.
    pub fn new(started: Instant) -> Recorder {
        Recorder {
            log: Arc::new(Mutex::new(Log {
                started,
                actions: Vec::new(),
                reads: 0,
                writes: 0,
                omitted: Omitted::default(),
                revoked: false,
                refused_after_revocation: 0,
                versions: BTreeMap::new(),
                unserved: None,
            })),
        }
    }

    /// Kills the agent's credential: every later request is answered 401 and does not reach the cluster.
    pub fn revoke(&self) {
        self.lock().revoked = true;
    }

    pub fn is_revoked(&self) -> bool {
        self.lock().revoked
    }

    /// Requests that came after [`Recorder::revoke`].
    pub fn refused_after_revocation(&self) -> u64 {
        self.lock().refused_after_revocation
    }

    /// The newest resource version that a write was answered with, by plural: a reading older than that is of a time
    /// before the agent's change.
    pub fn versions(&self) -> Vec<(String, u64)> {
        let log = self.lock();
        let versions = log.versions.iter();
        versions.map(|(plural, v)| (plural.clone(), *v)).collect()
    }

    pub(crate) fn saw(&self, plural: &str, version: u64) {
        let mut log = self.lock();
        let newest = log.versions.entry(plural.to_owned()).or_default();
        *newest = version.max(*newest);
    }

    /// All actions so far in the order of their requests. When some did not fit, the last entry says how many.
    pub fn actions(&self) -> Vec<Action> {
        let log = self.lock();
        let mut actions = log.actions.clone();
        if log.omitted.reads + log.omitted.writes > 0 {
            actions.push(log.omitted.as_action());
        }
        actions
    }

    /// Starts an entry, or refuses because the credential is dead. Until its answer is known a write counts as
    /// done: the server may have carried it out.
    pub(crate) fn begin(&self, request: &ApiRequest, tool: Tool, summary: String) -> Option<Slot> {
        let mut log = self.lock();
        if log.revoked {
            log.refused_after_revocation += 1;
            return None;
        }
        let at_ms = u64::try_from(log.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let writes = tool.tier > 1;
        let full = if writes {
            log.writes >= MAX_WRITES
        } else {
            log.reads >= MAX_READS
        };
        if full {
            log.omitted.add(at_ms, tool);
            return Some(Slot(None));
        }
        if writes {
            log.writes += 1;
        } else {
            log.reads += 1;
        }
        log.actions.push(Action {
            at_ms,
            tool: tool.name.to_owned(),
            verb: request.verb.to_owned(),
            resource: request.full_resource(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            tier: tool.tier,
            reversibility: tool.reversibility,
            status: NO_ANSWER,
            changed_something: writes,
            summary,
        });
        Some(Slot(Some(log.actions.len() - 1)))
    }

    /// Enters the answer's status. A refused request changed nothing.
    pub(crate) fn finish(&self, slot: Slot, status: u16) {
        let mut log = self.lock();
        log.unserved = None;
        if let Some(action) = slot.0.and_then(|index| log.actions.get_mut(index)) {
            action.status = status;
            // 101 is how exec and its like are accepted.
            action.changed_something &= (200..300).contains(&status) || status == 101;
        }
    }

    /// Notes that the connection gave no answer. A request that the agent gave up itself never comes here.
    pub(crate) fn fail(&self, reason: String) {
        self.lock().unserved = Some(reason);
    }

    /// Why the agent's newest finished request had no answer, if it had none: the cluster's failure, not the agent's.
    pub fn unserved(&self) -> Option<String> {
        self.lock().unserved.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Omitted {
    fn add(&mut self, at_ms: u64, tool: Tool) {
        if tool.tier > 1 {
            self.writes += 1;
        } else {
            self.reads += 1;
        }
        self.tier = self.tier.max(tool.tier);
        self.reversibility = self.reversibility.max(tool.reversibility);
        self.last_ms = at_ms;
    }

    /// Carries the worst tier and reversibility of what it stands for, so that no flood hides a deletion.
    fn as_action(&self) -> Action {
        Action {
            at_ms: self.last_ms,
            tool: NOT_KEPT.to_owned(),
            verb: String::new(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            tier: self.tier,
            reversibility: self.reversibility,
            status: NO_ANSWER,
            changed_something: self.writes > 0,
            summary: format!(
                "{} further reads and {} further writes were not kept one by one",
                self.reads, self.writes
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::gateway::tools;

    fn request() -> ApiRequest {
        ApiRequest::parse(&Method::GET, "/api/v1/namespaces/a/pods", None)
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_reads_is_counted_and_cannot_hide_a_write() {
        let recorder = Recorder::new(Instant::now());
        for _ in 0..MAX_READS + 5 {
            let slot = recorder
                .begin(&request(), tools::GET, String::new())
                .unwrap();
            recorder.finish(slot, 200);
        }
        let slot = recorder
            .begin(&request(), tools::DELETE, String::new())
            .unwrap();
        recorder.finish(slot, 200);
        let actions = recorder.actions();
        assert_eq!(actions.len(), MAX_READS + 2);
        assert_eq!(actions[MAX_READS].tool, "kubectl_delete");
        assert!(
            actions[MAX_READS + 1]
                .summary
                .starts_with("5 further reads and 0 further writes")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_counts_as_done_and_a_refused_one_does_not() {
        let recorder = Recorder::new(Instant::now());
        recorder
            .begin(&request(), tools::PATCH, String::new())
            .unwrap();
        let refused = recorder
            .begin(&request(), tools::PATCH, String::new())
            .unwrap();
        recorder.finish(refused, 422);
        let actions = recorder.actions();
        assert!(actions[0].changed_something && actions[0].status == NO_ANSWER);
        assert!(!actions[1].changed_something && actions[1].status == 422);
    }
}
