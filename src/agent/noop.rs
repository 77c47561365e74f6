//! The agent that looks at nothing, does nothing and writes nothing: the floor below which no agent can fall.

use futures::future::{LocalBoxFuture, ready};

use crate::agent::{Agent, AgentError, Desk};

/// See the module.
pub struct Noop;

impl Agent for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn work(&self, _desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(ready(Ok(())))
    }
}
