//! A simulation of an agent that errs like a person and leans on past incidents. It tests the instrument; what it
//! earns is no evidence about real agents, and every record of it says so.
//!
//! It sees and repairs as the rules agent does, but believes, chooses and checks by a model with few parameters
//! (`model`). Each decision is drawn from the desk's seed by its purpose and number (`chance`), so that two runs of
//! one seed which differ in what they were shown differ by nothing else. Past incidents are judged against the
//! agent's own evidence (`belief`): it has nothing else to judge them by. docs/agent-guide.md has the formulas.

mod belief;
mod chance;
pub mod model;
mod shift;

use futures::future::LocalBoxFuture;

use crate::agent::simulated::model::Model;
use crate::agent::simulated::shift::Shift;
use crate::agent::{Agent, AgentError, Desk};

/// See the module.
pub struct Simulated {
    model: Model,
    version: String,
}

impl Simulated {
    pub fn new(model: Model) -> Simulated {
        Simulated {
            version: format!("{REVISION} {model}"),
            model,
        }
    }
}

/// Raised whenever the same parameters give other behaviour.
const REVISION: u32 = 1;

impl Agent for Simulated {
    fn name(&self) -> &str {
        "simulated"
    }

    /// With every parameter, so that records of differently parametrised runs are told apart.
    fn version(&self) -> &str {
        &self.version
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(Shift::new(desk, self.model).work())
    }
}
