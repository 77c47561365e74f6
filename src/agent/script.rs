//! An agent that does what a file says, step by step: for tests and for authors of scenarios.
//!
//! `load` reads the file strictly, before anything runs; `perform` carries a step out. The file is the agent: its
//! text's digest is the version.

mod load;
mod perform;

use std::path::Path;

use futures::future::LocalBoxFuture;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::agent::hands::{Kind, PatchKind};
use crate::agent::{Agent, AgentError, Desk, StatedHypothesis};
use crate::record::Postmortem;
use crate::scenario::model::PathStep;
use crate::scenario::problem::{Position, Problems};
use crate::scenario::yaml::from_bytes;

/// Letters of the digest in a version: enough that two scripts never share one.
const DIGEST_LETTERS: usize = 16;

/// A script that may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    name: String,
    version: String,
    steps: Vec<Step>,
}

/// One step and where it stands, for messages.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    line: usize,
    deed: Deed,
}

/// An object as a step names it.
#[derive(Clone, Debug, PartialEq)]
struct Target {
    kind: &'static Kind,
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Get(Target),
    List {
        kind: &'static Kind,
        namespace: String,
    },
    /// Of a pod, or of the first pod that a workload selects.
    Logs {
        target: Target,
        container: Option<String>,
        previous: bool,
    },
    Patch {
        target: Target,
        how: PatchKind,
        body: Value,
    },
    Restart(Target),
    Delete(Target),
    Wait {
        seconds: u32,
    },
    /// Until a field has a value; null means that it is not there.
    WaitUntil {
        target: Target,
        path: Vec<PathStep>,
        equals: Value,
        timeout_s: u32,
    },
    Retrieve(String),
    Hypothesis(StatedHypothesis),
    Postmortem(Postmortem),
}

impl Script {
    /// Loads a script. `file` is its name for messages; its stem names the agent.
    ///
    /// # Errors
    /// Every problem of the file, with its line and column.
    pub fn load(text: &str, file: &str) -> Result<Script, Problems> {
        let stem = Path::new(file).file_stem();
        let stem = stem.map_or_else(|| file.into(), |stem| stem.to_string_lossy());
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        Ok(Script {
            name: format!("script:{stem}"),
            version: digest[..DIGEST_LETTERS].to_owned(),
            steps: load::steps(text, file)?,
        })
    }

    /// Reads and loads a file.
    ///
    /// # Errors
    /// A file that cannot be read, or every problem of its text.
    pub fn read(file: &str) -> Result<Script, Problems> {
        let unreadable = |error: std::io::Error| {
            Problems::one(file, Position::START, format!("cannot be read: {error}"))
        };
        let text = from_bytes(&std::fs::read(file).map_err(unreadable)?, file)?;
        Script::load(&text, file)
    }
}

/// The agent of a script.
pub struct Scripted(pub Script);

impl Agent for Scripted {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn work(&self, desk: Desk) -> LocalBoxFuture<'static, Result<(), AgentError>> {
        Box::pin(perform::all(self.0.steps.clone(), desk))
    }
}
