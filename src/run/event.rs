//! What a run tells while it goes on. Consumers print, count or stream; the run does not know them.

use crate::ids::RunId;
use crate::record::StageName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A run began.
    Started { run_id: RunId, seed: u64 },
    /// A stage began, on the run's clock.
    Stage { stage: StageName, at_ms: u64 },
    /// Something that a person should know and that decides nothing.
    Notice { text: String },
    /// Ended with a framework error, told before undo and clean.
    Failed { code: &'static str, message: String },
}
